package kernel_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/feature/erasure"
	"github.com/holdfast-dev/holdfast/internal/feature/recount"
	"github.com/holdfast-dev/holdfast/internal/feature/subagent"
	"github.com/holdfast-dev/holdfast/internal/feature/toolpin"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
	"github.com/holdfast-dev/holdfast/ledger"
)

// world is a kernel on a real store, latch, redactor and verifier, with a
// clock that the test moves.
type world struct {
	t      testing.TB
	k      *kernel.Kernel
	store  *sqlite.Store
	latch  *latch.Latch
	minter *token.Minter
	dir    string
	policy *kernel.Policy

	recounter *recount.Recounter
	erasure   *erasure.Erasure
	keep      time.Duration // of parts of records
	tools     *toolpin.Catalog

	mu      sync.Mutex
	offset  time.Duration // guarded by mu; what the clock is ahead
	notices []kernel.Notice
	fault   func(string) error
}

const runtimeID = "11111111-2222-4333-8444-555555555555"

// keys are made once a process: sealing is slow on purpose.
var keys = sync.OnceValues(func() (operator.Key, operator.Public) {
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

// emptyStore is the file of a store that nothing was written to: to make its tables
// again for each test takes longer than most tests.
var emptyStore = sync.OnceValue(func() []byte {
	dir, err := os.MkdirTemp("", "holdfast-kernel-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "holdfast.db")
	s, err := sqlite.Open(context.Background(), sqlite.Options{Path: path, Tables: testTables()})
	if err == nil {
		err = s.Close()
	}
	file, fault := os.ReadFile(path)
	if err = errors.Join(err, fault); err != nil {
		panic(err)
	}
	return file
})

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.offset)
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.offset += d
}

// boundaries that most tests cross.
func contracts() []holdfast.Contract {
	return []holdfast.Contract{
		{Boundary: "test/low", Risk: holdfast.Low, Source: "test:1"},
		{Boundary: "test/medium", Risk: holdfast.Medium, Source: "test:2"},
		{Boundary: "test/high", Risk: holdfast.High, Source: "test:3"},
		{Boundary: "test/never", Risk: holdfast.Prohibited, Source: "test:4"},
		{Boundary: "test/schema", Risk: holdfast.Low, SchemaID: "test/schema_v1", Source: "test:5",
			Schema: json.RawMessage(`{"type":"object","required":["n"],"additionalProperties":false,"properties":{"n":{"type":"integer","minimum":0},"s":{"type":"string","maxLength":4}}}`)},
		{Boundary: "test/perm", Risk: holdfast.Low, Permissions: []string{"goal:read", "goal:write"}, Source: "test:6"},
		{Boundary: "test/spawn", Risk: holdfast.Low, Permissions: []string{"spawn:issue"}, Source: "test:7"},
		{Boundary: "test/cost", Risk: holdfast.Low, Consumes: map[holdfast.Resource]int64{holdfast.LLMTokens: 10}, Source: "test:8"},
		{Boundary: "test/declared", Risk: holdfast.Medium, Confidence: "declared", Source: "test:9"},
		{Boundary: "test/scored", Risk: holdfast.Medium, Confidence: "double(args.c)", Operation: "goal:modify", Source: "test:10"},
		{Boundary: "test/replay", Risk: holdfast.Low, Replay: "payload", Consumes: map[holdfast.Resource]int64{holdfast.LLMTokens: 10}, Source: "test:11"},
		{Boundary: "test/output", Risk: holdfast.Low, Predicates: []string{"output_schema_conformance"}, Source: "test:12",
			OutputSchema: json.RawMessage(`{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"}}}`)},
		{Boundary: "test/rate", Risk: holdfast.Low, RatePerMinute: 3, Source: "test:13"},
		{Boundary: "test/unfunded", Risk: holdfast.Low, Consumes: map[holdfast.Resource]int64{"widgets": 1}, Source: "test:14"},
		{Boundary: "test/slow", Risk: holdfast.Low, Timeout: 50 * time.Millisecond, Source: "test:15"},
		{Boundary: "agent/step", Risk: holdfast.Low, Consumes: map[holdfast.Resource]int64{holdfast.Iterations: 1}, Source: "test:16"},
		{Boundary: "test/many/*", Risk: holdfast.Low, Source: "test:17"},
	}
}

func testPolicy(t testing.TB, rules string) *kernel.Policy {
	t.Helper()
	var files []constitution.Source
	if rules != "" {
		files = []constitution.Source{{Name: "rules.yaml", Text: []byte(rules)}}
	}
	set, err := constitution.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return &kernel.Policy{Version: "1111111111111111111111111111111111111111111111111111111111111111", Contracts: contracts(), Rules: set,
		Roles: map[string][]string{"agent": {"goal:read", "spawn:*", "mcp:call"}, "writer": {"goal:*"}},
		Limits: []budget.Limit{
			{Scope: budget.Tenant, Resource: holdfast.LLMTokens, Amount: 100, Window: 24 * time.Hour, Source: "test"},
			{Scope: budget.Agent, Resource: holdfast.LLMTokens, Amount: 60, Window: 24 * time.Hour, Source: "test"}},
		Kinds: map[string]kernel.AgentKind{"builder": {Iterations: 5, Level: holdfast.MediumTrust}},
	}
}

type option func(*kernel.Config, *world)

func newWorld(t testing.TB, rules string, opts ...option) *world {
	t.Helper()
	return reopen(t, t.TempDir(), rules, opts...)
}

func reopen(t testing.TB, dir, rules string, opts ...option) *world {
	t.Helper()
	w := &world{t: t, dir: dir, policy: testPolicy(t, rules)}
	path := filepath.Join(dir, "holdfast.db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(path, emptyStore(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	w.store, err = sqlite.Open(t.Context(), sqlite.Options{Path: path, Now: w.now, Tables: testTables(),
		Fault: func(step string) error {
			w.mu.Lock()
			f := w.fault
			w.mu.Unlock()
			if f == nil {
				return nil
			}
			return f(step)
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, bench := t.(*testing.B); !bench && w.k != nil && w.open() {
			nothingWrong(t, w)
		}
		w.store.Close()
	})
	if w.latch, err = latch.New(filepath.Join(dir, "HALT")); err != nil {
		t.Fatal(err)
	}
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, "a seed for tests only, thirty-two")
	if w.minter, err = token.NewMinter(ed25519.NewKeyFromSeed(seed), "test", "holdfast"); err != nil {
		t.Fatal(err)
	}
	verifier, err := token.NewVerifier(w.minter.Issuer())
	if err != nil {
		t.Fatal(err)
	}
	engine, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := kernel.Config{Store: w.store, Latch: w.latch, Verifier: verifier, Redact: engine, Sealer: testSealer(t), Policy: w.policy,
		Operator: func() []operator.Public { _, pub := keys(); return []operator.Public{pub} }, Runtime: runtimeID, Now: w.now,
		Notify: func(n kernel.Notice) { w.mu.Lock(); w.notices = append(w.notices, n); w.mu.Unlock() }}
	cfg.Features = feature.All()
	cfg.CounterRaiser, cfg.Eraser = new(kernel.CounterRaiser), new(kernel.Eraser)
	w.tools = toolpin.New(engine)
	cfg.Catalog, cfg.Lineage = w.tools, subagent.New(engine)
	for _, o := range opts {
		o(&cfg, w)
	}
	if w.k, err = kernel.New(cfg); err != nil {
		t.Fatal(err)
	}
	w.recounter = recount.New(w.store, cfg.CounterRaiser, slog.New(slog.DiscardHandler),
		func(s string) string { return s })
	w.erasure = erasure.New(cfg.Eraser, func() time.Duration { return w.keep })
	if _, err := w.k.Recover(0); err != nil {
		t.Fatal(err)
	}
	return w
}

type gcm struct{ cipher.AEAD }

func (g gcm) Seal(plain, bound []byte) ([]byte, error) {
	return g.AEAD.Seal(nil, nil, plain, bound), nil
}
func (g gcm) Open(sealed, bound []byte) ([]byte, error) { return g.AEAD.Open(nil, nil, sealed, bound) }

func testSealer(t testing.TB) kernel.Sealer {
	block, err := aes.NewCipher([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	return gcm{a}
}

// who mints a token for an agent named name.
func (w *world) who(name string, change ...func(*holdfast.Identity)) holdfast.Secret {
	w.t.Helper()
	id := holdfast.Identity{Tenant: holdfast.Local, Principal: "user:" + name, Roles: []string{"agent"}, Agent: name, Session: name + "-s1"}
	for _, c := range change {
		c(&id)
	}
	tok, _, err := w.minter.Mint(id, 15*time.Minute, w.now())
	if err != nil {
		w.t.Fatal(err)
	}
	return tok
}

func (w *world) req(boundary, payload string) holdfast.Request {
	w.t.Helper()
	return holdfast.Request{Boundary: boundary, Payload: []byte(payload), Token: w.who("alice")}
}

// ok is a hand that gives back a small result.
func ok(context.Context) (holdfast.Output, error) {
	return holdfast.Output{Body: []byte(`{"ok":true}`)}, nil
}

func (w *world) cross(req holdfast.Request) (*holdfast.Outcome, error) {
	return w.k.Cross(w.t.Context(), req, ok)
}

// say makes a person's signed statement about a review.
func (w *world) say(act, id, reason string) operator.Signed {
	w.t.Helper()
	r, err := w.k.Review(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.sign(operator.Statement{Act: act, Subject: id, Exact: r.Exact, PreviewHash: r.PreviewHash, Policy: r.Policy, Nonce: r.Nonce, Reason: reason, Reviewer: "bob"})
}

func (w *world) sign(s operator.Statement) operator.Signed {
	w.t.Helper()
	s.At, s.ID, s.Runtime = w.now(), uuid4(), runtimeID
	if s.Reviewer == "" {
		s.Reviewer = "bob"
	}
	if s.Act == operator.Defer {
		s.Until = w.now().Add(time.Hour)
	}
	signed, err := operator.Sign(w.person(), s)
	if err != nil {
		w.t.Fatal(err)
	}
	return signed
}

func (w *world) approve(id string) review.Review {
	w.t.Helper()
	r, err := w.k.Review(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	s := operator.Statement{Act: operator.Approve, Subject: id, Exact: r.Exact, PreviewHash: r.PreviewHash, Policy: r.Policy, Nonce: r.Nonce, Reason: "fine"}
	if r.InPart() {
		s.Value = operator.InPart
	}
	if r, err = w.k.Decide(w.sign(s)); err != nil {
		w.t.Fatal(err)
	}
	return r
}

// entries returns every entry of a tenant, in order.
func (w *world) entries(tenant string) []*ledger.Entry {
	w.t.Helper()
	var out []*ledger.Entry
	w.leaves(tenant, func(s ledger.Stored) {
		if s.Kind != ledger.KindEntry {
			return
		}
		e, err := ledger.ParseEntry(s.Record)
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, e)
	})
	return out
}

func (w *world) events(tenant, name string) []*ledger.Event {
	w.t.Helper()
	var out []*ledger.Event
	w.leaves(tenant, func(s ledger.Stored) {
		if s.Kind != ledger.KindEvent {
			return
		}
		e, err := ledger.ParseEvent(s.Record)
		if err != nil {
			w.t.Fatal(err)
		}
		if name == "" || e.Name == name {
			out = append(out, e)
		}
	})
	return out
}

func (w *world) leaves(tenant string, fn func(ledger.Stored)) {
	w.t.Helper()
	err := w.store.View(context.Background(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			if h.Tenant != tenant {
				continue
			}
			return tx.Leaves(tenant, 0, h.Size, func(s ledger.Stored) error { fn(s); return nil })
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) used(d budget.Draw) int64 {
	w.t.Helper()
	var c budget.Counter
	err := w.store.View(context.Background(), func(tx kernel.Tx) error {
		var err error
		c, err = tx.Counter(d)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c.Used
}

func uuid4() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	const hexes = "0123456789abcdef"
	out := make([]byte, 0, 36)
	for i, c := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out = append(out, '-')
		}
		out = append(out, hexes[c>>4], hexes[c&15])
	}
	return string(out)
}

// wants fails unless err is of the kind.
func wants(t testing.TB, err error, kind holdfast.Kind) {
	t.Helper()
	if holdfast.KindOf(err) != kind {
		t.Fatalf("got %v (%v), want %v", holdfast.KindOf(err), err, kind)
	}
}

// plan is what a crossing by alice that consumes so much would draw on.
func (w *world) plan(r holdfast.Resource, amount int64) []budget.Draw {
	w.t.Helper()
	draws, _, no := budget.Plan(w.policy.Limits, nil, budget.Ask{Who: holdfast.Identity{Tenant: holdfast.Local, Agent: "alice", Session: "alice-s1"},
		Boundary: "test/cost", Consumes: map[holdfast.Resource]int64{r: amount}, Now: w.now()})
	if no != nil {
		w.t.Fatal(no)
	}
	return draws
}

// unlimited lifts the budget of tokens, and gives the two limits apart.
func unlimited(c *kernel.Config, w *world) {
	p := *c.Policy
	p.Limits = []budget.Limit{{Scope: budget.Tenant, Resource: holdfast.LLMTokens, Amount: 1 << 40, Source: "test"}}
	c.Policy, w.policy = &p, &p
}

// verifyStore checks every tenant's tree against its head, leaf by leaf.
func verifyStore(t testing.TB, w *world) {
	t.Helper()
	err := w.store.View(context.Background(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			_, err := ledger.VerifyStore(h, nil, func(fn func(ledger.Stored) error) error { return tx.Leaves(h.Tenant, 0, h.Size, fn) })
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// person is the operator's opened key.
func (w *world) person() operator.Key {
	k, _ := keys()
	return k
}
