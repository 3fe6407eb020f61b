package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/config/register"
	"github.com/holdfast-dev/holdfast/internal/feature/judge"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/schema"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/ledger"
)

// FactConfig is one fact that is fetched for the rules that name it (D3): JSON of
// at most 64 KiB.
type FactConfig struct {
	File       string    `yaml:"file" doc:"a JSON file, relative to this file, read again whenever it changed; one of file and command"`
	Command    []string  `yaml:"command" doc:"program and arguments that print JSON; one of file and command"`
	Env        []string  `yaml:"env" doc:"of a command: names of environment variables that it is given; no others are"`
	Per        string    `yaml:"per" enum:"request" doc:"of a command: request gives it the redacted request as JSON on its standard input, and keeps no value"`
	Timeout    Duration  `yaml:"timeout" doc:"bounds one fetch; 2s if absent, at most 5s"`
	Keep       *Duration `yaml:"keep" doc:"of a command: how long its value is used again, for all requests; 1m if absent, at most 24h, 0s for no longer than who asks at the same time"`
	Schema     JSON      `yaml:"schema" doc:"JSON Schema of the value; rules are typed by it, and a value that does not fit is none"`
	SchemaFile string    `yaml:"schema_file" doc:"the same from a file, relative to this file"`
	At         string    `yaml:"-"`
}

func factName() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`) }

// notNames are words of the rule language.
func notNames() []string {
	return strings.Fields("true false null in as break const continue else for function if import let loop package namespace return var void while")
}

// factFiles reads the schemas of facts, and refuses a file that somebody else
// could write. One that is not there yet is no mistake: until it is, the rules that
// name it fail.
func (r *reading) factFiles(c *Config) {
	for _, name := range slices.Sorted(maps.Keys(c.Rules.Facts)) {
		f := c.Rules.Facts[name]
		r.schema(f.At, f.SchemaFile, &f.Schema)
		if f.File != "" {
			f.File = r.abs(f.File)
			if _, err := r.guard.Read(f.File, maxConfig); err != nil && !errors.Is(err, fs.ErrNotExist) {
				r.unreadable(f.At, f.File, err)
			}
		}
		c.Rules.Facts[name] = f
	}
}

func (k *checker) facts(c *Config) {
	if len(c.Rules.Facts) > ledger.MaxFetched {
		k.fail(k.at("rules.facts"), "join those that are fetched together", "more than %d facts", ledger.MaxFetched)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Rules.Facts)) {
		f := c.Rules.Facts[name]
		if !factName().MatchString(name) || slices.Contains(notNames(), name) {
			k.fail(f.At, "letters, digits and _, as rules name it: facts.NAME", "%q is no name for a fact",
				excerpt.Word(name))
		}
		k.fact(name, &f)
	}
}

func (k *checker) fact(name string, f *FactConfig) {
	command := f.Command != nil
	switch {
	case command == (f.File != ""):
		k.fail(f.At, "", "the fact %s has one of file and command", excerpt.Word(name))
	case command:
		k.command(f.At, f.Command)
	case f.Env != nil, f.Per != "":
		k.fail(f.At, "", "the fact %s: env and per are of a command alone", excerpt.Word(name))
	case f.Keep != nil:
		k.fail(f.At, "it is read again whenever it changed", "the fact %s: keep is of a command alone",
			excerpt.Word(name))
	}
	if f.Keep != nil && (f.Per != "" || time.Duration(*f.Keep) > judge.LongestKeep) {
		k.fail(f.At, "", "the fact %s is kept for at most %s, and not at all per request", excerpt.Word(name),
			judge.LongestKeep)
	}
	if time.Duration(f.Timeout) > judge.LongestFact {
		k.fail(f.At, "it is a part of what a gate may take", "the fact %s may take at most %s", excerpt.Word(name),
			judge.LongestFact)
	}
	for _, v := range f.Env {
		if !register.IsEnvName(v) {
			k.fail(f.At, "list names; no values stand here", "%q is no name of an environment variable",
				excerpt.Word(v))
		}
	}
	if len(f.Schema) > 0 {
		if _, err := schema.Compile("facts."+name, f.Schema); err != nil {
			why, hint := usage.Explain(err)
			k.fail(f.At, hint, "the fact %s: schema: %s", excerpt.Word(name), why)
		}
	}
}

// RuleSetting is what rules are checked by.
func (c *Config) RuleSetting() constitution.Setting {
	out := constitution.Setting{Boundaries: c.known()}
	for _, name := range slices.Sorted(maps.Keys(c.Rules.Facts)) {
		f := c.Rules.Facts[name]
		out.Facts = append(out.Facts, constitution.Fact{Name: name, Where: f.At, Schema: []byte(f.Schema)})
	}
	return out
}

// ListedBeside are the boundaries that the configuration lists in other places
// than boundaries: MCP servers, egress rows, judges.
func (c *Config) ListedBeside() []string {
	out := []string{goalrule.Boundary, "agent/step"}
	for _, name := range slices.Sorted(maps.Keys(c.MCP.Servers)) {
		out = append(out, gateway.Endpoint(name), gateway.Endpoint(name)+"/*")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Egress.Domains)) {
		out = append(out, "egress/"+strings.ToLower(name))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Judges)) {
		out = append(out, judge.BoundaryPrefix+name)
	}
	return out
}

// factSource fetches the facts of a checked configuration; nil where there are
// none. Whether somebody else could write a file is asked whenever it is read.
func (c *Config) factSource(trees []string) (kernel.FactSource, error) {
	if len(c.Rules.Facts) == 0 {
		return nil, nil
	}
	all := map[string]judge.Fact{}
	for name, f := range c.Rules.Facts {
		made := judge.Fact{File: f.File, Argv: f.Command, Env: f.Env, PerRequest: f.Per != "", Within: cmp.Or(time.Duration(f.Timeout), judge.DefaultFactTime), Keep: judge.DefaultKeep,
			Read: func(path string, most int64) ([]byte, error) { return readGuarded(path, most, trees) }}
		if f.Keep != nil {
			made.Keep = time.Duration(*f.Keep)
		}
		if len(f.Schema) > 0 {
			s, err := schema.Compile("facts."+name, f.Schema)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.At, err)
			}
			made.Conforms = func(ctx context.Context, v any) error { return s.Check(ctx, v) }
		}
		all[name] = made
	}
	return judge.NewFacts(all), nil
}

// readGuarded reads a file that governs, now.
func readGuarded(path string, most int64, trees []string) ([]byte, error) {
	g, err := guard.New(trees)
	if err != nil {
		return nil, err
	}
	b, err := g.Read(path, most)
	if err != nil {
		why, _ := usage.Explain(guard.ExplainReadError(path, err))
		return nil, errors.New(why)
	}
	return b, nil
}

// FactPaths are the files of facts, which no agent may touch.
func (c *Config) FactPaths() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.Rules.Facts)) {
		if f := c.Rules.Facts[name].File; f != "" {
			out = append(out, f)
		}
	}
	return out
}
