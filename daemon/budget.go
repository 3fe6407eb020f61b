package daemon

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// budgets is how the budgets of the policy in force stand.
func (d *Daemon) budgets(ctx context.Context, ask kernel.StandingAsk) (kernel.Standings, error) {
	return LookBudgets(ctx, d.store, d.Kernel.Policy(), ask)
}

// liveBudgets are those that can refuse next.
func (d *Daemon) liveBudgets(tx kernel.Tx, now time.Time) (kernel.Standings, error) {
	return kernel.StandingsIn(tx, d.Kernel.Policy(), kernel.StandingAsk{Live: true}, now)
}

// LookBudgets is how the budgets of a policy stand by what a store has, whoever owns
// it. An agent that nobody saw is a NotFound error.
func LookBudgets(ctx context.Context, s kernel.Store, p *kernel.Policy, ask kernel.StandingAsk) (out kernel.Standings, err error) {
	err = s.View(ctx, func(tx kernel.Tx) error {
		out, err = kernel.StandingsIn(tx, p, ask, time.Now())
		return err
	})
	return out, err
}
