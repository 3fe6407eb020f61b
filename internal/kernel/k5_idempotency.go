package kernel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
)

// maxKey is the longest idempotency key, in bytes.
const maxKey = 255

// k5Idempotency asks whether it was done already (spec 003 section 1.6, D10).
// The key is always computed; a replay happens only where it was asked for.
func k5Idempotency(_ context.Context, j *judgement) holdfast.Opinion {
	if j.docErr != nil {
		op := refusal(holdfast.K5, "NOT_CANONICAL", j.docErr)
		op.Hint = "" // K1 says it
		return op
	}
	if err := checkKey(j.req.IdempotencyKey); err != nil {
		return refusal(holdfast.K5, "INPUT", err)
	}
	switch {
	case j.scope == "":
		return allow(holdfast.K5, "HASHED", noneDeclared, "key "+j.doc.Key())
	case j.factErr != nil || j.keptErr != nil:
		return deny(holdfast.K5, holdfast.KindUsageTracking, "earlier results cannot be read", "see `holdfast doctor`")
	case j.replay == nil:
		return allow(holdfast.K5, "HASHED", "idempotency key", "not done before")
	case j.replay.Exact != j.exact():
		op := deny(holdfast.K5, holdfast.KindMismatch, "this idempotency key was used with another payload", "use a new key for a new operation")
		op.Rule = "crossing " + j.replay.Crossing
		return op
	}
	return allow(holdfast.K5, "HASHED", "replay of crossing "+j.replay.Crossing, fmt.Sprintf("done already; its result is given back until %s", j.replay.Expires.UTC().Format("2006-01-02T15:04:05Z")))
}

func checkKey(key string) error {
	if len(key) > maxKey || !utf8.ValidString(key) || strings.ContainsFunc(key, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return &holdfast.Error{Kind: holdfast.KindValue, Gate: holdfast.K5,
			Why: fmt.Sprintf("the idempotency key is longer than %d bytes or holds control characters", maxKey)}
	}
	return nil
}

// replayScope is where a settled result is kept: a hash over tenant, boundary,
// agent, principal and key, so that no two callers can meet (D10): two
// principals may have agents of one name. Empty means that no replay is asked
// for.
func replayScope(j *judgement) string {
	key := j.req.IdempotencyKey
	switch {
	case key != "":
		key = "caller:" + key
	case j.contract != nil && j.contract.Replay == "payload" && j.doc != nil:
		if key = "payload:" + j.doc.Key(); j.beside != nil {
			key = "bound:" + j.exact()
		}
	default:
		return ""
	}
	h := sha256.New()
	for _, part := range []string{j.who.Tenant, j.req.Boundary, j.who.Agent, j.who.Principal, key} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
