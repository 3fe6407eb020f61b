package kernel

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/policy/signal"
	"github.com/holdfast-dev/holdfast/ledger"
)

// recordedDraw is a draw as records hold it.
func recordedDraw(d budget.Draw) ledger.Draw {
	return ledger.Draw{Key: d.Key, Resource: d.Resource, Amount: d.Amount, Limit: d.Limit, Window: d.Window, Name: d.Name}
}

// refusedBy raises that K3 refused for a budget that is spent.
func (k *Kernel) refusedBy(tx *scope, j *judgement, op holdfast.Opinion) error {
	no := j.room
	if op.Gate != holdfast.K3 || no == nil || no.Rate != nil || no.Kind != holdfast.KindBounds || !no.Draw.Exceed.Acts() {
		return nil
	}
	return k.raiseExceeded(tx, j, no.Draw, false)
}

// settledBeyond raises that a crossing used more than it had reserved.
func (k *Kernel) settledBeyond(tx *scope, j *judgement, used []int64) error {
	for i, d := range j.draws {
		if !d.Exceed.Acts() || used[i] <= d.Amount {
			continue
		}
		if err := k.raiseExceeded(tx, j, d, true); err != nil {
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

func (k *Kernel) raiseExceeded(tx *scope, j *judgement, d budget.Draw, settled bool) error {
	s := signal.BudgetExceeded{Tenant: j.who.Tenant, Agent: j.who.Agent, Asking: j.who.Name(), Asker: j.asker(),
		Principal: j.who.Principal, Session: j.who.Session, Intent: j.who.Intent, Chain: j.who.Chain,
		Boundary: j.recordedBoundary(), Crossing: j.id, Correlation: j.correlation, At: j.at, Draw: d, Exceed: d.Exceed,
		Of: d.Of, Amount: d.Limit, Ends: budget.End(j.pol.Limits, d), Settled: settled}
	if n, ok := budget.Amount(j.pol.Limits, d); ok {
		s.Amount = n
	}
	if d.Exceed == budget.PauseAgent && d.Of != "" {
		if err := k.meetFresh(tx, j, d.Of); err != nil {
			return err
		}
	}
	opened := tx.opened
	_, err := tx.raiseSignal(s)
	j.overBudget = j.overBudget || tx.opened > opened
	return err
}

// meetFresh keeps the sub-agent whose counter it is, which may have begun nothing yet, with its
// first refusal.
func (k *Kernel) meetFresh(tx Tx, j *judgement, name string) error {
	_, err := tx.Agent(j.who.Tenant, name)
	if errors.Is(err, ErrNotFound) && j.branch.fresh && j.branch.path[0].Name == name {
		err = k.meetSub(tx, j, j.branch)
	}
	return err
}

// A chain that was ended stays ended. There may be any number of them, so that they are no
// stops in memory: the row is read by its key for each request of a chain.

// EndedChain is a chain that was ended.
type EndedChain struct {
	At       time.Time `json:"at"`
	Budget   string    `json:"budget"`
	Crossing string    `json:"crossing"`
}

// chainKey names a chain of a tenant.
func chainKey(tenant, chain string) string {
	sum := sha256.Sum256([]byte(tenant + "\x00" + chain))
	return hex.EncodeToString(sum[:])
}

// readChain learns whether the request's chain was ended.
func (j *judgement) readChain(tx Tx) error {
	if j.who.Chain == "" {
		return nil
	}
	e, _, err := endedChains.Get(tx, chainKey(j.who.Tenant, j.who.Chain))
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	j.chain = &e
	return nil
}

// chainEnded is the refusal of a request whose chain was ended, or nil.
func (j *judgement) chainEnded() *holdfast.Opinion {
	if j.chain == nil {
		return nil
	}
	op := deny(holdfast.GateHalt, holdfast.KindChainEnded, fmt.Sprintf("the chain %s was ended at %s: the budget is spent: %s",
		excerpt.Of(j.who.Chain, 64), review.FormatTime(j.chain.At), j.chain.Budget),
		"an ended chain stays ended; start another one")
	op.State, op.Rule = "ENDED", j.chain.Budget
	return &op
}

// stopped is the refusal of what is stopped, or nil.
func (j *judgement) stopped() *holdfast.Opinion { return cmp.Or(j.stopFor(), j.chainEnded()) }

// stillGoing looks once more, in the begin's transaction, whether anything has
// stopped the request since it was judged.
func stillGoing(tx Tx, j *judgement) error {
	if j.isUnruled() {
		return nil
	}
	if err := j.readChain(tx); err != nil {
		return err
	}
	if op := j.stopped(); op != nil {
		return &errRefused{*op}
	}
	return nil
}

// stands reports whether a refusal in front of the gates is recorded with its gate.
func stands(kind holdfast.Kind) bool {
	switch kind {
	case holdfast.KindHalted, holdfast.KindPaused, holdfast.KindGoalsPaused, holdfast.KindChainEnded, holdfast.KindTenantBlocked:
		return true
	}
	return false
}
