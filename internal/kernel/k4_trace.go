package kernel

import (
	"context"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"go.opentelemetry.io/otel/trace"
)

// k4Trace asks who is asking in which flow (spec 003 section 1.5).
func k4Trace(_ context.Context, j *judgement) holdfast.Opinion {
	if j.whoErr != nil {
		op := deny(holdfast.K4, holdfast.KindTenantContext, "no verified token names a tenant", "")
		op.State = "TENANT_MISSING"
		return op
	}
	if j.who.Tenant == "" {
		op := deny(holdfast.K4, holdfast.KindTenantContext, "the token names no tenant", "add a tenant_id claim")
		op.State = "TENANT_MISSING"
		return op
	}
	if j.corrErr != nil {
		return refusal(holdfast.K4, "RESOLVE_CORRELATION", j.corrErr)
	}
	return allow(holdfast.K4, "INJECTED", "", "correlation "+j.correlation)
}

// correlate resolves the correlation id: the parent's, the caller's if it is a
// UUIDv4, or a new one. On an error it makes one all the same, so that the
// entry has an id.
func correlate(parent, given string, fresh func() (uuid.UUID, error)) (string, error) {
	if parent != "" && (given == "" || given == parent) {
		return parent, nil
	}
	id, err := fresh()
	if err != nil {
		return "", &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K4, Why: "a correlation id could not be made", Err: err}
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

// parseTraceparent reads a W3C traceparent of version 00; the span context is
// not valid for anything else, which is ignored as the W3C asks.
func parseTraceparent(s string) (sc trace.SpanContext) {
	if len(s) != 55 || s[:3] != "00-" || s[35] != '-' || s[52] != '-' || !lowerHex(s[53:]) {
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
	return sampled(id, span)
}

// sampled is a span context of elsewhere. Holdfast's own spans are all
// recorded, whatever the caller's flags say.
func sampled(id trace.TraceID, span trace.SpanID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled, Remote: true})
}

func lowerHex(s string) bool {
	if strings.ToLower(s) != s {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}

// traceparent makes the outgoing header, of a new span in the caller's trace
// or, without one, in that of the correlation id's 16 bytes; above is what a
// span of this crossing stands below.
func traceparent(incoming, correlation string, span [8]byte) (out string, above trace.SpanContext) {
	above = parseTraceparent(incoming)
	if !above.IsValid() {
		id, _ := uuid.Parse(correlation)
		above = sampled(trace.TraceID(id), span)
	}
	return header(above.WithSpanID(span)), above
}

// header is a span context as W3C's traceparent.
func header(sc trace.SpanContext) string {
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-01"
}
