package budget

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// What a key holds is read back from it, whatever names are in it, and begins as the
// keys of its owner do.
func TestParseKey(t *testing.T) {
	now := time.Unix(1_795_219_200, 0)
	for _, name := range []string{"a", "a/b", "a b", "%2f", "ü", "", "a\x00b", "/", "*"} {
		who := holdfast.Identity{Tenant: "t/" + name, Tier: "T" + name, Intent: "I" + name, Kind: "K" + name, Agent: "A" + name, Session: "S" + name, Chain: "C" + name}
		for _, s := range []Scope{Tenant, Tier, Intent, Kind, Agent, Session, Chain} {
			for _, at := range []string{"", "mcp/*"} {
				l := Limit{Scope: s, Resource: holdfast.MoneyMicro, Window: time.Hour, Boundary: at}
				d := l.draw(&who, 1, now)
				h, ok := ParseKey(d.Key)
				if !ok || h.Tenant != who.Tenant || h.Scope != s || h.Of != scopeValue(s, &who) || h.Resource != l.Resource || h.Window != l.Window || h.Boundary != at ||
					(h.Agent != "") != (s == Session) || s == Session && h.Agent != who.Agent {
					t.Errorf("%q is %+v", d.Key, h)
				}
				if !l.Holds(&h) && !strings.Contains(h.Of, "\x00") {
					t.Errorf("%q is not held to its limit", d.Key)
				}
				if again := l.Draw(&h, now); again.Key != d.Key || again.Window != d.Window || again.Amount != 0 {
					t.Errorf("%q is drawn on as %q", d.Key, again.Key)
				}
				if p := KeysOf(who.Tenant, s, owner(s, &who)...); !strings.HasPrefix(d.Key, p) || !strings.HasPrefix(d.Key, KeysOf(who.Tenant, s)) {
					t.Errorf("%q does not begin with %q", d.Key, p)
				}
			}
		}
	}
	for _, key := range []string{"", "t", "t/agent", "t/agent/a/money_micro", "t/agent/a/money_micro/x", "t/agent/a/money_micro/-1", "t/agent/a/money_micro/99999999999999999999",
		"t/agent/%zz/money_micro/1", "t/session/a/money_micro/0", "t/agent/a/money_micro/0/b/c", "rate/x"} {
		if h, ok := ParseKey(key); ok {
			t.Errorf("%q is %+v", key, h)
		}
	}
}

// What one within an agent takes is held to limits that name it, and to no others.
func TestHoldsWithin(t *testing.T) {
	named, all := Limit{Scope: Agent, Match: "alice/plan", Resource: holdfast.LLMTokens}, Limit{Scope: Agent, Match: "*", Resource: holdfast.LLMTokens}
	who, _ := within(holdfast.Identity{Tenant: "t", Agent: "alice"}, "plan")
	d := named.draw(&who, 1, time.Unix(0, 0))
	h, ok := ParseKey(d.Key)
	if !ok || h.Name() != "alice/plan" || !named.Holds(&h) || all.Holds(&h) || !strings.HasPrefix(d.Key, KeysWithin("t", "alice")) {
		t.Errorf("%q: %+v", d.Key, h)
	}
}
