package config

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

const risksText = `version: 1
boundaries:
  - {boundary: mcp/crm/*, risk: MEDIUM, risk_from: patterns}
risks:
  - {match: 'delete.*customer', risk: PROHIBITED}
  - {match: 'refund', agents: [till], risk: LOW}
`

func TestRisksBecomePolicy(t *testing.T) {
	l, err := load(t, risksText)
	if err != nil {
		t.Fatal(err)
	}
	p := l.Policy
	if len(p.Risks) != 2 || p.Risks[0].Risk != holdfast.Prohibited || p.Risks[1].Agents[0] != "till" || p.Risks[0].Source != "holdfast.yaml:5" || p.Contracts[0].RiskFrom != "patterns" {
		t.Errorf("%+v", p.Risks)
	}
}

func TestMistakesInRisks(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"not a pattern":   {`delete.*customer`, `delete(`, "holdfast.yaml:5: \"delete(\" is no pattern"},
		"a bomb":          {`delete.*customer`, `((((a{100}){100}){100}){100})`, "is no pattern"},
		"a backreference": {`delete.*customer`, `(a)\1`, "is no pattern"},
		"empty":           {`'delete.*customer'`, `''`, "has 1 to 512 bytes"},
		"long":            {`delete.*customer`, strings.Repeat("a", 513), "has 1 to 512 bytes"},
		"no risk":         {`, risk: PROHIBITED`, ``, "risk"},
		"another risk":    {`PROHIBITED`, `SEVERE`, "SEVERE"},
		"for nobody":      {`agents: [till]`, `agents: []`, "for nobody"},
		"unknown key":     {`agents: [till]`, `agent: till`, "agent"},
		"another source":  {`risk_from: patterns`, `risk_from: hope`, "risk_from"},
	} {
		text := strings.Replace(risksText, c.from, c.to, 1)
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
