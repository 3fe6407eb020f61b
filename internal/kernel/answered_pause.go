package kernel

import (
	"cmp"
	"errors"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/pause"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// A pause and the review about what it is for have one answer (pause.ApplyAnswer): to unpause
// the agent also answers the review. After a spent budget that grants nothing: the agent is
// paused again where it asks for more.

// Unpaused is what came of an unpause.
type Unpaused struct {
	Agent string `json:"agent"`
	// Settled are the ids of the reviews of its attempts that this answered, Left
	// of those that wait on: who asked cannot answer.
	Settled []string `json:"settled,omitempty"`
	Left    []string `json:"left,omitempty"`
}

// Unpause lets an agent go on, on a person's word, and answers with it what waits
// about its attempts to get out: they are approved. A stop because a handler failed is
// lifted; the handler still receives what it failed at until it succeeds. The statement's Subject is the
// agent's name, and its Tenant is compared with tenant.
func (k *Kernel) Unpause(tenant string, signed operator.Signed) (Unpaused, error) {
	var out Unpaused
	var answered []review.Review
	_, err := k.runSigned(signed, operator.Unpause, func(tx *scope, w *Word) error {
		out, answered = Unpaused{Agent: w.Subject}, nil
		if err := w.CheckTenant(tenant); err != nil {
			return err
		}
		err := k.changeAgent(tx, tenant, w.Subject, "agent_unpaused", w.Reviewer, w.Data(), pause.ReleaseAgent)
		if err != nil {
			return err
		}
		if err := k.liftFailures(tx, cmp.Or(tenant, holdfast.Local), w.Subject); err != nil {
			return err
		}
		waiting, err := approval.Waiting(tx, cmp.Or(tenant, holdfast.Local), w.Subject, review.AboutEscape,
			review.AboutAnomaly)
		if err != nil {
			return err
		}
		for _, r := range waiting {
			if w.IsAsker(&r) {
				out.Left = append(out.Left, r.ID)
				continue
			}
			if err := k.ApplyAnswer(tx, &r, w, review.Approved); err != nil {
				return err
			}
			out.Settled, answered = append(out.Settled, r.ID), append(answered, r)
		}
		return nil
	})
	if err != nil {
		k.Wake()
		return Unpaused{}, err
	}
	k.observer.Attended(cmp.Or(tenant, holdfast.Local), out.Agent)
	k.AnnounceAnswers(answered...)
	return out, nil
}

// attemptAnswered carries out what the answer to a review does to its agent's pause.
func (k *Kernel) attemptAnswered(tx Tx, r *review.Review, w *Word) error {
	a, err := tx.Agent(r.Tenant, r.Agent)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	waiting, err := approval.Waiting(tx, r.Tenant, r.Agent, review.AboutEscape, review.AboutBudget, review.AboutAnomaly)
	if err != nil {
		return err
	}
	effect := pause.ApplyAnswer(&a, r, waiting, k.quote)
	if effect == pause.None {
		return nil
	}
	if err := tx.PutAgent(a); err != nil || effect == pause.Moves {
		return err
	}
	e := Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: "agent_paused", Who: r.Reviewer, Subject: r.Agent,
		Data: map[string]any{"why": a.Why}}
	if effect == pause.Releases {
		e.Name, e.Data = "agent_unpaused", w.Data()
	}
	e.Data["review"] = r.ID
	return k.event(tx, e)
}
