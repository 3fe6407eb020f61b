package kernel

import (
	"context"
	"math"

	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// CounterRaiser raises counters past their limits, to what the ledger adds up to. Only the
// composition has one: New binds that of the Config.
type CounterRaiser struct{ k *Kernel }

// raiserFeature is whose transactions those of a CounterRaiser are.
var raiserFeature = &feature{spec: Spec{Name: "recount"}}

// Commit runs fn in one transaction. raise adds the Amount of a draw to its counter,
// whatever the limit.
func (r *CounterRaiser) Commit(ctx context.Context, fn func(tx FeatureTx,
	raise func(d budget.Draw) error) error) error {
	return walError(r.k.runInScope(ctx, func(s *scope) error {
		return fn(s.txFor(raiserFeature), func(d budget.Draw) error {
			d.Limit = math.MaxInt64
			_, err := s.Draw([]budget.Draw{d})
			return err
		})
	}))
}
