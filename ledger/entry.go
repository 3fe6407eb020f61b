package ledger

import (
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Outcome is how a crossing ended, in one word. The words are stored.
type Outcome string

// The outcomes. Unknown is a crash between begin and entry, Abandoned a lease
// that ran out, Withheld an act that took effect and whose output K8 refused.
const (
	Done        Outcome = "done"
	Denied      Outcome = "denied"
	HeldExpired Outcome = "held_expired"
	Failed      Outcome = "failed"
	Unknown     Outcome = "unknown"
	Canceled    Outcome = "canceled"
	Halted      Outcome = "halted"
	Abandoned   Outcome = "abandoned"
	Replayed    Outcome = "replayed"
	Withheld    Outcome = "withheld"
)

func outcomes() []Outcome {
	return []Outcome{Done, Denied, HeldExpired, Failed, Unknown, Canceled, Halted, Abandoned, Replayed, Withheld}
}

// Use is a draw with what stood there before, and what was settled; nil means
// nothing was: a denial, or a reservation that was released.
type Use struct {
	Draw   Draw
	Before int64
	Used   *int64
}

// values are the draw's, then what stood there before and what was used.
func (u *Use) values(c *codec, key string) {
	u.Draw.values(c, key)
	c.lit(",")
	c.intValue(key, &u.Before)
	c.lit(",")
	if !c.null(u.Used == nil) {
		c.intValue(key, deref(c, &u.Used))
	}
}

// Opinion is a gate's opinion as an entry keeps it: without the hint.
type Opinion struct {
	Gate    holdfast.Gate
	Verdict holdfast.Verdict
	State   string
	Kind    holdfast.Kind
	Rule    string
	Why     string
}

// Compact turns opinions into what an entry keeps of them: of one that allows
// only gate, verdict, state and rule, since the columns say the rest.
func Compact(ops []holdfast.Opinion) []Opinion {
	out := make([]Opinion, len(ops))
	for i, o := range ops {
		out[i] = Opinion{Gate: o.Gate, Verdict: o.Verdict, State: o.State, Kind: o.Kind, Rule: o.Rule, Why: o.Why}
		if o.Verdict == holdfast.Allow {
			out[i].Kind, out[i].Why = "", ""
		}
	}
	return out
}

func (o *Opinion) fields(c *codec) {
	if c.key("gate") {
		word(c, "gate", &o.Gate, holdfast.Gate.String, gates())
	}
	if c.key("verdict") {
		word(c, "verdict", &o.Verdict, holdfast.Verdict.String, verdicts())
	}
	c.optText("state", &o.State)
	c.optText("error_kind", (*string)(&o.Kind))
	c.optText("rule", &o.Rule)
	c.optText("why", &o.Why)
}

// Entry is what a crossing came to: the document's audit_wal row (spec 003
// section 1.7), then what Holdfast adds. Exactly one exists per crossing
// (D6). A nil column is null, which means "not asked" (D14b); of what
// Holdfast adds, empty fields are left out of the record.
type Entry struct {
	ID       string // the crossing's UUIDv7
	TenantID string
	// BeginSeq is where the crossing's begin stands in the tenant's tree,
	// nil for a crossing that never began.
	BeginSeq *int64
	// ResultHash is PartHash of the leaf's part, which then holds the
	// redacted result; Result is a result that is kept in the record. At
	// most one of them is set.
	ResultHash   *string // key operation_result_hash
	Correlation  string  // key correlation_id
	Timestamp    time.Time
	Boundary     string   // key boundary_crossing
	Caller       string   // key caller_user_id
	Roles        []string // key caller_roles
	SchemaID     *string  // key k1_schema_id
	Valid        *bool    // key k1_valid
	Required     []string // key k2_required_permissions, nil is null
	Granted      []string // key k2_granted_permissions, nil is null
	Authorized   *bool    // key k2_authorized
	ResourceType *string  // key k3_resource_type: of Uses what had no room, else the tightest
	BudgetLimit  *int64   // key k3_budget_limit
	UsageBefore  *int64   // key k3_usage_before
	Requested    *int64   // key k3_requested
	WithinBudget *bool    // key k3_within_budget
	Key          *string  // key k5_idempotency_key
	Confidence   *float64 // key k7_confidence_score
	Approved     *bool    // key k7_human_approved
	Passed       *bool    // key k8_eval_passed
	Result       *string  // key operation_result
	ExitCode     int64    // 0 is success
	// Applied is redaction_rules_applied, nil is null; ContainsPII is
	// contains_pii_before_redaction (D13).
	Applied     []string
	ContainsPII *bool
	// CreatedAt also gives partition_date, its UTC day.
	CreatedAt time.Time

	Agent     string
	AgentKind string
	Session   string
	Intent    string
	Chain     string
	Tier      string
	Parent    string
	Risk      string
	State     holdfast.State
	Outcome   Outcome
	ErrorKind holdfast.Kind
	// Gate is the one that decided, nil where none stopped the crossing.
	Gate        *holdfast.Gate
	Rule        string
	Why         string
	ExactHash   string
	Policy      string
	Traceparent string
	ReplayOf    string // the crossing whose result was given back
	Review      string
	Reviewer    string // key reviewer_id
	Uses        []Use  // key k3_all
	DurationUS  int64
	// Run is how code that was run ended, such as TIMEOUT, and Walls are those
	// that stood around it; empty of any other crossing.
	Run   string
	Walls []string
	// Sandbox is the tier that was chosen for that code, and why, in one sentence
	// which begins with the tier; behind "; by " what raised its walls, where that
	// was not Holdfast.
	Sandbox string
	// Unstarted says of a crossing that began that what it was to do is known
	// never to have started: rules on what was done do not count it.
	Unstarted bool
	Weakened  []string
	Facts
	Opinions []Opinion
	// Spoken are the rules that spoke, the gravest first, at most MaxSpoken (key
	// k8_rules); More is how many others did (key k8_rules_more).
	Spoken []Spoken
	More   int64
	// Model is what it took of a model, nil of a crossing that asked none or never
	// began; Sub is what the agent's host said of who asked within it, key subagent.
	Model *Spending
	Sub   *holdfast.SubAgent
	// Owner is the agent whose token it was, where Agent is one within it.
	Owner string
}

// Who is Begin.Who of an entry.
func (r *Entry) Who() (agent, sub string) { return who(r.Agent, r.Owner) }

func (r *Entry) fields(c *codec) {
	c.lit(`{"v":1,"kind":"entry"`)
	c.sep = ','
	c.text("id", &r.ID)
	c.text("tenant_id", &r.TenantID)
	c.nullInt("begin_seq", &r.BeginSeq)
	c.nullText("operation_result_hash", &r.ResultHash)
	r.columns(c)
	r.additions(c)
	c.lit("}")
}

// columns are audit_wal's, in the document's order.
func (r *Entry) columns(c *codec) {
	c.text("correlation_id", &r.Correlation)
	c.time("timestamp", &r.Timestamp)
	c.text("boundary_crossing", &r.Boundary)
	c.text("caller_user_id", &r.Caller)
	c.texts("caller_roles", &r.Roles)
	c.nullText("k1_schema_id", &r.SchemaID)
	c.nullBool("k1_valid", &r.Valid)
	c.nullTexts("k2_required_permissions", &r.Required)
	c.nullTexts("k2_granted_permissions", &r.Granted)
	c.nullBool("k2_authorized", &r.Authorized)
	c.nullText("k3_resource_type", &r.ResourceType)
	c.nullInt("k3_budget_limit", &r.BudgetLimit)
	c.nullInt("k3_usage_before", &r.UsageBefore)
	c.nullInt("k3_requested", &r.Requested)
	c.nullBool("k3_within_budget", &r.WithinBudget)
	c.nullText("k5_idempotency_key", &r.Key)
	c.nullFloat("k7_confidence_score", &r.Confidence)
	c.nullBool("k7_human_approved", &r.Approved)
	c.nullBool("k8_eval_passed", &r.Passed)
	c.nullText("operation_result", &r.Result)
	c.integer("exit_code", &r.ExitCode)
	c.nullTexts("redaction_rules_applied", &r.Applied)
	c.nullBool("contains_pii_before_redaction", &r.ContainsPII)
	c.time("created_at", &r.CreatedAt)
	c.day("partition_date", r.CreatedAt)
}

func (r *Entry) additions(c *codec) {
	c.optText("agent", &r.Agent)
	c.optText("agent_kind", &r.AgentKind)
	c.optText("session", &r.Session)
	c.optText("intent", &r.Intent)
	c.optText("chain", &r.Chain)
	c.optText("tier", &r.Tier)
	c.optText("parent", &r.Parent)
	c.optText("risk", &r.Risk)
	if c.key("state") {
		word(c, "state", &r.State, holdfast.State.String, states())
	}
	if c.key("outcome") {
		word(c, "outcome", &r.Outcome, func(o Outcome) string { return string(o) }, outcomes())
	}
	c.optText("error_kind", (*string)(&r.ErrorKind))
	if c.opt("gate", r.Gate == nil) {
		word(c, "gate", deref(c, &r.Gate), holdfast.Gate.String, gates())
	}
	c.optText("rule", &r.Rule)
	c.optText("why", &r.Why)
	c.optText("exact_hash", &r.ExactHash)
	c.optText("policy", &r.Policy)
	c.optText("traceparent", &r.Traceparent)
	c.optText("replay_of", &r.ReplayOf)
	c.optText("review", &r.Review)
	c.optText("reviewer_id", &r.Reviewer)
	flatList(c, "k3_all", &r.Uses, func(c *codec, u *Use) { u.values(c, "k3_all") })
	c.integer("duration_us", &r.DurationUS)
	c.optText("run", &r.Run)
	c.optTexts("walls", &r.Walls)
	c.optText("sandbox", &r.Sandbox)
	c.optTrue("unstarted", &r.Unstarted)
	c.optTexts("weakened", &r.Weakened)
	r.Facts.fields(c)
	optList(c, "opinions", &r.Opinions, func(c *codec, o *Opinion) { o.fields(c) })
	flatList(c, "k8_rules", &r.Spoken, func(c *codec, s *Spoken) { s.values(c) })
	c.optInt("k8_rules_more", &r.More)
	optFlat(c, "model", &r.Model, func(c *codec, s *Spending) { s.values(c) })
	optFlat(c, "subagent", &r.Sub, sub)
	c.optText("owner", &r.Owner)
}

func (r *Entry) check(c *codec) {
	r.Facts.check(c)
	c.id("id", r.ID)
	c.id("tenant_id", r.TenantID)
	c.id("correlation_id", r.Correlation)
	c.id("boundary_crossing", r.Boundary)
	c.hash("exact_hash", r.ExactHash)
	if r.Key != nil && !isHash(*r.Key) {
		c.failf("k5_idempotency_key", "not 64 lower-case hex digits")
	}
	c.when("timestamp", r.Timestamp)
	c.when("created_at", r.CreatedAt)
	c.owner(r.Agent, r.Owner)
	if len(r.Spoken) > MaxSpoken {
		c.failf("k8_rules", "more than %d rules", MaxSpoken)
	}
	for _, s := range r.Spoken {
		c.hash("k8_rules", s.Version)
	}
	if r.More < 0 {
		c.failf("k8_rules_more", "below zero")
	}
	if r.BeginSeq != nil && *r.BeginSeq < 0 {
		c.failf("begin_seq", "below zero")
	}
	if r.ResultHash != nil {
		if !isHash(*r.ResultHash) {
			c.failf("operation_result_hash", "not 64 lower-case hex digits")
		}
		if r.Result != nil {
			c.failf("operation_result", "both here and in an erasable part")
		}
	}
}

// AppendJSON is Begin.AppendJSON for an entry.
func (r *Entry) AppendJSON(b []byte) ([]byte, error) { return write(b, "entry", r.fields, r.check) }

// ParseEntry is ParseBegin for an entry.
func ParseEntry(record []byte) (*Entry, error) {
	r := new(Entry)
	if err := read(record, "entry", r.fields, r.check); err != nil {
		return nil, err
	}
	return r, nil
}
