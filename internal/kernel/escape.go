package kernel

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/kernel/flight"
	"github.com/holdfast-dev/holdfast/internal/leaf/visible"
	"github.com/holdfast-dev/holdfast/internal/policy/pause"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/ledger"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// An act that ran code tells of an escape attempt by an error that wraps a
// *sandbox.Escape, and of a violation by a *sandbox.Violation (D16). The kernel
// answers either where it settles the crossing, so that no door can forget it.
//
// The answer to an attempt is one transaction (D21): the event, the intent
// failed, the trust one level down, the agent paused, a review opened, and the
// crossing failed. It halts nothing else. The answer to a violation is an event.

// What the ledger and the log call them (spec 000 "Sandbox escape detection",
// spec 003 sections 2.1 and 2.2).
const (
	eventEscape    = "sandbox_escape_attempted"
	eventViolation = "sandbox_violation"
	traceEscape    = posture.TraceEscape
	traceViolation = posture.TraceSyscall
)

// escapeDomain stands before what the exact hash of an attempt's review is over.
// No JSON begins so: the hash is never that of a payload, and what a person says
// of an attempt is never an answer to a request.
const escapeDomain = "holdfast: an attempt to leave a sandbox, version 1\n"

// attempt is one on its way into the ledger.
type attempt struct {
	signal.Escape
	words  string // what was tried
	review review.Review
	// late says that the crossing has its entry: the hand came back after it
	// had been left behind.
	late bool
}

// escaped is what a crossing comes to whose code tried to get out.
func escaped(e ended, esc *posture.Escape, agent string) *ending {
	end := &ending{outcome: ledger.Failed, out: holdfast.Output{ExitCode: posture.ExitSyscall, Used: e.out.Used, Ran: e.out.Ran}, escape: esc}
	end.err = &holdfast.Error{Kind: holdfast.KindEscape, Why: esc.Call.Tried() +
		"; it was ended, and its agent is paused",
		Hint: pause.HintAtEscape(agent)}
	return end
}

// attempt prepares what is written of an escape: its words, and the question.
func (c *crossing) attempt(esc *posture.Escape) (*attempt, error) {
	k, j := c.k, c.j
	a := &attempt{words: esc.Call.Tried(), Escape: signal.Escape{Tenant: j.who.Tenant, Crossing: j.id,
		Boundary: j.contract.Boundary, Principal: j.who.Principal,
		Agent: j.who.Agent, Session: j.who.Session, Intent: j.who.Intent, Correlation: j.correlation,
		Run: visible.Shorten(esc.Run), Call: esc.Call}}
	// In RFC 8785's order, for people: what was tried, by whom, where.
	shown := map[string]any{"agent": a.Agent, "boundary": a.Boundary, "call": esc.Call.Data(),
		"crossing": a.Crossing, "request_id": a.Run, "tried": esc.Call.Words()}
	if esc.Code != "" {
		shown["code_sha256"] = visible.Shorten(esc.Code)
	}
	r, err := k.NewQuestion(review.AboutEscape, escapeDomain, shown)
	if err != nil {
		return nil, err
	}
	r.Crossing, r.Principal, r.Session, r.Intent, r.Correlation, r.Why = j.id, j.who.Principal, j.who.Session, j.who.Intent, j.correlation, a.words
	r.Tenant, r.Agent, r.Boundary, r.Policy = j.who.Tenant, j.who.Agent, j.contract.Boundary, j.pol.Version
	a.review = r
	return a, nil
}

// answer writes all that an attempt brings about but the crossing's own entry,
// which follows in the same transaction.
func (k *Kernel) answer(tx *scope, a *attempt, j *judgement) error {
	agent, err := ownAgent(tx, a.Tenant, a.Agent)
	if errors.Is(err, ErrNotFound) {
		agent = j.firstSight()
		err = k.meet(tx, j)
	}
	if err != nil {
		return err
	}
	from, was := agent.Level, agent.State
	agent.Level = max(holdfast.Baseline, from-1)
	if was != holdfast.AgentPaused { // whoever paused it before, and why, stands
		pause.PauseFor(&agent, &a.review, k.quote)
	}
	if err := tx.PutAgent(agent); err != nil {
		return err
	}
	data := map[string]any{"level": "CRITICAL", "trace": traceEscape, "request_id": a.Run, "principal": a.Principal, "agent": a.Agent, "session": a.Session,
		"correlation_id": a.Correlation, "crossing": a.Crossing, "boundary": a.Boundary, "call": a.Call.Data(),
		"trust_from": from.String(), "trust_to": agent.Level.String(), "review": a.review.ID}
	if a.late {
		data["late"] = true
	}
	if a.Intent != "" {
		data["intent"] = a.Intent
	}
	more, err := tx.raiseSignal(a.Escape)
	if err != nil {
		return err
	}
	maps.Copy(data, more)
	events := []Event{{Name: eventEscape, Who: a.Principal, Subject: a.Agent, Data: data}}
	if agent.Level != from {
		events = append(events, Event{Name: "trust_level_changed", Who: "holdfast", Subject: a.Agent,
			Data: map[string]any{"from": from.String(), "level": agent.Level.String(), "why": a.words}})
	}
	if was != holdfast.AgentPaused {
		events = append(events, Event{Name: "agent_paused", Who: "holdfast", Subject: a.Agent, Data: map[string]any{"why": a.words}})
	}
	r := &a.review
	events = append(events, approval.Proposed(r))
	for _, e := range events {
		e.Tenant, e.Crossing = a.Tenant, a.Crossing
		if err := k.event(tx, e); err != nil {
			return err
		}
	}
	return tx.PutReview(*r, review.None)
}

// fled are the agents whose attempt is seen and not yet durable: nothing begins
// for them meanwhile, and nothing until a restart where the ledger could not be
// written.
type fled struct {
	mu sync.Mutex
	m  map[[2]string]int // guarded by mu; attempts, by tenant and agent
}

func (f *fled) add(tenant, agent string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.m == nil {
		f.m = map[[2]string]int{}
	}
	key := [2]string{tenant, agent}
	if f.m[key] += n; f.m[key] <= 0 {
		delete(f.m, key)
	}
}

func (f *fled) has(tenant, agent string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.m[[2]string{tenant, agent}] > 0
}

// seize ends what the agent has under way, but for the crossing of own, and
// keeps more from beginning until the attempt is durable.
func (k *Kernel) seize(tenant, agent string, esc *posture.Escape, own *flight.Flight) int {
	cause := &holdfast.Error{Kind: holdfast.KindPaused, Why: "the agent is paused: " + esc.Call.Tried(),
		Hint: pause.HintAtEscape(agent)}
	return k.flights.Cut(cause, func(f *flight.Flight) bool {
		return f != own && f.Tenant == tenant && f.Agent == agent
	})
}

// breaks notes at once that the crossing's code tried to get out.
func (c *crossing) breaks(esc *posture.Escape) {
	c.k.fled.add(c.j.who.Tenant, c.j.who.Agent, 1)
	c.k.seize(c.j.who.Tenant, c.j.who.Agent, esc, c.flight)
}

// caught is called when the answer is durable: whoever began meanwhile is cut,
// and people are told.
func (c *crossing) caught(a *attempt, esc *posture.Escape) {
	k := c.k
	k.seize(a.Tenant, a.Agent, esc, c.flight)
	k.fled.add(a.Tenant, a.Agent, -1)
	k.log.Log(context.Background(), holdfast.LevelCritical, "escape attempt", "trace", traceEscape, "request_id", a.Run, "crossing", a.Crossing,
		"boundary", a.Boundary, "agent", a.Agent, "principal", a.Principal, "call", a.Call.Words(), "review",
		a.review.ID)
	if c.span != nil {
		c.span.AddEvent(traceEscape, trace.WithAttributes(attribute.String("holdfast.call", a.Call.Words()),
			attribute.String("holdfast.request", a.Run)))
	}
	k.Wake(a.review.ID)
	k.notify(Opened(&a.review))
}

// uncaught is called when the answer could not be written: the agent stays where
// nothing begins for it, and people are told so.
func (c *crossing) uncaught(esc *posture.Escape, err error) {
	j := c.j
	c.k.log.Log(context.Background(), holdfast.LevelCritical, "escape attempt that could not be recorded",
		"trace", traceEscape, "request_id", visible.Shorten(esc.Run),
		"crossing", j.id, "agent", j.who.Agent, "call", esc.Call.Words(), "err", err)
	c.k.notify(Notice{Level: "critical", Event: eventEscape, Tenant: j.tenant(), Agent: j.who.Agent, Boundary: j.recordedBoundary(), Crossing: j.id,
		Why: esc.Call.Tried() +
			", and the ledger failed to write it; nothing begins for the agent until holdfast is restarted"})
}

// lateNews answers an attempt that is told of after its crossing has ended: the
// hand had been left behind, or the lease had run out.
func (c *crossing) lateNews(err error) {
	esc, _ := posture.FindBreak(err)
	if esc == nil || c.j == nil || c.begin == nil {
		return
	}
	c.breaks(esc)
	a, err := c.attempt(esc)
	if err == nil {
		a.late = true
		ctx, cancel := edge()
		defer cancel()
		err = c.k.runInScope(ctx, func(tx *scope) error { return c.k.answer(tx, a, c.j) })
	}
	if err != nil {
		c.uncaught(esc, err)
		return
	}
	c.caught(a, esc)
	c.k.observer.Escaped(c.j.who.Tenant, c.j.who.Name(), c.j.id)
}

// violated records a call outside the allowlist that is no way out.
func (k *Kernel) violated(tx Tx, j *judgement, v *posture.Violation) error {
	return k.event(tx, Event{Tenant: j.who.Tenant, Crossing: j.id, Name: eventViolation, Who: j.who.Principal, Subject: j.who.Agent,
		Data: map[string]any{"level": "WARNING", "trace": traceViolation, "request_id": visible.Shorten(v.Run),
			"agent": j.who.Agent, "session": j.who.Session,
			"boundary": j.contract.Boundary, "call": v.Call.Data()}})
}

// Opened is how people are told of a question that waits.
func Opened(r *review.Review) Notice {
	n := Notice{Level: "warning", Event: "review_opened", Tenant: r.Tenant, Agent: r.Agent, Boundary: r.Boundary, Review: r.ID, Crossing: r.Crossing, Why: r.Why}
	if r.About == "" {
		n.Agent = r.Asks()
	}
	if r.About == review.AboutBudget || r.About == review.AboutAnomaly && !pause.AsksOnly(*r) {
		n.Level = "error"
		n.Why += "; the agent is paused"
	}
	if r.About == review.AboutEscape {
		n.Level, n.Event = "critical", eventEscape
		n.Why += "; the agent is paused, and its trust is lowered"
	}
	return n
}

// Opens says whether a notice of that name is how people are told of a question.
func Opens(event string) bool { return event == "review_opened" || event == eventEscape }
