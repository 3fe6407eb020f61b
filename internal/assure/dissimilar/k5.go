package dissimilar

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

func digest[T string | []byte](v T) [32]byte { return sha256.Sum256([]byte(v)) }

func hexDigest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// kept is what is known of one idempotency scope: who has it, and the result.
type kept struct {
	crossing, exact, key    string
	agent, boundary, caller string
	until                   stamp
	open                    bool
	outcome, state, errKind string
	exit                    int64
	// result is the hash of the result's text, "" where it is not recorded.
	policy, result string
}

// resultOf is the hash of a recorded result's text.
func resultOf(r *record) string {
	if r.ResultHash == nil || len(r.part) < saltSize {
		return ""
	}
	return hexDigest(r.part[saltSize:])
}

// payloadKey judges that the key is that of the payload, where the payload, or
// the question that showed it to a person, is recorded; and that one payload
// has one key wherever it comes up.
func (v *Verifier) payloadKey(r *record) {
	if r.key() == "" || r.Exact == "" {
		return
	}
	exact, key := id16(r.Exact), id16(r.key())
	was, known := v.keys.get(exact)
	switch {
	case known && was != key:
		v.bad(K5Pair, "key "+r.key(), "the same payload, by its exact hash, had another key before")
	case known:
		v.good(K5Pair)
	default:
		v.keys.put(exact, key)
		if v.keys.forgot {
			v.unknown(K5Pair, "older payloads are forgotten")
		} else {
			v.good(K5Pair)
		}
	}
	if q, asked := v.t.reviews.get(r.Review); asked && r.Review != "" {
		v.compareKey(r, q.payload)
		return
	}
	v.compareKey(r, recorded(r))
}

// compareKey holds a key against what is recorded of the payload.
func (v *Verifier) compareKey(r *record, p payload) {
	switch {
	case p.why != "":
		v.unknown(K5Key, p.why)
	case p.key != r.key():
		v.bad(K5Key, "key "+r.key(), "the recorded payload gives "+p.key)
	case p.exact != "" && p.exact != r.Exact:
		v.bad(K5Key, "exact hash "+r.Exact, "the recorded payload gives "+p.exact)
	default:
		v.good(K5Key)
	}
}

// payload is what a recorded payload gives; why says why it gives nothing.
type payload struct{ key, exact, why string }

// recorded is the payload that stands in a begin's part.
func recorded(r *record) payload {
	switch {
	case r.Kind != "begin" || r.PartHash == "":
		return payload{why: "the payload is not recorded"}
	case r.part == nil:
		return payload{why: "the payload was erased"}
	}
	return payloadOf(r.part)
}

// saltSize is how many bytes of a part stand before its text.
const saltSize = 16

// payloadOf takes the two hashes of a part's text, if that is a whole document.
func payloadOf(part []byte) payload {
	if len(part) < saltSize {
		return payload{why: "the payload was erased"}
	}
	text := part[saltSize:]
	if masked(text) {
		return payload{why: "the payload was masked before it was recorded"}
	}
	canonical, err := Canonical(text)
	if err != nil {
		return payload{why: "the payload is recorded in part"}
	}
	return payload{key: hexDigest(canonical)}
}

// claim judges that no crossing begins while another has its key, or while the
// result of another is kept for it.
func (v *Verifier) claim(r *record) {
	if r.Scope == "" {
		return
	}
	k, known := v.t.kept.get(r.Scope)
	switch {
	case known && r.clock() < k.until && k.open:
		v.bad(K5Replay, "a begin with a key of its own", "crossing "+k.crossing+" had that key and had not ended")
	case known && r.clock() < k.until:
		v.badf(K5Replay, "a begin with a key of its own", "crossing %s had done it, and its result was kept until %s", k.crossing, k.until)
	case !known && v.t.kept.forgot:
		v.unknown(K5Replay, "older keys are forgotten")
	default:
		v.good(K5Replay)
	}
	v.t.kept.put(r.Scope, &kept{crossing: r.ID, exact: r.Exact, key: r.key(), agent: r.Agent, boundary: r.Boundary, caller: r.Caller, until: r.Until, open: true})
}

// replayed judges a result that was given back, and keeps the result of what
// has ended.
func (v *Verifier) replayed(r, b *record) {
	switch {
	case b != nil && b.Scope != "":
		v.keep(r, b)
	case r.Outcome == "replayed":
		v.original(r)
	case r.ErrorKind == "IdempotencyMismatchError" && r.Scope != "":
		v.mismatch(r)
	}
}

func (v *Verifier) keep(r, b *record) {
	k, known := v.t.kept.get(b.Scope)
	if !known || k.crossing != b.ID || r.Outcome == "unknown" {
		return // after a crash the key stays taken
	}
	if r.Until == 0 {
		v.t.kept.drop(b.Scope) // the hand never ran, and the key is free
		return
	}
	k.open, k.until, k.outcome, k.state, k.errKind, k.exit = false, r.Until, r.Outcome, r.State, r.ErrorKind, *r.ExitCode
	k.policy, k.result = r.Policy, resultOf(r)
}

func (v *Verifier) original(r *record) {
	if r.Scope == "" {
		v.unknown(K5Replay, "the record has no scope")
		return
	}
	k, known := v.t.kept.get(r.Scope)
	says := "a replay of crossing " + quote(r.ReplayOf)
	switch {
	case !known && v.t.kept.forgot:
		v.unknown(K5Replay, "older keys are forgotten")
	case !known:
		v.bad(K5Replay, says, "no crossing with that key has a result")
	case k.crossing != r.ReplayOf:
		v.bad(K5Replay, says, "the result of that key is crossing "+k.crossing+"'s")
	case k.open:
		v.bad(K5Replay, says, "it had not settled")
	case k.exact != r.Exact || k.key != r.key():
		v.bad(K5Replay, says, "it was another payload: "+k.exact)
	case k.agent != r.Agent || k.boundary != r.Boundary:
		v.badf(K5Replay, says, "it was agent %s at %s", quote(k.agent), quote(k.boundary))
	case k.caller != r.Caller:
		v.bad(K5Replay, says, "it was "+quote(k.caller)+"'s")
	case r.clock() >= k.until+second:
		v.badf(K5Replay, says, "its result was kept until %s", k.until)
	case len(r.Uses) > 0:
		v.bad(K5Replay, says, "a replay is charged nothing")
	case r.ErrorKind == "PayloadTooLargeError" && k.errKind == "":
		v.good(K5Replay) // done, and too large to give back
	case k.errKind != r.ErrorKind || k.exit != *r.ExitCode:
		v.badf(K5Replay, fmt.Sprintf("%s, exit code %d, %s", says, *r.ExitCode, quote(r.ErrorKind)), "it ended with exit code %d, %s", k.exit, quote(k.errKind))
	case r.ErrorKind != "" || k.policy != r.Policy:
		v.good(K5Replay) // what a policy masks is its own
	case k.result == "" || resultOf(r) == "":
		v.unknown(K5Replay, "the result is not recorded")
	case k.result != resultOf(r):
		v.bad(K5Replay, says+" with result "+resultOf(r), "its result was "+k.result)
	default:
		v.good(K5Replay)
	}
}

func (v *Verifier) mismatch(r *record) {
	k, known := v.t.kept.get(r.Scope)
	switch {
	case !known && v.t.kept.forgot:
		v.unknown(K5Replay, "older keys are forgotten")
	case !known:
		v.bad(K5Replay, "IdempotencyMismatchError", "no crossing has that key")
	case k.exact == r.Exact:
		v.bad(K5Replay, "IdempotencyMismatchError", "crossing "+k.crossing+" has the same payload")
	default:
		v.good(K5Replay)
	}
}
