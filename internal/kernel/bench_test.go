package kernel

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/cel"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What is measured: a payload of 1 KB with 20 fields, a schema that describes
// every one of them, two rules, two budgets and a rate, without a database.
// Beside it stand the same libraries called bare on the same bytes, one after
// the other, in the same run.

const benchBoundary = "mcp/shop/order"

const benchRules = `
rules:
  - id: no-etc
    on: request
    boundary: mcp/shop/*
    when: args.path.startsWith("/etc/")
    message: nothing under /etc
  - id: small
    on: request
    boundary: mcp/shop/*
    when: args.amount > 1000 || size(args.text) > 4000
    message: too much
`

// benchPayload has 1 KB and 20 fields.
func benchPayload() []byte {
	b := []byte(`{"path":"/srv/orders/2026/11/21.json","amount":42.5,"count":7,"urgent":false,"note":null,"tags":["a","b","c"],"customer":{"id":90071,"name":"Ada Lovelace","city":"London"}`)
	for i := len(`abcdefghijkl`); i > 0; i-- {
		b = fmt.Appendf(b, `,"field_%02d":"value %d of an ordinary text field"`, i, i*7919)
	}
	b = append(b, `,"text":"`...)
	b = append(b, bytes.Repeat([]byte("lorem "), (1024-len(b)-2)/6)...)
	return append(b, `"}`...)
}

func benchSchema() []byte {
	var b strings.Builder
	b.WriteString(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["path","amount"],"additionalProperties":false,"properties":{
		"path":{"type":"string","minLength":1,"maxLength":4096,"pattern":"^/"},"amount":{"type":"number","minimum":0,"maximum":100000},
		"count":{"type":"integer","minimum":0},"urgent":{"type":"boolean"},"note":{"type":["string","null"]},
		"tags":{"type":"array","items":{"type":"string"},"maxItems":10},
		"customer":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"},"name":{"type":"string"},"city":{"type":"string"}}},
		"text":{"type":"string","maxLength":100000}`)
	for i := range 12 {
		fmt.Fprintf(&b, `,"field_%02d":{"type":"string","maxLength":200}`, i+1)
	}
	b.WriteString(`}}`)
	return []byte(b.String())
}

// nothing is a store without a database: every fact is there, and none stands
// in the way.
type nothing struct{ Store }

type factsOnly struct{ Tx }

func (nothing) View(_ context.Context, fn func(Tx) error) error { return fn(factsOnly{}) }
func (nothing) Poisoned() error                                 { return nil }

func (factsOnly) Agent(tenant, name string) (holdfast.Agent, error) {
	return holdfast.Agent{Tenant: tenant, Name: name, Level: holdfast.MediumTrust, State: holdfast.AgentRunning}, nil
}
func (factsOnly) Revoked(string, string) (bool, error) { return false, nil }
func (factsOnly) ReviewFor(review.Binding) (review.Review, error) {
	return review.Review{}, ErrNotFound
}
func (factsOnly) Replay(string) (Replay, error)                              { return Replay{}, ErrNotFound }
func (factsOnly) Counter(budget.Draw) (budget.Counter, error)                { return budget.Counter{}, nil }
func (factsOnly) PeekRate([]budget.Rate, time.Time) (*budget.Refusal, error) { return nil, nil }

type noSealer struct{ Sealer }

// benchKernel is a kernel in front of nothing, with a request that all eight
// gates allow.
func benchKernel(t testing.TB) (*Kernel, holdfast.Request) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	rules, err := constitution.Load([]constitution.Source{{Name: "rules.yaml", Text: []byte(benchRules)}})
	must(err)
	minter, err := token.NewMinter(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), "bench", "holdfast")
	must(err)
	verifier, err := token.NewVerifier(minter.Issuer())
	must(err)
	latch, err := latch.New(t.TempDir() + "/HALT")
	must(err)
	engine, err := redact.New(redact.Options{})
	must(err)
	day := 24 * time.Hour
	k, err := New(Config{Store: nothing{}, Latch: latch, Verifier: verifier, Redact: engine, Sealer: noSealer{}, Policy: &Policy{
		Version: strings.Repeat("1", 64), Rules: rules, Roles: map[string][]string{"agent": {"mcp:*"}},
		Contracts: []holdfast.Contract{{Boundary: benchBoundary, Risk: holdfast.Medium, Operation: "write", Schema: benchSchema(), Permissions: []string{"mcp:call"},
			Consumes: map[holdfast.Resource]int64{holdfast.LLMTokens: 10}, RatePerMinute: 1000, Source: "bench:1"}},
		Limits: []budget.Limit{{Scope: budget.Tenant, Resource: holdfast.LLMTokens, Amount: 1 << 40, Window: day, Source: "bench"},
			{Scope: budget.Agent, Resource: holdfast.LLMTokens, Amount: 1 << 40, Window: day, Source: "bench"}},
	}})
	must(err)
	secret, _, err := minter.Mint(holdfast.Identity{Tenant: holdfast.Local, Principal: "user:ada", Roles: []string{"agent"}, Agent: "ada", Session: "s"}, 15*time.Minute, time.Now())
	must(err)
	req := holdfast.Request{Boundary: benchBoundary, Payload: benchPayload(), Token: secret}
	if n := len(req.Payload); n < 1000 || n > 1024 {
		t.Fatalf("the payload has %d bytes", n)
	}
	return k, req
}

// bareLibraries is the least that K1, K5 and K8 could do: each library called
// as its documentation shows.
type bareLibraries struct {
	schema *jsonschema.Schema
	rules  []cel.Program
}

func newBareLibraries(t testing.TB) *bareLibraries {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(benchSchema()))
	must(err)
	c := jsonschema.NewCompiler()
	must(c.AddResource("bench.json", doc))
	b := &bareLibraries{}
	b.schema, err = c.Compile("bench.json")
	must(err)
	env, err := cel.NewEnv(cel.Variable("args", cel.DynType), cel.CrossTypeNumericComparisons(true))
	must(err)
	for _, text := range []string{`args.path.startsWith("/etc/")`, `args.amount > 1000 || size(args.text) > 4000`} {
		ast, issues := env.Compile(text)
		must(issues.Err())
		p, err := env.Program(ast)
		must(err)
		b.rules = append(b.rules, p)
	}
	return b
}

func (*bareLibraries) parse(b []byte) (any, error) {
	d := jsontext.NewDecoder(bytes.NewReader(b))
	return bareValue(d)
}

func bareValue(d *jsontext.Decoder) (any, error) {
	tok, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case '{':
		m := map[string]any{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			if m[key], err = bareValue(d); err != nil {
				return nil, err
			}
		}
		_, err = d.ReadToken()
		return m, err
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			v, err := bareValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.ReadToken()
		return list, err
	case '"':
		return tok.String(), nil
	case '0':
		return tok.Float()
	case 'n':
		return nil, nil
	}
	return tok.Bool(), nil
}

// all is the sum.
func (l *bareLibraries) all(t testing.TB, b []byte) [sha256.Size]byte {
	tree, err := l.parse(b)
	if err == nil {
		err = l.schema.Validate(tree)
	}
	canon := jsontext.Value(bytes.Clone(b))
	if err == nil {
		err = canon.Canonicalize()
	}
	sum := sha256.Sum256(canon)
	for _, p := range l.rules {
		v, _, evalErr := p.Eval(map[string]any{"args": tree})
		if err == nil {
			err = evalErr
		}
		if err == nil && v.Value() != false {
			err = fmt.Errorf("a rule objects: %v", v)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func percentile(v []time.Duration, p int) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return float64(v[len(v)*p/100].Nanoseconds()) / 1000
}

// BenchmarkEightGates prints the median of one request through make, facts and
// eight gates, and its ratio to the bare libraries; the two take turns.
func BenchmarkEightGates(b *testing.B) {
	k, req := benchKernel(b)
	bare := newBareLibraries(b)
	var ours, theirs []time.Duration
	for b.Loop() {
		at := time.Now()
		out, err := k.Check(b.Context(), req)
		took := time.Since(at)
		if err != nil || out.Verdict != holdfast.Allow || len(out.Opinions) != 8 {
			b.Fatalf("%v %+v", err, out.Opinions)
		}
		ours = append(ours, took)
		at = time.Now()
		bare.all(b, req.Payload)
		theirs = append(theirs, time.Since(at))
	}
	b.ReportMetric(percentile(ours, 50), "p50-us")
	b.ReportMetric(percentile(ours, 99), "p99-us")
	b.ReportMetric(percentile(theirs, 50), "bare-p50-us")
	b.ReportMetric(percentile(ours, 50)/percentile(theirs, 50), "ratio")
}

// BenchmarkGatesOnly is our part alone, to be profiled.
func BenchmarkGatesOnly(b *testing.B) {
	k, req := benchKernel(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Check(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBareLibraries is the other part alone, piece by piece.
func BenchmarkBareLibraries(b *testing.B) {
	l, doc := newBareLibraries(b), benchPayload()
	tree, err := l.parse(doc)
	if err != nil {
		b.Fatal(err)
	}
	pieces := []struct {
		name string
		do   func() error
	}{
		{"parse", func() error { _, err := l.parse(doc); return err }},
		{"schema", func() error { return l.schema.Validate(tree) }},
		{"canonical", func() error {
			v := jsontext.Value(bytes.Clone(doc))
			err := v.Canonicalize()
			sha256.Sum256(v)
			return err
		}},
		{"rules", func() (err error) {
			for _, p := range l.rules {
				_, _, err = p.Eval(map[string]any{"args": tree})
			}
			return err
		}},
	}
	for _, p := range pieces {
		b.Run(p.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := p.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGate asks each gate alone, of a judgement whose facts are fetched;
// beside the eight stands what comes before them.
func BenchmarkGate(b *testing.B) {
	k, req := benchKernel(b)
	b.Run("make", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := k.make(b.Context(), &req, inside{}, byCaller); err != nil {
				b.Fatal(err)
			}
		}
	})
	fresh, err := k.make(b.Context(), &req, inside{}, byCaller)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("facts", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			j := *fresh
			k.fetch(b.Context(), &j)
		}
	})
	k.fetch(b.Context(), fresh)
	for _, g := range gates() {
		b.Run(g.name.String(), func(b *testing.B) {
			b.ReportAllocs()
			var all []time.Duration
			for b.Loop() {
				j := *fresh
				at := time.Now()
				op := ask(b.Context(), g, &j)
				all = append(all, time.Since(at))
				if op.Verdict != holdfast.Allow {
					b.Fatalf("%+v", op)
				}
			}
			b.ReportMetric(percentile(all, 50), "p50-us")
		})
	}
}
