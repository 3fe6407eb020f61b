package kernel

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/schema"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/lookalike"
)

// contract is a Contract made ready: its schemas and expressions compiled
// once, with the error kept where one does not compile, so that crossing it is
// refused and says why. It is immutable.
type contract struct {
	holdfast.Contract
	schema       *schema.Schema
	names        lookalike.Names // of the schema's properties
	schemaErr    error
	output       *schema.Schema
	score        *constitution.Score
	scoreErr     error
	predicates   []constitution.Predicate
	predicateErr error
	boundsErr    error // a number that bounds nothing
	pricing      *pricing
	pricingErr   error
	// hash is what remembered rules are bound to; drifted says that this is
	// an observed boundary which is not what it was at first sight.
	hash    string
	drifted bool
	// weakened is what is loosened where it governs, of a listed contract.
	weakened []string
	// misfits are rules that could never speak here, of an observed boundary.
	misfits []string
}

// actTime bounds an act whose contract names no timeout.
const actTime = 5 * time.Minute

func (c *contract) schemaID() string {
	if c.SchemaID != "" {
		return c.SchemaID
	}
	return c.Boundary
}

func (c *contract) threshold(risk holdfast.Risk) float64 {
	if c.Threshold != nil {
		return *c.Threshold
	}
	return risk.Threshold()
}

func (c *contract) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return actTime
}

// badBounds refuses a number that would let everything pass, or nothing at
// all, without saying so.
func badBounds(c *holdfast.Contract) error {
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

func compile(c holdfast.Contract, rules Rules) *contract {
	out := &contract{Contract: c, boundsErr: badBounds(&c), hash: contractHash(&c)}
	if len(c.Schema) > 0 {
		out.schema, out.schemaErr = schema.Compile(out.schemaID(), c.Schema)
		out.names = lookalike.ReadNames(c.Schema)
	}
	if len(c.OutputSchema) > 0 {
		s, err := schema.Compile(out.schemaID()+"#output", c.OutputSchema)
		out.output = s
		if err != nil && out.schemaErr == nil {
			out.schemaErr = err
		}
	}
	if c.Confidence != "" && c.Confidence != "none" && c.Confidence != "declared" {
		out.score, out.scoreErr = constitution.CompileScore(c.Confidence, c.Source)
	}
	out.pricing, out.pricingErr = compilePricing(c.PricedBy, c.Source)
	for _, id := range c.Predicates {
		p, ok := rules.Predicate(id)
		if !ok {
			out.predicateErr = &holdfast.Error{Kind: holdfast.KindPredicateNotFound, Gate: holdfast.K8, Rule: c.Source,
				Why: fmt.Sprintf("the predicate %q does not exist", excerpt.Of(id, 128)), Hint: "name a built-in predicate or a rule with on: output"}
			break
		}
		out.predicates = append(out.predicates, p)
	}
	return out
}

// policy is a Policy made ready. It is swapped whole.
type policy struct {
	*Policy
	exact    map[string]*contract
	folded   map[string]string // the exact names by their folded form
	patterns []*contract       // longest first
	holds    bool              // a rule may hold a request for a person
	outputs  bool              // there may be rules on outputs
	general  []string          // the weakenings that are of no one contract
	prepared map[string]any    // of the features, by name
}

// prepare compiles every contract. One that does not compile refuses the
// whole policy, so that a reload is whole or not at all (D49).
func prepare(p *Policy) (*policy, error) {
	own := *p
	if own.Rules == nil {
		none, err := constitution.Load(nil)
		if err != nil {
			return nil, err
		}
		own.Rules = none
	}
	own.Roles = cloneRoles(p.Roles)
	own.Limits = slices.Clone(p.Limits)
	if slices.ContainsFunc(own.Limits, func(l budget.Limit) bool { return l.Exceed.Acts() }) {
		slices.SortStableFunc(own.Limits, budget.Narrower)
	}
	p = &own
	out := &policy{Policy: p, exact: map[string]*contract{}, folded: map[string]string{}}
	out.holds = anyRule(p.Rules, func(r constitution.Info) bool {
		return r.On == constitution.OnRequest && r.Severity == constitution.SeverityHold
	})
	out.outputs = anyRule(p.Rules, func(r constitution.Info) bool { return r.On == constitution.OnOutput })
	for i := range p.Contracts {
		c := compile(p.Contracts[i], p.Rules)
		for _, err := range []error{c.schemaErr, c.scoreErr, c.predicateErr, c.boundsErr, c.pricingErr} {
			if err != nil {
				return nil, fmt.Errorf("%s: contract %s: %w", c.Source, c.Boundary, err)
			}
		}
		if !strings.HasSuffix(c.Boundary, "*") {
			if _, twice := out.exact[c.Boundary]; twice {
				return nil, fmt.Errorf("%s: the boundary %s is listed twice", c.Source, c.Boundary)
			}
			out.exact[c.Boundary], out.folded[lookalike.Fold(c.Boundary)] = c, c.Boundary
			continue
		}
		out.patterns = append(out.patterns, c)
	}
	out.shareWeakened()
	sort.SliceStable(out.patterns, func(i, k int) bool {
		return len(out.patterns[i].Boundary) > len(out.patterns[k].Boundary)
	})
	return out, nil
}

// shareWeakened gives each contract the weakenings that are in force where it
// governs: the general ones, and its own.
func (p *policy) shareWeakened() {
	own := map[string]bool{}
	for _, c := range p.Contracts {
		own[c.Weakened] = c.Weakened != ""
	}
	for _, w := range p.Weakened {
		if !own[w] {
			p.general = append(p.general, w)
		}
	}
	share := func(c *contract) {
		c.weakened = p.general
		if c.Weakened != "" {
			c.weakened = append(slices.Clone(p.general), c.Weakened)
		}
	}
	for _, c := range p.exact {
		share(c)
	}
	for _, c := range p.patterns {
		share(c)
	}
}

// weakened is what is loosened for this crossing.
func (j *judgement) weakened() []string {
	if j.contract != nil && j.contract.weakened != nil {
		return j.contract.weakened
	}
	return j.pol.general
}

// cloneRoles keeps the table as it was when the policy was made. None stays
// none, which is not an empty table.
func cloneRoles(from map[string][]string) map[string][]string {
	if from == nil {
		return nil
	}
	out := make(map[string][]string, len(from))
	for role, grants := range from {
		out[role] = slices.Clone(grants)
	}
	return out
}

// anyRule says whether a rule is such, so that what only such rules need is
// not done without one. Of rules that do not list themselves any may be.
func anyRule(rules Rules, such func(constitution.Info) bool) bool {
	listed, ok := rules.(interface{ Rules() []constitution.Info })
	return !ok || slices.ContainsFunc(listed.Rules(), such)
}

// resembles says whether a name differs only in case from one that is listed
// by itself.
func (p *policy) resembles(boundary string) bool {
	exact, ok := p.folded[lookalike.Fold(boundary)]
	return ok && exact != boundary
}

// find returns what configuration says of a boundary, or nil.
func (p *policy) find(boundary string) *contract {
	if c, ok := p.exact[boundary]; ok {
		return c
	}
	for _, c := range p.patterns {
		if strings.HasPrefix(boundary, strings.TrimSuffix(c.Boundary, "*")) {
			return c
		}
	}
	return nil
}

// overlay is an observed boundary as configuration wants it: the observer
// knows the schemas, the configuration decides everything else it names.
func (p *policy) overlay(seen holdfast.Contract) holdfast.Contract {
	c := p.find(seen.Boundary)
	if c == nil {
		return seen
	}
	out := c.Contract
	out.Boundary, out.Pin = seen.Boundary, seen.Pin
	if out.Schema == nil {
		out.Schema, out.SchemaID = seen.Schema, seen.SchemaID
	}
	if out.OutputSchema == nil {
		out.OutputSchema = seen.OutputSchema
	}
	if out.Permissions == nil {
		out.Permissions = seen.Permissions
	}
	if out.Consumes == nil {
		out.Consumes = seen.Consumes
	}
	if out.Predicates == nil {
		out.Predicates = seen.Predicates
	}
	return out
}
