package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/feature/command"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// notice takes what people should hear of, without waiting. One that finds the
// queue full is in the log and in the ledger all the same. A halt goes to its
// hooks past the queue: nothing that waits there may keep them from running.
func (d *Daemon) notice(n kernel.Notice) {
	n.Why = d.maskText(n.Why) // a hook's own words come past the kernel
	d.log.Log(context.Background(), loudness(n.Level), "notice", "notify", n.Level, "event", n.Event, "why", n.Why, "review", n.Review, "boundary", n.Boundary)
	if n.Event == "ledger_failed" {
		d.condition("", "", watch.LedgerFailed, true, n.Why)
	}
	if n.Event == "halted" {
		d.queueHalt(haltNotice{n, haltMark(d.Paths)})
	}
	d.hook.tell(n)
	d.alerts.tellNotice(n)
	lane := d.notices
	if n.Review != "" || n.Event == "halted" {
		lane = d.urgent // what servers do cannot fill this one
	}
	select {
	case lane <- n:
	default:
		d.log.Error("a notice was dropped: too many wait to be told", "event", n.Event)
	}
}

// loudness is the log's level for a level of D41a.
func loudness(notify string) slog.Level {
	switch notify {
	case "info":
		return slog.LevelInfo
	case "warning":
		return slog.LevelWarn
	}
	return slog.LevelError // error, critical, and what nobody has named
}

// tell tells people of notices until ctx ends.
func (d *Daemon) tell(ctx context.Context) {
	for {
		select {
		case n := <-d.urgent:
			d.tellOne(ctx, n)
			continue
		default:
		}
		select {
		case <-ctx.Done():
			return
		case n := <-d.urgent:
			d.tellOne(ctx, n)
		case n := <-d.notices:
			d.tellOne(ctx, n)
		}
	}
}

func (d *Daemon) tellOne(ctx context.Context, n kernel.Notice) {
	b, err := json.Marshal(n)
	if err != nil {
		d.log.Error("a notice could not be written", "err", err)
		return
	}
	if d.opt.Notify != "" {
		_, _ = d.runner().Run(ctx, command.Command{
			Name: "notify",
			Argv: []string{"/bin/sh", "-c", d.opt.Notify}, Limit: config.HookTime, Input: bytes.NewReader(b),
		}) // it logs
	}
	if cmd := d.config().Review.Notify; len(cmd) > 0 && n.Review != "" {
		_, _ = d.runner().Run(ctx, command.Command{
			Name: "review.notify", Argv: cmd, Limit: config.HookTime, Input: bytes.NewReader(b),
		}) // it logs
	}
}
