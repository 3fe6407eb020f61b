package daemon

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/feature/survey"
	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// budgets is how the budgets of the policy in force stand.
func (d *Daemon) budgets(ctx context.Context, ask survey.Ask) (survey.Standings, error) {
	return readBudgets(ctx, d.store, d.Kernel.Policy(), ask)
}

// readBudgets returns what a store has of a policy's budgets. An agent that nobody saw is a
// NotFound error.
func readBudgets(ctx context.Context, s kernel.Store, p *kernel.Policy, ask survey.Ask) (out survey.Standings, err error) {
	err = s.View(ctx, func(tx kernel.Tx) error {
		out, err = survey.Read(tx, p, ask, time.Now())
		return err
	})
	return out, err
}

// liveBudgets are those that can refuse next.
func (d *Daemon) liveBudgets(tx kernel.Tx, now time.Time) (survey.Standings, error) {
	return survey.Read(tx, d.Kernel.Policy(), survey.Ask{Live: true}, now)
}
