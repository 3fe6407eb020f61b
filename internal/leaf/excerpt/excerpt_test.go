package excerpt

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc..."}, {"abc", 0, "..."}, {"abc", -1, "..."},
		{"aé", 3, "aé"}, {"aéb", 3, "aé..."}, {"aéb", 2, "a..."}, {"é", 1, "..."}, {"a\U0001f600b", 4, "a..."},
		{"\x80\x80\x80", 2, "..."}, {"ab\xff\xff", 3, "ab\xff..."},
	} {
		if got := Of(c.s, c.most); got != c.want {
			t.Errorf("%q, %d: %q, want %q", c.s, c.most, got, c.want)
		}
	}
}

// FuzzOf: what was text stays text, bounded, and is a beginning of it.
func FuzzOf(f *testing.F) {
	f.Add("aéb", 2)
	f.Fuzz(func(t *testing.T, s string, most int) {
		got := Of(s, most)
		if got == s {
			return
		}
		head, cut := strings.CutSuffix(got, "...")
		if !cut || !strings.HasPrefix(s, head) || len(head) > max(most, 0) || utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("%q, %d: %q", s, most, got)
		}
	})
}
