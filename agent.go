package holdfast

import (
	"fmt"
	"time"
)

// Level is an agent's trust level (spec 000, "Trust levels"). The zero value
// is the lowest.
type Level int8

// The levels. A new agent is Baseline.
const (
	Baseline    Level = 0
	MediumTrust Level = 1
	HighTrust   Level = 2
	Highest     Level = 3
)

// String returns baseline, medium, high or highest.
func (l Level) String() string {
	switch l {
	case MediumTrust:
		return "medium"
	case HighTrust:
		return "high"
	case Highest:
		return "highest"
	}
	return "baseline"
}

// MarshalText writes the word of String.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads a word that String writes.
func (l *Level) UnmarshalText(b []byte) error {
	for c := Baseline; c <= Highest; c++ {
		if c.String() == string(b) {
			*l = c
			return nil
		}
	}
	*l = Baseline
	return fmt.Errorf("unknown trust level %q (baseline, medium, high or highest)", b)
}

// AgentState says whether an agent may cross at all.
type AgentState string

// The agent states.
const (
	AgentRunning AgentState = "running"
	AgentPaused  AgentState = "paused"
)

// Agent is what Holdfast remembers of one agent of one tenant. It is made at
// first sight; every later change is an event in the ledger.
type Agent struct {
	Tenant    string     `json:"tenant"`
	Name      string     `json:"name"`
	Kind      string     `json:"kind"`
	Level     Level      `json:"level"`
	State     AgentState `json:"state"`
	Principal string     `json:"principal"`
	// Owner is the agent within which it is, empty of one that has tokens of its
	// own. Its Name is then Owner, a slash, and the id that its host gave it; its
	// Level and Kind say nothing, for whatever it may do its Owner may.
	Owner string `json:"owner,omitempty"`
	// Parent is who started it, as it said at first sight: of one within another
	// that one, or a neighbour of its.
	Parent string    `json:"parent,omitempty"`
	First  time.Time `json:"first_seen"`
	// Why is the reason of the last change, for people.
	Why string `json:"why,omitempty"`
	// Condition is what Holdfast itself has paused it for, such as loop (D41a), and
	// Review the question that asks a person about it. Both are empty of one that a
	// person has paused, and of one that runs.
	Condition string `json:"condition,omitempty"`
	Review    string `json:"review,omitempty"`
}

// Identity is who asks, as a verified token says (D8). A zero Identity is
// nobody and is refused.
type Identity struct {
	Tenant    string   `json:"tenant_id"`
	Principal string   `json:"sub"`
	Roles     []string `json:"roles"`
	Agent     string   `json:"agent"`
	// Sub is who asks within the agent, by the id that its host gave it; empty is
	// the agent itself. No token says it, and it grants nothing: what is granted and
	// counted is the Agent's.
	Sub     string `json:"subagent,omitempty"`
	Kind    string `json:"kind"`
	Parent  string `json:"parent,omitempty"`
	Session string `json:"session"`
	Intent  string `json:"intent,omitempty"`
	Chain   string `json:"chain,omitempty"`
	Tier    string `json:"tier,omitempty"`
	TokenID string `json:"jti"`
	Issuer  string `json:"iss,omitempty"`
	// Expires is the token's exp. At or after it the token is nothing.
	Expires time.Time `json:"exp"`
}

// Name is who asks, for people and records: the agent, or AGENT/ID of one within it.
func (id *Identity) Name() string { return SubName(id.Agent, id.Sub) }

// SubName is what the agent within an agent is called that has that id; the agent
// itself where it has none.
func SubName(agent, id string) string {
	if id == "" {
		return agent
	}
	return agent + "/" + id
}

// Unverified is the reserved tenant under which requests are recorded whose
// token could not be verified (D5). No token may name it.
const Unverified = "unverified"

// Local is the tenant of tokens that the daemon mints for its own machine.
const Local = "local"
