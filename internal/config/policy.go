package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/goal"
	"github.com/holdfast-dev/holdfast/internal/feature/respond"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
)

// Policy makes the kernel's policy of a checked configuration, its rules (nil
// for none), its version and the files it came from. The policy shares nothing
// with c that anybody changes later.
func (c *Config) Policy(rules kernel.Rules, version string, from []string) (*kernel.Policy, error) {
	if version == "" {
		return nil, usage.Errorf("a policy needs a version")
	}
	p := &kernel.Policy{
		Version:  version,
		Roles:    map[string][]string{},
		Kinds:    map[string]kernel.AgentKind{},
		Rules:    rules,
		Weakened: c.Unsafe.Weakened(),
		From:     append([]string(nil), from...),
	}
	for i := range c.Boundaries {
		own := c.contract(&c.Boundaries[i])
		own.Weakened = strings.Trim(c.Boundaries[i].fewerWalls()+"; "+contract.DescribeUnsearched(own), "; ")
		if own.Weakened != "" {
			p.Weakened = append(p.Weakened, own.Weakened)
		}
		p.Contracts = append(p.Contracts, own)
	}
	p.Weakened = append(p.Weakened, c.Snapshots.Weakened()...)
	// What Holdfast itself crosses is made, not listed.
	p.Contracts = append(p.Contracts, respond.ResponseContracts()...)
	for role, permissions := range c.Identity.Roles {
		p.Roles[role] = append([]string{}, permissions...)
	}
	for kind, k := range c.Agents.Kinds {
		p.Kinds[kind] = kernel.AgentKind{Iterations: k.Iterations, Level: k.Trust}
	}
	for _, b := range c.Budgets {
		p.Limits = append(p.Limits, budget.Limit{Scope: budget.Scope(b.Scope), Match: b.Match,
			Resource: holdfast.Resource(b.Resource), Boundary: b.Boundary, Amount: b.Amount, Window: time.Duration(b.Window), Exceed: budget.Exceed(b.Exceed), Source: b.At})
	}
	p.Prices = c.Prices.table()
	for _, l := range c.Limits {
		p.Rates = append(p.Rates, budget.RateLimit{Scope: budget.Scope(l.Scope), Match: l.Match,
			Boundary: l.Boundary, PerMinute: l.PerMinute, Cooldown: time.Duration(l.Cooldown), Source: l.At})
	}
	table, err := c.Egress.table()
	if err != nil {
		return nil, err
	}
	c.Egress.policy(p, table)
	if err := c.risks(p); err != nil {
		return nil, err
	}
	if err := c.judges(p); err != nil {
		return nil, err
	}
	goals, err := c.Rules.Goals.filter(!c.Unsafe.GoalsGoOn)
	if err != nil {
		return nil, err
	}
	p.Sections[goal.Name] = goals
	p.Weakened = append(p.Weakened, goals.Weakened()...)
	p.Weakened = append(p.Weakened, c.looserWatch()...)
	if w := c.Sandbox.Container.unnamed(); w != "" {
		p.Weakened = append(p.Weakened, w)
	}
	return p, nil
}

func (c *Config) contract(b *BoundaryConfig) holdfast.Contract {
	out := holdfast.Contract{
		Boundary:      b.Boundary,
		SchemaID:      b.SchemaID,
		Schema:        json.RawMessage(b.Schema),
		OutputSchema:  json.RawMessage(b.OutputSchema),
		Permissions:   append([]string(nil), b.Permissions...),
		RatePerMinute: b.RatePerMinute,
		Cooldown:      time.Duration(b.Cooldown),
		Risk:          b.Risk,
		RiskFrom:      b.RiskFrom,
		Operation:     b.Operation,
		Threshold:     b.Threshold,
		Confidence:    b.Confidence,
		Judge:         b.Judge,
		Predicates:    append([]string(nil), b.Predicates...),
		Replay:        b.Replay,
		Timeout:       time.Duration(b.Timeout),
		Irreversible:  b.Irreversible,
		OnError:       b.OnError,
		Tier:          b.Tier,
		Walls:         append([]string(nil), b.Walls...),
		Source:        b.At,
	}
	// What cannot be undone has a person's review in front of it (D12, L3).
	if out.Irreversible && out.Risk > holdfast.High {
		out.Risk = holdfast.High
	}
	// The contract's own threshold comes first (D37).
	if t, ok := c.Review.Thresholds[b.Operation]; ok && b.Threshold == nil && b.Operation != "" {
		out.Threshold = &t
	}
	if r := b.Redact; r != nil {
		out.Redact = contract.CompleteRedaction(holdfast.Redaction{Request: r.Request, Response: r.Response,
			Personal: r.Personal, Detector: r.Detector.specText()})
	}
	if by := b.PricedBy; by != nil {
		out.PricedBy = &holdfast.PricedBy{Model: by.Model, InputTokens: by.Input, OutputTokens: by.Output}
	}
	if len(b.Consumes) > 0 {
		out.Consumes = make(map[holdfast.Resource]int64, len(b.Consumes))
		for r, n := range b.Consumes {
			out.Consumes[holdfast.Resource(r)] = n
		}
	}
	return out
}

// fewerWalls says that code runs behind fewer walls than there are (D20).
func (b *BoundaryConfig) fewerWalls() string {
	if len(b.Walls) == 0 {
		return ""
	}
	return fmt.Sprintf("boundaries.walls: %s runs code where only these walls stand: %s", b.Boundary,
		strings.Join(b.Walls, ", "))
}
