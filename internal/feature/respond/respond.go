// Package respond answers anomalies: each answer is a crossing of its own
// (D41a). No rule, budget, rate, pattern of risk or person stands before it: with one of them
// whoever writes the configuration, or spends the budget, could keep the net from closing.
// Permission, ledger and halt do.
package respond

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/pause"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Name is the feature's.
const Name = "respond"

// Responses is the feature.
type Responses struct{ host kernel.Host }

// New returns the feature.
func New(h kernel.Host) kernel.Feature { return &Responses{h} }

// FromKernel returns the feature of a kernel that has it.
func FromKernel(k *kernel.Kernel) *Responses { return k.Feature(Name).(*Responses) }

// Spec implements kernel.Feature.
func (*Responses) Spec() kernel.Spec {
	return kernel.Spec{Name: Name, Boundaries: []kernel.Reserved{{Prefix: watch.BoundaryPrefix,
		Why:     "only Holdfast itself answers what is out of the ordinary",
		Hint:    "anybody may stop an agent with `holdfast agent pause`, or everything with `holdfast halt`",
		Unasked: "it is Holdfast's own answer, which is put to nobody",
		Unruled: "it is Holdfast's own answer, which no rule may keep from being given"}}}
}

// What the ledger calls a finding, and that one holds no more.
const (
	EventAnomaly        = "anomaly_found"
	EventAnomalyCleared = "anomaly_cleared"
)

// answerTime bounds one answer.
const answerTime = 30 * time.Second

// Watcher is who is recorded with what a finding brought about.
const Watcher = "holdfast (watch)"

// ResponseContracts are those of the boundaries that Respond crosses, one for each
// response; a policy lists them.
func ResponseContracts() []holdfast.Contract {
	var out []holdfast.Contract
	for r := watch.Record; r <= watch.Halt; r++ {
		out = append(out, holdfast.Contract{Boundary: watch.BoundaryPrefix + r.String(), Risk: holdfast.Low,
			Operation: "watch:" + r.String(), Timeout: answerTime, Source: "built in"})
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
func (r *Responses) Respond(ctx context.Context, token holdfast.Secret, f watch.Finding, times int) (Responded, error) {
	if f.Response != watch.Halt || f.Cleared {
		return r.crossForAnswer(ctx, token, &f, times)
	}
	type answer struct {
		done Responded
		err  error
	}
	ended := make(chan answer, 1)
	go func() {
		done, err := r.crossForAnswer(ctx, token, &f, times)
		ended <- answer{done, err}
	}()
	var a answer
	select {
	case a = <-ended:
	case <-time.After(haltWait):
		a.err = r.host.RecordError(context.DeadlineExceeded)
	}
	_, err := r.host.Halt(f.Condition, Watcher, f.String())
	return a.done, errors.Join(err, a.err)
}

// crossForAnswer carries an answer out in a crossing, but for the halt itself.
func (r *Responses) crossForAnswer(ctx context.Context, token holdfast.Secret, f *watch.Finding, times int) (done Responded, err error) {
	if r.host.Halted() {
		done.Review, err = r.carryOut(f, times, "")
		return done, err
	}
	payload, err := json.Marshal(found(f, times))
	if err != nil {
		return done, err
	}
	ctx = r.host.Within(ctx, f.Crossing, r.correlationOf(ctx, f))
	acted := false
	out, err := r.host.Cross(ctx, holdfast.Request{Boundary: watch.BoundaryPrefix + f.Response.String(),
		Payload: payload, Token: token},
		func(ctx context.Context) (_ holdfast.Output, err error) {
			acted = true
			done.Review, err = r.carryOut(f, times, kernel.CrossingID(ctx))
			return holdfast.Output{}, err
		})
	done.Crossing = out.Crossing
	if !acted && holdfast.KindOf(err) == holdfast.KindHalted { // a moment ago
		done.Review, err = r.carryOut(f, times, "")
	}
	return done, err
}

// correlationOf is the flow of the crossing that made the finding, if it is known.
func (r *Responses) correlationOf(ctx context.Context, f *watch.Finding) string {
	if f.Crossing == "" {
		return ""
	}
	correlation := ""
	_ = r.host.View(ctx, func(tx kernel.Reader) error { // without it the answer is a flow of its own
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
}

// carryOut writes what was found and what is done about it, in one transaction, and
// returns the review that asks a person.
func (r *Responses) carryOut(f *watch.Finding, times int, crossing string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	a := &answering{f: f, within: crossing}
	err := r.host.Commit(ctx, func(tx kernel.FeatureTx) error {
		a.as = found(f, times)
		if !f.Cleared && f.Agent != "" && (f.Response == watch.Pause || f.Asks) {
			if err := a.stopAgent(tx); err != nil {
				return err
			}
		}
		return tx.Event(a.newEvent())
	})
	if err != nil {
		return "", err
	}
	return a.as.Review, nil
}

func (a *answering) newEvent() kernel.Event {
	name := EventAnomaly
	if a.f.Cleared {
		name = EventAnomalyCleared
	}
	data := map[string]any{"condition": a.as.Condition, "severity": a.as.Severity, "response": a.as.Response,
		"at": a.as.At, "why": a.as.Why, "times": a.as.Times}
	for name, v := range map[string]string{"tenant_id": a.as.Tenant, "agent": a.as.Agent, "found_in": a.as.Crossing,
		"cause": string(a.as.Cause), "review": a.as.Review} {
		if v != "" {
			data[name] = v
		}
	}
	// What is everything's is in this machine's ledger.
	return kernel.Event{Tenant: cmp.Or(a.f.Tenant, holdfast.Local), Crossing: a.within, Name: name, Who: Watcher,
		Subject: cmp.Or(a.f.Agent, a.f.Tenant), Data: data}
}

// stopAgent pauses the agent, if that is the answer, and asks a person, once for a condition
// at a time.
func (a *answering) stopAgent(tx kernel.FeatureTx) error {
	agent, err := tx.Agent(a.f.Tenant, a.f.Agent)
	if i := strings.LastIndexByte(a.f.Agent, '/'); errors.Is(err, kernel.ErrNotFound) && i >= 0 {
		agent, err = tx.Agent(a.f.Tenant, a.f.Agent[:i]) // one within it that has begun nothing
	}
	if errors.Is(err, kernel.ErrNotFound) {
		return nil // it was never let in
	}
	if err != nil {
		return err
	}
	r, err := a.askPerson(tx, &agent)
	if err != nil {
		return err
	}
	a.as.Review = r.ID
	if a.f.Response != watch.Pause {
		return nil
	}
	_, err = tx.PauseAgent(&agent, r, true, kernel.Event{Tenant: agent.Tenant, Crossing: r.Crossing, Name: "agent_paused",
		Who: Watcher, Subject: agent.Name, Data: map[string]any{"condition": a.f.Condition, "review": r.ID}})
	return err
}

// anomalyDomain begins what the exact hash of such a review is over.
const anomalyDomain = "holdfast: out of the ordinary, version 1\n"

// askPerson returns the review of that agent and condition that waits, or opens one.
func (a *answering) askPerson(tx kernel.FeatureTx, agent *holdfast.Agent) (*review.Review, error) {
	waiting, err := tx.WaitingReviews(agent.Tenant, agent.Name, review.AboutAnomaly)
	if err != nil {
		return nil, err
	}
	for i := range waiting {
		if pause.ConditionOf(&waiting[i]) == a.f.Condition {
			return &waiting[i], nil
		}
	}
	return tx.OpenReview(review.AboutAnomaly, anomalyDomain, a.as, func(r *review.Review) {
		r.Crossing, r.Principal, r.Owner = cmp.Or(a.f.Crossing, a.within), agent.Principal, agent.Owner
		r.Why, r.Cause = a.f.String(), string(a.f.Condition)
		r.Tenant, r.Agent, r.Boundary = agent.Tenant, agent.Name, watch.BoundaryPrefix+a.f.Response.String()
		sum := sha256.Sum256([]byte(anomalyDomain + r.ID + r.Preview)) // the same may be found again
		r.Exact = hex.EncodeToString(sum[:])
	})
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
