package constitution

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution/failure"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/outputcheck"
)

// Predicate is something that K8 asks of an output (spec 003 section 1.9): a
// built-in check (D12), or a rule `on: output` named by a contract. It is code
// or a compiled expression, never a model: no text in an output can argue with
// it. A Predicate never changes and may be shared. The zero Predicate fails.
type Predicate struct {
	ID string
	// Version is the SHA-256 of the rule, or the built-in's name with its
	// number. A predicate that asks something else has another version.
	Version string
	// Where is "file:line" of a rule, or "built in".
	Where string
	// Facts are those that a rule names.
	Facts []string
	check func(context.Context, Facts, outputcheck.Context) (bool, string, error)
}

// The built-in predicates' ids (D12). Each may also be named with its version.
const (
	CelestialConstraintCheck = "celestial_constraint_check"
	GoalCoherenceCheck       = "goal_coherence_check"
	OutputSchemaConformance  = "output_schema_conformance"
	builtinVersion           = "_v1"
	builtInWhere             = "built in"
)

// Builtins lists the ids of the built-in predicates.
func Builtins() []string {
	return []string{CelestialConstraintCheck, GoalCoherenceCheck, OutputSchemaConformance}
}

func builtin(id string) (Predicate, bool) {
	checks := map[string]func(context.Context, Facts, outputcheck.Context) (bool, string, error){
		CelestialConstraintCheck: func(ctx context.Context, f Facts, pc outputcheck.Context) (bool, string, error) {
			return outputcheck.CheckCelestial(ctx, f.Output, f.Level, pc)
		},
		GoalCoherenceCheck: func(ctx context.Context, f Facts, pc outputcheck.Context) (bool, string, error) {
			return outputcheck.CheckCoherence(ctx, f.Output, pc)
		},
		OutputSchemaConformance: checkSchema,
	}
	for _, name := range Builtins() {
		if id == name || id == name+builtinVersion {
			return Predicate{ID: name, Version: name + builtinVersion, Where: builtInWhere, check: checks[name]}, true
		}
	}
	return Predicate{}, false
}

// Predicate finds a predicate by id: a built-in, or a rule `on: output`. False
// is the document's PredicateNotFoundError, and so is every id in a Set that
// was not loaded.
func (s *Set) Predicate(id string) (Predicate, bool) {
	if s == nil || !s.loaded {
		return Predicate{}, false
	}
	if p, ok := builtin(id); ok {
		return p, true
	}
	r, ok := s.named[id]
	if !ok || r.info.On != OnOutput {
		return Predicate{}, false
	}
	return Predicate{ID: id, Version: r.info.Version, Where: r.info.Where, Facts: r.facts, check: r.check}, true
}

// Check asks the predicate about f.Output. It reports false with a reason for
// people that quotes nothing of the output (at most the place within it), or an
// error that wraps ErrTimeout, ErrCost, ErrType or ErrEval; then ok is false.
// The output is read and never changed. The same output, facts and context
// always give the same answer.
func (p Predicate) Check(ctx context.Context, f Facts, pc outputcheck.Context) (ok bool, why string, err error) {
	if p.check == nil {
		return false, "", &failure.Failure{Kind: failure.ErrEval, Text: "there is no such predicate"}
	}
	defer func() {
		if r := recover(); r != nil {
			ok, why, err = false, "", &failure.Failure{Kind: failure.ErrEval, Text: "the check broke off",
				Cause: fmt.Errorf("panic: %v", r)}
		}
	}()
	if ctx.Err() != nil {
		return false, "", &failure.Failure{Kind: failure.ErrTimeout, Text: "", Cause: ctx.Err()}
	}
	ok, why, err = p.check(ctx, f, pc)
	if err == nil && ctx.Err() != nil {
		err = &failure.Failure{Kind: failure.ErrTimeout, Text: "", Cause: ctx.Err()}
	}
	if err != nil {
		return false, "", err
	}
	return ok, why, nil
}

// check asks a rule as a predicate. A contract that names a rule asks it
// whatever boundary the rule names, and a violation withholds the output
// whatever the severity; only mode observe, which says so by name, lets it go.
func (r *rule) check(ctx context.Context, f Facts, _ outputcheck.Context) (bool, string, error) {
	if err := outputcheck.CheckTree(ctx, f.Output); err != nil {
		return false, "", err
	}
	act := &facts{Facts: f, on: OnOutput, ctx: ctx, left: MaxRuleCost}
	violated, err := act.judge(r)
	switch {
	case r.observes() && err != nil:
		return true, "observed: the rule failed: " + err.Error(), nil
	case r.observes() && violated:
		return true, "observed: " + r.message, nil
	case err != nil:
		return false, "", err
	case violated:
		return false, r.message, nil
	}
	return true, "", nil
}

// checkSchema is output_schema_conformance: the kernel's validator, asked as a
// predicate.
func checkSchema(ctx context.Context, f Facts, pc outputcheck.Context) (bool, string, error) {
	if pc.Conforms == nil {
		return false, "", &failure.Failure{Kind: failure.ErrEval, Text: "the contract declares no output schema"}
	}
	if err := outputcheck.CheckTree(ctx, f.Output); err != nil {
		return false, "", err
	}
	if err := pc.Conforms(f.Output); err != nil {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			return false, "", &failure.Failure{Kind: failure.ErrTimeout, Text: "", Cause: err}
		}
		return false, "the output does not conform to its schema: " + err.Error(), nil
	}
	return true, "", nil
}
