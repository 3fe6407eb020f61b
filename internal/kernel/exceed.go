package kernel

import (
	"cmp"
	"errors"
	"math"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// What exceeding a budget brings (D41) is written in the transaction of the
// entry that tells of it: of the denial, where K3 has no room, or of the
// crossing whose measured use went beyond what it had reserved.

// What the ledger and the notices call it.
const (
	eventChainHalted = "chain_halted"
	eventBlocked     = "tenant_blocked"
	eventUnblocked   = "tenant_unblocked"
	eventExtended    = "budget_extended"
)

// budgetDomain stands before what the exact hash of such a review is over.
const budgetDomain = "holdfast: a spent budget, version 1\n"

// recordedDraw is a draw as records hold it.
func recordedDraw(d budget.Draw) ledger.Draw {
	return ledger.Draw{Key: d.Key, Resource: d.Resource, Amount: d.Amount, Limit: d.Limit, Window: d.Window, Name: d.Name}
}

// granted is what a person has added to one counter's limit.
type granted struct {
	Window int64 `json:"window"`
	Amount int64 `json:"amount"`
}

// counterKey names a counter in the tables of budgets.
func counterKey(key string) string { return sha([]byte(key)) }

// readGrants adds to the limits of the draws what people have granted.
func (j *judgement) readGrants(tx Tx) error {
	for i := range j.draws {
		d := &j.draws[i]
		if d.Exceed != budget.PauseAgent {
			continue
		}
		g, err := ReadGrant(tx, d)
		if err != nil {
			return err
		}
		if g > 0 {
			d.Limit = budget.AddCapped(d.Limit, g)
		}
	}
	return nil
}

// ReadGrant returns what people have added to the limit of a counter in its window.
func ReadGrant(tx Reader, d *budget.Draw) (int64, error) {
	g, _, err := budgetGrants.Find(tx, counterKey(d.Key))
	switch {
	case err != nil:
		return 0, err
	case g.Amount < 0:
		return 0, errors.New("a granted amount is damaged")
	case g.Window != d.Window:
		return 0, nil
	}
	return g.Amount, nil
}

// stopping collects what is told once a transaction is durable.
type stopping struct {
	notices []Notice
	reviews []string
	was     undo // the blocks before
}

// refusedBy carries out what follows from K3's refusal.
func (k *Kernel) refusedBy(tx Tx, j *judgement, op holdfast.Opinion) error {
	j.stops = stopping{was: j.stops.was}
	no := j.room
	if op.Gate != holdfast.K3 || no == nil || no.Rate != nil || no.Kind != holdfast.KindBounds || !no.Draw.Exceed.Acts() {
		return nil
	}
	// Somebody may have made room since.
	d, err := j.limited(tx, no.Draw)
	if err != nil {
		return err
	}
	c, err := tx.Counter(d)
	if err != nil {
		return err
	}
	if budget.Fits(d, c) == nil {
		return nil
	}
	return k.exceeded(tx, j, d, c.Used)
}

// amount is the limit of a draw without what people have granted.
func (p *policy) amount(d budget.Draw) int64 {
	if n, ok := budget.Amount(p.Limits, d); ok {
		return n
	}
	return d.Limit
}

// limited is the draw with the limit that it has now.
func (j *judgement) limited(tx Tx, d budget.Draw) (budget.Draw, error) {
	if d.Exceed != budget.PauseAgent {
		return d, nil
	}
	g, err := ReadGrant(tx, &d)
	d.Limit = budget.AddCapped(j.pol.amount(d), g)
	return d, err
}

// settledBeyond carries out what follows where a crossing used more than it had
// reserved, and more than there was.
func (k *Kernel) settledBeyond(tx Tx, j *judgement, used []int64) error {
	j.stops = stopping{was: j.stops.was}
	for i, d := range j.draws {
		if !d.Exceed.Acts() || used[i] <= d.Amount {
			continue
		}
		d, err := j.limited(tx, d)
		if err != nil {
			return err
		}
		c, err := tx.Counter(d)
		if err != nil {
			return err
		}
		if c.Used <= d.Limit {
			continue
		}
		if err := k.exceeded(tx, j, d, c.Used); err != nil {
			return err
		}
	}
	return nil
}

// mayStop says whether settling at used can stop anything.
func (j *judgement) mayStop(used []int64) bool {
	for i, d := range j.draws {
		if d.Exceed.Acts() && used[i] > d.Amount {
			return true
		}
	}
	return false
}

func (k *Kernel) exceeded(tx Tx, j *judgement, d budget.Draw, used int64) error {
	switch d.Exceed {
	case budget.EndChain:
		return k.endChain(tx, j, d, used)
	case budget.BlockTenant:
		return k.blockTenant(tx, j, d, used)
	case budget.PauseAgent:
		return k.pauseSpent(tx, j, d, used)
	}
	return nil
}

func spentData(j *judgement, d budget.Draw, used int64) map[string]any {
	return map[string]any{"budget": d.Name, "resource": string(d.Resource), "limit": d.Limit, "used": used, "asked": d.Amount,
		"agent": j.who.Name(), "session": j.who.Session, "boundary": j.recordedBoundary()}
}

func (k *Kernel) endChain(tx Tx, j *judgement, d budget.Draw, used int64) error {
	err := endedChains.Insert(tx, chainKey(j.who.Tenant, j.who.Chain), endedChain{At: j.at, Budget: d.Name,
		Crossing: j.id})
	if errors.Is(err, ErrExists) {
		return nil // it has ended already
	}
	if err != nil {
		return err
	}
	n, version, err := chainCounts.Find(tx, j.who.Tenant)
	if err != nil {
		return err
	}
	if err := chainCounts.Put(tx, j.who.Tenant, chainCount{n.Ended + 1}, version); err != nil {
		return err
	}
	j.stops.notices = append(j.stops.notices, j.notice("warning", eventChainHalted, "the chain "+j.who.Chain+" was ended: the budget is spent: "+d.Name))
	return k.event(tx, Event{Tenant: j.who.Tenant, Crossing: j.id, Name: eventChainHalted, Who: "holdfast", Subject: j.who.Chain, Data: spentData(j, d, used)})
}

func (k *Kernel) blockTenant(tx Tx, j *judgement, d budget.Draw, used int64) error {
	all, err := readBlocks(tx)
	if err != nil {
		return err
	}
	b := Block{Tenant: j.who.Tenant, Since: j.at, Budget: d.Name, Limit: d.Limit, Agent: j.who.Name(), Crossing: j.id}
	if ends := budget.End(j.pol.Limits, d); ends > 0 {
		b.Until = time.Unix(ends, 0).UTC()
	}
	if old, known := all[b.Tenant]; known && (old.holds(k.now()) || old.Until.Equal(b.Until) && old.Budget == b.Budget && old.Limit >= b.Limit) {
		return nil // blocked already, or let go on by a person
	}
	for name, old := range all {
		if !old.Until.IsZero() && k.now().Sub(old.Until) > oldBlock {
			delete(all, name)
			if err := budgetBlocks.Delete(tx, name); err != nil {
				return err
			}
		}
	}
	all[b.Tenant] = b
	if err := putBlock(tx, b); err != nil {
		return err
	}
	data := spentData(j, d, used)
	data["level"], data["until"] = "CRITICAL", b.Until
	if err := k.event(tx, Event{Tenant: b.Tenant, Crossing: j.id, Name: eventBlocked, Who: "holdfast", Subject: b.Tenant, Data: data}); err != nil {
		return err
	}
	j.stops.notices = append(j.stops.notices, j.notice("critical", eventBlocked, "every agent of the tenant is refused: the budget is spent: "+d.Name))
	now := k.blocks.set(all)
	if j.stops.was.round > 0 {
		now.was = j.stops.was.was // of the first attempt of the transaction
	}
	j.stops.was = now
	return nil
}

func (j *judgement) notice(level, event, why string) Notice {
	return Notice{Level: level, Event: event, Tenant: j.who.Tenant, Agent: j.who.Name(), Boundary: j.recordedBoundary(), Crossing: j.id, Why: why}
}

// spentQuestion is what a review of a spent budget is about.
type spentQuestion struct {
	Key    string `json:"key"`
	Window int64  `json:"window"`
	// Amount is what an approval adds.
	Amount int64  `json:"amount"`
	Budget string `json:"budget"`
}

// pauseSpent pauses the agent and asks a person, once for each counter at a time.
func (k *Kernel) pauseSpent(tx Tx, j *judgement, d budget.Draw, used int64) error {
	a, err := k.whose(tx, j, d)
	if err != nil {
		return err
	}
	r, err := k.waitingFor(tx, d)
	if err != nil {
		return err
	}
	if r == nil {
		if r, err = k.askSpent(tx, j, d, used); err != nil {
			return err
		}
	}
	if a.State != holdfast.AgentRunning {
		return nil // whoever stopped it before, and why, stands
	}
	k.pauseFor(&a, r)
	if err := tx.PutAgent(a); err != nil {
		return err
	}
	data := spentData(j, d, used)
	data["why"], data["review"] = a.Why, r.ID
	j.stops.notices = append(j.stops.notices, j.notice("error", "agent_paused", "the agent is paused: "+r.Why))
	return k.event(tx, Event{Tenant: a.Tenant, Crossing: j.id, Name: "agent_paused", Who: "holdfast", Subject: a.Name, Data: data})
}

// whose is the agent whose counter it is. One within another may have begun nothing
// yet, and is kept with its first refusal.
func (k *Kernel) whose(tx Tx, j *judgement, d budget.Draw) (holdfast.Agent, error) {
	if d.Of == "" {
		return tx.Agent(j.who.Tenant, j.who.Agent)
	}
	a, err := tx.Agent(j.who.Tenant, d.Of)
	if errors.Is(err, ErrNotFound) && j.branch.fresh && j.branch.path[0].Name == d.Of {
		a = j.branch.path[0]
		err = k.meetSub(tx, &a, j.id)
	}
	return a, err
}

// waitingFor is the review of that counter that waits for an answer, or nil.
func (k *Kernel) waitingFor(tx Tx, d budget.Draw) (*review.Review, error) {
	asked, version, err := budgetAsked.Find(tx, counterKey(d.Key))
	if err != nil || version == 0 {
		return nil, err
	}
	r, err := tx.Review(asked.Review)
	if errors.Is(err, ErrNotFound) || err == nil && !r.Waiting(k.now()) {
		return nil, nil
	}
	return &r, err
}

// askSpent opens the review of a spent budget.
func (k *Kernel) askSpent(tx Tx, j *judgement, d budget.Draw, used int64) (*review.Review, error) {
	amount := j.pol.amount(d)
	shown := map[string]any{"agent": j.who.Name(), "boundary": j.recordedBoundary(), "budget": d.Name, "crossing": j.id, "session": j.who.Session,
		"used": budget.FormatAmount(d.Resource, used), "limit": budget.FormatAmount(d.Resource, d.Limit),
		"asked": budget.FormatAmount(d.Resource, d.Amount), "approving_adds": budget.FormatAmount(d.Resource,
			amount)}
	r, err := k.ask(review.AboutBudget, budgetDomain, shown)
	if err != nil {
		return nil, err
	}
	r.Crossing, r.Principal, r.Session, r.Intent, r.Correlation, r.Why = j.id, j.who.Principal, j.who.Session, j.who.Intent, j.correlation, "the budget is spent: "+d.Name
	r.Asker, r.Owner = j.asker(), ownerOf(d, j)
	r.Tenant, r.Agent, r.Boundary, r.Policy = j.who.Tenant, cmp.Or(d.Of, j.who.Agent), j.recordedBoundary(), j.pol.Version
	if err := budgetQuestions.Insert(tx, r.ID, spentQuestion{Key: d.Key, Window: d.Window, Amount: amount,
		Budget: d.Name}); err != nil {
		return nil, err
	}
	_, version, err := budgetAsked.Find(tx, counterKey(d.Key))
	if err == nil {
		err = budgetAsked.Put(tx, counterKey(d.Key), askedReview{r.ID}, version)
	}
	if err != nil {
		return nil, err
	}
	if err := tx.PutReview(r, review.None); err != nil {
		return nil, err
	}
	j.overBudget = true
	j.stops.reviews = append(j.stops.reviews, r.ID)
	j.stops.notices = append(j.stops.notices, Opened(&r))
	return &r, k.event(tx, proposed(&r))
}

// ownerOf is the agent within which that one is whose counter it is, or "".
func ownerOf(d budget.Draw, j *judgement) string {
	if d.Of == "" {
		return ""
	}
	return j.who.Agent
}

// extend carries out the approval of such a review: the counter's limit is
// higher by one such amount, in the window that it was asked in.
func (k *Kernel) extend(tx Tx, r *review.Review, s operator.Statement) error {
	q, _, err := budgetQuestions.Get(tx, r.ID)
	if err != nil {
		return err
	}
	g, version, err := budgetGrants.Find(tx, counterKey(q.Key))
	if err != nil {
		return err
	}
	if g.Window != q.Window {
		g = granted{Window: q.Window}
	}
	if q.Amount < 0 || g.Amount > math.MaxInt64-q.Amount {
		return &holdfast.Error{Kind: holdfast.KindOverflow, Why: "no more can be granted: the sum overflows"}
	}
	g.Amount += q.Amount
	if err := budgetGrants.Put(tx, counterKey(q.Key), g, version); err != nil {
		return err
	}
	return k.event(tx, Event{Tenant: r.Tenant, Crossing: r.Crossing, Name: eventExtended, Who: s.Reviewer, Subject: r.Agent,
		Data: map[string]any{"key": q.Key, "budget": q.Budget, "session": r.Session, "amount": q.Amount, "granted": g.Amount, "review": r.ID}})
}

// tellStops tells people what a budget has stopped, once it is durable; where the
// transaction failed, the blocks are as they were.
func (k *Kernel) tellStops(j *judgement, err error) {
	s := j.stops
	j.stops = stopping{}
	if err != nil {
		k.blocks.back(s.was)
		return
	}
	if len(s.notices) == 0 {
		return
	}
	k.stir(s.reviews...)
	for _, n := range s.notices {
		n.Why = string(k.mask(n.Why))
		k.notify(n)
	}
}
