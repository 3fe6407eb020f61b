package review

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

func patterns(t *testing.T) []Pattern {
	t.Helper()
	var out []Pattern
	for _, r := range []struct {
		match         string
		risk          holdfast.Risk
		agents, kinds []string
	}{
		{`delete.*customer`, holdfast.Prohibited, nil, nil},
		{`merge.*main`, holdfast.High, nil, nil},
		{`refund`, holdfast.High, nil, nil},
		{`refund`, holdfast.Prohibited, nil, nil},
		{`\b(list|view|show)\b`, holdfast.Low, nil, nil},
		{`résil`, holdfast.High, nil, nil},
		{`refund`, holdfast.Medium, []string{"till"}, nil},
		{`refund`, holdfast.Prohibited, nil, []string{"growth"}},
	} {
		p, err := NewPattern(r.match)
		if err != nil {
			t.Fatal(err)
		}
		p.Risk, p.Agents, p.Kinds = r.risk, r.agents, r.kinds
		out = append(out, p)
	}
	return out
}

func TestSpec001_Layer2_risk_by_ordered_patterns(t *testing.T) {
	for _, c := range []struct {
		a    Acting
		want string
	}{
		{Acting{Boundary: "agent/step", Action: "delete the customer"}, "PROHIBITED"},
		{Acting{Boundary: "agent/step", Action: "DELETE\n\tthe Customer"}, "PROHIBITED"},
		{Acting{Boundary: "agent/step", Action: "ｄｅｌｅｔｅ customer"}, "PROHIBITED"},
		{Acting{Boundary: "agent/step", Action: "del\u200bete the cust\u00adomer"}, "PROHIBITED"},
		{Acting{Boundary: "agent/step", Action: "d\u202eelete\u2060 customer"}, "PROHIBITED"},
		{Acting{Boundary: "agent/step", Action: "de\u0301lete cust\u00f6mer"}, "PROHIBITED"},
		{Acting{Boundary: "agent/step", Action: "del\u115fete cus\ufe0ftomer\U000e0041"}, "PROHIBITED"},
		{Acting{Boundary: "agent/step", Action: "de\x01le\x7fte customer"}, "PROHIBITED"},
		{Acting{Boundary: "agent/step", Action: "\u24d3elete \u24d2ustome\u1d63"}, "PROHIBITED"},
		{Acting{Boundary: "agent/step", Action: "r\u00e9siliation"}, "HIGH"}, // a mark in a pattern is one
		{Acting{Boundary: "mcp/crm/delete_customer"}, "PROHIBITED"},
		{Acting{Boundary: "agent/step", Action: "list refunds"}, "HIGH"}, // the first that matches
		{Acting{Boundary: "agent/step", Action: "list orders"}, "LOW"},
		{Acting{Boundary: "agent/step", Operation: "git:merge", Action: "into main"}, "HIGH"},
		{Acting{Boundary: "agent/step", Action: "refund", Agent: "till"}, "MEDIUM"},
		{Acting{Boundary: "agent/step", Action: "refund", Agent: "other"}, "HIGH"},
		{Acting{Boundary: "agent/step", Action: "refund", Kind: "growth"}, "PROHIBITED"},
		{Acting{Boundary: "agent/step", Action: "think"}, "none"},
	} {
		got := "none"
		if p := Classify(patterns(t), c.a); p != nil {
			got = p.Risk.String()
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.a, got, c.want)
		}
	}
	if p := Classify([]Pattern{{Risk: holdfast.Low}}, Acting{Boundary: "x"}); p != nil {
		t.Error("the zero pattern matches")
	}
	if _, err := NewPattern("("); err == nil {
		t.Error("it compiled")
	}
	if p := Classify(patterns(t), Acting{Action: strings.Repeat("a", 1<<20) + " delete customer"}); p != nil {
		t.Error("more is read than is bounded")
	}
}
