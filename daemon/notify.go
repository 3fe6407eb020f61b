package daemon

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/feature/command"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/server"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/alert"
	"github.com/holdfast-dev/holdfast/internal/observe/halthook"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// openAlerts opens what notifies people, and what runs after a halt: they share a journal.
func (d *Daemon) openAlerts() (err error) {
	journal := notify.NewJournal(func(e kernel.Event) error { return d.Kernel.Record(e) }, d.log)
	d.hooks = halthook.New(halthook.Options{
		File: hooksFile(d.Paths), Latch: d.Paths.Halt, Hooks: func() []halthook.Hook { return haltHooks(d.config()) },
		Runner: d.runner(), Journal: journal, Failed: d.notice, Log: d.log,
	})
	values := new(credential.Reader)
	d.alerts, err = alert.Open(alert.Options{
		Dir: d.Paths.Dir, Runtime: d.runtime, Version: d.opt.Version, Journal: journal, Mask: d.maskText,
		Kernel: func() alert.Kernel { return d.Kernel }, Runner: d.runner(), Command: d.opt.Notify, Log: d.log,
		Channel: func(ctx context.Context, name string) (*notify.Channel, error) {
			return d.config().Alerts.OpenChannel(ctx, values, name)
		},
		Page: func(review string) string {
			at, _ := d.pagesAt()
			if at == "" {
				return ""
			}
			return at + "/review/" + review
		},
		Failing: func(why string) { d.condition("", "", watch.ChannelFailed, why != "", why) },
	}, d.config().AlertSettings())
	return err
}

// runner returns what runs configured commands.
func (d *Daemon) runner() command.Runner {
	return command.Runner{
		Environ: func(names []string) []string {
			return append(server.Environment(os.Environ(), names), "HOLDFAST_STATE="+d.Paths.Dir)
		},
		Mask: d.maskRecord, Log: d.log,
	}
}

// hooksFile keeps which halt hooks ran.
func hooksFile(p Paths) string { return filepath.Join(p.Dir, "halt.hooks") }

// haltHooks returns the configured halt hooks.
func haltHooks(c *config.Config) (out []halthook.Hook) {
	for _, h := range c.Alerts.HaltHooks {
		out = append(out, halthook.Hook{Name: h.Name, Argv: h.Command, Env: h.Env,
			Limit: cmp.Or(time.Duration(h.Timeout), config.HookTime)})
	}
	return out
}

// RunHaltHooks runs what an active halt has left to run, for a command that owns the state itself, and returns all
// that has run.
func (d *Daemon) RunHaltHooks(ctx context.Context) []halthook.Run { return d.hooks.RunWaiting(ctx) }

// notice takes what people should hear of, without waiting. A halt goes to its hooks past the queue: nothing that
// waits there may keep them from running.
func (d *Daemon) notice(n kernel.Notice) {
	n.Why = d.maskText(n.Why) // a hook's own words come past the kernel
	if n.Event == "ledger_failed" {
		d.condition("", "", watch.LedgerFailed, true, n.Why)
	}
	if n.Event == "halted" {
		d.hooks.Add(n)
	}
	d.alerts.TakeNotice(n)
}
