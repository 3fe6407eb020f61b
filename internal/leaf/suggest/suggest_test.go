package suggest

import (
	"strings"
	"testing"
)

func TestCountEdits(t *testing.T) {
	long := strings.Repeat("x", maxLength+1)
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"a", "a", 0}, {"a", "b", 1}, {"ab", "ba", 1}, {"ab", "a", 1},
		{"halt", "hlat", 1}, {"status", "sttaus", 1}, {"status", "stats", 1}, {"kitten", "sitting", 3},
		{"ca", "abc", 3}, // a swapped pair is not edited again
		{"flaw", "lawn", 2}, {"abcdef", "badcfe", 3}, {"é", "e", 2},
		{long[1:], long[2:], 1}, {long, long, len(long)}, {"a", long, len(long)},
	} {
		for _, got := range []int{CountEdits(c.a, c.b), CountEdits(c.b, c.a)} {
			if got != c.want {
				t.Errorf("%q and %q: %d edits, want %d", c.a, c.b, got, c.want)
			}
		}
	}
}

func TestFindNearest(t *testing.T) {
	known := []string{"severity", "service", "rules", "rule", "on"}
	for _, c := range []struct {
		word     string
		maxEdits int
		want     string
	}{
		{"sevrity", 2, "severity"}, {"rulse", 1, "rules"}, {"rulse", 0, ""}, {"no", 1, "on"},
		{"ruler", 1, "rules"}, // rule is as near, and comes later
		{"rule", 1, "rules"},  // the word itself is not suggested
		{"budget", 2, ""}, {"", 1, ""}, {"", 2, "on"},
		{strings.Repeat("x", 300), 100, ""},
	} {
		if got := FindNearest(c.word, known, c.maxEdits); got != c.want {
			t.Errorf("%q within %d edits: %q, want %q", c.word, c.maxEdits, got, c.want)
		}
	}
	if got := FindNearest("x", nil, 9); got != "" {
		t.Errorf("of no words: %q", got)
	}
}
