package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cedar-policy/cedar-go"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

// document is a payload of 1 KB with 20 fields. It holds no fraction and no
// null, which Cedar has not.
func document(path string, amount int) []byte {
	b := fmt.Appendf(nil, `{"path":%q,"amount":%d,"count":7,"urgent":false,"tags":["a","b","c"],"customer":{"id":90071,"name":"Ada Lovelace","city":"London"}`, path, amount)
	for i := range 13 {
		b = fmt.Appendf(b, `,"field_%02d":"value %d of an ordinary text field of a request"`, i, i*7919)
	}
	b = append(b, `,"text":"`...)
	for len(b) < 1020 {
		b = append(b, 'x')
	}
	return append(b, `"}`...)
}

// engine decides whether an agent with the role "agent" may make the call.
type engine struct {
	name string
	// read turns the payload's bytes into what decide wants.
	read   func([]byte) (any, error)
	decide func(any) (bool, error)
}

func engines(t testing.TB) []engine {
	t.Helper()
	return []engine{ours(t), opa(t), cedarGo(t)}
}

func must[T any](t testing.TB, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// ours is the two judges that K2 and K8 ask, without a kernel. Reading also
// bounds the payload, refuses duplicates, and makes both of its hashes.
func ours(t testing.TB) engine {
	set, err := constitution.Load([]constitution.Source{{Name: "rules.yaml", Text: []byte(`
rules:
  - {id: no-etc, on: request, boundary: mcp/shop/*, when: 'args.path.startsWith("/etc/")', message: nothing under /etc}
  - {id: small, on: request, boundary: mcp/shop/*, when: 'args.amount > 1000', message: too much}
`)}})
	must(t, set, err)
	roles, has, wants := map[string][]string{"agent": {"mcp:*"}}, []string{"agent"}, []string{"mcp:call"}
	return engine{"holdfast", func(b []byte) (any, error) {
		d, err := payload.Parse(b)
		if err != nil {
			return nil, err
		}
		return d.Value(), nil
	}, func(v any) (bool, error) {
		granted, unmapped := token.Permissions(roles, has)
		if unmapped != "" || len(token.Missing(wants, granted)) > 0 {
			return false, nil
		}
		found := set.Judge(context.Background(), constitution.OnRequest, constitution.Facts{Boundary: "mcp/shop/order", Payload: v})
		return !slices.ContainsFunc(found, func(f constitution.Finding) bool { return f.Verdict != holdfast.Allow }), nil
	}}
}

// opa is a prepared query, as OPA's documentation shows.
func opa(t testing.TB) engine {
	query, err := rego.New(rego.Query("data.holdfast.allow"), rego.Module("holdfast.rego", `package holdfast

default allow := false

allow if {
	some role in input.roles
	some permission in data.roles[role]
	permission == "mcp:call"
	not violation
}

violation if startswith(input.args.path, "/etc/")

violation if input.args.amount > 1000
`), rego.Store(inmem.NewFromObject(map[string]any{"roles": map[string]any{"agent": []any{"mcp:call"}}}))).PrepareForEval(t.Context())
	must(t, query, err)
	return engine{"opa", tree, func(v any) (bool, error) {
		set, err := query.Eval(context.Background(), rego.EvalInput(map[string]any{"roles": []any{"agent"}, "args": v}))
		return set.Allowed(), err
	}}
}

// tree reads JSON as OPA wants it.
func tree(b []byte) (any, error) {
	var v any
	err := json.Unmarshal(b, &v)
	return v, err
}

// cedarGo is the policies of the same meaning.
func cedarGo(t testing.TB) engine {
	policies, err := cedar.NewPolicySetFromBytes("holdfast.cedar", []byte(`
permit (principal in Role::"agent", action == Action::"mcp:call", resource);
forbid (principal, action, resource) when { context.path like "/etc/*" };
forbid (principal, action, resource) when { context.amount > 1000 };
`))
	must(t, policies, err)
	ada, role := cedar.NewEntityUID("Agent", "ada"), cedar.NewEntityUID("Role", "agent")
	entities := cedar.EntityMap{ada: {UID: ada, Parents: cedar.NewEntityUIDSet(role)}, role: {UID: role}}
	return engine{"cedar-go", func(b []byte) (any, error) {
		var r cedar.Record
		err := r.UnmarshalJSON(b)
		return r, err
	}, func(v any) (bool, error) {
		d, diagnostic := cedar.Authorize(policies, entities, cedar.Request{Principal: ada,
			Action: cedar.NewEntityUID("Action", "mcp:call"), Resource: cedar.NewEntityUID("Tool", "mcp/shop/order"), Context: v.(cedar.Record)})
		if len(diagnostic.Errors) > 0 {
			return false, fmt.Errorf("%v", diagnostic.Errors)
		}
		return d == cedar.Allow, nil
	}}
}

// TestSame shows that the engines decide the same, so that comparing their
// speed means something.
func TestSame(t *testing.T) {
	for _, c := range []struct {
		path   string
		amount int
		want   bool
	}{{"/srv/orders/21.json", 42, true}, {"/etc/passwd", 42, false}, {"/srv/orders/21.json", 1001, false}, {"/srv/orders/21.json", 1000, true}} {
		for _, e := range engines(t) {
			got, err := e.decide(must2(e.read(document(c.path, c.amount)))(t))
			if err != nil || got != c.want {
				t.Errorf("%s: %s, %d: got %v, %v", e.name, c.path, c.amount, got, err)
			}
		}
	}
}

func must2(v any, err error) func(testing.TB) any {
	return func(t testing.TB) any { t.Helper(); return must(t, v, err) }
}

// BenchmarkDecision prints the median of one decision by each engine, in
// turns, and the ratio of each peer to ours: of a payload that is read already,
// and from its bytes.
func BenchmarkDecision(b *testing.B) {
	doc := document("/srv/orders/21.json", 42)
	for _, fromBytes := range []bool{false, true} {
		name := "read"
		if fromBytes {
			name = "bytes"
		}
		b.Run(name, func(b *testing.B) {
			all := engines(b)
			took := make([][]time.Duration, len(all))
			values := make([]any, len(all))
			for i, e := range all {
				values[i] = must2(e.read(doc))(b)
			}
			for b.Loop() {
				for i, e := range all {
					v := values[i]
					start := time.Now()
					var err error
					if fromBytes {
						v, err = e.read(doc)
					}
					yes := false
					if err == nil {
						yes, err = e.decide(v)
					}
					took[i] = append(took[i], time.Since(start))
					if err != nil || !yes {
						b.Fatalf("%s: %v, %v", e.name, yes, err)
					}
				}
			}
			mine := median(took[0])
			for i, e := range all {
				b.ReportMetric(median(took[i]), e.name+"-ns")
				if i > 0 {
					b.ReportMetric(median(took[i])/mine, e.name+"/holdfast")
				}
			}
		})
	}
}

func median(v []time.Duration) float64 {
	slices.Sort(v)
	return float64(v[len(v)/2].Nanoseconds())
}
