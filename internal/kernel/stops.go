package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
)

// What a spent budget has stopped stands in front of the gates: a chain that was
// ended is refused for ever, a tenant until its window is over (D41). What is in
// flight goes on to its end; nothing new begins.

// Block is a tenant whose every agent is refused.
type Block struct {
	Tenant string    `json:"tenant_id"`
	Since  time.Time `json:"since"`
	// Until is when the window ends; zero is never by itself.
	Until time.Time `json:"until,omitzero"`
	// Budget is the limit's name, Limit its amount.
	Budget   string `json:"budget"`
	Limit    int64  `json:"limit"`
	Agent    string `json:"agent"`
	Crossing string `json:"crossing"`
	// LiftedBy is who let the tenant go on early. The same budget does not block
	// it again in that window, unless the budget was raised.
	LiftedBy string `json:"lifted_by,omitempty"`
}

func (b *Block) holds(now time.Time) bool {
	return b.LiftedBy == "" && (b.Until.IsZero() || now.Before(b.Until))
}

// endedChain is a chain that was ended.
type endedChain struct {
	At       time.Time `json:"at"`
	Budget   string    `json:"budget"`
	Crossing string    `json:"crossing"`
}

// oldBlock is how long a block whose window is over is kept: a clock that went
// ahead by a day and comes back finds it.
const oldBlock = 48 * time.Hour

// Blocks lists the tenants that a budget blocks at now.
func Blocks(tx Tx, now time.Time) ([]Block, error) {
	all, err := readBlocks(tx)
	if err != nil {
		return nil, err
	}
	var out []Block
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if b := all[name]; b.holds(now) {
			out = append(out, b)
		}
	}
	return out, nil
}

// ChainsEnded is how many chains of a tenant a budget has ended.
func ChainsEnded(tx Tx, tenant string) (int, error) {
	n, _, err := chainCounts.Find(tx, tenant)
	return n.Ended, err
}

// maxBlocks bounds the blocked tenants. With more of them nothing begins.
const maxBlocks = 10_000

func readBlocks(tx Tx) (map[string]Block, error) {
	all := map[string]Block{}
	err := budgetBlocks.Scan(tx, table.Range{Limit: maxBlocks + 1}, func(tenant string, b Block, _ int64) error {
		all[tenant] = b
		return nil
	})
	if err == nil && len(all) > maxBlocks {
		err = fmt.Errorf("more than %d tenants are blocked", maxBlocks)
	}
	return all, err
}

// putBlock writes the block of a tenant.
func putBlock(tx Tx, b Block) error {
	_, version, err := budgetBlocks.Find(tx, b.Tenant)
	if err != nil {
		return err
	}
	return budgetBlocks.Put(tx, b.Tenant, b, version)
}

// chainKey names a chain of a tenant.
func chainKey(tenant, chain string) string { return sha([]byte(tenant + "\x00" + chain)) }

// blocks are the tenants that are blocked, as the store has them. A block counts
// from the transaction that makes it, before it is durable.
type blocks struct {
	mu    sync.RWMutex
	m     map[string]Block // guarded by mu; never changed, only replaced
	round int              // guarded by mu; how often it was replaced
}

// undo is how the blocks were before a transaction that has replaced them. The
// zero undo is of one that has not.
type undo struct {
	was   map[string]Block
	round int
}

func (b *blocks) set(m map[string]Block) undo {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := undo{b.m, b.round + 1}
	b.m, b.round = m, u.round
	return u
}

// back undoes what a transaction that failed has set. Where another has set them
// since, it read the store without the failed one, and its word stands.
func (b *blocks) back(u undo) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if u.round > 0 && u.round == b.round {
		b.m = u.was
	}
}

func (b *blocks) of(tenant string, now time.Time) (Block, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	found, ok := b.m[tenant]
	return found, ok && found.holds(now)
}

// readStops learns at the start what is blocked.
func (k *Kernel) readStops(ctx context.Context) error {
	return k.store.View(ctx, func(tx Tx) error {
		all, err := readBlocks(tx)
		if err != nil {
			return err
		}
		k.blocks.set(all)
		return k.loadStops(tx)
	})
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

// stopped is the refusal of what a spent budget has stopped, or nil.
func (j *judgement) stopped() *holdfast.Opinion {
	if b, blocked := j.k.blocks.of(j.who.Tenant, j.now); blocked {
		until := "a person lifts the block"
		if !b.Until.IsZero() {
			until = stamp(b.Until)
		}
		op := deny(holdfast.GateHalt, holdfast.KindTenantBlocked, "every agent of the tenant is refused until "+until+": the budget is spent: "+b.Budget,
			"a person can lift the block with `holdfast budget unblock`")
		op.State, op.Rule = "BLOCKED", b.Budget
		return &op
	}
	if j.chain != nil {
		op := deny(holdfast.GateHalt, holdfast.KindChainEnded, fmt.Sprintf("the chain %s was ended at %s: the budget is spent: %s", excerpt.Of(j.who.Chain, 64), stamp(j.chain.At), j.chain.Budget),
			"an ended chain stays ended; start another one")
		op.State, op.Rule = "ENDED", j.chain.Budget
		return &op
	}
	return nil
}

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
	if op := j.stopFor(); op != nil {
		return &errRefused{*op}
	}
	return nil
}

// stands says whether a refusal in front of the gates is recorded with its gate.
func stands(kind holdfast.Kind) bool {
	switch kind {
	case holdfast.KindHalted, holdfast.KindPaused, holdfast.KindGoalsPaused, holdfast.KindChainEnded, holdfast.KindTenantBlocked:
		return true
	}
	return false
}

// UnblockTenant lets a tenant's agents go on before the window ends, on a
// person's word; the statement's Subject is "budget". The budget itself stays as
// it is: what asks for more of it is refused by K3. A tenant that is not blocked
// is a ConflictError.
func (k *Kernel) UnblockTenant(tenant string, signed operator.Signed) (Block, error) {
	var lifted Block
	var was undo
	of := cmp.Or(tenant, holdfast.Local)
	_, err := k.runSigned(signed, operator.Unblock, func(tx *scope, s operator.Statement, _ operator.Public) error {
		if err := sameTenant(s, tenant); err != nil {
			return err
		}
		all, err := readBlocks(tx)
		if err != nil {
			return err
		}
		b, known := all[of]
		if !known || !b.holds(k.now()) {
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "no budget blocks the tenant " + excerpt.Of(of, 64)}
		}
		if err := k.saidSince(s, b.Since); err != nil {
			return err
		}
		b.LiftedBy = s.Reviewer
		all[of], lifted = b, b
		if err := putBlock(tx, b); err != nil {
			return err
		}
		data := said(s, signed)
		data["budget"], data["until"] = b.Budget, b.Until
		if err := k.event(tx, Event{Tenant: of, Name: eventUnblocked, Who: s.Reviewer, Subject: of, Data: data}); err != nil {
			return err
		}
		was = k.blocks.set(all)
		return nil
	})
	if err != nil {
		k.blocks.back(was)
		return Block{}, err
	}
	k.stir()
	k.notify(Notice{Level: "warning", Event: eventUnblocked, Tenant: of, Why: "the tenant goes on: " + lifted.LiftedBy + " lifted the block of " + lifted.Budget})
	return lifted, nil
}
