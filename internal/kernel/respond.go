package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/ledger"
)

// What is out of the ordinary is answered by Holdfast itself, and each answer is a
// crossing of its own (D41a). No rule, budget, rate, pattern of risk or person
// stands before it: with one of them whoever writes the configuration, or spends
// the budget, could keep the net from closing. Permission, ledger and halt do.

// respondBoundary begins the boundaries that only Respond crosses.
const respondBoundary = "watch/"

// What the ledger calls a finding, and that one holds no more.
const (
	EventAnomaly        = "anomaly_found"
	EventAnomalyCleared = "anomaly_cleared"
)

// Watcher is who is recorded with what a finding brought about.
const Watcher = "holdfast (watch)"

// ResponseContracts are those of the boundaries that Respond crosses, one for each
// response; a policy lists them.
func ResponseContracts() []holdfast.Contract {
	var out []holdfast.Contract
	for r := watch.Record; r <= watch.Halt; r++ {
		out = append(out, holdfast.Contract{Boundary: respondBoundary + r.String(), Risk: holdfast.Low, Operation: "watch:" + r.String(), Timeout: edgeTime, Source: "built in"})
	}
	return out
}

// Found is a finding as the ledger holds it: the payload of the answer's crossing,
// and the data of its event.
type Found struct {
	Condition watch.Name `json:"condition"`
	Severity  string     `json:"severity"`
	Response  string     `json:"response"`
	Tenant    string     `json:"tenant_id,omitempty"`
	Agent     string     `json:"agent,omitempty"`
	// Crossing is the one that made it, where one did.
	Crossing string     `json:"crossing,omitempty"`
	At       time.Time  `json:"at"`
	Why      string     `json:"why"`
	Cause    watch.Name `json:"cause,omitempty"`
	// Times is how often it was found while its answer waited, 1 at least.
	Times int `json:"times"`
	// Review is the one that was opened. It is of the event alone.
	Review string `json:"review,omitempty"`
}

func found(f *watch.Finding, times int) Found {
	return Found{Condition: f.Condition, Severity: f.Severity.String(), Response: f.Response.String(), Tenant: f.Tenant, Agent: f.Agent, Crossing: f.Crossing,
		At: f.At.UTC().Truncate(time.Microsecond), Why: f.Why, Cause: f.Cause, Times: max(times, 1)}
}

// Responded is what came of an answer.
type Responded struct {
	// Crossing is the answer's own; empty while everything is halted, when there
	// are events alone.
	Crossing string
	// Review is the one that was opened for it, or that waits already.
	Review string
}

// haltWait is how long a halt waits for its own record: the latch is set then,
// whatever the store does.
const haltWait = 2 * time.Second

// Respond answers a finding, which was found that many times: it is recorded, its
// agent is paused and a person asked, or everything is halted, as it says. While
// everything is halted nothing crosses, and the same is done with an event alone.
//
// token is Holdfast's own: the answer's crossing is in this machine's ledger, what
// it brings about in the finding's tenant's. An error says that it was not
// carried out, or not recorded. A halt sets the latch whatever fails.
func (k *Kernel) Respond(ctx context.Context, token holdfast.Secret, f watch.Finding, times int) (Responded, error) {
	if f.Response != watch.Halt || f.Cleared {
		return k.respond(ctx, token, &f, times)
	}
	type answer struct {
		done Responded
		err  error
	}
	ended := make(chan answer, 1)
	go func() {
		done, err := k.respond(ctx, token, &f, times)
		ended <- answer{done, err}
	}()
	var a answer
	select {
	case a = <-ended:
	case <-time.After(haltWait):
		a.err = walError(context.DeadlineExceeded)
	}
	_, err := k.haltFor(f.Condition, Watcher, f.String())
	return a.done, errors.Join(err, a.err)
}

// respond carries an answer out in a crossing, but for the halt itself.
func (k *Kernel) respond(ctx context.Context, token holdfast.Secret, f *watch.Finding, times int) (done Responded, err error) {
	if k.asked() != nil {
		done.Review, err = k.carryOut(f, times, "")
		return done, err
	}
	payload, err := json.Marshal(found(f, times))
	if err != nil {
		return done, err
	}
	in := inside{id: f.Crossing, correlation: k.correlationOf(ctx, f), child: true, tasks: &tasks{}}
	acted := false
	out, err := k.crossBy(within(ctx, in), holdfast.Request{Boundary: respondBoundary + f.Response.String(),
		Payload: payload, Token: token},
		func(ctx context.Context) (_ holdfast.Output, err error) {
			acted = true
			done.Review, err = k.carryOut(f, times, CrossingID(ctx))
			return holdfast.Output{}, err
		}, byResponse)
	done.Crossing = out.Crossing
	if !acted && holdfast.KindOf(err) == holdfast.KindHalted { // a moment ago
		done.Review, err = k.carryOut(f, times, "")
	}
	return done, err
}

// correlationOf is the flow of the crossing that made the finding, if it is known.
func (k *Kernel) correlationOf(ctx context.Context, f *watch.Finding) string {
	if f.Crossing == "" {
		return ""
	}
	correlation := ""
	_ = k.store.View(ctx, func(tx Tx) error { // without it the answer is a flow of its own
		leaves, err := tx.Crossing(f.Tenant, f.Crossing)
		for _, l := range leaves {
			if l.Kind != ledger.KindEntry {
				continue
			}
			if e, err := ledger.ParseEntry(l.Record); err == nil {
				correlation = e.Correlation
			}
		}
		return err
	})
	return correlation
}

// answering is a finding on its way into the ledger.
type answering struct {
	f      *watch.Finding
	as     Found
	within string // the answer's own crossing
	// paused is whom it paused, and review what it opened.
	paused *holdfast.Agent
	review *review.Review
}

// carryOut writes what was found and what is done about it, in one transaction, and
// returns the review that asks a person.
func (k *Kernel) carryOut(f *watch.Finding, times int, crossing string) (string, error) {
	ctx, cancel := edge()
	defer cancel()
	a := &answering{f: f, as: found(f, times), within: crossing}
	err := k.store.Update(ctx, func(tx Tx) error {
		if !f.Cleared && f.Agent != "" && (f.Response == watch.Pause || f.Asks) {
			if err := k.stopFor(tx, a); err != nil {
				return err
			}
		}
		return k.event(tx, a.event())
	})
	if err != nil {
		return "", walError(err)
	}
	if a.paused != nil {
		cause := &holdfast.Error{Kind: holdfast.KindPaused, Why: "the agent " + shownAgent(a.paused.Name) +
			" was paused" + review.SuffixReason(a.paused.Why), Hint: goesOnBy(a.paused)}
		k.flights.cut(cause, func(fl *flight) bool { return fl.of(f.Tenant, a.paused.Name) })
	}
	if a.review != nil {
		k.stir(a.review.ID)
		k.notify(Opened(a.review))
	} else if a.paused != nil {
		k.stir()
	}
	return a.as.Review, nil
}

func (a *answering) event() Event {
	name := EventAnomaly
	if a.f.Cleared {
		name = EventAnomalyCleared
	}
	subject := a.f.Agent
	if subject == "" {
		subject = a.f.Tenant
	}
	data := map[string]any{"condition": a.as.Condition, "severity": a.as.Severity, "response": a.as.Response, "at": a.as.At, "why": a.as.Why, "times": a.as.Times}
	for name, v := range map[string]string{"tenant_id": a.as.Tenant, "agent": a.as.Agent, "found_in": a.as.Crossing, "cause": string(a.as.Cause), "review": a.as.Review} {
		if v != "" {
			data[name] = v
		}
	}
	return Event{Tenant: a.tenant(), Crossing: a.within, Name: name, Who: Watcher, Subject: subject, Data: data}
}

// tenant is whose ledger holds it: what is everything's is this machine's.
func (a *answering) tenant() string {
	if a.f.Tenant == "" {
		return holdfast.Local
	}
	return a.f.Tenant
}

// stopFor pauses the agent, where that is the answer, and asks a person, once for a
// condition at a time.
func (k *Kernel) stopFor(tx Tx, a *answering) error {
	agent, err := tx.Agent(a.f.Tenant, a.f.Agent)
	if owner, _, ok := cutLast(a.f.Agent); errors.Is(err, ErrNotFound) && ok {
		agent, err = tx.Agent(a.f.Tenant, owner) // one within it that has begun nothing
	}
	if errors.Is(err, ErrNotFound) {
		return nil // it was never let in
	}
	if err != nil {
		return err
	}
	r, err := k.askAbout(tx, a, &agent)
	if err != nil {
		return err
	}
	a.as.Review = r.ID
	if a.f.Response != watch.Pause || agent.State != holdfast.AgentRunning {
		return nil // whoever stopped it before, and why, stands
	}
	k.pauseFor(&agent, r)
	if err := tx.PutAgent(agent); err != nil {
		return err
	}
	a.paused = &agent
	return k.event(tx, Event{Tenant: agent.Tenant, Crossing: r.Crossing, Name: "agent_paused", Who: Watcher, Subject: agent.Name,
		Data: map[string]any{"why": agent.Why, "condition": a.f.Condition, "review": r.ID}})
}

func cutLast(name string) (before, after string, ok bool) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}

// anomalyDomain stands before what the exact hash of such a review is over.
const anomalyDomain = "holdfast: out of the ordinary, version 1\n"

// askAbout finds the review of that agent and condition that waits, or opens one.
func (k *Kernel) askAbout(tx Tx, a *answering, agent *holdfast.Agent) (*review.Review, error) {
	why := a.f.String()
	waiting, err := attempts(tx, agent.Tenant, agent.Name, review.AboutAnomaly)
	if err != nil {
		return nil, err
	}
	for i := range waiting {
		if conditionOf(&waiting[i]) == a.f.Condition {
			return &waiting[i], nil
		}
	}
	r, err := k.ask(review.AboutAnomaly, anomalyDomain, a.as)
	if err != nil {
		return nil, err
	}
	r.Crossing, r.Principal, r.Owner, r.Why = cmp.Or(a.f.Crossing, a.within), agent.Principal, agent.Owner, why
	r.Cause = string(a.f.Condition)
	r.Tenant, r.Agent, r.Boundary, r.Policy = agent.Tenant, agent.Name, respondBoundary+a.f.Response.String(), k.policy.Load().Version
	r.Exact = sha([]byte(anomalyDomain + r.ID + r.Preview)) // the same may be found again
	if err := tx.PutReview(r, review.None); err != nil {
		return nil, err
	}
	a.review = &r
	return &r, k.event(tx, proposed(&r))
}

// FoundIn is what an event of a finding holds; ok is false of any other event.
func FoundIn(e *ledger.Event) (f Found, ok bool) {
	if e.Name != EventAnomaly && e.Name != EventAnomalyCleared {
		return f, false
	}
	var data struct {
		Found
		In string `json:"found_in"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return f, false
	}
	data.Crossing = data.In
	return data.Found, true
}
