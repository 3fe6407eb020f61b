// Package tracecontext reads and writes W3C traceparent headers, and resolves correlation
// IDs (spec 003 section 1.5).
package tracecontext

import (
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"go.opentelemetry.io/otel/trace"
)

// Correlate returns the correlation ID of a crossing: its parent's, the caller's if it is a
// UUIDv4, or a fresh one. With an error of K4 it returns one anyway, for the entry, unless
// fresh fails.
func Correlate(parent, given string, fresh func() (uuid.UUID, error)) (string, error) {
	if parent != "" && (given == "" || given == parent) {
		return parent, nil
	}
	id, err := fresh()
	if err != nil {
		return "", &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K4,
			Why: "a correlation id could not be made", Err: err}
	}
	if given == "" {
		return id.String(), nil
	}
	got, err := uuid.Parse(given)
	if err != nil || len(given) != 36 || got.Version() != 4 || got.Variant() != uuid.RFC4122 {
		return id.String(), &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K4,
			Why: "the correlation id is not a UUIDv4", Hint: "leave it out to get a new one"}
	}
	if parent != "" {
		return parent, &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K4,
			Why: "a child crossing has its parent's correlation id, and another was given"}
	}
	return got.String(), nil
}

// parse reads a traceparent of version 00. For any other text it returns an invalid span
// context, and the text is ignored as the W3C asks.
func parse(s string) (sc trace.SpanContext) {
	if len(s) != 55 || s[:3] != "00-" || s[35] != '-' || s[52] != '-' || !isLowerHex(s[53:]) {
		return sc
	}
	id, err := trace.TraceIDFromHex(s[3:35])
	if err != nil {
		return sc
	}
	span, err := trace.SpanIDFromHex(s[36:52])
	if err != nil {
		return sc
	}
	return newRemote(id, span)
}

// newRemote returns a span context of another process. Holdfast records all of its own
// spans, whatever the caller's flags are.
func newRemote(id trace.TraceID, span trace.SpanID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled,
		Remote: true})
}

func isLowerHex(s string) bool {
	if strings.ToLower(s) != s {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}

// NewHeader returns the outgoing header: of a new span in the caller's trace or, without
// one, in that of the correlation ID's 16 bytes. above is the parent of the crossing's own
// span.
func NewHeader(incoming, correlation string, span [8]byte) (out string, above trace.SpanContext) {
	above = parse(incoming)
	if !above.IsValid() {
		id, _ := uuid.Parse(correlation)
		above = newRemote(trace.TraceID(id), span)
	}
	return Format(above.WithSpanID(span)), above
}

// Format writes a span context as a traceparent.
func Format(sc trace.SpanContext) string {
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-01"
}
