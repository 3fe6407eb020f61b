package config

import (
	"crypto/sha256"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// RuleTexts is what rules are checked by, as far as it can be read.
type RuleTexts struct {
	// Sources are the rules in force, whether they load or not.
	Sources []constitution.Source
	// Setting has the boundaries that the configuration lists, and the facts that
	// it declares.
	constitution.Setting
	// Fetch fetches those facts; nil where there are none.
	Fetch kernel.FactSource
}

// RulesHere reads what the configuration at path says of rules, as LoadHere
// would, but does not mind what is wrong with the rules themselves: a rules file
// is checked against its configuration before both are right.
func RulesHere(path string) (*RuleTexts, error) {
	g, err := guard.New(workTrees())
	if err != nil {
		return nil, err
	}
	r := &reading{guard: g, hash: sha256.New()}
	c := &Config{}
	if path != "" {
		if !filepath.IsAbs(path) {
			return nil, usage.Errorf("the configuration's path must be absolute, not %q", path)
		}
		r.dir = filepath.Dir(path)
		if err := r.config(path, c); err != nil {
			return nil, err
		}
	}
	c.withDefaults()
	r.references(c)
	if err := r.problems.asError(); err != nil {
		return nil, err
	}
	check := checker{file: filepath.Base(path), lines: r.lines}
	check.facts(c)
	out := &RuleTexts{Sources: r.ruleSources(c, &check), Setting: c.RuleSetting()}
	if path != "" { // without one, nobody knows what will be listed
		out.Names = c.ListedBeside()
	}
	if err := check.problems.asError(); err != nil {
		return out, err
	}
	out.Fetch, err = c.factSource(workTrees())
	return out, err
}

// ruleSources reads every rules file that the configuration names, and what it
// holds itself.
func (r *reading) ruleSources(c *Config, check *checker) []constitution.Source {
	var sources []constitution.Source
	for i, name := range c.Rules.Files {
		before := len(r.problems)
		if text, ok := r.file(check.at(index("rules.files", i)), name); ok {
			sources = append(sources, constitution.Source{Name: name, Text: text})
		}
		check.problems = append(check.problems, r.problems[before:]...)
	}
	if len(c.Rules.Inline) > 0 {
		sources = append(sources, constitution.Source{Name: check.file, Text: c.Rules.Inline})
	}
	return sources
}
