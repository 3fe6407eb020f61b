package config

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// RiskConfig is one pattern that gives a risk (spec 001, layer 2; D37).
type RiskConfig struct {
	Match  string        `yaml:"match" need:"yes" doc:"RE2 over boundary, operation and the payload's text action, with spaces between, without regard to case"`
	Agents []string      `yaml:"agents" doc:"agents that it is for"`
	Kinds  []string      `yaml:"kinds" doc:"kinds of agent that it is for; everybody's where neither stands"`
	Risk   holdfast.Risk `yaml:"risk" need:"yes" doc:"LOW, MEDIUM, HIGH or PROHIBITED"`
	At     string        `yaml:"-"`
}

// Bounds of the patterns of risk.
const (
	maxRisks   = 200
	maxPattern = 512 // bytes
)

func (k *checker) risks(c *Config) {
	if len(c.Risks) > maxRisks {
		k.fail(k.at("risks"), "join those that give the same risk", "more than %d patterns of risk", maxRisks)
		return
	}
	for i := range c.Risks {
		r := &c.Risks[i]
		if _, err := r.pattern(); err != nil {
			k.errors(err)
		}
		for _, name := range append(append([]string{}, r.Agents...), r.Kinds...) {
			if !plainName(name) {
				k.fail(r.At, "", "%q is no name for an agent or a kind", excerpt.Word(name))
			}
		}
		if r.Agents != nil && len(r.Agents) == 0 || r.Kinds != nil && len(r.Kinds) == 0 {
			k.fail(r.At, "leave the list out for everybody", "a pattern of risk is for nobody")
		}
	}
}

// pattern compiles it. The error has its line.
func (r *RiskConfig) pattern() (review.Pattern, error) {
	bad := func(why, hint string) (review.Pattern, error) {
		return review.Pattern{}, &holdfast.Error{Kind: holdfast.KindValue, Rule: r.At, Why: why, Hint: hint}
	}
	if r.Match == "" || len(r.Match) > maxPattern {
		return bad(fmt.Sprintf("a pattern of risk has 1 to %d bytes", maxPattern), "")
	}
	p, err := review.NewPattern(r.Match)
	if err != nil {
		return bad(fmt.Sprintf("%q is no pattern", excerpt.Word(r.Match)),
			"RE2 has neither lookaround nor backreferences; at most 1000 repetitions")
	}
	p.Agents, p.Kinds, p.Risk, p.Source = r.Agents, r.Kinds, r.Risk, r.At
	return p, nil
}

func (c *Config) risks(p *kernel.Policy) error {
	for i := range c.Risks {
		made, err := c.Risks[i].pattern()
		if err != nil {
			return err
		}
		p.Risks = append(p.Risks, made)
	}
	return nil
}
