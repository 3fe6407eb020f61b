package kernel

import (
	"cmp"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// The pause that an attempt to leave a sandbox brought and the question about it
// are one thing to answer (D21). To approve the question lets the agent go on, to
// reject it keeps the agent stopped, and to unpause the agent answers what is
// asked about it. A pause of somebody else's is not an attempt's, and only an
// unpause lifts it.
//
// The pause that a spent budget brought (D41) is answered by its question alike.
// To unpause the agent grants nothing: it is paused again where it asks for more.
//
// What is out of the ordinary (D41a) is answered as an attempt is. To reject a
// question about an agent that was not paused for it stops the agent.

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
		err := k.changeAgent(tx, tenant, w.Subject, "agent_unpaused", w.Reviewer, w.Data(), letGo)
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

// pausedFor is why an agent is paused whose attempt the review is about.
func (k *Kernel) pausedFor(r *review.Review) string {
	if r.Crossing == "" {
		return k.quote(r.Why, 256)
	}
	return k.quote(r.Why+" (crossing "+r.Crossing+")", 256)
}

// attemptAnswered carries out what the answer to an attempt's review says of the
// agent's pause, where an attempt brought it: approved lifts it, unless another
// attempt waits for its answer; rejected makes it that person's, which no other
// answer lifts.
func (k *Kernel) attemptAnswered(tx Tx, r *review.Review, w *Word) error {
	a, err := tx.Agent(r.Tenant, r.Agent)
	stops := err == nil && r.About == review.AboutAnomaly && r.State == review.Rejected
	if errors.Is(err, ErrNotFound) || err == nil && a.State != holdfast.AgentPaused && !stops {
		return nil
	}
	if err != nil {
		return err
	}
	others, err := approval.Waiting(tx, r.Tenant, r.Agent, review.AboutEscape, review.AboutBudget, review.AboutAnomaly)
	if err != nil {
		return err
	}
	others = slices.DeleteFunc(others, asksOnly)
	stops = stops && a.State != holdfast.AgentPaused
	own, attempted := k.isPausedFor(&a, r), false
	for i := range others {
		attempted = attempted || k.isPausedFor(&a, &others[i])
	}
	switch {
	case r.State == review.Rejected && (own || attempted || stops):
		pauseBy(&a, k.quote("stopped by "+r.Reviewer+", who rejected review "+r.ID+review.SuffixReason(r.Reason), 256))
		if err := tx.PutAgent(a); err != nil {
			return err
		}
		return k.event(tx, Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: "agent_paused", Who: r.Reviewer,
			Subject: r.Agent,
			Data:    map[string]any{"why": a.Why, "review": r.ID}})
	case r.State != review.Approved || !own:
		return nil
	case len(others) > 0:
		k.pauseFor(&a, &others[0])
		return tx.PutAgent(a)
	}
	letGo(&a)
	if err := tx.PutAgent(a); err != nil {
		return err
	}
	data := w.Data()
	data["review"] = r.ID
	return k.event(tx, Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: "agent_unpaused", Who: r.Reviewer,
		Subject: r.Agent, Data: data})
}

// asksOnly says whether a review asks about an agent that was not paused for it.
func asksOnly(r review.Review) bool {
	return r.About == review.AboutAnomaly && r.Boundary != watch.BoundaryPrefix+watch.Pause.String()
}
