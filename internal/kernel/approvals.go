package kernel

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/contract"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
)

// Where package approval and the machine meet.

// newBook makes the kernel's Book.
func (k *Kernel) newBook(runtime string) *approval.Book {
	return approval.New(approval.Source{
		View: func(ctx context.Context, fn func(approval.Reader) error) error {
			return k.store.View(ctx, func(tx Tx) error { return fn(tx) })
		},
		Update: func(fn func(approval.Tx) error) error {
			return k.updateAtEdge(func(tx *scope) error { return fn(tx) })
		},
		Poisoned: k.store.Poisoned, Halted: k.asked,
		Contract: func(boundary string) (*contract.Contract, string) {
			pol := k.policy.Load()
			c := k.lookup(pol, boundary)
			return c, governs(pol, c)
		},
		Operator: k.operator, Attended: k.observer.Attended,
		Notify: func(level, event string, about review.Review, why string) {
			k.notify(Notice{Level: level, Event: event, Tenant: about.Tenant, Agent: about.Asks(),
				Boundary: about.Boundary, Review: about.ID, Crossing: about.Crossing, Why: why})
		},
		Now: k.now, Instant: k.instant, Runtime: runtime, Redact: k.redact, Records: k.records, Random: k.random,
		Log: k.log})
}

// updateAtEdge runs fn in one transaction in which features take part, and which no
// caller can cancel.
func (k *Kernel) updateAtEdge(fn func(*scope) error) error {
	ctx, cancel := edge()
	defer cancel()
	return walError(k.runInScope(ctx, fn))
}

// Event implements approval.Tx.
func (s *scope) Event(e Event) error { return s.k.event(s, e) }

// RaiseSignal implements approval.Tx.
func (s *scope) RaiseSignal(sig signal.Signal) (map[string]any, error) { return s.raiseSignal(sig) }

// AnswerPause implements approval.Tx.
func (s *scope) AnswerPause(r *review.Review, w *Word) error { return s.k.attemptAnswered(s, r, w) }

// runSigned carries out one act that needs a person, once, in one transaction.
func (k *Kernel) runSigned(signed operator.Signed, act string, do func(*scope, *Word) error) (operator.Statement,
	error) {
	return approval.RunSigned(k.Book, signed, act, k.updateAtEdge, do)
}

// newCase returns the request as approvals see it.
func (j *judgement) newCase() approval.Case {
	return j.k.NewCase(approval.Request{
		Binding: review.Binding{Tenant: j.who.Tenant, Agent: j.who.Agent, Boundary: j.req.Boundary, Exact: j.exact(),
			Policy: j.governs()},
		Principal: j.who.Principal, Session: j.who.Session, Doc: j.doc, Joined: j.beside != nil,
		Contract: j.contract, Now: j.now, At: j.at})
}
