package trust

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

func TestMay(t *testing.T) {
	// lowest is the lowest level that may; 4 is nobody.
	for permission, lowest := range map[string]holdfast.Level{
		"intent:plan": 0, "exec:run": 0, "ledger:read": 0, "kb:read": 0, "goal:*": 0, "estimator:read": 0,
		"spawn:worker": 1, "spawn:*": 1, "spawn:a:b": 1,
		"intent:propose": 2, "intent:propose:root": 2, "intent:*": 2,
		"estimator:propose": 3, "estimator:*": 3, "kb:write": 3, "kb:*": 3, "kb:delete": 3, "*:*": 3, "*:read": 3,
		// Drifted spellings meet the same rule.
		"Spawn:Worker": 1, " spawn : worker ": 1, "KB:Write": 3, "kb:\twrite": 3, "kb:write:x": 3, "intent: propose :x": 2, "kb:wri*": 3,
		// What is no permission is nobody's.
		"": 4, "spawn": 4, ":": 4, "kb:": 4, ":write": 4, "*": 4,
	} {
		for level := holdfast.Baseline; level <= holdfast.Highest; level++ {
			if got, want := May(level, permission), level >= lowest; got != want {
				t.Errorf("May(%v, %q) = %v, want %v", level, permission, got, want)
			}
		}
	}
}

func TestUnknownLevelMayNothing(t *testing.T) {
	for _, level := range []holdfast.Level{-128, -1, 4, 127} {
		for _, p := range []string{"goal:read", "spawn:x", "kb:write", "*:*", ""} {
			if May(level, p) {
				t.Errorf("level %d may %q", level, p)
			}
		}
		if Depth(level) != 0 {
			t.Errorf("level %d may have sub-intents", level)
		}
	}
}

func TestDepth(t *testing.T) {
	for level, want := range map[holdfast.Level]int{0: 0, 1: 3, 2: 3, 3: 3} {
		if got := Depth(level); got != want {
			t.Errorf("Depth(%v) = %d, want %d", level, got, want)
		}
	}
}

// FuzzMay: a higher level never loses a power, spelling never gains one.
func FuzzMay(f *testing.F) {
	for _, s := range []string{"spawn:x", "kb:write", "KB:*", "a:b:c", "", ":", "ſpawn:x", "\u212ab:write"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		for level := holdfast.Baseline; level < holdfast.Highest; level++ {
			if May(level, p) && !May(level+1, p) {
				t.Fatalf("%v may %q and %v may not", level, p, level+1)
			}
			if May(level, p) && !May(level, " "+strings.ToLower(p)+" ") {
				t.Fatalf("spelling decides for %q", p)
			}
		}
	})
}
