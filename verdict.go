// Package holdfast holds the words that every other package speaks: crossing,
// boundary, contract, verdict, opinion, agent, intent, and the error kinds of
// the specification. It imports the standard library only and does nothing.
package holdfast

import (
	"fmt"
	"time"
)

// Verdict is the answer of one gate or of all eight. The zero value refuses,
// so that a verdict nobody set cannot let anything through. The numbers are
// written to the ledger and never change.
type Verdict int8

// The verdicts. Deny outranks Hold, Hold outranks Allow (D6a).
const (
	Deny  Verdict = 0
	Hold  Verdict = 1
	Allow Verdict = 2
)

// String returns "deny", "hold" or "allow"; anything else prints as deny.
func (v Verdict) String() string {
	switch v {
	case Hold:
		return "hold"
	case Allow:
		return "allow"
	}
	return "deny"
}

// MarshalText writes the word of String.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a word that String writes. An unknown word is an error
// and leaves Deny.
func (v *Verdict) UnmarshalText(b []byte) error {
	switch string(b) {
	case "deny":
		*v = Deny
	case "hold":
		*v = Hold
	case "allow":
		*v = Allow
	default:
		*v = Deny
		return fmt.Errorf("unknown verdict %q", b)
	}
	return nil
}

// Worst returns the verdict that wins: Deny over Hold over Allow. Without
// arguments it is Deny.
func Worst(vs ...Verdict) Verdict {
	if len(vs) == 0 {
		return Deny
	}
	w := Allow
	for _, v := range vs {
		if v < w {
			w = v
		}
	}
	if w < Deny {
		return Deny
	}
	return w
}

// Gate names one of the eight gates; GateHalt is the latch that is asked
// before them.
type Gate int8

// The gates in the order in which they are asked.
const (
	GateHalt Gate = 0
	K1       Gate = 1
	K2       Gate = 2
	K3       Gate = 3
	K4       Gate = 4
	K5       Gate = 5
	K6       Gate = 6
	K7       Gate = 7
	K8       Gate = 8
)

// Topic is the gate's subject in one word, for people.
func (g Gate) Topic() string {
	topics := [...]string{"halt", "schema", "permission", "bounds", "trace", "idempotency", "ledger", "human", "eval"}
	if g < 0 || int(g) >= len(topics) {
		return "unknown"
	}
	return topics[g]
}

// String returns "halt" or "K1" to "K8".
func (g Gate) String() string {
	if g == GateHalt {
		return "halt"
	}
	return fmt.Sprintf("K%d", int8(g))
}

// MarshalText writes the word of String.
func (g Gate) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText reads a word that String writes.
func (g *Gate) UnmarshalText(b []byte) error {
	for c := GateHalt; c <= K8; c++ {
		if c.String() == string(b) {
			*g = c
			return nil
		}
	}
	return fmt.Errorf("unknown gate %q", b)
}

// Opinion is one gate's verdict with its grounds. Texts are for people and
// hold no secret: whoever writes one quotes only what is redacted.
type Opinion struct {
	Gate    Gate    `json:"gate"`
	Verdict Verdict `json:"verdict"`
	// State is the gate's final state in the tables of spec 003 section 1,
	// for example VALID, UNAUTHORIZED, BLOCKED.
	State string `json:"state,omitempty"`
	// Kind is the document's exception name when the verdict is Deny.
	Kind Kind `json:"kind,omitempty"`
	// Rule names what decided, with file:line where it came from a file;
	// "none declared" when the contract asks nothing of this gate (D3).
	Rule string `json:"rule,omitempty"`
	Why  string `json:"why"`
	Hint string `json:"hint,omitempty"`
	// After is how long until the same request may find room; 0 where nobody
	// knows. No record keeps it.
	After time.Duration `json:"-"`
}

// Err turns a denial into the error that travels to the caller. It returns
// nil for every other verdict.
func (o Opinion) Err() error {
	if o.Verdict != Deny {
		return nil
	}
	return &Error{Kind: o.Kind, Gate: o.Gate, Rule: o.Rule, Why: o.Why, Hint: o.Hint, After: o.After}
}
