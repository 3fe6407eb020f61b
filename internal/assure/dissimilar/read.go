package dissimilar

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// record holds the fields of a begin, an entry or an event that are judged. It
// is read by a general JSON reader and by names alone: the ledger's own reader,
// which knows one order and one spelling, is not used.
type record struct {
	seq  int64
	part []byte

	V           int      `json:"v"`
	Kind        string   `json:"kind"`
	ID          string   `json:"id"`
	Tenant      string   `json:"tenant_id"`
	BeginSeq    *int64   `json:"begin_seq"`
	ResultHash  *string  `json:"operation_result_hash"`
	PartHash    string   `json:"part_hash"`
	Correlation string   `json:"correlation_id"`
	Timestamp   stamp    `json:"timestamp"`
	Boundary    string   `json:"boundary_crossing"`
	Caller      string   `json:"caller_user_id"`
	Roles       []string `json:"caller_roles"`
	SchemaID    *string  `json:"k1_schema_id"`
	Valid       *bool    `json:"k1_valid"`
	Required    []string `json:"k2_required_permissions"`
	Granted     []string `json:"k2_granted_permissions"`
	Authorized  *bool    `json:"k2_authorized"`
	Resource    *string  `json:"k3_resource_type"`
	Limit       *int64   `json:"k3_budget_limit"`
	Before      *int64   `json:"k3_usage_before"`
	Requested   *int64   `json:"k3_requested"`
	Within      *bool    `json:"k3_within_budget"`
	Key         *string  `json:"k5_idempotency_key"`
	Confidence  *float64 `json:"k7_confidence_score"`
	Approved    *bool    `json:"k7_human_approved"`
	Passed      *bool    `json:"k8_eval_passed"`
	ExitCode    *int64   `json:"exit_code"`
	Created     stamp    `json:"created_at"`
	Partition   string   `json:"partition_date"`

	Agent     string    `json:"agent"`
	AgentKind string    `json:"agent_kind"`
	Session   string    `json:"session"`
	Intent    string    `json:"intent"`
	Chain     string    `json:"chain"`
	Tier      string    `json:"tier"`
	Parent    string    `json:"parent"`
	Risk      string    `json:"risk"`
	State     string    `json:"state"`
	Outcome   string    `json:"outcome"`
	ErrorKind string    `json:"error_kind"`
	Gate      string    `json:"gate"`
	Rule      string    `json:"rule"`
	Why       string    `json:"why"`
	Exact     string    `json:"exact_hash"`
	Policy    string    `json:"policy"`
	ReplayOf  string    `json:"replay_of"`
	Review    string    `json:"review"`
	Reviewer  string    `json:"reviewer_id"`
	Draws     draws     `json:"draws"`
	Uses      uses      `json:"k3_all"`
	Rates     rates     `json:"rates"`
	Duration  int64     `json:"duration_us"`
	Opinions  []opinion `json:"opinions"`

	Clock      stamp    `json:"clock"`
	TokenID    string   `json:"token_id"`
	TokenEnds  stamp    `json:"token_expires"`
	Level      string   `json:"trust_level"`
	Scope      string   `json:"k5_scope"`
	Until      stamp    `json:"k5_until"`
	Threshold  *float64 `json:"k7_threshold"`
	Governs    string   `json:"governs"`
	Predicates []string `json:"k8_predicates"`

	Crossing string         `json:"crossing"`
	Event    string         `json:"event"`
	Who      string         `json:"who"`
	Subject  string         `json:"subject"`
	Data     jsontext.Value `json:"data"`

	// Owner is in records of who asks within an agent: Agent is then read as the
	// owner, whose all is that is granted and counted, and Name is who asks.
	Owner string `json:"owner"`
	Name  string `json:"-"`

	// hi is where each draw's counter stood at the begin.
	hi []int64
}

type opinion struct {
	Gate    string `json:"gate"`
	Verdict string `json:"verdict"`
	State   string `json:"state"`
	Kind    string `json:"error_kind"`
	Rule    string `json:"rule"`
	Why     string `json:"why"`
}

// opinion is that of a gate, the first where there are several.
func (r *record) opinion(gate string) *opinion {
	for i := range r.Opinions {
		if r.Opinions[i].Gate == gate {
			return &r.Opinions[i]
		}
	}
	return nil
}

// At is when the record was made.
func (r *record) At() stamp {
	if r.Kind == "entry" {
		return r.Created
	}
	return r.Timestamp
}

// clock is the clock by which the record was judged: a record's own time never
// goes back, and may lie ahead of it.
func (r *record) clock() stamp {
	if r.Clock != 0 {
		return r.Clock
	}
	return r.Timestamp
}

// about is the crossing that the record belongs to.
func (r *record) about() string {
	if r.Kind == "event" {
		return r.Crossing
	}
	return r.ID
}

func (r *record) key() string {
	if r.Key == nil {
		return ""
	}
	return *r.Key
}

func (r *record) approved() bool { return r.Approved != nil && *r.Approved }

func read(l Leaf) (*record, error) {
	r := &record{}
	err := json.Unmarshal(l.Record, r)
	r.seq, r.part = l.Seq, l.Part
	switch {
	case err != nil:
		return r, errors.New("not the JSON of a record")
	case r.V != 1:
		return r, fmt.Errorf("version %d, and only 1 is known", r.V)
	case r.Kind != "begin" && r.Kind != "entry" && r.Kind != "event":
		return r, fmt.Errorf("a record of kind %s", quote(r.Kind))
	case r.ID == "" || r.Timestamp == 0:
		return r, errors.New("no id or no time")
	case r.Kind == "entry" && (r.Created == 0 || r.ExitCode == nil):
		return r, errors.New("an entry without its columns")
	}
	if r.Name = r.Agent; r.Owner != "" {
		r.Agent = r.Owner
	}
	return r, nil
}

// stamp is a time in microseconds since 1970.
type stamp int64

const layout = "2006-01-02T15:04:05.000000Z"

// UnmarshalJSONFrom reads a time of the one form that records have.
func (s *stamp) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	if len(v) != len(layout)+2 || v[0] != '"' {
		return errors.New("not a time")
	}
	t, err := time.Parse(layout, string(v[1:len(v)-1]))
	if err != nil {
		return err
	}
	*s = stamp(t.UnixMicro())
	return nil
}

// String is the time as records write it.
func (s stamp) String() string { return time.UnixMicro(int64(s)).UTC().Format(layout) }

func (s stamp) day() string { return time.UnixMicro(int64(s)).UTC().Format("2006-01-02") }

// draw is one amount reserved from one counter.
type draw struct {
	key, resource string
	amount, limit int64
	window        int64
	name          string
}

// use is a draw with what stood there before, and what was settled.
type use struct {
	draw
	before int64
	used   *int64
}

// rate is a place taken in a rate: limit in any window of microseconds.
type rate struct {
	key           string
	limit, window int64
	name          string
}

type (
	draws []draw
	uses  []use
	rates []rate
)

// flat reads a list of scalars; each takes as many as it needs.
type flat struct {
	d   *jsontext.Decoder
	err error
}

func (f *flat) text() string {
	t, err := f.d.ReadToken()
	if f.fail(err) || f.failIf(t.Kind() != '"') {
		return ""
	}
	return t.String()
}

func (f *flat) int() int64 {
	n := f.maybe()
	if f.err == nil && n == nil {
		f.err = errors.New("null where a number stands")
	}
	if n == nil {
		return 0
	}
	return *n
}

func (f *flat) maybe() *int64 {
	v, err := f.d.ReadValue()
	if f.fail(err) || string(v) == "null" {
		return nil
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if f.fail(err) {
		return nil
	}
	return &n
}

func (f *flat) fail(err error) bool {
	if f.err == nil {
		f.err = err
	}
	return f.err != nil
}

func (f *flat) failIf(bad bool) bool {
	if bad {
		f.fail(errors.New("not the scalar that stands here"))
	}
	return f.err != nil
}

// list reads a list whose elements each reads one after another.
func list(d *jsontext.Decoder, each func(*flat)) error {
	f := &flat{d: d}
	t, err := d.ReadToken()
	if f.fail(err) || f.failIf(t.Kind() != '[') {
		return f.err
	}
	for d.PeekKind() != ']' {
		if each(f); f.err != nil {
			return f.err
		}
	}
	_, err = d.ReadToken()
	return err
}

func (f *flat) draw() draw {
	return draw{f.text(), f.text(), f.int(), f.int(), f.int(), f.text()}
}

// UnmarshalJSONFrom reads key, resource, amount, limit, window, name, and on.
func (l *draws) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return list(d, func(f *flat) { *l = append(*l, f.draw()) })
}

// UnmarshalJSONFrom reads a draw's six, usage before, used or null, and on.
func (l *uses) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return list(d, func(f *flat) { *l = append(*l, use{f.draw(), f.int(), f.maybe()}) })
}

// UnmarshalJSONFrom reads key, limit, window, name, and on.
func (l *rates) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return list(d, func(f *flat) { *l = append(*l, rate{f.text(), f.int(), f.int(), f.text()}) })
}

// id16 is an id in 16 bytes: a UUID's own, else half of a SHA-256.
func id16(s string) (out [16]byte) {
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		b := bytes.ReplaceAll([]byte(s), []byte("-"), nil)
		if len(b) == 32 && bytes.Equal(b, bytes.ToLower(b)) {
			if _, err := hex.Decode(out[:], b); err == nil {
				return out
			}
		}
	}
	h := digest(s)
	return [16]byte(h[:16])
}
