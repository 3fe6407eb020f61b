package exceed

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
)

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

func (b *Block) isActive(now time.Time) bool {
	return b.LiftedBy == "" && (b.Until.IsZero() || now.Before(b.Until))
}

// oldBlock is how long a block whose window is over is kept: a clock that went ahead by a day
// and comes back finds it.
const oldBlock = 48 * time.Hour

// maxBlocks bounds the blocked tenants.
const maxBlocks = 10_000

// Blocks lists the tenants that a budget blocks at now.
func Blocks(tx kernel.Reader, now time.Time) ([]Block, error) {
	all, err := readBlocks(tx)
	if err != nil {
		return nil, err
	}
	var out []Block
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if b := all[name]; b.isActive(now) {
			out = append(out, b)
		}
	}
	return out, nil
}

func readBlocks(tx kernel.Reader) (map[string]Block, error) {
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
func putBlock(tx kernel.FeatureTx, b *Block) error {
	_, version, err := budgetBlocks.Find(tx, b.Tenant)
	if err != nil {
		return err
	}
	return budgetBlocks.Put(tx, b.Tenant, *b, version)
}

func (b *Budgets) blockTenant(tx kernel.FeatureTx, x *spent) error {
	all, err := readBlocks(tx)
	if err != nil {
		return err
	}
	now := b.host.Now()
	block := Block{Tenant: x.Tenant, Since: x.At, Budget: x.draw.Name, Limit: x.draw.Limit, Agent: x.Asking,
		Crossing: x.Crossing}
	if x.Ends > 0 {
		block.Until = time.Unix(x.Ends, 0).UTC()
	}
	if old, known := all[x.Tenant]; known && (old.isActive(now) || old.Until.Equal(block.Until) &&
		old.Budget == block.Budget && old.Limit >= block.Limit) {
		return nil // blocked already, or let continue by a person
	}
	for name, old := range all {
		if !old.Until.IsZero() && now.Sub(old.Until) > oldBlock {
			if err := budgetBlocks.Delete(tx, name); err != nil {
				return err
			}
		}
	}
	if err := putBlock(tx, &block); err != nil {
		return err
	}
	if err := stopTenant(tx, &block); err != nil {
		return err
	}
	data := x.newData()
	data["level"], data["until"] = "CRITICAL", block.Until
	tx.Notify(x.newNotice("critical", eventBlocked, "every agent of the tenant is refused: the budget is spent: "+block.Budget))
	return tx.Event(kernel.Event{Tenant: block.Tenant, Crossing: x.Crossing, Name: eventBlocked, Who: "holdfast",
		Subject: block.Tenant, Data: data})
}

// stopTenant has every agent of the tenant refused while the block is active.
func stopTenant(tx kernel.FeatureTx, b *Block) error {
	until := "a person lifts the block"
	if !b.Until.IsZero() {
		until = b.Until.UTC().Format("2006-01-02T15:04:05Z")
	}
	_, err := tx.Stop(kernel.Stop{Tenant: b.Tenant, Cause: "budget_spent", Until: b.Until, Recorded: true,
		Why: "every agent of the tenant is refused until " + until + ": the budget is spent: " + b.Budget,
		Refusal: &kernel.Refusal{Kind: holdfast.KindTenantBlocked, State: "BLOCKED", Rule: b.Budget,
			Hint: "a person can lift the block with `holdfast budget unblock`"}})
	return err
}

// OnStart implements kernel.Starter: a block that was written before there were stops gets its
// own.
func (b *Budgets) OnStart(tx kernel.FeatureTx) error {
	all, err := readBlocks(tx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		block := all[name]
		if block.LiftedBy != "" || !block.Until.IsZero() && b.host.Now().Sub(block.Until) > oldBlock {
			continue
		}
		stops, err := kernel.FindStops(tx, name, Name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(stops, func(s kernel.Stop) bool { return s.Until.Equal(block.Until) }) {
			continue
		}
		if err := stopTenant(tx, &block); err != nil {
			return err
		}
	}
	return nil
}

// UnblockTenant lets a tenant's agents continue before the window ends, on a person's word;
// the statement's Subject is "budget". The budget itself stays as it is: what asks for more of
// it is refused by K3. A tenant that is not blocked is a ConflictError.
func (b *Budgets) UnblockTenant(tenant string, signed operator.Signed) (Block, error) {
	var lifted Block
	of := cmp.Or(tenant, holdfast.Local)
	err := b.host.CommitSigned(signed, operator.Unblock, func(tx kernel.FeatureTx, w *kernel.Word) error {
		if err := w.CheckTenant(tenant); err != nil {
			return err
		}
		block, _, err := budgetBlocks.Find(tx, of)
		if err != nil {
			return err
		}
		if block.Tenant == "" || !block.isActive(b.host.Now()) {
			return &holdfast.Error{Kind: holdfast.KindConflict, Why: "no budget blocks the tenant " + excerpt.Of(of, 64)}
		}
		if err := w.CheckSince(block.Since); err != nil {
			return err
		}
		block.LiftedBy = w.Reviewer
		lifted = block
		if err := putBlock(tx, &block); err != nil {
			return err
		}
		stops, err := kernel.FindStops(tx, of, Name)
		for i := 0; i < len(stops) && err == nil; i++ {
			err = tx.Lift(of, stops[i].ID)
		}
		if err != nil {
			return err
		}
		data := w.Data()
		data["budget"], data["until"] = block.Budget, block.Until
		tx.Notify(kernel.Notice{Level: "warning", Event: eventUnblocked, Tenant: of,
			Why: "the tenant goes on: " + block.LiftedBy + " lifted the block of " + block.Budget})
		return tx.Event(kernel.Event{Tenant: of, Name: eventUnblocked, Who: w.Reviewer, Subject: of, Data: data})
	})
	if err != nil {
		return Block{}, err
	}
	return lifted, nil
}
