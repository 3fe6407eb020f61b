package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cedar-policy/cedar-go"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
	"github.com/holdfast-dev/holdfast/internal/policy/history"
	"github.com/open-policy-agent/opa/v1/rego"
)

// ruled is how many rules an engine has, of which near are about the boundary
// that is asked and the others about another; none of them objects.
type ruled struct{ all, near int }

// of is the boundary of rule i.
func (r ruled) of(i int) string {
	if i < r.near {
		return "mcp/shop/order"
	}
	return fmt.Sprintf("mcp/other/%d", i)
}

// TestRulesSame shows that each engine refuses by the last of the rules that are
// asked, so that comparing their speed means something.
func TestRulesSame(t *testing.T) {
	for _, r := range []ruled{{7, 7}, {100, 100}, {100, 10}} {
		for name, decide := range ruleEngines(t, r) {
			for amount, want := range map[int]bool{42: true, 1000 + r.near: false} {
				got, err := decide(amount)
				if err != nil || got != want {
					t.Errorf("%s, %v: %d: got %v, %v", name, r, amount, got, err)
				}
			}
		}
	}
}

// ruleEngines decide whether an order of an amount may be made: rule i refuses
// one of exactly 1001+i.
func ruleEngines(t testing.TB, r ruled) map[string]func(int) (bool, error) {
	t.Helper()
	var ours, opa, policies strings.Builder
	ours.WriteString("rules:\n")
	opa.WriteString("package holdfast\n\ndefault allow := false\n\nallow if not violation\n")
	policies.WriteString("permit (principal, action, resource);\n")
	for i := range r.all {
		fmt.Fprintf(&ours, "  - {id: r%d, on: request, boundary: %s, when: 'args.amount == %d && args.customer.name != \"\"', message: m}\n", i, r.of(i), 1001+i)
		fmt.Fprintf(&opa, "\nviolation if {\n\tinput.boundary == %q\n\tinput.args.amount == %d\n\tinput.args.customer.name != \"\"\n}\n", r.of(i), 1001+i)
		fmt.Fprintf(&policies, "forbid (principal, action, resource == Tool::%q) when { context.amount == %d && context.customer.name != \"\" };\n", r.of(i), 1001+i)
	}
	set := must2(constitution.Load([]constitution.Source{{Name: "rules.yaml", Text: []byte(ours.String())}}))(t).(*constitution.Set)
	query := must2(rego.New(rego.Query("data.holdfast.allow"), rego.Module("holdfast.rego", opa.String())).PrepareForEval(t.Context()))(t).(rego.PreparedEvalQuery)
	cedars := must2(cedar.NewPolicySetFromBytes("holdfast.cedar", []byte(policies.String())))(t).(*cedar.PolicySet)
	return map[string]func(int) (bool, error){
		"holdfast": func(n int) (bool, error) {
			f := constitution.Facts{Boundary: "mcp/shop/order", Payload: map[string]any{"amount": json.Number(fmt.Sprint(n)), "customer": map[string]any{"name": "Ada"}}}
			return len(set.Judge(context.Background(), constitution.OnRequest, f)) == 0, nil
		},
		"opa": func(n int) (bool, error) {
			got, err := query.Eval(context.Background(), rego.EvalInput(map[string]any{"boundary": "mcp/shop/order", "args": map[string]any{"amount": n, "customer": map[string]any{"name": "Ada"}}}))
			return got.Allowed(), err
		},
		"cedar-go": func(n int) (bool, error) {
			d, told := cedar.Authorize(cedars, cedar.EntityMap{}, cedar.Request{Principal: cedar.NewEntityUID("Agent", "ada"), Action: cedar.NewEntityUID("Action", "call"),
				Resource: cedar.NewEntityUID("Tool", "mcp/shop/order"), Context: cedar.NewRecord(cedar.RecordMap{"amount": cedar.Long(n),
					"customer": cedar.NewRecord(cedar.RecordMap{"name": cedar.String("Ada")})})})
			if len(told.Errors) > 0 {
				return false, fmt.Errorf("%v", told.Errors)
			}
			return d == cedar.Allow, nil
		},
	}
}

// BenchmarkRules prints the median of one decision over many rules by each
// engine, in turns, and the ratio of each peer to ours. Ours is to take at most
// 500 us for 100 rules, and 60 us where their boundaries leave 10 of them.
func BenchmarkRules(b *testing.B) {
	for _, r := range []ruled{{7, 7}, {100, 100}, {100, 10}} {
		b.Run(fmt.Sprintf("%d_of_%d", r.near, r.all), func(b *testing.B) {
			all := ruleEngines(b, r)
			took := map[string][]time.Duration{}
			for b.Loop() {
				for name, decide := range all {
					start := time.Now()
					yes, err := decide(42)
					took[name] = append(took[name], time.Since(start))
					if err != nil || !yes {
						b.Fatalf("%s: %v, %v", name, yes, err)
					}
				}
			}
			mine := median(took["holdfast"])
			for name := range all {
				b.ReportMetric(median(took[name]), name+"-ns")
				if name != "holdfast" {
					b.ReportMetric(median(took[name])/mine, name+"/holdfast")
				}
			}
		})
	}
}

// BenchmarkGoal measures the SafetyFilter's seven rules on a goal with a graph of
// three sub-tasks: at most 40 us.
func BenchmarkGoal(b *testing.B) {
	f := must2(goalrule.New(goalrule.Defaults()))(b).(*goalrule.Filter)
	s := must2(goalrule.Read(must2(numbered([]byte(`{"goal":{"goal_id":"g","description":"tidy the docs of the project","priority":"normal","goal_type":"maintenance"},
		"graph":{"goal_id":"g","sub_tasks":[{"id":"a","required_caps":["local:read"]},{"id":"b","required_caps":["local:write"]},{"id":"c","required_caps":["local:read","federation:ask"]}]}}`)))(b)))(b).(*goalrule.Submission)
	who := goalrule.Caller{Facts: constitution.Facts{Now: time.Now()}}
	for b.Loop() {
		for _, v := range f.Check(context.Background(), s, who, nil, time.Now) {
			if !v.Allowed {
				b.Fatal(v)
			}
		}
	}
}

// numbered reads JSON with its numbers as they are written.
func numbered(b []byte) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// BenchmarkPast measures a rule with a window of 24 h over a million crossings
// that are remembered: at most 50 us.
func BenchmarkPast(b *testing.B) {
	set := must2(constitution.Load([]constitution.Source{{Name: "rules.yaml", Text: []byte(`
rules:
  - {id: few, on: request, boundary: mcp/bank/pay, when: 'past("mcp/bank/pay", "24h").where(args.amount > 100).count() > 2000000', message: m}
`)}}))(b).(*constitution.Set)
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	h := history.New(history.MaxEntries)
	pasts, _ := h.Use(now, set.Pasts())
	for i := range 1_000_000 {
		h.Load(pasts[0].ID, "local", fmt.Sprint(i), now.Add(-time.Duration(i)*80*time.Millisecond), constitution.Seen{Matches: true}, nil)
	}
	h.Ready(pasts[0].ID)
	f := constitution.Facts{Boundary: "mcp/bank/pay", Now: now, Payload: map[string]any{"amount": json.Number("150")}}
	f.Who.Tenant = "local"
	for b.Loop() {
		f.Sights = set.See(context.Background(), f)
		t := h.Add(now, "local", "asked", f.Sights)
		f.History = t
		if found := set.Judge(context.Background(), constitution.OnRequest, f); len(found) != 0 {
			b.Fatal(found)
		}
		t.Drop()
	}
}
