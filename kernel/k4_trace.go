package kernel

import (
	"context"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
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

// parseTraceparent reads a W3C traceparent of version 00 and returns its trace
// id; ok is false for anything else, which is ignored as the W3C asks.
func parseTraceparent(s string) (trace string, ok bool) {
	if len(s) != 55 || s[:3] != "00-" || s[35] != '-' || s[52] != '-' {
		return "", false
	}
	trace, span := s[3:35], s[36:52]
	if !lowerHex(trace) || !lowerHex(span) || !lowerHex(s[53:]) ||
		strings.Trim(trace, "0") == "" || strings.Trim(span, "0") == "" {
		return "", false
	}
	return trace, true
}

func lowerHex(s string) bool {
	if strings.ToLower(s) != s {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}

// traceparent makes the outgoing header: the caller's trace or, without one,
// the correlation id's 16 bytes, and a new span.
func traceparent(incoming, correlation string, span [8]byte) string {
	trace, ok := parseTraceparent(incoming)
	if !ok {
		trace = strings.ReplaceAll(correlation, "-", "")
	}
	return "00-" + trace + "-" + hex.EncodeToString(span[:]) + "-01"
}
