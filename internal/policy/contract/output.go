package contract

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/leaf/schema"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/outputcheck"
)

// OutputRules evaluates the rules on outputs.
type OutputRules interface {
	Judge(ctx context.Context, on constitution.On, f constitution.Facts) []constitution.Finding
}

// OutputCheck evaluates what came out of an act (K8): the output schema, the contract's
// predicates in their order, then the rules on outputs.
type OutputCheck struct {
	Contract *Contract
	Rules    OutputRules
	// Facts are those of the request, with what was fetched for the output.
	Facts constitution.Facts
	// Predicates returns what predicates may know of the crossing.
	Predicates func() outputcheck.Context
	// Time is the time that the caller gives the check.
	Time     time.Duration
	Log      *slog.Logger
	Crossing string // in the log
}

// OutputResult is what an OutputCheck found.
type OutputResult struct {
	// Asked reports whether anything was evaluated.
	Asked bool
	// Spoke are the rules that matched.
	Spoke []constitution.Finding
	// Err is why the output is withheld, or nil.
	Err error
}

// Run evaluates the output.
func (o *OutputCheck) Run(ctx context.Context, out holdfast.Output) OutputResult {
	c := o.Contract
	tree, err := parseOutput(out.Body)
	if err != nil && c.ChecksOutput() {
		return OutputResult{Asked: true, Err: Withhold(holdfast.KindType, c.Source,
			"the output is not JSON that a predicate can be asked of")}
	}
	if c.Output != nil && out.ExitCode == 0 {
		if err := c.checkSchema(ctx, out, tree); err != nil {
			return OutputResult{Asked: true, Err: err}
		}
	}
	facts := o.Facts
	facts.Output, facts.OutputSize, facts.ExitCode = tree, len(out.Body), out.ExitCode
	if err != nil {
		facts.Output = string(out.Body)
	}
	for _, p := range c.Checks {
		if err := o.checkPredicate(ctx, p, facts); err != nil {
			return OutputResult{Asked: true, Err: err}
		}
	}
	return o.checkRules(ctx, facts)
}

// checkSchema compares the structured output with the contract's schema.
func (c *Contract) checkSchema(ctx context.Context, out holdfast.Output, tree any) error {
	const rule = "output_schema_conformance"
	if out.Structured != nil {
		var err error
		if tree, err = parseOutput(out.Structured); err != nil {
			return Withhold(holdfast.KindType, rule, "the structured output is not JSON")
		}
	}
	errs, err := c.Output.Validate(ctx, tree)
	if err != nil {
		return Withhold(holdfast.KindEval, rule, "the output could not be validated")
	}
	if len(errs) > 0 {
		return Withhold(holdfast.KindEvalFailure, rule, "the output violates its schema: "+schema.Describe(errs))
	}
	return nil
}

// Conforms returns why a value does not conform to the contract's output schema.
func (c *Contract) Conforms(ctx context.Context, output any) error {
	if c.Output == nil {
		return errors.New("the contract names no output schema")
	}
	vs, err := c.Output.Validate(ctx, output)
	if err == nil && len(vs) > 0 {
		err = errors.New(schema.Describe(vs))
	}
	return err
}

// checkPredicate evaluates one predicate of the output (D12).
func (o *OutputCheck) checkPredicate(ctx context.Context, p constitution.Predicate, f constitution.Facts) error {
	ok, why, err := p.Check(ctx, f, o.Predicates())
	rule := p.ID + " " + excerpt.Of(p.Version, 16) + " (" + p.Where + ")"
	switch {
	case errors.Is(err, failure.ErrTimeout):
		return Withhold(holdfast.KindTimeout, rule, "the predicate "+p.ID+" took longer than "+o.Time.String())
	case errors.Is(err, failure.ErrType):
		return Withhold(holdfast.KindType, rule, "the output cannot be given to the predicate "+p.ID)
	case err != nil:
		o.Log.Error("a predicate failed", "predicate", p.ID, "crossing", o.Crossing, "err", err)
		return Withhold(holdfast.KindEval, rule, "the predicate "+p.ID+" failed")
	case !ok:
		return Withhold(holdfast.KindEvalFailure, rule, why)
	}
	return nil
}

func (o *OutputCheck) checkRules(ctx context.Context, facts constitution.Facts) OutputResult {
	found := o.Rules.Judge(ctx, constitution.OnOutput, facts)
	r := OutputResult{Asked: o.Contract.ChecksOutput() || len(found) > 0, Spoke: found}
	for _, f := range found {
		if f.Verdict == holdfast.Allow {
			continue
		}
		rule := f.Rule + " (" + f.Where + ")"
		if f.Err != nil {
			r.Err = Withhold(holdfast.KindEval, rule, "the rule "+f.Rule+" failed: "+excerpt.Of(f.Err.Error(), 256))
			return r
		}
		r.Err = Withhold(holdfast.KindEvalFailure, rule, f.Message)
		return r
	}
	return r
}

// Withhold returns K8's error for an output.
func Withhold(kind holdfast.Kind, rule, why string) *holdfast.Error {
	return &holdfast.Error{Kind: kind, Gate: holdfast.K8, Rule: rule, Why: why,
		Hint: "the operation was done and is settled; its output is withheld"}
}

// parseOutput parses what came out for predicates; an empty body is null.
func parseOutput(body []byte) (any, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, nil
	}
	doc, err := payload.ParseLimited(body, holdfast.MaxPayload, 64)
	if err != nil {
		return nil, err
	}
	return doc.Value(), nil
}
