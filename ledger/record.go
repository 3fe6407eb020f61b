package ledger

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast"
)

// Version is the format of records, the "v" of each.
const Version = 1

// write appends one record. On error b is returned as it was.
func write(b []byte, kind string, fields, check func(*codec)) ([]byte, error) {
	c := &codec{b: b, kind: kind}
	check(c)
	fields(c)
	if len(c.b)-len(b) > MaxRecord {
		c.failf("size", "more than %d bytes", MaxRecord)
	}
	if c.err != nil {
		return b, c.err
	}
	return c.b, nil
}

// read walks a whole record.
func read(record []byte, kind string, fields, check func(*codec)) error {
	c := &codec{b: record, reading: true, kind: kind}
	if len(record) > MaxRecord {
		c.failf("size", "more than %d bytes", MaxRecord)
	}
	fields(c)
	if c.err == nil && c.i != len(record) {
		c.failf("end", "trailing data %s", c.peek())
	}
	check(c)
	return c.err
}

// maxID bounds ids and names, in bytes.
const maxID = 512

// id refuses what cannot name anything: empty, overlong, or with characters
// that do not print.
func (c *codec) id(key, v string) {
	switch {
	case c.err != nil:
	case v == "":
		c.failf(key, "empty")
	case len(v) > maxID:
		c.failf(key, "more than %d bytes", maxID)
	case !utf8.ValidString(v), strings.IndexFunc(v, unprintable) >= 0:
		c.failf(key, "a character that does not print")
	}
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// hash refuses what is neither empty nor a SHA-256 in lower-case hex.
func (c *codec) hash(key, v string) {
	if c.err == nil && v != "" && !isHash(v) {
		c.failf(key, "not 64 lower-case hex digits")
	}
}

func isHash[T string | []byte](v T) bool {
	for i := range len(v) {
		if (v[i] < '0' || v[i] > '9') && (v[i] < 'a' || v[i] > 'f') {
			return false
		}
	}
	return len(v) == 64
}

func (c *codec) when(key string, t time.Time) {
	if c.err == nil && t.IsZero() {
		c.failf(key, "no time")
	}
}

func (c *codec) optBool(key string, v **bool) {
	if c.opt(key, *v == nil) {
		c.boolValue(key, deref(c, v))
	}
}

// optTrue is true, or left out.
func (c *codec) optTrue(key string, v *bool) {
	if c.opt(key, !*v) {
		*v = c.lit("true")
	}
}

func (c *codec) optFloat(key string, v **float64) {
	if c.opt(key, *v == nil) {
		c.floatValue(key, deref(c, v))
	}
}

// Exempt returns the top-level keys of records whose values, or whose lists'
// scalars, redaction passes through: ids, hashes, times, numbers, and the
// identity that the ledger is there to name. Every other value is masked. A path with a
// dot passes only what a person signed, a signature or a SHA-256, and is never opened for what is wrapped
// in it: one masked byte would be a statement that no one made. The slice is the caller's.
func Exempt() []string {
	return []string{
		"v", "kind", "id", "tenant_id", "part_hash", "begin_seq", "operation_result_hash", "correlation_id",
		"timestamp", "created_at", "partition_date", "deadline", "boundary_crossing", "caller_user_id", "caller_roles",
		"agent", "agent_kind", "session", "intent", "chain", "tier", "parent", "crossing", "risk", "exact_hash", "policy",
		"k1_schema_id", "k1_valid", "k2_required_permissions", "k2_granted_permissions", "k2_authorized",
		"k3_resource_type", "k3_budget_limit", "k3_usage_before", "k3_requested", "k3_within_budget",
		"k5_idempotency_key", "k7_confidence_score", "k7_human_approved", "k8_eval_passed",
		"exit_code", "redaction_rules_applied", "contains_pii_before_redaction", "duration_us",
		"state", "outcome", "error_kind", "gate", "traceparent", "replay_of", "review", "reviewer_id",
		"draws", "k3_all", "rates", "past", "unstarted",
		"clock", "token_id", "token_expires", "trust_level", "k5_scope", "k5_until", "k7_threshold", "governs",
		"k8_predicates", "fetched", "features", "k8_rules", "k8_rules_more",
		"model", "subagent", "owner",
		"event", "who", "subject", "data.statement", "data.signature", "data.exact_hash", "data.preview_hash",
	}
}

// Prose returns the names of the members of records, at any depth, that are texts for people and not words of a closed
// list or IDs: a detector of names and addresses searches them, and a reader takes any text there. The slice is the
// caller's.
func Prose() []string { return []string{"why", "error", "reason"} }

// word reads and writes a word of a closed list.
func word[T comparable](c *codec, key string, v *T, name func(T) string, all []T) {
	if !c.reading {
		for _, a := range all {
			if a == *v {
				c.b = appendText(c.b, name(a))
				return
			}
		}
		c.failf(key, "unknown value %v", *v)
		return
	}
	s, n, err := parseText(c.b[c.i:])
	if err != nil {
		c.failf(key, "%v", err)
		return
	}
	for _, a := range all {
		if name(a) == s {
			*v = a
			c.i += n
			return
		}
	}
	c.failf(key, "unknown word %s", c.peek())
}

func states() []holdfast.State {
	return []holdfast.State{holdfast.Idle, holdfast.Entering, holdfast.Active, holdfast.Exiting, holdfast.Faulted}
}

func gates() []holdfast.Gate {
	return []holdfast.Gate{holdfast.GateHalt, holdfast.K1, holdfast.K2, holdfast.K3, holdfast.K4, holdfast.K5,
		holdfast.K6, holdfast.K7, holdfast.K8}
}

func verdicts() []holdfast.Verdict {
	return []holdfast.Verdict{holdfast.Deny, holdfast.Hold, holdfast.Allow}
}
