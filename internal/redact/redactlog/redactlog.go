// Package redactlog writes logs that hold nothing which the redaction engine finds.
package redactlog

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/redact/detector"
)

// handler redacts messages and attributes before it passes them on (D13).
type handler struct {
	slog.Handler
	texts *detector.Records
}

// New returns a logger that writes to the handler of to, and redacts everything by texts before: messages and keys,
// which are the program's own words, by its engine alone.
func New(to *slog.Logger, texts *detector.Records) *slog.Logger {
	return slog.New(handler{to.Handler(), texts})
}

// Handle implements slog.Handler.
func (m handler) Handle(ctx context.Context, r slog.Record) error {
	own := slog.NewRecord(r.Time, r.Level, m.redactWords(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		own.AddAttrs(m.redactAttr(a))
		return true
	})
	return m.Handler.Handle(ctx, own)
}

// WithAttrs implements slog.Handler.
func (m handler) WithAttrs(as []slog.Attr) slog.Handler {
	own := make([]slog.Attr, len(as))
	for i, a := range as {
		own[i] = m.redactAttr(a)
	}
	return handler{m.Handler.WithAttrs(own), m.texts}
}

// WithGroup implements slog.Handler.
func (m handler) WithGroup(name string) slog.Handler {
	return handler{m.Handler.WithGroup(m.redactWords(name)), m.texts}
}

func (m handler) redactText(s string) string { return string(m.texts.Text([]byte(s)).Out) }

func (m handler) redactWords(s string) string { return string(m.texts.Engine().Text([]byte(s)).Out) }

// redactAttr redacts one attribute. A value that is not a text, number, boolean or time is formatted first.
func (m handler) redactAttr(a slog.Attr) slog.Attr {
	key, v := m.redactWords(a.Key), a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(key, m.redactText(v.String()))
	case slog.KindGroup:
		own := make([]slog.Attr, 0, len(v.Group()))
		for _, inner := range v.Group() {
			own = append(own, m.redactAttr(inner))
		}
		return slog.Attr{Key: key, Value: slog.GroupValue(own...)}
	case slog.KindAny:
		if v.Any() == nil {
			return slog.Attr{Key: key, Value: v}
		}
		if b, ok := v.Any().([]byte); ok {
			return slog.String(key, m.redactText(string(b))) // its numbers would say it too
		}
		return slog.String(key, m.redactText(fmt.Sprintf("%+v", v.Any())))
	}
	return slog.Attr{Key: key, Value: v}
}
