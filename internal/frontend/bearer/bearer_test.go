package bearer

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Which token an identity's crossings are made with: the one that lives longest.
func TestHolders(t *testing.T) {
	var s holders
	now := time.Now()
	keep := func(who, tok string, until time.Time) *holder {
		return s.keep(who, held{tok: holdfast.NewSecret(tok), id: tok, until: until},
			func(id string) bool { return id == "stolen" })
	}
	get := func(h *holder) string { tok, _ := h.token(t.Context()); return tok.Reveal() }
	h := keep("a", "1", now.Add(time.Minute))
	if keep("a", "2", now.Add(time.Hour)) != h || get(h) != "2" {
		t.Error("a newer token is not taken")
	}
	if keep("a", "1", now.Add(time.Minute)); get(h) != "2" {
		t.Error("an older token is taken")
	}
	stolen := keep("b", "stolen", now.Add(8*time.Hour))
	if keep("b", "fresh", now.Add(time.Minute)); get(stolen) != "fresh" {
		t.Error("a revoked token is kept for a good one")
	}
	for i := range 3 * maxHolders {
		keep(fmt.Sprint(i), "x", now)
	}
	if len(s.m) > maxHolders {
		t.Errorf("%d are kept", len(s.m))
	}
	if get(h) != "2" {
		t.Error("one in use is lost")
	}
	id := holdfast.Identity{Tenant: "t", Principal: "p", Agent: "a", Roles: []string{"agent"}}
	for name, other := range map[string]holdfast.Identity{"role": {Tenant: "t", Principal: "p", Agent: "a",
		Roles: []string{"operator"}}, "tenant": {Tenant: "u", Principal: "p", Agent: "a", Roles: []string{"agent"}},
		"session": {Tenant: "t", Principal: "p", Agent: "a", Roles: []string{"agent"}, Session: "s"},
		"issuer":  {Tenant: "t", Principal: "p", Agent: "a", Roles: []string{"agent"}, Issuer: "i"}} {
		if same(id) == same(other) {
			t.Errorf("another %s is the same", name)
		}
	}
	renewed := id
	renewed.TokenID, renewed.Expires = "2", now
	if same(id) != same(renewed) {
		t.Error("a renewed token is another identity")
	}
}

// What one agent may have of an endpoint is counted over its sessions.
func TestAttackBearer_sessions_of_one_agent_are_one_group(t *testing.T) {
	id := holdfast.Identity{Tenant: "t", Principal: "p", Agent: "a", Session: "1"}
	for name, other := range map[string]holdfast.Identity{
		"session": {Tenant: "t", Principal: "p", Agent: "a", Session: "2"},
		"intent":  {Tenant: "t", Principal: "p", Agent: "a", Session: "1", Intent: "i"},
	} {
		if same(id) == same(other) || GroupOf(same(id)) != GroupOf(same(other)) {
			t.Errorf("another %s: %s and %s", name, same(id), same(other))
		}
	}
	for name, other := range map[string]holdfast.Identity{
		"agent":     {Tenant: "t", Principal: "p", Agent: "b", Session: "1"},
		"principal": {Tenant: "t", Principal: "q", Agent: "a", Session: "1"},
		"tenant":    {Tenant: "u", Principal: "p", Agent: "a", Session: "1"},
	} {
		if GroupOf(same(id)) == GroupOf(same(other)) {
			t.Errorf("another %s is the same group", name)
		}
	}
}
