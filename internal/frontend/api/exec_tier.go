package api

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// choose is the tier for a run: the strongest of what the boundary's contract
// demands, what the request asks for, and what the rule chooses for an intent and
// for a request that brings evidence (spec 000 "Sandbox selection policy").
//
// What a request says can make its tier stronger and never weaker: the trust
// level is the one of Holdfast's own record, or a lower one that it says of
// itself. Of an intent nothing is predicted yet, so that its agent's trust alone
// chooses. Beside an error, which says that nobody knows who asks, the choice is
// without it.
func (s *Server) choose(ctx context.Context, e *Execution, token holdfast.Secret, boundary string) (posture.Choice, error) {
	ev := e.Evidence
	c, err := posture.Choose(ev), error(nil)
	if e.Token != "" || e.Intent != "" || !ev.Empty() {
		var who holdfast.Identity
		var level holdfast.Level
		who, level, err = s.Kernel.Asker(ctx, token)
		switch {
		case err != nil:
		case !ev.Empty():
			if ev.Trust != nil {
				level = min(level, *ev.Trust)
			}
			ev.Trust = &level
			c = posture.Choose(ev)
		case who.Intent != "":
			c = posture.ByTrust(&level)
		}
	}
	var spec sandbox.Spec
	return c.AtLeast(e.Tier, "the request asks for it").AtLeast(s.needs(boundary, &spec), "the contract of "+boundary+" demands it"), err
}

// still is an error where what was chosen when the request came is not enough any
// more, or nobody knows: contracts and levels change while a request waits.
func (s *Server) still(ctx context.Context, e *Execution, req holdfast.Request, spec *sandbox.Spec) error {
	now, err := s.choose(ctx, e, req.Token, req.Boundary)
	if err != nil {
		return fmt.Errorf("%w: %w", &holdfast.Error{Kind: holdfast.KindSpawn, Why: "nobody can say how strong a sandbox this needs: it is not known who asks", Hint: "ask again", Err: err}, holdfast.ErrNotStarted)
	}
	if now.Tier > spec.Tier {
		return fmt.Errorf("%w: %w", &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("it needs a stronger sandbox by now than the %s tier (%s)", spec.Tier, now.Why), Hint: "ask again"}, holdfast.ErrNotStarted)
	}
	return nil
}
