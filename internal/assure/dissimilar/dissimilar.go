// Package dissimilar judges every crossing of a ledger a second time, from
// nothing but what the ledger records: the dissimilar channel of spec 003,
// "Independent Verification". It shares no code with what wrote the ledger: not
// the gates, not the judges, not the ledger's own reader, not the canonical
// form. What it needs of them it has again, written from the specification and
// from doc/ledger-format.md, and a test holds the two against each other.
//
// No flag in a record is believed. That a crossing was authorized is found by
// comparing what was required with what was granted; that there was room, by
// counting every reservation from the first leaf on; that a person agreed, by
// the signature. Each check of each record is right, wrong or undecidable. What
// is wrong is a Finding and names the leaf; what the record cannot tell is
// counted with the reason, never passed over.
//
// The tree, its signatures and its proofs are the ledger package's matter, and
// are verified before this is worth anything.
package dissimilar

import (
	"crypto/ed25519"
	"fmt"
)

// Leaf is one leaf as it was read: the bytes of its record, and its part, nil
// where it has none or it was erased.
type Leaf struct {
	Tenant string
	Seq    int64
	Record []byte
	Part   []byte
}

// Finding is one thing that is wrong.
type Finding struct {
	Tenant string `json:"tenant_id"`
	Seq    int64  `json:"seq"`
	// Crossing is the record's id, or the crossing that an event belongs to.
	Crossing string `json:"crossing,omitzero"`
	// Gate is K1 to K8, "halt", or empty where the record itself is wrong.
	Gate string `json:"gate,omitzero"`
	// Check is what was asked, in a few words.
	Check string `json:"check"`
	// Says is what the record says, Found what was recomputed.
	Says  string `json:"record_says"`
	Found string `json:"recomputed"`
}

// String is the finding on one line, for people. Its parts may hold what an
// agent wrote: a terminal needs them made safe.
func (f *Finding) String() string {
	gate := f.Gate
	if gate == "" {
		gate = "record"
	}
	return fmt.Sprintf("tenant %q, leaf %d, crossing %s, %s (%s): the record says %s; recomputed: %s", f.Tenant, f.Seq, f.Crossing, gate, f.Check, f.Says, f.Found)
}

// Options say what is known besides the ledger.
type Options struct {
	// Operators are the public keys of the people who may decide. Without
	// one no signature can be checked, and every decision is undecidable.
	Operators []ed25519.PublicKey
	// Runtime is the id that people's statements must name, "" for any.
	Runtime string
	// Remember is how many ids of each sort are kept to find a second one;
	// 0 means DefaultRemember. Beyond it the older half is forgotten, and
	// what would need it is counted as undecidable.
	Remember int
	// Found is called with each finding as it is found; nil for nobody.
	Found func(Finding)
}

// DefaultRemember is how many ids are kept of each sort.
const DefaultRemember = 1 << 22

// Verifier reads leaves tenant by tenant, each tenant's from leaf 0 on. It
// belongs to one goroutine.
type Verifier struct {
	opt   Options
	tally [checks]Tally
	wrong int64

	// Over all tenants.
	flows memory[[16]byte, uint32] // correlation ids, by the tenant's number
	keys  memory[[16]byte, [16]byte]
	words memory[string, struct{}] // ids of statements
	names map[string]uint32
	// several is the statement that was read last, where it may be of several
	// events, and severalAt its leaf.
	several   string
	severalAt int64
	total     Totals

	t *tenant
	r *record // the record in hand
}

// Totals is how much was read.
type Totals struct {
	Tenants int64 `json:"tenants"`
	Begins  int64 `json:"begins"`
	Entries int64 `json:"entries"`
	Events  int64 `json:"events"`
	// Open is how many crossings had begun and have no entry.
	Open int64 `json:"open"`
	// Backwards is how many leaves were made more than a minute before one
	// that stands before them: the clock was set back.
	Backwards int64 `json:"backwards"`
}

// New makes a verifier that has read nothing.
func New(o Options) *Verifier {
	if o.Remember <= 0 {
		o.Remember = DefaultRemember
	}
	v := &Verifier{opt: o, names: map[string]uint32{}}
	v.flows.limit, v.keys.limit, v.words.limit = o.Remember, o.Remember, o.Remember
	return v
}

// tenant is what is known of the tree being read.
type tenant struct {
	name   string
	number uint32
	next   int64
	newest stamp // the latest time of a leaf
	ids    memory[[16]byte, struct{}]
	open   map[string]*record
	agents memory[string, *agent]
	halted int64                   // the leaf that halted everything, -1 for none
	gone   map[string]int64        // revoked token ids, and where
	parts  memory[int64, [16]byte] // the crossings of leaves that have a part
	roles  memory[[16]byte, [16]byte]

	limits   memory[[16]byte, [2]int64]
	granted  map[string][]int64 // what people have added to a counter's limit, in all, by key
	counters memory[string, *counter]
	rates    memory[string, *taken]
	kept     memory[string, *kept]
	reviews  memory[string, *question]
	rules    map[string]*remembered
	// attempt is the escape attempt whose answer is being read, if any.
	attempt *attempt
}

func (v *Verifier) begin(name string) {
	v.finish()
	n, known := v.names[name]
	if !known {
		n = uint32(len(v.names))
		v.names[name] = n
	}
	t := &tenant{name: name, number: n, halted: -1, open: map[string]*record{}, gone: map[string]int64{}, rules: map[string]*remembered{}, granted: map[string][]int64{}}
	limit := v.opt.Remember
	t.ids.limit, t.agents.limit, t.roles.limit, t.counters.limit = limit, limit, limit, limit
	t.rates.limit, t.kept.limit, t.reviews.limit, t.parts.limit, t.limits.limit = limit, limit, limit, limit, limit
	v.t = t
	v.total.Tenants++
}

func (v *Verifier) finish() {
	if v.t != nil {
		v.settled()
		v.total.Open += int64(len(v.t.open))
	}
	v.t = nil
}

// Leaf takes the next leaf. It keeps neither its record nor its part.
func (v *Verifier) Leaf(l Leaf) {
	if v.t == nil || v.t.name != l.Tenant {
		v.begin(l.Tenant)
	}
	t := v.t
	r, err := read(l)
	v.r = r
	defer func() { t.next, r.part = l.Seq+1, nil }()
	switch {
	case l.Seq != t.next:
		v.bad(Form, fmt.Sprintf("leaf %d", l.Seq), fmt.Sprintf("leaf %d comes next", t.next))
	case err != nil:
		v.bad(Form, "nothing that can be read", err.Error())
		return
	case r.Tenant != l.Tenant:
		v.bad(Form, "tenant "+quote(r.Tenant), "the tree of tenant "+quote(l.Tenant))
	default:
		v.good(Form)
	}
	v.clock(r)
	answer := v.follow(r)
	if r.PartHash != "" || r.ResultHash != nil {
		t.parts.put(l.Seq, id16(r.about()))
	}
	switch r.Kind {
	case "begin":
		v.total.Begins++
		v.begun(r)
	case "entry":
		v.total.Entries++
		v.untold(r, answer)
		v.entered(r)
	case "event":
		v.total.Events++
		v.event(r, answer)
	}
}

// minute is how long a record may take from when it was made until it is
// durable: entering and leaving have thirty seconds each (D6a).
const minute = stamp(65_000_000)

// clock follows the records' own times, which never go backwards while one
// process runs; the order of the leaves is the order of commits.
func (v *Verifier) clock(r *record) {
	if r.Clock > r.Timestamp {
		v.bad(Times, "clock "+r.Clock.String(), "a record's time is never behind the clock, and is "+r.Timestamp.String())
	}
	at := r.At()
	if at+minute < v.t.newest {
		v.total.Backwards++
	}
	v.t.newest = max(v.t.newest, at)
}

// Result is what verification came to.
type Result struct {
	Totals Totals  `json:"read"`
	Wrong  int64   `json:"wrong"`
	Checks []Tally `json:"checks"`
}

// Result ends the reading.
func (v *Verifier) Result() Result {
	v.finish()
	out := Result{Totals: v.total, Wrong: v.wrong}
	for c := range v.tally {
		t := v.tally[c]
		t.Gate, t.Check = Check(c).gate(), Check(c).String()
		if t.Right+t.Wrong+t.Undecidable > 0 {
			out.Checks = append(out.Checks, t)
		}
	}
	return out
}
