package holdfast

import (
	"encoding/json"
	"fmt"
	"time"
)

// Risk is how much harm a crossing can do (D37). The zero value is the worst:
// a risk nobody set is refused.
type Risk int8

// The risk classes. LOW acts, MEDIUM acts and is recorded, HIGH is always put
// to a person, PROHIBITED is refused.
const (
	Prohibited Risk = 0
	High       Risk = 1
	Medium     Risk = 2
	Low        Risk = 3
)

// String returns LOW, MEDIUM, HIGH or PROHIBITED.
func (r Risk) String() string {
	switch r {
	case Low:
		return "LOW"
	case Medium:
		return "MEDIUM"
	case High:
		return "HIGH"
	}
	return "PROHIBITED"
}

// MarshalText writes the word of String.
func (r Risk) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a word that String writes, in upper case. An unknown
// word is an error and leaves PROHIBITED.
func (r *Risk) UnmarshalText(b []byte) error {
	for c := Prohibited; c <= Low; c++ {
		if c.String() == string(b) {
			*r = c
			return nil
		}
	}
	*r = Prohibited
	return fmt.Errorf("unknown risk %q (LOW, MEDIUM, HIGH or PROHIBITED)", b)
}

// Threshold is the confidence below which a person is asked when the contract
// names none: 0.5, 0.7 and 0.9 for LOW, MEDIUM and HIGH (D37).
func (r Risk) Threshold() float64 {
	switch r {
	case Low:
		return 0.5
	case Medium:
		return 0.7
	}
	return 0.9
}

// Resource is something that K3 counts, in whole numbers (D9).
type Resource string

// The resources every contract may name; a contract may add its own.
const (
	CPUMillis    Resource = "cpu_ms"
	MemoryMB     Resource = "memory_mb"
	WallMillis   Resource = "wall_ms"
	DBQueries    Resource = "db_queries"
	LLMTokens    Resource = "llm_tokens"
	HTTPRequests Resource = "http_requests"
	FileWrites   Resource = "file_writes"
	BytesOut     Resource = "bytes_out"
	MoneyMicro   Resource = "money_micro" // millionths of a dollar
	Messages     Resource = "messages"
	Iterations   Resource = "iterations"
	EntropyMilli Resource = "entropy_milli"
	Judgements   Resource = "judgements" // asked of judges that need I/O (D37)
)

// Refusals are the document's names, at one boundary, of what the gates refuse
// by other names elsewhere (003 3.1 beside 1.4 and 1.7). An empty one leaves the
// gate's own.
type Refusals struct {
	// Rate is K3's where a rate or a cooldown is used up, Amount where a
	// budget is: both BoundsExceeded elsewhere.
	Rate   Kind `json:"rate,omitempty"`
	Amount Kind `json:"amount,omitempty"`
	// Record is K6's where the ledger cannot be written: WALWriteError or
	// WALFormatError elsewhere.
	Record Kind `json:"record,omitempty"`
}

// PricedBy is how a crossing's price in money_micro follows from its request: three
// CEL expressions over it, as in a rule on request.
type PricedBy struct {
	// Model yields the model's name, by which the price is found.
	Model string `json:"model"`
	// InputTokens and OutputTokens yield whole numbers: how many tokens go in,
	// and how many may come out at most.
	InputTokens  string `json:"input_tokens"`
	OutputTokens string `json:"output_tokens"`
}

// Redaction is what happens to secrets and personal data in what a tool gets, and in its result (D13a).
type Redaction struct {
	// Request is for secrets in a request: "refuse" the request, "mask" the secret, or "off".
	Request string `json:"request"`
	// Response is for secrets in a result: "mask", "refuse", or "off", which leaves personal data too.
	Response string `json:"response"`
	// Personal is for personal data in either: "mask", "refuse" or "pass".
	Personal string `json:"personal"`
	// Detector names the program that searches for names and addresses; "" for none.
	Detector string `json:"detector,omitempty"`
}

// Contract describes a boundary: what may come in, who may cross, what a
// crossing consumes, how risky it is, and what must hold of what comes out.
type Contract struct {
	// Boundary is an exact name or a pattern whose last segment is "*".
	Boundary string `json:"boundary"`
	// SchemaID names the input schema in the registry and the ledger;
	// empty means the boundary's own name. Schema is the JSON Schema; nil
	// means none declared, and any JSON is well formed.
	SchemaID     string          `json:"schema_id,omitempty"`
	Schema       json.RawMessage `json:"schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// Permissions are what the caller must hold, all of them.
	Permissions []string `json:"permissions,omitempty"`
	// Consumes is what one crossing reserves.
	Consumes map[Resource]int64 `json:"consumes,omitempty"`
	// PricedBy says how a crossing is priced by tokens; nil where it is not.
	PricedBy *PricedBy `json:"priced_by,omitempty"`
	// RatePerMinute bounds crossings in any 60 s per agent; 0 is no rate
	// of its own. Cooldown is the least time between two crossings.
	RatePerMinute int           `json:"rate_per_minute,omitempty"`
	Cooldown      time.Duration `json:"cooldown,omitempty"`
	Risk          Risk          `json:"risk"`
	// RiskFrom "patterns" lets a pattern of risks give this boundary a lesser
	// risk than Risk; empty lets patterns only raise it.
	RiskFrom string `json:"risk_from,omitempty"`
	// ReadRisk is the risk of a request that only reads (Request.ReadsOnly);
	// without one Risk stands for every request. PROHIBITED is no risk of
	// reading, and where Risk is PROHIBITED reading is too (D25c).
	ReadRisk Risk `json:"read_risk,omitempty"`
	// Refusals are other names of what K3 and K6 refuse here.
	Refusals Refusals `json:"refusals,omitzero"`
	// Operation is the operation type, for example "goal:modify".
	Operation string `json:"operation,omitempty"`
	// Threshold overrides the risk's; nil leaves it.
	Threshold *float64 `json:"threshold,omitempty"`
	// Confidence is "none" (or empty), "declared", or a CEL expression
	// over the request that yields a number in [0, 1].
	Confidence string `json:"confidence,omitempty"`
	// Judge names who scores a request before it is done; empty asks nobody.
	Judge string `json:"judge,omitempty"`
	// Predicates name what K8 asks of the output, in order.
	Predicates []string `json:"predicates,omitempty"`
	// Replay "payload" makes the payload's own key an idempotency key.
	Replay string `json:"replay,omitempty"`
	// Timeout bounds the act; 0 means five minutes.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Pin is the hash of all that an MCP tool says of itself (D37), in hex;
	// empty elsewhere. PinBefore is its hash by the formula before, of its
	// description, schemas and hints alone: a first sight that was kept so
	// is compared with it. It is empty where there was no other formula.
	Pin       string `json:"pin,omitempty"`
	PinBefore string `json:"-"`
	// About is what an MCP tool says of itself beside its schemas, as it
	// came: a JSON object with its description, its hints and, under "rest",
	// its other members but for the name. Nothing judges it;
	// people see it, redacted, when the tool has changed.
	About json.RawMessage `json:"-"`
	// Irreversible says that the act cannot be undone: configuration then
	// puts it to a person, whatever its risk (D12, level 3).
	Irreversible bool `json:"irreversible,omitempty"`
	// OnError "rollback" puts the agent's tracked work trees back to what they
	// were when the act began, where it fails (spec 001, "ON ERROR"); empty
	// leaves them.
	OnError string `json:"on_error,omitempty"`
	// Tier is the least tier of the sandbox, where the boundary runs code:
	// "process", "container" or "vm"; empty means process. Walls are the
	// walls that must stand; empty means every one (D20), and a list is a
	// weakening that somebody asked for by name.
	Tier  string   `json:"tier,omitempty"`
	Walls []string `json:"walls,omitempty"`
	// Redact says that requests and results are searched for secrets and personal data; nil searches neither.
	// The MCP gateway does it.
	Redact *Redaction `json:"redact,omitempty"`
	// Weakened is the sentence among a policy's weakenings that is of this
	// contract alone; it is told with its crossings and with no others.
	Weakened string `json:"-"`
	// Source is where the contract was read, "file:line", or who gave it.
	Source string `json:"source,omitempty"`
}
