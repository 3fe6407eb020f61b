package token

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func table() map[string][]string {
	return map[string][]string{
		"reader": {"goal:read", "kb:read"},
		"writer": {"goal:read", "goal:write"},
		"owner":  {"workflow:*"},
		"nobody": {},
		"broken": {"*", "*:*", "goal", ":x", "goal:", "go*:read", "goal:re*", "", "goal: read"},
	}
}

func TestK2_AC5_FP7_insufficient_permissions(t *testing.T) {
	granted, missing := Permissions(table(), []string{"reader"})
	if missing != "" {
		t.Fatal(missing)
	}
	got := Missing([]string{"goal:read", "goal:write"}, granted)
	if !slices.Equal(got, []string{"goal:write"}) {
		t.Errorf("missing %v", got)
	}
	granted, _ = Permissions(table(), []string{"reader", "writer"})
	if got := Missing([]string{"goal:read", "goal:write", "kb:read"}, granted); got != nil {
		t.Errorf("missing %v", got)
	}
	if got := Missing(nil, Set{}); got != nil {
		t.Errorf("nothing is required and %v is missing", got)
	}
}

func TestK2_FP6_role_not_mapped(t *testing.T) {
	granted, missing := Permissions(table(), []string{"reader", "wizard", "owner"})
	if missing != "wizard" {
		t.Errorf("missing role %q", missing)
	}
	if got := granted.List(); len(got) != 0 || granted.Has("goal:read") {
		t.Errorf("an unmapped role left %v granted", got)
	}
	if g, missing := Permissions(nil, []string{"reader"}); missing != "reader" || g.Has("goal:read") {
		t.Error("an empty table grants")
	}
	if _, missing := Permissions(table(), []string{"nobody"}); missing != "" {
		t.Error("a role without permissions is mapped all the same")
	}
	if _, missing := Permissions(table(), []string{"Reader"}); missing != "Reader" {
		t.Error("the case of a role does not matter")
	}
}

func TestWildcards(t *testing.T) {
	granted, _ := Permissions(table(), []string{"owner", "broken"})
	for p, want := range map[string]bool{
		"workflow:execute": true, "workflow:*": true, "workflow:a:b": true,
		"workflow": false, "workflow:": false, "workflows:x": false, "Workflow:x": false, "xworkflow:x": false,
		"goal:read": false, "goal:*": false, "*:*": false, "*": false, "": false, ":x": false, "goal: read": false,
		"workflow:x*": false, "workflow:x ": false,
	} {
		if got := granted.Has(p); got != want {
			t.Errorf("Has(%q) = %v", p, got)
		}
	}
	if got := granted.List(); !slices.Equal(got, []string{"workflow:*"}) {
		t.Errorf("List %v", got)
	}
	g, _ := Permissions(table(), []string{"reader"})
	if g.Has("goal:*") {
		t.Error("one permission grants its scheme")
	}
}

// Over random tables: what is authorized is granted by some role (invariant
// 1), and the answer does not depend on order or repetition (invariant 2).
func TestK2_INV1_INV2_properties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	perms := []string{"a:1", "a:2", "b:1", "b:2", "a:*", "b:*", "bad", "c:1"}
	pick := func(from []string) []string {
		var out []string
		for range r.IntN(5) {
			out = append(out, from[r.IntN(len(from))])
		}
		return out
	}
	for range 5000 {
		roles := map[string][]string{"x": pick(perms), "y": pick(perms), "z": pick(perms)}
		have := pick([]string{"x", "y", "z"})
		required := pick(perms)
		granted, role := Permissions(roles, have)
		if role != "" {
			t.Fatal(role)
		}
		if len(Missing(required, granted)) == 0 {
			for _, p := range required {
				if !slices.ContainsFunc(have, func(h string) bool {
					return slices.Contains(roles[h], p) || slices.Contains(roles[h], p[:1]+":*")
				}) {
					t.Fatalf("%q authorized by %v of %v", p, have, roles)
				}
			}
		}
		shuffled := append(slices.Clone(have), have...)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		again, _ := Permissions(roles, shuffled)
		if !slices.Equal(granted.List(), again.List()) {
			t.Fatalf("%v and %v", granted.List(), again.List())
		}
	}
}
