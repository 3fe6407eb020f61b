package daemon

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"runtime/debug"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// masking is a log that holds nothing the engine would mask: messages and
// attributes pass it before any handler sees them (D13).
type masking struct {
	slog.Handler
	engine *redact.Engine
}

// maskedLog is to with everything redacted on its way.
func maskedLog(to *slog.Logger, e *redact.Engine) *slog.Logger {
	return slog.New(masking{to.Handler(), e})
}

// Handle implements slog.Handler.
func (m masking) Handle(ctx context.Context, r slog.Record) error {
	own := slog.NewRecord(r.Time, r.Level, m.text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		own.AddAttrs(m.attr(a))
		return true
	})
	return m.Handler.Handle(ctx, own)
}

// WithAttrs implements slog.Handler.
func (m masking) WithAttrs(as []slog.Attr) slog.Handler {
	own := make([]slog.Attr, len(as))
	for i, a := range as {
		own[i] = m.attr(a)
	}
	return masking{m.Handler.WithAttrs(own), m.engine}
}

// WithGroup implements slog.Handler.
func (m masking) WithGroup(name string) slog.Handler {
	return masking{m.Handler.WithGroup(m.text(name)), m.engine}
}

func (m masking) text(s string) string { return string(m.engine.Text([]byte(s)).Out) }

// attr masks one attribute. What is neither a text, a number, a truth nor a
// time is written out first.
func (m masking) attr(a slog.Attr) slog.Attr {
	key, v := m.text(a.Key), a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(key, m.text(v.String()))
	case slog.KindGroup:
		own := make([]slog.Attr, 0, len(v.Group()))
		for _, inner := range v.Group() {
			own = append(own, m.attr(inner))
		}
		return slog.Attr{Key: key, Value: slog.GroupValue(own...)}
	case slog.KindAny:
		if v.Any() == nil {
			return slog.Attr{Key: key, Value: v}
		}
		if b, ok := v.Any().([]byte); ok {
			return slog.String(key, m.text(string(b))) // its numbers would say it too
		}
		return slog.String(key, m.text(fmt.Sprintf("%+v", v.Any())))
	}
	return slog.Attr{Key: key, Value: v}
}

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
