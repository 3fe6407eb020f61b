package holdfast

import (
	"encoding/json"
	"fmt"
	"time"
)

// State is where a crossing stands (spec 003 section 1.1). There are exactly
// five; HALTED is a reason of FAULTED (D4). The numbers are stored.
type State int8

// The five states.
const (
	Idle     State = 0
	Entering State = 1
	Active   State = 2
	Exiting  State = 3
	Faulted  State = 4
)

// String returns the document's name of the state.
func (s State) String() string {
	names := [...]string{"IDLE", "ENTERING", "ACTIVE", "EXITING", "FAULTED"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("State(%d)", int8(s))
	}
	return names[s]
}

// MarshalText writes the word of String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a word that String writes.
func (s *State) UnmarshalText(b []byte) error {
	for c := Idle; c <= Faulted; c++ {
		if c.String() == string(b) {
			*s = c
			return nil
		}
	}
	return fmt.Errorf("unknown state %q", b)
}

// Request asks for one crossing. A door makes it; the kernel judges it.
type Request struct {
	// Boundary is the exact name, for example "mcp/github/create_issue".
	Boundary string
	// Payload is one JSON document, at most MaxPayload bytes and MaxDepth
	// deep (D7). The kernel never changes it.
	Payload []byte
	// Beside is one JSON object, bounded like a payload: what else the hand
	// will be given that a person must see and an answer must be bound to,
	// such as an MCP client's answers to a server's questions. Nil where
	// there is nothing. It is no part of what schemas and rules judge; the
	// exact hash (D10) covers it, and with it holds, approvals and replays.
	Beside []byte
	// Token is the caller's JWT. Everything the kernel believes about who
	// asks comes from it (D8).
	Token Secret
	// Correlation is a UUIDv4 that names the flow; empty makes a new one.
	Correlation string
	// Traceparent and Tracestate are the W3C headers, empty if none came.
	Traceparent string
	Tracestate  string
	// IdempotencyKey is the key the caller supplied; empty asks no replay.
	IdempotencyKey string
	// Deadline is when the caller gives up; zero leaves the contract's.
	Deadline time.Time
	// Confidence is the value that the boundary's own evaluator declares,
	// used only where the contract says `confidence: declared`. NaN or a
	// nil pointer means none was declared.
	Confidence *float64
	// Consumes adds to the contract's amounts what this one request asks
	// for, such as tokens estimated by the door. Never negative.
	Consumes map[Resource]int64
	// Model is what the request may take of a model at most, nil where it asks
	// none: K3 prices it by the policy's table, and the ledger keeps it. Its tokens
	// are not in Consumes unless the door puts them there too.
	Model *ModelUse
	// Sub is who asks within the agent, nil where nobody says.
	Sub *SubAgent
	// ReadsOnly says that the door has seen for itself that this request only
	// reads, such as an HTTP request by GET or HEAD: the contract's ReadRisk is
	// then its risk, where the contract names one. It is never an agent's word.
	ReadsOnly bool
	// Carries says that the door only connects: what is asked goes through it
	// unseen, such as through a tunnel, so that two alike ask the same of nobody.
	Carries bool
	// Noted is one small JSON object that says for people what is asked, such as
	// an Exchange: the entry's erasable part keeps it, redacted, where the act
	// gave nothing to keep. Nothing judges it. Nil where there is nothing.
	Noted []byte
	// Denials are what the door itself found against the request. Each is a
	// denial of its gate, whatever its Verdict says: a door can refuse here and
	// let nothing through. The gate is K1, K2, K3 or K6 (D25); any other counts as
	// K1. Of several the first in the asking order decides, one of K6 before K3
	// is asked; where the gate itself refuses, that stands. A boundary that no
	// contract lists is refused by the door's denial, not as unlisted. The one
	// entry of the crossing records it as that gate's opinion. Texts hold no
	// secret.
	Denials []Opinion
	// Unwaited says that whoever asked has all that he gets before the act
	// returns, as the client of a relayed answer has. An entry that changes
	// nothing which later requests are judged by is then written with the next
	// commit, within 20 ms. A crash before it loses that entry alone: the begin
	// is durable, and recovery closes the crossing as unknown.
	Unwaited bool
}

// Limits of a payload (D7).
const (
	MaxPayload = 10_485_760 // bytes
	MaxDepth   = 20         // the root is 1
)

// Output is what a hand gives back.
type Output struct {
	// Body is what the operation returned, JSON where the contract has an
	// output schema or predicates. The kernel hands predicates a copy.
	Body []byte
	// Structured is the part of Body that the contract's output schema
	// describes; nil means Body itself. Predicates and rules see Body.
	Structured []byte
	// Used is what was measured. A resource that is missing is settled at
	// what was reserved (D9).
	Used map[Resource]int64
	// Model is what was taken of the request's Model; nil settles its price at what
	// was reserved.
	Model *ModelUse
	// ExitCode is 0 for success; the ledger's exit_code column.
	ExitCode int
	// Ran is of an act that ran code, nil of any other.
	Ran *Ran
}

// Ran is what the ledger keeps of a run of code, whatever became of its output.
type Ran struct {
	// State is how it ended, such as COMPLETED or TIMEOUT (003 2.1).
	State string
	// Walls are those that stood around it, by name (D20).
	Walls []string
	// Sandbox is the tier that was chosen, and why (spec 000 "Sandbox selection
	// policy"), and what raised its walls, with its version, where Holdfast did not.
	Sandbox string
}

// Outcome is what the caller of a crossing learns.
type Outcome struct {
	Crossing    string    `json:"crossing"`
	Correlation string    `json:"correlation_id"`
	Traceparent string    `json:"traceparent,omitempty"`
	Boundary    string    `json:"boundary"`
	Verdict     Verdict   `json:"verdict"`
	State       State     `json:"state"`
	Opinions    []Opinion `json:"opinions"`
	// Key is the RFC 8785 key, Exact the exact hash (D10): 64 lower-case
	// hex digits each.
	Key   string `json:"key,omitempty"`
	Exact string `json:"exact_hash,omitempty"`
	// Output is nil unless the verdict is Allow and K8 passed. Beside an error
	// it is what a run had come to when its caller gave up, or its time was over.
	Output *Output `json:"-"`
	// Replayed says that Output is the settled result of an earlier
	// crossing and nothing was done or charged now.
	Replayed bool `json:"replayed,omitempty"`
	// PutBack says what became of the agent's work where the act failed, its
	// program's exit code being no 0 included, and the contract puts back what fails.
	PutBack string `json:"put_back,omitempty"`
	// Review is the handle of the hold, with when it ends.
	Review  string    `json:"review,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	// Verdicts are those of the SafetyFilter on a submission of goals, sub-tasks
	// and graphs: a list of spec 004's SafetyVerdict. Nil elsewhere.
	Verdicts json.RawMessage `json:"verdicts,omitempty"`
	// Weakened lists every weakening in force, by its name under `unsafe`.
	Weakened []string `json:"weakened,omitempty"`
}

// Deciding returns the opinion that made the verdict: the first denial, else
// the first hold, else the zero Opinion.
func (o *Outcome) Deciding() Opinion {
	var held Opinion
	for _, op := range o.Opinions {
		switch {
		case op.Verdict == Deny:
			return op
		case op.Verdict == Hold && held.Why == "":
			held = op
		}
	}
	return held
}
