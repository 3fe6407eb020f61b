package constitution

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

const explainedRules = `
rules:
  - {id: elsewhere, on: request, boundary: mcp/mail/*, when: "true", message: m}
  - {id: after, on: output, boundary: mcp/bank/*, when: "true", message: m}
  - {id: large, on: request, boundary: mcp/bank/*, when: 'args.amount > 100 && !(args.to in ["eve"])', message: too large, severity: hold}
  - {id: many, on: request, boundary: mcp/bank/pay, when: 'past("mcp/bank/pay", "24h").where(args.amount > 10).count() >= 1', message: too many}
  - {id: total, on: request, boundary: mcp/bank/pay, when: 'past("mcp/bank/pay", "24h").sum(args.amount) + args.amount > 1000', message: too much}
  - {id: absent, on: request, boundary: mcp/bank/pay, when: 'args.memo == "x"', message: m}
  - {id: listed, on: request, boundary: mcp/bank/pay, when: 'args.tags.exists(t, t == "b")', message: m, mode: observe}
`

// TestExplainSaysWhatJudgeDoes: every rule has its verdict, those that are not
// asked a reason, and the parts of a condition their values.
func TestExplainSaysWhatJudgeDoes(t *testing.T) {
	f := pay(t, `{"amount":150.25,"to":"bob","tags":["a","b"]}`, 0)
	f.History = ledgerOf{t, []Facts{pay(t, `{"amount":20,"to":"eve"}`, time.Hour), pay(t, `{"amount":5,"to":"eve"}`, time.Hour)}}
	s := load(t, explainedRules)
	got, err := s.Explain(t.Context(), OnRequest, f)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		asked   bool
		verdict holdfast.Verdict
		says    string
		values  []string
	}{
		{false, holdfast.Allow, "its boundary mcp/mail/* is another than mcp/bank/pay", nil},
		{false, holdfast.Allow, "it judges output, not request", nil},
		{true, holdfast.Hold, "too large", []string{`args.amount = 150.25`, `args.amount > 100 = true`, `args.to = "bob"`, `args.to in ["eve"] = false`}},
		{true, holdfast.Deny, "too many", []string{`past("mcp/bank/pay", "24h").where(args.amount > 10).count() = 1`}},
		{true, holdfast.Allow, "", []string{`past("mcp/bank/pay", "24h").sum(args.amount) = 25.000000`, `args.amount = 150.25`}},
		{true, holdfast.Deny, "there is no key memo", []string{`args.memo = error: could not be evaluated: there is no key memo`}},
		{true, holdfast.Allow, "m", []string{`args.tags = ["a","b"]`}},
	} {
		e := got[i]
		if e.Asked != want.asked || e.Verdict != want.verdict || !strings.Contains(e.Why+e.Message, want.says) {
			t.Errorf("%+v", e)
		}
		if e.Asked != (e.Cost > 0) {
			t.Errorf("%s cost %d", e.Rule.ID, e.Cost)
		}
		var all []string
		for _, v := range e.Values {
			all = append(all, v.Text+" = "+v.Is)
		}
		for _, v := range want.values {
			if !strings.Contains(strings.Join(all, "\n"), v) {
				t.Errorf("%s: no %s in\n%s", e.Rule.ID, v, strings.Join(all, "\n"))
			}
		}
	}
	var spoke, judged []string
	for _, e := range got {
		if e.Spoke {
			spoke = append(spoke, e.Rule.ID)
		}
	}
	for _, f := range s.Judge(t.Context(), OnRequest, f) {
		judged = append(judged, f.Rule)
	}
	if strings.Join(spoke, " ") != strings.Join(judged, " ") {
		t.Errorf("explained %v, judged %v", spoke, judged)
	}
}
