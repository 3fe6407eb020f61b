package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/mcp/server"
	"github.com/holdfast-dev/holdfast/kernel"
)

// notice takes what people should hear of, without waiting. One that finds the
// queue full is in the log and in the ledger all the same. A halt goes to its
// hooks past the queue: nothing that waits there may keep them from running.
func (d *Daemon) notice(n kernel.Notice) {
	n.Why = d.maskText(n.Why) // a hook's own words come past the kernel
	d.log.Log(context.Background(), loudness(n.Level), "notice", "notify", n.Level, "event", n.Event, "why", n.Why, "review", n.Review, "boundary", n.Boundary)
	if n.Event == "halted" {
		select {
		case d.halts <- n:
		default: // the hooks are about to run anyway
		}
	}
	d.hook.tell(n)
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

// hookTime bounds a command that is told of a notice or a halt.
const hookTime = 30 * time.Second

// tellHalts runs the halt hooks until ctx ends (D34).
func (d *Daemon) tellHalts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-d.halts:
			d.haltHooks(ctx, n)
		}
	}
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
		d.runHook(ctx, "notify", []string{"/bin/sh", "-c", d.opt.Notify}, hookTime, b)
	}
	if cmd := d.config().Review.Notify; len(cmd) > 0 && n.Review != "" {
		d.runHook(ctx, "review.notify", cmd, hookTime, b)
	}
}

// haltHooks runs the configured commands in their order. Each is recorded; one
// that fails is an alarm, and the next runs all the same.
func (d *Daemon) haltHooks(ctx context.Context, n kernel.Notice) {
	for _, h := range d.config().Alerts.HaltHooks {
		limit := time.Duration(h.Timeout)
		if limit <= 0 {
			limit = hookTime
		}
		b, _ := json.Marshal(n)
		start := time.Now()
		err := d.runHook(ctx, h.Name, h.Command, limit, b)
		data := map[string]any{"ok": err == nil, "ms": time.Since(start).Milliseconds()}
		if err != nil {
			data["error"] = clip(err.Error())
			d.notice(kernel.Notice{Level: "critical", Event: "halt_hook_failed", Why: h.Name + ": " + clip(err.Error())})
		}
		if err := d.Kernel.Record(kernel.Event{Tenant: holdfast.Local, Name: "halt_hook", Who: "holdfast", Subject: h.Name, Data: data}); err != nil {
			d.log.Error("a halt hook could not be recorded", "hook", h.Name, "err", err)
		}
	}
}

// runHook runs one command with input on its standard input, in a clean
// environment.
func (d *Daemon) runHook(ctx context.Context, name string, argv []string, limit time.Duration, input []byte) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = bytes.NewReader(input)
	cmd.Env = append(server.Environment(os.Environ(), nil), "HOLDFAST_STATE="+d.Paths.Dir)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	out = d.mask(out)
	if err != nil {
		d.log.Error("a command failed", "command", name, "err", err, "output", clip(string(out)))
		return fmt.Errorf("%w: %s", err, clip(string(bytes.TrimSpace(out))))
	}
	return nil
}
