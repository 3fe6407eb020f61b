package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/kernel/flight"
	"github.com/holdfast-dev/holdfast/internal/leaf/tracecontext"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/flood"
	"github.com/holdfast-dev/holdfast/internal/policy/pause"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Entering and leaving have this long each, without a person's time (D6a).
const edgeTime = 30 * time.Second

// Act is the hand: it touches the world, and only the kernel calls it. Its
// context ends when the caller gives up, when halt cuts it, and at the
// contract's timeout; a hand that goes on after that is named in the ledger.
type Act = func(ctx context.Context) (holdfast.Output, error)

// Cross makes one crossing: it judges req, writes the begin down, runs act,
// judges and records what came out, and returns it.
//
// The outcome is never nil. The error is nil only when act ran and its output
// may be used. A denial is a *holdfast.Error of the gate's kind; a hold is one
// of kind HeldForReview, with the handle in Outcome.Review.
//
// Crossing again on the context that act was given is the re-entrancy error;
// Child makes a context for that.
func (k *Kernel) Cross(ctx context.Context, req holdfast.Request, act Act) (*holdfast.Outcome, error) {
	return k.crossBy(ctx, req, act, byCaller)
}

// origin is who crosses: nil is a caller, anything else a part of Holdfast at boundaries of
// its own.
type origin = *Reserved

var byCaller origin

func (k *Kernel) crossBy(ctx context.Context, req holdfast.Request, act Act, by origin) (*holdfast.Outcome, error) {
	c, err := k.enter(ctx, &req, false, by)
	if c.machine.state() != holdfast.Active {
		return c.outcome(), err
	}
	return c.run(act)
}

// crossing is one request on its way. It belongs to the goroutine that drives
// it, but for machine, tasks and cut.
type crossing struct {
	k       *Kernel
	j       *judgement
	machine machine
	parent  inside
	span    trace.Span

	out   holdfast.Outcome
	begin *ledger.Place // nil until the begin is durable
	start time.Time

	// ctx is what the hand gets; cut ends it with a cause.
	ctx    context.Context
	cut    context.CancelCauseFunc
	caller context.Context // the door's own context
	tasks  *tasks
	flight *flight.Flight // what halt, pause and revocation find it by
	gone   sync.Once      // the parent counts this crossing down once
	by     origin         // who crosses
	leased bool           // its caller acts itself, between Enter and Exit
}

// tellParent lets the parent leave: this crossing holds it up no longer.
func (c *crossing) tellParent() {
	if c.parent.child {
		c.gone.Do(c.parent.tasks.done)
	}
}

// enter takes a request to ACTIVE, or ends it. The crossing it returns is
// never nil.
func (k *Kernel) enter(ctx context.Context, req *holdfast.Request, leased bool, by origin) (*crossing, error) {
	c := &crossing{k: k, caller: ctx, tasks: &tasks{}, out: holdfast.Outcome{Boundary: req.Boundary},
		leased: leased, by: by}
	parent, nested := current(ctx)
	if nested {
		if parent.child && !parent.tasks.add() {
			return c, &holdfast.Error{Kind: holdfast.KindTasks, Why: "the crossing that this one belongs to has ended"}
		}
		c.parent = parent
	}
	defer func() {
		if c.j != nil {
			c.j.ticket.Drop() // where it began it is confirmed already
		}
	}()
	err := c.judge(ctx, req, nested && !parent.child)
	if c.machine.state() != holdfast.Active {
		c.tellParent()
	}
	return c, err
}

func (c *crossing) judge(ctx context.Context, req *holdfast.Request, reentrant bool) error {
	if err := c.machine.do(enter); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, edgeTime)
	defer cancel()
	return c.untilSettled(func() error { return c.judgeOnce(ctx, req, reentrant) })
}

// judgeOnce judges by the policy that is in force as it begins.
func (c *crossing) judgeOnce(ctx context.Context, req *holdfast.Request, reentrant bool) error {
	k := c.k
	j, err := k.make(ctx, req, c.parent, c.by)
	if err != nil {
		c.machine.do(refused)
		return err
	}
	c.j, j.leased = j, c.leased
	boundary := j.recordedBoundary()
	_, c.span = k.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, j.above), "crossing "+boundary, trace.WithAttributes(
		attribute.String("holdfast.crossing", j.id), attribute.String("holdfast.correlation", j.correlation), attribute.String("holdfast.boundary", boundary)))
	if c.span.IsRecording() {
		j.traceparent = tracecontext.Format(c.span.SpanContext())
	}
	if k.flood.IsFull(j.tenant(), j.who.Agent, j.now) {
		c.machine.do(refused)
		c.span.End()
		return &holdfast.Error{Kind: holdfast.KindBounds, Gate: holdfast.K3,
			Why: fmt.Sprintf("more than %d requests of this agent were refused within %s",
				flood.LimitOf(j.who.Agent), flood.Window),
			Hint: "it is refused unrecorded until the minute has passed; the ledger then holds the count"}
	}
	k.fetch(ctx, j)
	if op := j.before(); op != nil {
		j.opinions = append(j.opinions, *op)
		return c.refuse(*op)
	}
	if reentrant {
		op := deny(holdfast.GateHalt, holdfast.KindReentry, "a crossing was begun inside another one", "use kernel.Child for a crossing that belongs to it")
		j.opinions = append(j.opinions, op)
		return c.refuse(op)
	}
	j.tasks = c.tasks
	judgeAll(ctx, j, false)
	j.recordParts()
	return c.decide(ctx)
}

// decide acts on the verdict.
func (c *crossing) decide(ctx context.Context) error {
	j := c.j
	if err := ctx.Err(); err != nil && j.verdict() != holdfast.Deny {
		op := gaveUp(c.caller, holdfast.K6)
		j.opinions = append(j.opinions, op)
		return c.refuse(op)
	}
	switch {
	case j.verdict() == holdfast.Hold:
		return c.hold(ctx)
	case j.verdict() != holdfast.Allow:
		return c.refuse(j.opinions[len(j.opinions)-1])
	case j.replay != nil:
		return c.replay()
	}
	return c.open(ctx)
}

// gaveUp is the denial of a request whose caller, or whose thirty seconds,
// ended before it could begin.
func gaveUp(caller context.Context, g holdfast.Gate) holdfast.Opinion {
	if caller.Err() != nil {
		return deny(g, holdfast.KindCanceled, "the caller gave up before the crossing began", "")
	}
	return deny(g, holdfast.KindTimeout, "entering took longer than "+edgeTime.String(), "")
}

// errRefused carries a denial out of the transaction that begins a crossing.
type errRefused struct{ op holdfast.Opinion }

func (e *errRefused) Error() string { return e.op.Why }

// findDenial returns the denial that err carries out of a transaction, if it does.
func findDenial(err error) (holdfast.Opinion, bool) {
	if no := (*errRefused)(nil); errors.As(err, &no) {
		return no.op, true
	}
	if no := (*approval.Refusal)(nil); errors.As(err, &no) {
		return no.Opinion, true
	}
	return holdfast.Opinion{}, false
}

// open writes the begin and takes the reservation in one transaction, and
// moves to ACTIVE.
//
// Whoever halts, pauses or revokes either commits before the begin, which then
// finds it, or finds the flight: it is registered before the begin.
//
// A crash before the commit leaves nothing: the request was never made. A
// crash after it leaves a begin without an entry, which recovery closes as
// unknown; the reservation stays taken.
func (c *crossing) open(ctx context.Context) error {
	k, j := c.k, c.j
	id, correlation := j.id, j.correlation
	if j.human.Approved {
		j.id, j.correlation = j.human.Review.Crossing, j.human.Review.Correlation
	}
	if !c.register() {
		op := noLease()
		j.opinions, j.id, j.correlation = replaceOpinion(j.opinions, op), id, correlation
		return c.refuse(op)
	}
	var place ledger.Place
	begin, leaf, err := j.beginLeaf(c.parent)
	if err == nil {
		err = k.runInScope(ctx, func(tx *scope) error {
			if err := c.admit(tx); err != nil {
				return err
			}
			if place, err = tx.Append(leaf); err != nil {
				return err
			}
			if err := tx.runBeginHooks(j, begin); err != nil {
				return err
			}
			return j.human.RecordBegin(tx)
		})
	}
	if err != nil {
		// The held crossing is not this one's to end: a denial is its own.
		j.id, j.correlation = id, correlation
		c.unregister()
	}
	no, denied := findDenial(err)
	switch {
	case errors.Is(err, errOtherPolicy) || errors.Is(err, errOtherTree) || errors.Is(err, errOtherRows):
		return err
	case denied:
		j.opinions = replaceOpinion(j.opinions, no)
		return c.refuse(no)
	case err != nil && ctx.Err() != nil && k.store.Poisoned() == nil:
		op := gaveUp(c.caller, holdfast.K6)
		j.opinions = replaceOpinion(j.opinions, op)
		return c.refuse(op)
	case err != nil:
		return c.refuseKind(holdfast.K6, walError(err))
	}
	c.begin, c.start = &place, j.now
	j.ticket.Confirm(j.at)
	if j.human.Approved || j.human.Rule != nil || j.newAgent {
		k.Wake(j.reviewIDs()...)
	}
	return c.activate()
}

// admit is what the begin's transaction asks once more, because it may have
// changed since the gates were asked, and what it takes.
func (c *crossing) admit(tx *scope) error {
	k, j := c.k, c.j
	if k.policy.Load() != j.pol {
		return errOtherPolicy
	}
	// Set before the halt's own transaction, so that no begin follows it.
	if k.halting.Load() {
		return &errRefused{refusal(holdfast.GateHalt, "HALTED", errHalted())}
	}
	if err := k.admitAgent(tx, j, true); err != nil {
		return err
	}
	// A tool may have shown itself anew since it was judged.
	if pin := j.contract.Pin; pin != "" {
		if c := k.catalog.Find(j.pol.contracts, j.req.Boundary); c == nil || c.Pin != pin ||
			c.Drifted != j.contract.Drifted {
			return &errRefused{nameDenial(review.NameTool, deny(holdfast.K7, holdfast.KindConflict,
				"the tool changed while the request was judged", "ask again"))}
		}
	}
	if err := stillGoing(tx, j); err != nil {
		return err
	}
	if j.feats != nil {
		if err := j.feats.noted.checkUnchanged(tx); err != nil {
			return err
		}
	}
	if err := j.human.Use(tx); err != nil {
		return err
	}
	if j.scope != "" {
		if err := k.claimReplay(tx, j); err != nil {
			return err
		}
	}
	return takeRoom(tx, j)
}

func takeRoom(tx Tx, j *judgement) error {
	no, err := tx.Draw(j.draws)
	if err == nil && no == nil && len(j.rates) > 0 {
		no, err = tx.Rate(j.rates, j.now)
	}
	if err != nil {
		return err
	}
	if no != nil {
		j.room = no
		return &errRefused{j.outOfBounds(no)}
	}
	return nil
}

// admitAgent looks once more whether the agent may cross, and keeps an agent
// at first sight; one within another only where its crossing begins.
func (k *Kernel) admitAgent(tx Tx, j *judgement, begins bool) error {
	gone, err := tx.Revoked(j.who.Tenant, j.who.TokenID)
	if err != nil {
		return err
	}
	if gone {
		return &errRefused{deny(holdfast.K2, holdfast.KindRevokedToken, "the token was revoked", "")}
	}
	a, err := ownAgent(tx, j.who.Tenant, j.who.Agent)
	if errors.Is(err, ErrNotFound) {
		a = j.firstSight()
		err = k.meet(tx, j)
	}
	if err != nil {
		return err
	}
	if j.isUnruled() {
		return nil
	}
	if a.State != holdfast.AgentRunning {
		return &errRefused{*pause.Refuse(&a)}
	}
	if k.fled.has(j.who.Tenant, j.who.Agent) {
		return &errRefused{deny(holdfast.GateHalt, holdfast.KindPaused, "the agent is being paused: its code tried to leave its sandbox", "")}
	}
	return k.admitSub(tx, j, begins)
}

// meet keeps an agent at first sight, with an event.
func (k *Kernel) meet(tx Tx, j *judgement) error {
	a := j.firstSight()
	if err := tx.PutAgent(a); err != nil {
		return err
	}
	return k.event(tx, Event{Tenant: a.Tenant, Crossing: j.id, Name: "agent_first_seen", Who: a.Principal, Subject: a.Name,
		Data: map[string]any{"kind": a.Kind, "level": a.Level.String(), "parent": a.Parent}})
}

// register lets halt, pause and revocation find the crossing. It says no where
// its agent has too many leases.
func (c *crossing) register() bool {
	c.ctx, c.cut = context.WithCancelCause(c.caller)
	j := c.j
	c.flight = &flight.Flight{ID: j.id, Tenant: j.who.Tenant, Agent: j.who.Agent, Within: j.branch.names(),
		Token: j.who.TokenID, Boundary: j.contract.Boundary, Intent: j.who.Intent, Chain: j.who.Chain,
		Since: j.now, Cut: c.cut, Leased: c.leased}
	if c.k.flights.Add(c.flight) {
		return true
	}
	c.cut(errActEnded)
	return false
}

func (c *crossing) unregister() {
	c.k.flights.Remove(c.flight)
	c.cut(errActEnded)
}

// activate asks halt once more at the last instant, and whether anybody has
// cut the crossing since it was registered, and moves to ACTIVE. From here on
// every path writes an entry.
func (c *crossing) activate() error {
	err := c.k.asked()
	if cause := context.Cause(c.ctx); err == nil && stopped(holdfast.KindOf(cause)) {
		err = cause
	}
	if err == nil {
		err = c.machine.do(passed)
	}
	if err == nil {
		c.out.Verdict = holdfast.Allow
		if !c.j.asksOutput() {
			c.j.doc.Forget() // an act may last long, and nobody asks of the request again
		}
		return nil
	}
	c.machine.do(refused)
	return c.close(&ending{outcome: ledger.Halted, err: err, unstarted: true})
}

func (c *crossing) inside() inside {
	return inside{id: c.j.id, correlation: c.j.correlation, traceparent: c.j.traceparent, tasks: c.tasks}
}

// outcome is what the caller learns.
func (c *crossing) outcome() *holdfast.Outcome {
	o := &c.out
	o.State = c.machine.state()
	if c.j == nil {
		return o
	}
	o.Crossing, o.Correlation, o.Traceparent = c.j.id, c.j.correlation, c.j.traceparent
	o.Key, o.Exact, o.Opinions, o.Weakened, o.Verdicts = c.j.key(), c.j.exact(), c.j.opinions,
		c.j.pol.contracts.LoosenedFor(c.j.contract), c.j.findNote()
	return o
}

// finish ends the span.
func (c *crossing) finish(err error) {
	if c.span == nil {
		return
	}
	if err != nil {
		c.span.SetStatus(codes.Error, string(holdfast.KindOf(err)))
		c.span.SetAttributes(attribute.String("error.type", string(holdfast.KindOf(err))))
	}
	c.span.End()
}

// replaceOpinion puts op in the place of its gate's opinion.
func replaceOpinion(ops []holdfast.Opinion, op holdfast.Opinion) []holdfast.Opinion {
	for i := range ops {
		if ops[i].Gate == op.Gate {
			ops[i] = op
			return ops
		}
	}
	return append(ops, op)
}

// usedBefore says how far a draw's counter was used when it was judged.
func (j *judgement) usedBefore(i int) int64 {
	if i < len(j.counters) {
		return j.counters[i].Used
	}
	return 0
}

// shown is the draw that the k3_ columns show (D14b): the one for which K3 found no
// room, else the one with the least left after it; -1 without draws.
func (j *judgement) shown() int {
	best, left := -1, int64(0)
	for i, d := range j.draws {
		if j.refusedFor(&d) {
			return i
		}
		l := d.Limit - j.usedBefore(i) - d.Amount
		if best < 0 || l < left {
			best, left = i, l
		}
	}
	return best
}

// refusedFor says whether it is that draw for which K3 refused.
func (j *judgement) refusedFor(d *budget.Draw) bool {
	no := j.room
	return no != nil && no.Rate == nil && no.Draw.Key == d.Key && slices.ContainsFunc(j.opinions, func(o holdfast.Opinion) bool {
		return o.Gate == holdfast.K3 && o.Verdict == holdfast.Deny && o.Rule == d.Name
	})
}
