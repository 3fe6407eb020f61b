package daemon

import (
	"fmt"
	"log"
	"log/slog"
	"runtime/debug"

	"github.com/holdfast-dev/holdfast"
)

// errorLog is where an HTTP server says what no request hears of: a handler
// that panicked among it.
func (d *Daemon) errorLog() *log.Logger { return slog.NewLogLogger(d.log.Handler(), slog.LevelError) }

// guarded runs f. A panic is written to the log, where the engine reads it
// first, and not to standard error as Go would: its words may be anybody's. It
// comes back as an error, on which the daemon ends: who knows what it left.
func (d *Daemon) guarded(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			d.panicked(fmt.Sprint(p), string(debug.Stack()))
			err = &holdfast.Error{Kind: holdfast.KindInternal, Why: "the daemon panicked", Hint: "the log has the cause; report it"}
		}
	}()
	f()
	return nil
}

// panicked writes a panic to the log, which masks it. It is the hook of what
// ends no more than itself, too.
func (d *Daemon) panicked(what, stack string) {
	d.log.Error("the daemon panicked", "panic", what, "stack", stack)
}
