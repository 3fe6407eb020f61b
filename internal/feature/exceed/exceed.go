// Package exceed carries out what follows when a budget is exceeded (D41): the chain is ended,
// the tenant is blocked until the budget's window is over, or the agent is paused and a person
// asked, who can grant more. It happens in the transaction of the entry that records it.
package exceed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
)

// Name is the feature's.
const Name = "exceed"

// What the ledger and the notices call it.
const (
	eventChainHalted = "chain_halted"
	eventBlocked     = "tenant_blocked"
	eventUnblocked   = "tenant_unblocked"
	eventExtended    = "budget_extended"
)

// budgetDomain begins what the exact hash of a review of a spent budget is over.
const budgetDomain = "holdfast: a spent budget, version 1\n"

var (
	budgetGrants    = table.New[string, granted]("budget_grant", table.Options{Key: "counter", Gates: true})
	budgetAsked     = table.New[string, askedReview]("budget_asked", table.Options{Key: "counter"})
	budgetQuestions = table.New[string, spentQuestion]("budget_question", table.Options{Key: "review"})
	budgetBlocks    = table.New[string, Block]("budget_block", table.Options{Key: "tenant", Gates: true})
	chainCounts     = table.New[string, chainCount]("chain_count", table.Options{Key: "tenant"})
)

// Tables returns the tables of the feature.
func Tables() []*table.Def {
	return []*table.Def{budgetGrants.Def(), budgetAsked.Def(), budgetQuestions.Def(), budgetBlocks.Def(),
		chainCounts.Def()}
}

// granted is what a person has added to one counter's limit.
type granted struct {
	Window int64 `json:"window"`
	Amount int64 `json:"amount"`
}

// askedReview is the review of a spent counter.
type askedReview struct {
	Review string `json:"review"`
}

// chainCount is the number of a tenant's chains that a budget has ended.
type chainCount struct {
	Ended int `json:"ended"`
}

// spentQuestion is what a review of a spent budget is about.
type spentQuestion struct {
	Key    string `json:"key"`
	Window int64  `json:"window"`
	// Amount is what an approval adds.
	Amount int64  `json:"amount"`
	Budget string `json:"budget"`
}

// counterKey names a counter in the tables.
func counterKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Budgets is the feature.
type Budgets struct{ host kernel.Host }

// New returns the feature.
func New(h kernel.Host) kernel.Feature { return &Budgets{h} }

// FromKernel returns the feature of a kernel that has it.
func FromKernel(k *kernel.Kernel) *Budgets { return k.Feature(Name).(*Budgets) }

// Spec implements kernel.Feature.
func (*Budgets) Spec() kernel.Spec { return kernel.Spec{Name: Name, Tables: Tables()} }

// Join implements kernel.Joiner: it adds to the limits what people have granted.
func (*Budgets) Join(r kernel.Reader, v *kernel.View) (kernel.Part, error) {
	var raised []kernel.Raise
	for i := range v.Draws {
		d := &v.Draws[i]
		if d.Exceed != budget.PauseAgent {
			continue
		}
		g, err := ReadGrant(r, d)
		if err != nil {
			return nil, err
		}
		if g > 0 {
			raised = append(raised, kernel.Raise{Key: d.Key, Window: d.Window, Name: d.Name, Amount: g})
		}
	}
	if raised == nil {
		return nil, nil
	}
	return part(raised), nil
}

// part is the raised limits of one crossing.
type part []kernel.Raise

// Evaluate implements kernel.Part: the feature is at no gate.
func (part) Evaluate(context.Context, holdfast.Gate, *kernel.View) holdfast.Opinion {
	return holdfast.Opinion{Verdict: holdfast.Allow}
}

// Claims implements kernel.Claimer.
func (p part) Claims() kernel.Claims { return kernel.Claims{Raised: p} }

// ReadGrant returns what people have added to the limit of a counter in its window.
func ReadGrant(tx kernel.Reader, d *budget.Draw) (int64, error) {
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

// OnSignal implements kernel.SignalHandler.
func (b *Budgets) OnSignal(tx kernel.FeatureTx, s signal.Signal) (map[string]any, error) {
	switch s := s.(type) {
	case signal.BudgetExceeded:
		return nil, b.carryOut(tx, &s)
	case signal.BudgetGranted:
		return nil, extendBudget(tx, &s)
	}
	return nil, nil
}

// spent is a draw that was exceeded.
type spent struct {
	*signal.BudgetExceeded
	draw budget.Draw // with its limit as it is now
	used int64
}

// carryOut does what follows, unless a person has made room since.
func (b *Budgets) carryOut(tx kernel.FeatureTx, s *signal.BudgetExceeded) error {
	x := spent{BudgetExceeded: s, draw: s.Draw}
	x.draw.Exceed, x.draw.Of = s.Exceed, s.Of
	if s.Exceed == budget.PauseAgent {
		g, err := ReadGrant(tx, &x.draw)
		if err != nil {
			return err
		}
		x.draw.Limit = budget.AddCapped(s.Amount, g)
	}
	c, err := tx.Counter(x.draw)
	if err != nil {
		return err
	}
	if x.used = c.Used; s.Settled && c.Used <= x.draw.Limit || !s.Settled && budget.Fits(x.draw, c) == nil {
		return nil
	}
	switch s.Exceed {
	case budget.EndChain:
		return x.endChain(tx)
	case budget.BlockTenant:
		return b.blockTenant(tx, &x)
	case budget.PauseAgent:
		return x.pauseAgent(tx)
	}
	return nil
}

func (x *spent) newData() map[string]any {
	return map[string]any{"budget": x.draw.Name, "resource": string(x.draw.Resource), "limit": x.draw.Limit,
		"used": x.used, "asked": x.draw.Amount, "agent": x.Asking, "session": x.Session, "boundary": x.Boundary}
}

func (x *spent) newNotice(level, event, why string) kernel.Notice {
	return kernel.Notice{Level: level, Event: event, Tenant: x.Tenant, Agent: x.Asking, Boundary: x.Boundary,
		Crossing: x.Crossing, Why: why}
}

func (x *spent) endChain(tx kernel.FeatureTx) error {
	err := tx.EndChain(x.Tenant, x.Chain, kernel.EndedChain{At: x.At, Budget: x.draw.Name, Crossing: x.Crossing})
	if errors.Is(err, kernel.ErrExists) {
		return nil // it has ended already
	}
	if err != nil {
		return err
	}
	n, version, err := chainCounts.Find(tx, x.Tenant)
	if err != nil {
		return err
	}
	if err := chainCounts.Put(tx, x.Tenant, chainCount{n.Ended + 1}, version); err != nil {
		return err
	}
	tx.Notify(x.newNotice("warning", eventChainHalted, "the chain "+x.Chain+" was ended: the budget is spent: "+x.draw.Name))
	return tx.Event(kernel.Event{Tenant: x.Tenant, Crossing: x.Crossing, Name: eventChainHalted, Who: "holdfast",
		Subject: x.Chain, Data: x.newData()})
}

// ChainsEnded returns the number of chains of a tenant that a budget has ended.
func ChainsEnded(tx kernel.Reader, tenant string) (int, error) {
	n, _, err := chainCounts.Find(tx, tenant)
	return n.Ended, err
}

// pauseAgent pauses the agent and asks a person, once for each counter at a time.
func (x *spent) pauseAgent(tx kernel.FeatureTx) error {
	a, err := tx.Agent(x.Tenant, cmp.Or(x.Of, x.Agent))
	if err != nil {
		return err
	}
	r, err := x.findWaiting(tx)
	if err == nil && r == nil {
		r, err = x.askPerson(tx)
	}
	if err != nil {
		return err
	}
	data := x.newData()
	data["review"] = r.ID
	paused, err := tx.PauseAgent(&a, r, false, kernel.Event{Tenant: a.Tenant, Crossing: x.Crossing,
		Name: "agent_paused", Who: "holdfast", Subject: a.Name, Data: data})
	if paused {
		tx.Notify(x.newNotice("error", "agent_paused", "the agent is paused: "+r.Why))
	}
	return err
}

// findWaiting returns the review of that counter that waits for an answer, or nil.
func (x *spent) findWaiting(tx kernel.FeatureTx) (*review.Review, error) {
	asked, version, err := budgetAsked.Find(tx, counterKey(x.draw.Key))
	if err != nil || version == 0 {
		return nil, err
	}
	r, err := tx.Review(asked.Review)
	if errors.Is(err, kernel.ErrNotFound) || err == nil && !r.Waiting(x.At) {
		return nil, nil
	}
	return &r, err
}

// askPerson opens the review of a spent budget.
func (x *spent) askPerson(tx kernel.FeatureTx) (*review.Review, error) {
	d := &x.draw
	shown := map[string]any{"agent": x.Asking, "boundary": x.Boundary, "budget": d.Name, "crossing": x.Crossing,
		"session": x.Session, "used": budget.FormatAmount(d.Resource, x.used), "limit": budget.FormatAmount(d.Resource, d.Limit),
		"asked": budget.FormatAmount(d.Resource, d.Amount), "approving_adds": budget.FormatAmount(d.Resource, x.Amount)}
	r, err := tx.OpenReview(review.AboutBudget, budgetDomain, shown, func(r *review.Review) {
		r.Crossing, r.Principal, r.Session, r.Intent = x.Crossing, x.Principal, x.Session, x.Intent
		r.Correlation, r.Why, r.Asker = x.Correlation, "the budget is spent: "+d.Name, x.Asker
		if x.Of != "" {
			r.Owner = x.Agent
		}
		r.Tenant, r.Agent, r.Boundary = x.Tenant, cmp.Or(x.Of, x.Agent), x.Boundary
	})
	if err != nil {
		return nil, err
	}
	err = budgetQuestions.Insert(tx, r.ID, spentQuestion{Key: d.Key, Window: d.Window, Amount: x.Amount, Budget: d.Name})
	if err != nil {
		return nil, err
	}
	_, version, err := budgetAsked.Find(tx, counterKey(d.Key))
	if err == nil {
		err = budgetAsked.Put(tx, counterKey(d.Key), askedReview{r.ID}, version)
	}
	return r, err
}

// extendBudget carries out the approval of such a review: the counter's limit is higher by one
// such amount, in the window that it was asked in.
func extendBudget(tx kernel.FeatureTx, s *signal.BudgetGranted) error {
	q, _, err := budgetQuestions.Get(tx, s.Review)
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
	return tx.Event(kernel.Event{Tenant: s.Tenant, Crossing: s.Crossing, Name: eventExtended, Who: s.Reviewer,
		Subject: s.Agent, Data: map[string]any{"key": q.Key, "budget": q.Budget, "session": s.Session,
			"amount": q.Amount, "granted": g.Amount, "review": s.Review}})
}
