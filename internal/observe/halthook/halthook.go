// Package halthook runs the commands that follow a halt (D34). They are actions, not messages: they start as soon as
// the latch is set, wait in no queue, and are not repeated once they ran.
package halthook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/feature/command"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/observe/notify"
)

// maxFile bounds the file of what ran, in bytes.
const maxFile = 1 << 20

// Hook is one configured command.
type Hook struct {
	Name  string
	Argv  []string
	Env   []string // names of the variables that it is given
	Limit time.Duration
}

// Run is one command that ran after a halt.
type Run struct {
	Name   string    `json:"name"`
	At     time.Time `json:"at"` // when it was started
	Millis int64     `json:"ms"`
	// Error is why it failed, masked; empty if its exit code was 0.
	Error string `json:"error,omitempty"`
}

// Options are what Hooks work with.
type Options struct {
	File  string        // keeps what ran, over a restart
	Latch string        // the halt latch's file
	Hooks func() []Hook // in the order of the configuration
	// Runner runs the commands.
	Runner  command.Runner
	Journal *notify.Journal
	// Failed is called for each hook that failed: people should hear of it.
	Failed func(kernel.Notice)
	Log    *slog.Logger
}

// Hooks run once a halt, however it came and however often it is said, in the order of the configuration. The hooks of
// a halt that was set while no process ran are run by the next one. A hook that ended is not run again by a restart;
// one that a restart interrupted is.
//
// They belong to the latch: HOLDFAST_ENABLED halts one process, and runs none.
type Hooks struct {
	Options

	waiting chan halt // the newest halt whose hooks have not run

	queueing sync.Mutex // held while a halt is put into waiting

	mu  sync.Mutex
	ran record // guarded by mu
}

// record is what has run after one halt, as the file keeps it.
type record struct {
	// Halt tells the latch that it was from others (markLatch).
	Halt string `json:"halt"`
	Runs []Run  `json:"runs"`
}

// halt is one whose hooks are to run.
type halt struct {
	kernel.Notice
	mark string // of the latch when the halt was noticed
}

// New returns the hooks of a state.
func New(o Options) *Hooks { return &Hooks{Options: o, waiting: make(chan halt, 1)} }

// markLatch returns what tells the latch that is set now from every other, or "" if none is set. A process that may
// write the latch may halt, so that the mark need not be secret.
func markLatch(latch string) string {
	info, err := os.Lstat(latch)
	if err != nil {
		return ""
	}
	var inode uint64
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = uint64(st.Ino)
	}
	return fmt.Sprintf("%d-%d", inode, info.ModTime().UnixNano())
}

// ReadRuns returns the hooks that have run since the latch was set, from the file; none if it is not set.
func ReadRuns(file, latch string) []Run {
	mark := markLatch(latch)
	if ran := readRecord(file); mark != "" && ran.Halt == mark {
		return ran.Runs
	}
	return nil
}

// readRecord reads the file. If it cannot be read, no hook ran: one that runs twice does less harm than one that never
// runs.
func readRecord(file string) (ran record) {
	b, err := guard.ReadRegular(file, maxFile, guard.CheckPrivate(file))
	if err != nil || json.Unmarshal(b, &ran) != nil {
		return record{}
	}
	return ran
}

// Add makes a halt the one whose hooks run next. One that waits was set before it, and its hooks run for this one.
func (h *Hooks) Add(n kernel.Notice) {
	next := halt{n, markLatch(h.Latch)}
	h.queueing.Lock()
	defer h.queueing.Unlock()
	select {
	case <-h.waiting:
	default:
	}
	select {
	case h.waiting <- next:
	default:
	}
}

// Run runs the hooks of each halt until ctx ends.
func (h *Hooks) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-h.waiting:
			h.runAll(ctx, next)
		}
	}
}

// RunWaiting runs what the active halt has left to run, for a command that owns the state itself, and returns all that
// has run.
func (h *Hooks) RunWaiting(ctx context.Context) []Run {
	select {
	case next := <-h.waiting:
		h.runAll(ctx, next)
	default:
	}
	return h.ListRuns()
}

// ListRuns returns the hooks that ran after the active halt.
func (h *Hooks) ListRuns() []Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	if mark := markLatch(h.Latch); mark == "" || mark != h.ran.Halt {
		return ReadRuns(h.File, h.Latch)
	}
	return slices.Clone(h.ran.Runs)
}

// ListProblems returns one sentence for each hook of the active halt that failed.
func (h *Hooks) ListProblems() (out []string) {
	for _, r := range h.ListRuns() {
		if r.Error != "" {
			out = append(out, "the halt hook "+r.Name+" failed: "+r.Error)
		}
	}
	return out
}

// runAll runs the configured commands in their order. Which halt it is was noted when it was noticed: by now its latch
// may be gone, and another halt may be set. Each is recorded; one that fails is an alarm, and the next runs anyway.
func (h *Hooks) runAll(ctx context.Context, next halt) {
	h.startHalt(next.mark)
	b, err := json.Marshal(next.Notice)
	if err != nil {
		h.Log.Error("a halt could not be written for its hooks", "err", err)
	}
	for _, c := range h.Hooks() {
		if !h.hasRun(c.Name) {
			h.runOne(ctx, c, b)
		}
	}
}

// startHalt forgets what ran after another halt.
func (h *Hooks) startHalt(mark string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ran.Halt == "" {
		h.ran = readRecord(h.File) // by a process before this one
	}
	if h.ran.Halt != mark || mark == "" {
		h.ran = record{Halt: mark}
	}
}

func (h *Hooks) hasRun(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.ran.Runs, func(r Run) bool { return r.Name == name })
}

// runOne runs a hook. A crash before it has ended leaves it to be run again, one after that leaves its record.
func (h *Hooks) runOne(ctx context.Context, c Hook, notice []byte) {
	start := time.Now()
	said, err := h.Runner.Run(ctx, command.Command{
		Name: c.Name, Argv: c.Argv, Env: c.Env, Limit: c.Limit, Input: bytes.NewReader(notice),
	})
	if err != nil && ctx.Err() != nil {
		return // the process ends, and the next one runs the hook again
	}
	run := Run{Name: c.Name, At: start.UTC(), Millis: time.Since(start).Milliseconds()}
	if err != nil {
		run.Error = excerpt.Of(err.Error(), 256)
	}
	h.keepRun(run)
	h.Journal.WriteHook(c.Name, time.Since(start), said, err)
	if err != nil {
		h.Failed(kernel.Notice{Level: "critical", Event: "halt_hook_failed", Why: c.Name + ": " + run.Error})
	}
}

// keepRun writes the file in one step. If it cannot be written, a restart runs the hook again.
func (h *Hooks) keepRun(r Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ran.Runs = append(h.ran.Runs, r)
	b, err := json.Marshal(h.ran)
	if err == nil {
		err = durable.ReplaceFile(h.File, append(b, '\n'), 0o600)
	}
	if err != nil {
		h.Log.Error("that a halt hook has run could not be kept; a restart runs it again", "hook", r.Name, "err", err)
	}
}
