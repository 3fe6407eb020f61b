// Package contract makes the contracts of boundaries ready, and finds the one of a boundary.
package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/schema"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/lookalike"
	"github.com/holdfast-dev/holdfast/internal/policy/pricing"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Rules is what contracts need of a constitution.
type Rules interface {
	// Predicate finds a predicate over outputs by its ID.
	Predicate(id string) (constitution.Predicate, bool)
	// Misfits returns the rules that could never match at a boundary, one sentence each.
	Misfits(b constitution.Boundary) ([]string, error)
}

// Contract is a contract made ready: its schemas and expressions are compiled once. If one
// does not compile, the error is kept, and crossing the boundary is refused with it. It is
// immutable.
type Contract struct {
	holdfast.Contract
	Input        *schema.Schema  // or nil
	Names        lookalike.Names // of the members that Input knows
	Output       *schema.Schema  // or nil
	SchemaErr    error           // of either schema
	Score        *constitution.Score
	ScoreErr     error
	Checks       []constitution.Predicate // on outputs
	PredicateErr error
	BoundsErr    error // a number that bounds nothing
	Pricing      *pricing.Expressions
	PricingErr   error
	// Hash is over all that the contract says: remembered rules are bound to it. It is
	// empty if nothing can be bound.
	Hash string
	// Drifted says that a boundary that a server listed is no longer what it was at first.
	Drifted bool
	// Loosened are the weakenings that apply where it governs, of a listed contract.
	Loosened []string
	// Misfits are rules that could never match here, of a boundary that a server listed.
	Misfits []string
}

// defaultActTime bounds an act whose contract names no timeout.
const defaultActTime = 5 * time.Minute

// SchemaName returns the name of the schema in records.
func (c *Contract) SchemaName() string {
	if c.SchemaID != "" {
		return c.SchemaID
	}
	return c.Boundary
}

// ThresholdFor returns the confidence that a request of that risk must have.
func (c *Contract) ThresholdFor(risk holdfast.Risk) float64 {
	if c.Threshold != nil {
		return *c.Threshold
	}
	return risk.Threshold()
}

// ActTime returns the time that an act has.
func (c *Contract) ActTime() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return defaultActTime
}

// RiskOf returns the risk of a request, which only reads if reads.
func (c *Contract) RiskOf(reads bool) holdfast.Risk {
	if !reads || c.Risk == holdfast.Prohibited || c.ReadRisk == holdfast.Prohibited {
		return c.Risk
	}
	return c.ReadRisk
}

// fromPatterns is the RiskFrom of a contract that takes a better risk of a pattern too.
const fromPatterns = "patterns"

// RiskFor returns the risk by which a request is evaluated: the contract's, or that of
// reading (D25c), and a pattern's if that is worse. A contract with RiskFrom "patterns"
// takes a pattern's risk also if that is better, unless the tool has changed or its effect
// cannot be undone. unread says that no pattern could read all of the request; class may be
// nil.
func (c *Contract) RiskFor(class *review.Pattern, reads, unread bool) holdfast.Risk {
	r := c.RiskOf(reads)
	if unread {
		r = min(r, holdfast.High)
	}
	if class == nil {
		return r
	}
	if c.RiskFrom == fromPatterns && !c.Drifted && !c.Irreversible && !unread && c.Risk != holdfast.Prohibited {
		return class.Risk
	}
	return min(r, class.Risk)
}

// ChecksOutput reports whether the contract asks anything of an output.
func (c *Contract) ChecksOutput() bool { return c.Output != nil || len(c.Checks) > 0 }

// checkBounds refuses a number that would silently let everything pass, or nothing.
func checkBounds(c *holdfast.Contract) error {
	no := func(what string) error {
		return &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K7, Rule: c.Source, Why: what}
	}
	switch {
	case c.Threshold != nil && !(*c.Threshold >= 0 && *c.Threshold <= 1): // so that NaN is refused
		return no("the threshold is not between 0 and 1")
	case c.Timeout < 0:
		return no("the timeout is negative")
	case c.Cooldown < 0:
		return no("the cooldown is negative")
	case c.RatePerMinute < 0:
		return no("the rate per minute is negative")
	}
	return nil
}

// Compile makes a contract ready.
func Compile(c holdfast.Contract, rules Rules) *Contract {
	out := &Contract{Contract: c, BoundsErr: checkBounds(&c), Hash: hashContract(&c)}
	if len(c.Schema) > 0 {
		out.Input, out.SchemaErr = schema.Compile(out.SchemaName(), c.Schema)
		out.Names = lookalike.ReadNames(c.Schema)
	}
	if len(c.OutputSchema) > 0 {
		s, err := schema.Compile(out.SchemaName()+"#output", c.OutputSchema)
		out.Output = s
		if err != nil && out.SchemaErr == nil {
			out.SchemaErr = err
		}
	}
	if c.Confidence != "" && c.Confidence != "none" && c.Confidence != "declared" {
		out.Score, out.ScoreErr = constitution.CompileScore(c.Confidence, c.Source)
	}
	out.Pricing, out.PricingErr = pricing.Compile(c.PricedBy, c.Source)
	for _, id := range c.Predicates {
		p, ok := rules.Predicate(id)
		if !ok {
			out.PredicateErr = &holdfast.Error{Kind: holdfast.KindPredicateNotFound, Gate: holdfast.K8, Rule: c.Source,
				Why:  fmt.Sprintf("the predicate %q does not exist", excerpt.Of(id, 128)),
				Hint: "name a built-in predicate or a rule with on: output"}
			break
		}
		out.Checks = append(out.Checks, p)
	}
	return out
}

// firstError returns why a listed contract is refused.
func (c *Contract) firstError() error {
	for _, err := range []error{c.SchemaErr, c.ScoreErr, c.PredicateErr, c.BoundsErr, c.PricingErr} {
		if err != nil {
			return err
		}
	}
	return nil
}

// hashContract hashes all that a contract says but where it is listed.
func hashContract(c *holdfast.Contract) string {
	own := *c
	own.Source = ""
	b, err := json.Marshal(&own)
	if err == nil {
		// A server may order the members of its schema differently each time.
		err = (*jsontext.Value)(&b).Format(jsontext.ReorderRawObjects(true))
	}
	if err != nil { // a malformed schema: nothing can be bound to it
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
