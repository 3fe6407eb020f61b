package dissimilar_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/assure/dissimilar"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/ledger"
)

const (
	policy    = "1111111111111111111111111111111111111111111111111111111111111111"
	runtimeID = "11111111-2222-4333-8444-555555555555"
)

var start = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// person is an operator's key; making one is slow on purpose.
var person = sync.OnceValues(func() (operator.Key, operator.Public) {
	sealed, pub, err := operator.New(holdfast.NewSecret("correct horse battery"), operator.Options{WorkFactor: 15})
	if err != nil {
		panic(err)
	}
	k, err := operator.Open(sealed, holdfast.NewSecret("correct horse battery"))
	if err != nil {
		panic(err)
	}
	return k, pub
})

// book is a ledger in the making: leaves in the encoder's own spelling, with
// everything in them as a test wants it.
type book struct {
	t      testing.TB
	now    time.Time
	leaves map[string][]ledger.Stored
	order  []string
	n      int
	last   func(*ledger.Entry) // changes the next entry after everything else
}

func newBook(t testing.TB) *book {
	return &book{t: t, now: start, leaves: map[string][]ledger.Stored{}}
}

func ptr[T any](v T) *T { return &v }

func sha(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }

func (b *book) tick() time.Time { b.now = b.now.Add(time.Millisecond); return b.now }

type appender interface {
	AppendJSON([]byte) ([]byte, error)
}

func (b *book) put(tenant string, kind ledger.Kind, crossing string, at time.Time, r appender, part []byte) int64 {
	b.t.Helper()
	text, err := r.AppendJSON(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, known := b.leaves[tenant]; !known {
		b.order = append(b.order, tenant)
	}
	seq := int64(len(b.leaves[tenant]))
	b.leaves[tenant] = append(b.leaves[tenant], ledger.Stored{Place: ledger.Place{Tenant: tenant, Seq: seq, Hash: ledger.LeafHash(text)},
		Kind: kind, Crossing: crossing, At: at, Record: text, Part: part})
	return seq
}

func (b *book) id() string {
	b.n++
	return fmt.Sprintf("01a1fcf0-0000-7000-8000-%012x", b.n)
}

func part(text string) []byte {
	var salt [ledger.SaltSize]byte
	_, _ = rand.Read(salt[:])
	return ledger.NewPart(salt, []byte(text))
}

// begin writes a begin that is right, as far as change leaves it so.
func (b *book) begin(change ...func(*ledger.Begin)) (*ledger.Begin, int64) {
	b.t.Helper()
	r := &ledger.Begin{ID: b.id(), TenantID: "acme", Correlation: uuid.NewString(), Timestamp: b.tick(), Boundary: "mcp/fs/write",
		Caller: "user:alice", Roles: []string{"dev"}, Agent: "ada", Session: "s1", Risk: "LOW", Policy: policy,
		ExactHash: sha([]byte(`{"n":1}`)), Key: sha([]byte(`{"n":1}`)), Required: []string{"fs:write"}, Granted: []string{"fs:*", "goal:read"},
		Facts: ledger.Facts{TokenID: "jti-1", TokenExpires: start.Add(48 * time.Hour), Level: "baseline", Threshold: ptr(0.5)}}
	for _, c := range change {
		c(r)
	}
	return r, b.put(r.TenantID, ledger.KindBegin, r.ID, r.Timestamp, r, nil)
}

func allowed() []ledger.Opinion {
	var out []ledger.Opinion
	for g := holdfast.K1; g <= holdfast.K8; g++ {
		out = append(out, ledger.Opinion{Gate: g, Verdict: holdfast.Allow})
	}
	return out
}

// end writes the entry of a begin, right as far as change leaves it so.
func (b *book) end(g *ledger.Begin, seq int64, change ...func(*ledger.Entry)) int64 {
	b.t.Helper()
	e := g.Entry(seq, b.tick())
	e.State, e.Outcome, e.ErrorKind, e.ExitCode, e.Passed, e.Opinions = holdfast.Idle, ledger.Done, "", 0, ptr(true), allowed()
	for i := range e.Uses {
		e.Uses[i].Used = ptr(e.Uses[i].Draw.Amount)
	}
	return b.entry(e, change...)
}

func (b *book) entry(e *ledger.Entry, change ...func(*ledger.Entry)) int64 {
	b.t.Helper()
	e.DurationUS = e.CreatedAt.Sub(e.Timestamp).Microseconds()
	var p []byte
	for _, c := range change {
		c(e)
	}
	if e.Result != nil { // a part, by its text
		p = part(*e.Result)
		e.ResultHash, e.Result = ptr(ledger.PartHash(p)), nil
	}
	tightest(e)
	if b.last != nil {
		b.last(e)
		b.last = nil
	}
	return b.put(e.TenantID, ledger.KindEntry, e.ID, e.CreatedAt, e, p)
}

func tightest(e *ledger.Entry) {
	best := -1
	left := func(u ledger.Use) int64 { return u.Draw.Limit - u.Before - u.Draw.Amount }
	for i, u := range e.Uses {
		if best < 0 || left(u) < left(e.Uses[best]) {
			best = i
		}
	}
	if best < 0 || e.Outcome == ledger.Unknown {
		return
	}
	u := e.Uses[best]
	e.ResourceType, e.BudgetLimit, e.UsageBefore, e.Requested = ptr(string(u.Draw.Resource)), &u.Draw.Limit, &u.Before, &u.Draw.Amount
}

// whole is one crossing, begun and ended.
func (b *book) whole(change ...func(*ledger.Begin)) (*ledger.Begin, int64) {
	b.t.Helper()
	g, seq := b.begin(change...)
	b.end(g, seq)
	return g, seq
}

// denied writes the entry of a request that a gate refused.
func (b *book) denied(gate holdfast.Gate, kind holdfast.Kind, change ...func(*ledger.Entry)) int64 {
	b.t.Helper()
	at := b.tick()
	e := &ledger.Entry{ID: b.id(), TenantID: "acme", Correlation: uuid.NewString(), Timestamp: at, CreatedAt: b.tick(), Boundary: "mcp/fs/write",
		Caller: "user:alice", Roles: []string{"dev"}, Agent: "ada", Risk: "LOW", Policy: policy, State: holdfast.Faulted, Outcome: ledger.Denied,
		ErrorKind: kind, Gate: &gate, ExitCode: 1, Required: []string{"fs:write"}, Granted: []string{"fs:*", "goal:read"},
		Facts: ledger.Facts{TokenID: "jti-1", TokenExpires: start.Add(48 * time.Hour), Level: "baseline"}}
	for g := holdfast.K1; g <= gate; g++ {
		v, k := holdfast.Allow, holdfast.Kind("")
		if g == gate {
			v, k = holdfast.Deny, kind
		}
		e.Opinions = append(e.Opinions, ledger.Opinion{Gate: g, Verdict: v, Kind: k})
		ok := v == holdfast.Allow
		switch g {
		case holdfast.K1:
			e.Valid = &ok
		case holdfast.K2:
			e.Authorized = &ok
		case holdfast.K3:
			e.WithinBudget = &ok
		case holdfast.K8:
			e.Passed = &ok
		}
	}
	if gate < holdfast.K2 {
		e.Required, e.Granted = nil, nil
	}
	return b.entry(e, change...)
}

func (b *book) event(name, who, subject, crossing string, data map[string]any, p []byte) int64 {
	b.t.Helper()
	r := &ledger.Event{ID: b.id(), TenantID: "acme", Crossing: crossing, Timestamp: b.tick(), Name: name, Who: who, Subject: subject}
	if p != nil {
		r.PartHash = ledger.PartHash(p)
	}
	if data != nil {
		r.Data, _ = json.Marshal(data)
	}
	return b.put("acme", ledger.KindEvent, crossing, r.Timestamp, r, p)
}

const text = `{"n":1}`

// propose asks a person about a crossing, with the payload as it is shown.
func (b *book) propose(review, crossing, shown string) {
	b.event("review_proposed", "user:alice", review, crossing, map[string]any{"agent": "ada", "boundary": "mcp/fs/write",
		"exact_hash": sha([]byte(text)), "preview_hash": sha([]byte(shown)), "policy": policy, "why": "HIGH"}, part(shown))
}

func (b *book) sign(s operator.Statement) operator.Signed {
	b.t.Helper()
	k, _ := person()
	if s.Reviewer == "" {
		s.Reviewer = "bob"
	}
	if s.At.IsZero() {
		s.At = b.now
	}
	if s.ID == "" {
		s.ID = uuid.NewString()
	}
	s.Runtime = runtimeID
	signed, err := operator.Sign(k, s)
	if err != nil {
		b.t.Fatal(err)
	}
	return signed
}

func word(s operator.Signed, data map[string]any) map[string]any {
	if data == nil {
		data = map[string]any{}
	}
	data["statement"], data["signature"] = s.Statement, s.Signature
	return data
}

func answer(review string) operator.Statement {
	return operator.Statement{Act: operator.Approve, Subject: review, Exact: sha([]byte(text)), PreviewHash: sha([]byte(text)), Policy: policy, Nonce: "n"}
}

func (b *book) decide(review, crossing string, s operator.Statement) int64 {
	if s.Reviewer == "" {
		s.Reviewer = "bob"
	}
	decision := map[string]string{operator.Approve: "approved", operator.Reject: "rejected"}[s.Act]
	return b.event("review_decided", s.Reviewer, review, crossing, word(b.sign(s), map[string]any{"decision": decision}), nil)
}

func high(crossing, review string) func(*ledger.Begin) {
	return func(g *ledger.Begin) {
		g.ID, g.Risk, g.Approved, g.Review, g.Reviewer, g.Governs = crossing, "HIGH", ptr(true), review, "bob", policy
	}
}

// approved is a whole crossing that a person approved.
func (b *book) approved(review string, change ...func(*ledger.Begin)) (*ledger.Begin, int64) {
	id := b.id()
	b.propose(review, id, text)
	b.decide(review, id, answer(review))
	return b.whole(append([]func(*ledger.Begin){high(id, review)}, change...)...)
}

func tokens(amount int64) ledger.Draw {
	return ledger.Draw{Key: "acme/agent/ada/llm_tokens", Resource: holdfast.LLMTokens, Amount: amount, Limit: 100, Name: "llm_tokens per agent"}
}

func drawing(amount int64) func(*ledger.Begin) {
	return func(g *ledger.Begin) { g.Draws = append(g.Draws, tokens(amount)) }
}

func before(n int64) func(*ledger.Entry) {
	return func(e *ledger.Entry) { e.Uses[0].Before = n }
}

// export writes the book as an export, signed, whose every proof holds.
func (b *book) export() ([]byte, *ledger.Verifier) {
	b.t.Helper()
	signer, err := ledger.GenerateKey(rand.Reader, runtimeID)
	if err != nil {
		b.t.Fatal(err)
	}
	var heads []ledger.Head
	notes := map[string]ledger.SignedCheckpoint{}
	sign := func(tenant string) {
		var tree ledger.Tree
		for _, l := range b.leaves[tenant] {
			tree.Append(l.Hash)
		}
		h := ledger.Head{Tenant: tenant, Size: tree.Size(), Root: tree.Root()}
		c, err := signer.Sign(h, b.tick())
		if err != nil {
			b.t.Fatal(err)
		}
		heads, notes[tenant] = append(heads, h), c
	}
	for _, tenant := range b.order {
		sign(tenant)
		e := ledger.CheckpointEvent(uuid.NewString(), notes[tenant])
		b.put(ledger.CheckpointsTenant, ledger.KindEvent, "", e.Timestamp, e, nil)
	}
	sign(ledger.CheckpointsTenant)
	b.order = b.order[:len(b.order)-1]
	var out bytes.Buffer
	x := ledger.NewExporter(&out, signer.Verifier())
	sortHeads(heads)
	for _, h := range heads {
		if err := x.Tenant(h, []ledger.SignedCheckpoint{notes[h.Tenant]}, func(fn func(ledger.Stored) error) error {
			for _, l := range b.leaves[h.Tenant] {
				if err := fn(l); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := x.Close(); err != nil {
		b.t.Fatal(err)
	}
	return out.Bytes(), signer.Verifier()
}

func sortHeads(hs []ledger.Head) {
	for i := 1; i < len(hs); i++ {
		for k := i; k > 0 && ledger.CompareTenants(hs[k].Tenant, hs[k-1].Tenant) < 0; k-- {
			hs[k], hs[k-1] = hs[k-1], hs[k]
		}
	}
}

// judge verifies the tree and its signatures, which must hold, and then judges
// every crossing again.
func (b *book) judge() (dissimilar.Result, []dissimilar.Finding) {
	b.t.Helper()
	key, err := dissimilar.ParseOperator(publicLine())
	if err != nil {
		b.t.Fatal(err)
	}
	var found []dissimilar.Finding
	v := dissimilar.New(dissimilar.Options{Operators: []ed25519.PublicKey{key}, Runtime: runtimeID,
		Found: func(f dissimilar.Finding) { found = append(found, f) }})
	out, pub := b.export()
	x := ledger.ExportVerifier{Key: pub, Deep: true, Leaf: func(s ledger.Stored) {
		v.Leaf(dissimilar.Leaf{Tenant: s.Tenant, Seq: s.Seq, Record: s.Record, Part: s.Part})
	}}
	if _, err := x.Verify(bytes.NewReader(out)); err != nil {
		b.t.Fatalf("the forgery does not even hold together: %v", err)
	}
	return v.Result(), found
}

func publicLine() string { _, pub := person(); return pub.String() }
