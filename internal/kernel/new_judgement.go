package kernel

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel/deadline"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/leaf/tracecontext"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/lookalike"
	"github.com/holdfast-dev/holdfast/internal/policy/pause"
)

// make turns a request into a judgement: the token is verified and the
// correlation id assigned here, before K1 (D5). It fails only where no id can
// be made.
func (k *Kernel) make(ctx context.Context, req *holdfast.Request, parent inside, by origin) (*judgement, error) {
	j := &judgement{k: k, pol: k.policy.Load(), req: req, now: k.now().UTC().Truncate(time.Microsecond), at: k.instant()}
	id, err := k.newID()
	if err != nil {
		return nil, err
	}
	j.id = id
	j.correlation, j.corrErr = tracecontext.Correlate(parent.correlation, req.Correlation, k.newCorrelation)
	if j.correlation == "" {
		return nil, j.corrErr
	}
	var span [8]byte
	if _, err := io.ReadFull(k.random, span[:]); err != nil {
		return nil, &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K4, Why: "a span id could not be made", Err: err}
	}
	incoming := req.Traceparent
	if parent.traceparent != "" {
		incoming = parent.traceparent
	}
	j.traceparent, j.above = tracecontext.NewHeader(incoming, j.correlation, span)
	j.who, j.whoErr = k.verify(ctx, req.Token, j)
	j.doc, j.docErr = payload.Parse(req.Payload)
	if len(req.Beside) > 0 {
		j.readBeside()
	}
	j.contract = k.lookup(j.pol, req.Boundary)
	if by != nil && strings.HasPrefix(req.Boundary, by.Prefix) {
		j.own = by
	}
	if !j.isUnruled() {
		j.classify()
	}
	j.human = j.newCase()
	return j, nil
}

func (k *Kernel) newCorrelation() (uuid.UUID, error) { return uuid.NewRandomFromReader(k.random) }

func (k *Kernel) verify(ctx context.Context, token holdfast.Secret, j *judgement) (holdfast.Identity, error) {
	if token.Empty() {
		return holdfast.Identity{}, &holdfast.Error{Kind: holdfast.KindJWT, Gate: holdfast.K2,
			Why: "no token was given", Hint: "send it as `Authorization: Bearer TOKEN`"}
	}
	ctx, cancel := deadline.After(ctx, gateTime)
	defer cancel()
	who, err := k.verifier.Verify(ctx, token, j.now)
	if err != nil {
		return holdfast.Identity{}, err
	}
	if who.Tenant == "" || who.Tenant == holdfast.Unverified || strings.HasPrefix(who.Tenant, "_") || who.Principal == "" || who.Agent == "" || who.TokenID == "" || who.Session == "" {
		return holdfast.Identity{}, &holdfast.Error{Kind: holdfast.KindTenantContext, Gate: holdfast.K2, Why: "the token does not say who asks"}
	}
	if err := k.Nameable(who); err != nil {
		return holdfast.Identity{}, err
	}
	return who, nil
}

// fetch reads every fact that the gates need, in one view with a deadline. A
// failure is kept for the gate whose fact it is: a missing fact denies (D3).
func (k *Kernel) fetch(ctx context.Context, j *judgement) {
	if j.whoErr != nil {
		return
	}
	ctx, cancel := deadline.After(ctx, gateTime)
	defer cancel()
	if j.req.Sub != nil {
		if j.factErr = k.store.View(ctx, func(tx Tx) (err error) { j.branch, err = j.locate(tx); return err }); j.factErr != nil {
			return
		}
		if len(j.branch.path) > 0 {
			j.who.Sub = idOf(&j.branch.path[0])
		}
	}
	j.scope = replayScope(j)
	j.setPrice(ctx)
	if j.contract != nil && !j.isUnruled() && j.priceErr == nil { // what has no price is refused, whatever room there is
		j.draws, j.rates, j.planErr = budget.Plan(k.limits(j), j.pol.Rates, budget.Ask{
			Who: j.who, Within: j.branch.ids(), Boundary: j.req.Boundary, Consumes: j.consumes(),
			PerMinute: j.contract.RatePerMinute, Cooldown: j.contract.Cooldown, Now: j.now})
		if j.own != nil && j.own.Unrated {
			j.rates = nil
		}
	}
	j.factErr = k.store.View(ctx, func(tx Tx) error { return j.read(tx) })
	if err := errors.Join(j.factErr, j.human.Err, j.keptErr, j.roomErr); err != nil && !errors.Is(err,
		context.Canceled) {
		k.log.Error("facts could not be read", "crossing", j.id, "err", err)
	}
}

// limits are the policy's, and the iteration limit of the agent's kind, which
// is counted per session (D41).
func (k *Kernel) limits(j *judgement) []budget.Limit {
	if j.consumes()[holdfast.Iterations] == 0 {
		return j.pol.Limits
	}
	return append([]budget.Limit{j.pol.IterationLimit(j.who.Kind)}, j.pol.Limits...)
}

// IterationLimit returns the limit on the steps of a session of that kind of agent (D41).
func (p *Policy) IterationLimit(kind string) budget.Limit {
	l := budget.Limit{Scope: budget.Session, Resource: holdfast.Iterations, Amount: defaultIterations, Source: "built in for unknown kinds"}
	if k, ok := p.Kinds[kind]; ok {
		l.Amount, l.Source = k.Iterations, "kind "+kind
	}
	return l
}

func (j *judgement) read(tx Tx) error {
	var err error
	if j.agent, err = ownAgent(tx, j.who.Tenant, j.who.Agent); errors.Is(err, ErrNotFound) {
		j.agent, j.newAgent, err = j.firstSight(), true, nil
	}
	if err != nil {
		return err
	}
	if j.revoked, err = tx.Revoked(j.who.Tenant, j.who.TokenID); err != nil {
		return err
	}
	if err := j.joinFeatures(tx); err != nil {
		return err
	}
	if j.mayHold() {
		j.human.Read(tx)
	}
	if j.scope != "" {
		r, err := tx.Replay(j.scope)
		if err == nil && j.now.Before(r.Expires) {
			j.replay = &r
		} else if err != nil && !errors.Is(err, ErrNotFound) {
			j.keptErr = err
		}
	}
	if err := j.readChain(tx); err != nil {
		return err
	}
	j.roomErr = j.peek(tx)
	return nil
}

// mayHold says whether a review can matter to this request at all.
func (j *judgement) mayHold() bool {
	if j.contract == nil || j.doc == nil {
		return false
	}
	return j.mayHoldByFeature() || j.risk() == holdfast.High || j.pol.holds ||
		(j.contract.Confidence != "" && j.contract.Confidence != "none")
}

// peek looks for room without taking any.
func (j *judgement) peek(tx Tx) error {
	if j.planErr != nil {
		return nil
	}
	j.counters = make([]budget.Counter, len(j.draws))
	for i, d := range j.draws {
		c, err := tx.Counter(d)
		if err != nil {
			return err
		}
		j.counters[i] = c
		if j.room == nil {
			j.room = budget.Fits(d, c)
		}
	}
	if len(j.rates) == 0 || j.room != nil {
		return nil
	}
	var err error
	j.room, err = tx.PeekRate(j.rates, j.now)
	return err
}

func (j *judgement) firstSight() holdfast.Agent {
	level := holdfast.Baseline
	if kind, ok := j.pol.Kinds[j.who.Kind]; ok && kind.Level < holdfast.Highest {
		level = kind.Level
	}
	return holdfast.Agent{Tenant: j.who.Tenant, Name: j.who.Agent, Kind: j.who.Kind, Level: level,
		State: holdfast.AgentRunning, Principal: j.who.Principal, Parent: j.who.Parent, First: j.now}
}

// before asks what stands in front of the gates: the latch, the enabled flag,
// and the agent's pause. A nil opinion lets the gates be asked.
func (j *judgement) before() *holdfast.Opinion {
	if err := j.k.asked(); err != nil {
		op := refusal(holdfast.GateHalt, "HALTED", err)
		return &op
	}
	if j.isUnruled() {
		return nil
	}
	if j.whoErr == nil && j.factErr == nil && j.agent.State != holdfast.AgentRunning {
		return pause.Refuse(&j.agent)
	}
	if j.whoErr == nil && j.factErr == nil {
		if op := j.branch.paused(); op != nil {
			return op
		}
		if op := j.stopped(); op != nil {
			return op
		}
	}
	if r := j.k.reservedFor(j.req.Boundary); r != nil && r != j.own {
		op := deny(holdfast.K2, holdfast.KindPermission, r.Why, r.Hint)
		return &op
	}
	if j.leased && j.contract != nil && j.contract.OnError == OnErrorRollback {
		op := deny(holdfast.K2, holdfast.KindPermission, "what it changes is put back where it fails (on_error: rollback), which is for what Holdfast carries out", "cross it through a door that acts for its caller")
		return &op
	}
	return nil
}

// reservedFor returns whose boundary it is, or nil. A name that reads the same is as the name.
func (k *Kernel) reservedFor(boundary string) *Reserved {
	folded := lookalike.Fold(boundary)
	for _, r := range k.reserved {
		if strings.HasPrefix(folded, r.Prefix) {
			return r
		}
	}
	return nil
}
