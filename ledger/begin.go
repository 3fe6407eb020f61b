package ledger

import (
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Draw is one amount that a crossing reserved from one counter (D9). It has
// the shape of the budget judge's draw, so that the kernel converts one into
// the other and the counters can be rebuilt from the ledger.
type Draw struct {
	Key      string
	Resource holdfast.Resource
	Amount   int64
	Limit    int64
	// Window is when the counter's window started, unix seconds; 0 for one
	// that never resets.
	Window int64
	Name   string
}

// values are the draw in the flat list that stands in a record: key,
// resource, amount, limit, window, name, and then the next. The list is flat
// because redaction passes the scalars of a top-level list unread and nothing
// that lies deeper: an amount that looks like a card number, or a counter
// named after an agent that is named after an address, must come through, or
// the counters could not be rebuilt.
func (d *Draw) values(c *codec, key string) {
	c.short(key, &d.Key)
	c.lit(",")
	c.short(key, (*string)(&d.Resource))
	c.lit(",")
	c.intValue(key, &d.Amount)
	c.lit(",")
	c.intValue(key, &d.Limit)
	c.lit(",")
	c.intValue(key, &d.Window)
	c.lit(",")
	c.short(key, &d.Name)
}

// Begin says that a crossing is about to act: it is durable before the act
// (D6), and holds what recovery needs to write the entry of a crossing whose
// process died. In the record, fields that are empty are left out, but for
// the ids, the caller, the hashes and the policy.
type Begin struct {
	ID          string // the crossing's UUIDv7
	TenantID    string
	PartHash    string // of Leaf.Part, which then holds the redacted payload; empty without one
	Correlation string // key correlation_id
	Timestamp   time.Time
	Boundary    string // key boundary_crossing
	Caller      string // key caller_user_id
	Roles       []string
	Agent       string
	AgentKind   string
	Session     string
	Intent      string
	Chain       string
	Tier        string
	Parent      string // the crossing this one is a child of (D1)
	Risk        string
	// ExactHash and Key are those of D10: 64 lower-case hex digits, or empty.
	ExactHash  string
	Key        string // key k5_idempotency_key
	Policy     string
	SchemaID   string   // key k1_schema_id
	Required   []string // key k2_required_permissions
	Granted    []string // key k2_granted_permissions
	Confidence *float64 // key k7_confidence_score
	Approved   *bool    // key k7_human_approved
	Review     string
	Reviewer   string // key reviewer_id
	Draws      []Draw
	// Deadline is when the act or its lease ends; zero for none.
	Deadline    time.Time
	Traceparent string
	Weakened    []string
	Facts
	Rates []Rate
	Past  []Mark
	// Model is what it may take of a model, nil of what asks none; Sub is what the
	// agent's host says of who asks within it, key subagent.
	Model *Spending
	Sub   *holdfast.SubAgent
	// Owner is the agent whose token it was, where Agent is one within it.
	Owner string
}

func (r *Begin) fields(c *codec) {
	c.lit(`{"v":1,"kind":"begin"`)
	c.sep = ','
	c.text("id", &r.ID)
	c.text("tenant_id", &r.TenantID)
	c.optText("part_hash", &r.PartHash)
	c.text("correlation_id", &r.Correlation)
	c.time("timestamp", &r.Timestamp)
	c.text("boundary_crossing", &r.Boundary)
	c.text("caller_user_id", &r.Caller)
	c.texts("caller_roles", &r.Roles)
	c.optText("agent", &r.Agent)
	c.optText("agent_kind", &r.AgentKind)
	c.optText("session", &r.Session)
	c.optText("intent", &r.Intent)
	c.optText("chain", &r.Chain)
	c.optText("tier", &r.Tier)
	c.optText("parent", &r.Parent)
	c.optText("risk", &r.Risk)
	c.text("exact_hash", &r.ExactHash)
	c.text("k5_idempotency_key", &r.Key)
	c.text("policy", &r.Policy)
	c.optText("k1_schema_id", &r.SchemaID)
	c.optTexts("k2_required_permissions", &r.Required)
	c.optTexts("k2_granted_permissions", &r.Granted)
	c.optFloat("k7_confidence_score", &r.Confidence)
	c.optBool("k7_human_approved", &r.Approved)
	c.optText("review", &r.Review)
	c.optText("reviewer_id", &r.Reviewer)
	flatList(c, "draws", &r.Draws, func(c *codec, d *Draw) { d.values(c, "draws") })
	c.optTime("deadline", &r.Deadline)
	c.optText("traceparent", &r.Traceparent)
	c.optTexts("weakened", &r.Weakened)
	r.Facts.fields(c)
	flatList(c, "rates", &r.Rates, func(c *codec, t *Rate) { t.values(c) })
	flatList(c, "past", &r.Past, func(c *codec, m *Mark) { m.values(c) })
	optFlat(c, "model", &r.Model, func(c *codec, s *Spending) { s.values(c) })
	optFlat(c, "subagent", &r.Sub, sub)
	c.optText("owner", &r.Owner)
	c.lit("}")
}

func (r *Begin) check(c *codec) {
	r.Facts.check(c)
	c.id("id", r.ID)
	c.id("tenant_id", r.TenantID)
	c.id("correlation_id", r.Correlation)
	c.id("boundary_crossing", r.Boundary)
	c.hash("part_hash", r.PartHash)
	c.hash("exact_hash", r.ExactHash)
	c.hash("k5_idempotency_key", r.Key)
	c.when("timestamp", r.Timestamp)
	if len(r.Past) > MaxMarks {
		c.failf("past", "more than %d marks", MaxMarks)
	}
	c.owner(r.Agent, r.Owner)
}

// Who is whose crossing it was to those who judge: the agent of the token, and the
// id of who asked within it, or "".
func (r *Begin) Who() (agent, sub string) { return who(r.Agent, r.Owner) }

// owner checks that agent is one within owner.
func (c *codec) owner(agent, owner string) {
	if owner != "" && (!strings.HasPrefix(agent, owner+"/") || len(agent) == len(owner)+1) {
		c.failf("owner", "the agent is none within it")
	}
}

func who(agent, owner string) (string, string) {
	if owner == "" {
		return agent, ""
	}
	return owner, strings.TrimPrefix(agent, owner+"/")
}

// AppendJSON appends the record, one line of JSON without the newline, and
// returns the longer slice. The error is a WALFormatError that names the
// field, and b is then returned as it was.
func (r *Begin) AppendJSON(b []byte) ([]byte, error) { return write(b, "begin", r.fields, r.check) }

// ParseBegin reads a record that AppendJSON wrote, and nothing else: unknown,
// doubled or misplaced fields, other spellings of the same value and trailing
// bytes are a WALFormatError.
func ParseBegin(record []byte) (*Begin, error) {
	r := new(Begin)
	if err := read(record, "begin", r.fields, r.check); err != nil {
		return nil, err
	}
	return r, nil
}

// Entry returns the entry of the crossing that began at seq, with everything
// that the begin record knows. State, outcome, exit code and what was used
// are for the caller to set; until then it is FAULTED and unknown, which is
// what recovery writes after a crash (D6). A crossing that began had passed
// K1 to K3.
func (r *Begin) Entry(seq int64, at time.Time) *Entry {
	yes := true
	e := &Entry{
		ID: r.ID, TenantID: r.TenantID, BeginSeq: &seq, Correlation: r.Correlation,
		Timestamp: r.Timestamp, Boundary: r.Boundary, Caller: r.Caller, Roles: r.Roles,
		Valid: &yes, Required: r.Required, Granted: r.Granted,
		Authorized: &yes, WithinBudget: &yes, Key: text(r.Key), SchemaID: text(r.SchemaID),
		Confidence: r.Confidence, Approved: r.Approved, ExitCode: 1, CreatedAt: at,
		Agent: r.Agent, AgentKind: r.AgentKind, Session: r.Session, Intent: r.Intent,
		Chain: r.Chain, Tier: r.Tier, Parent: r.Parent, Risk: r.Risk,
		State: holdfast.Faulted, Outcome: Unknown, ErrorKind: holdfast.KindUnknown,
		ExactHash: r.ExactHash, Policy: r.Policy, Traceparent: r.Traceparent,
		Review: r.Review, Reviewer: r.Reviewer, Weakened: r.Weakened, Model: r.Model, Sub: r.Sub, Owner: r.Owner,
	}
	for _, d := range r.Draws {
		e.Uses = append(e.Uses, Use{Draw: d})
	}
	return e
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
