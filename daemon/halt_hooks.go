package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/feature/command"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/server"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
)

// haltHooks are the commands that run after the latch is set (D34). They run once
// a halt, however it came and however often it is said, in the order of the
// configuration; a halt that was set while nobody ran is found at the next start.
// One that ended is not run again by a restart; one that a restart broke off is.
//
// They are of the latch: HOLDFAST_ENABLED halts one process, and runs none.
type haltHooks struct {
	d *Daemon

	queueing sync.Mutex // held while a halt is put into Daemon.halts

	mu  sync.Mutex
	ran hooksRan // guarded by mu
}

// hooksRan is what has run after one halt, as the file haltHooksFile keeps it.
type hooksRan struct {
	// Halt tells the latch that it was from others (haltMark).
	Halt string        `json:"halt"`
	Runs []api.HookRun `json:"runs"`
}

// Bounds on hooks.
const (
	maxHookFile = 1 << 20
)

func haltHooksFile(p Paths) string { return filepath.Join(p.Dir, "halt.hooks") }

// haltMark tells the latch that is set now from every other; it is empty where
// none is. Whoever may write the latch may halt, so that it need not be secret.
func haltMark(p Paths) string {
	info, err := os.Lstat(p.Halt)
	if err != nil {
		return ""
	}
	var inode uint64
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = uint64(st.Ino)
	}
	return fmt.Sprintf("%d-%d", inode, info.ModTime().UnixNano())
}

// runner returns what runs configured commands.
func (d *Daemon) runner() command.Runner {
	return command.Runner{
		Environ: func(names []string) []string {
			return append(server.Environment(os.Environ(), names), "HOLDFAST_STATE="+d.Paths.Dir)
		},
		Mask: d.mask, Log: d.log,
	}
}

// HaltHookRuns are the halt hooks that have run since everything was halted, of
// the state in p; none where nothing is halted, or nobody can tell.
func HaltHookRuns(p Paths) []api.HookRun {
	mark := haltMark(p)
	if ran := readHooksRan(p); mark != "" && ran.Halt == mark {
		return ran.Runs
	}
	return nil
}

// readHooksRan reads the file. What cannot be read says that nothing ran: a hook
// that runs twice does no harm that one which never runs does not.
func readHooksRan(p Paths) (ran hooksRan) {
	b, err := guard.ReadRegular(haltHooksFile(p), maxHookFile, guard.CheckPrivate(haltHooksFile(p)))
	if err != nil || json.Unmarshal(b, &ran) != nil {
		return hooksRan{}
	}
	return ran
}

// keep writes what ran, in one step. The caller holds the lock.
func (h *haltHooks) keep() error {
	b, err := json.Marshal(h.ran)
	if err != nil {
		return err
	}
	return durable.ReplaceFile(haltHooksFile(h.d.Paths), append(b, '\n'), 0o600)
}

// begin forgets what ran after another halt.
func (h *haltHooks) begin(mark string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ran.Halt == "" {
		h.ran = readHooksRan(h.d.Paths) // by a process before this one
	}
	if h.ran.Halt != mark || mark == "" {
		h.ran = hooksRan{Halt: mark}
	}
}

func (h *haltHooks) hasRun(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.ran.Runs {
		if r.Name == name {
			return true
		}
	}
	return false
}

// ended notes a run. Where it cannot be kept, a restart runs the hook again.
func (h *haltHooks) ended(r api.HookRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ran.Runs = append(h.ran.Runs, r)
	if err := h.keep(); err != nil {
		h.d.log.Error("that a halt hook has run could not be kept; a restart runs it again", "hook", r.Name, "err", err)
	}
}

// runs are those of the halt in force.
func (h *haltHooks) runs() []api.HookRun {
	h.mu.Lock()
	defer h.mu.Unlock()
	if mark := haltMark(h.d.Paths); mark == "" || mark != h.ran.Halt {
		return HaltHookRuns(h.d.Paths)
	}
	return append([]api.HookRun(nil), h.ran.Runs...)
}

// troubles are one sentence for each hook of the halt in force that failed.
func (h *haltHooks) troubles() (out []string) {
	for _, r := range h.runs() {
		if r.Error != "" {
			out = append(out, "the halt hook "+r.Name+" failed: "+r.Error)
		}
	}
	return out
}

// haltNotice is a halt whose hooks are to run.
type haltNotice struct {
	kernel.Notice
	mark string // of the latch when the halt was noticed (haltMark)
}

// queueHalt makes h the halt whose hooks run next. One that waits was set before it, and its hooks run for h.
func (d *Daemon) queueHalt(h haltNotice) {
	d.hooks.queueing.Lock()
	defer d.hooks.queueing.Unlock()
	select {
	case <-d.halts:
	default:
	}
	select {
	case d.halts <- h:
	default:
	}
}

// tellHalts runs the halt hooks until ctx ends (D34).
func (d *Daemon) tellHalts(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case h := <-d.halts:
			d.haltHooks(ctx, h)
		}
	}
}

// RunHaltHooks runs what a halt in force has left to run, for a command that owns
// the state itself, and returns all that has run.
func (d *Daemon) RunHaltHooks(ctx context.Context) []api.HookRun {
	select {
	case h := <-d.halts: // Open has found the latch
		d.haltHooks(ctx, h)
	default:
	}
	return d.hooks.runs()
}

// haltHooks runs the configured commands in their order. Which halt it is was noted when it was noticed: by now its
// latch may be gone, and another halt may be set. Each is recorded; one that fails is an alarm, and the next runs all
// the same.
func (d *Daemon) haltHooks(ctx context.Context, h haltNotice) {
	d.hooks.begin(h.mark)
	b, err := json.Marshal(h.Notice)
	if err != nil {
		d.log.Error("a halt could not be written for its hooks", "err", err)
	}
	for _, c := range d.config().Alerts.HaltHooks {
		if !d.hooks.hasRun(c.Name) {
			d.haltHook(ctx, c, b)
		}
	}
}

// haltHook runs one. A crash before it has ended leaves it to be run again, one
// after that leaves its record.
func (d *Daemon) haltHook(ctx context.Context, c config.HookConfig, notice []byte) {
	limit := time.Duration(c.Timeout)
	if limit <= 0 {
		limit = config.HookTime
	}
	start := time.Now()
	said, err := d.runner().Run(ctx, command.Command{
		Name: c.Name, Argv: c.Command, Env: c.Env, Limit: limit, Input: bytes.NewReader(notice),
	})
	if err != nil && ctx.Err() != nil {
		return // the daemon ends, and the next one begins it anew
	}
	run := api.HookRun{Name: c.Name, At: start.UTC(), Millis: time.Since(start).Milliseconds()}
	data := map[string]any{"ok": err == nil, "ms": run.Millis}
	if said != "" {
		data["said"] = excerpt.Of(said, 512)
	}
	if err != nil {
		run.Error = excerpt.Of(err.Error(), 256)
		data["error"] = run.Error
		d.notice(kernel.Notice{Level: "critical", Event: "halt_hook_failed", Why: c.Name + ": " + run.Error})
	}
	if err := d.Kernel.Record(kernel.Event{Tenant: holdfast.Local, Name: "halt_hook", Who: "holdfast", Subject: c.Name, Data: data}); err != nil {
		d.log.Error("a halt hook could not be recorded", "hook", c.Name, "err", err)
	}
	d.hooks.ended(run)
}
