package literal

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/testgrowth"
)

// TestLongestOfFormsThatBeginAlikeIsFound: of values with a common beginning the longest one in a text is
// found, also where signs break it, and one that may still come holds the text.
func TestLongestOfFormsThatBeginAlikeIsFound(t *testing.T) {
	var forms [][]byte
	for _, f := range []string{"abcdefgh", "abcdefgh1234", "abcdefgh12345678", "abcdefgi", "abcdöfgh", "abcdö"} {
		forms = append(forms, []byte(f))
	}
	slices.SortFunc(forms, func(a, b []byte) int { return slices.Compare(a, b) })
	for _, c := range []struct {
		text  string
		final bool
		end   int
	}{
		{"abcdefgh", true, 8}, {"abcdefgh", false, -1}, {"abcdefgh x", false, 8}, {"abcdefgh123x", false, 8},
		{`abc"+"defgh12"+"34--x`, false, 18}, {"abcdefgh1234567", true, 12}, {"abcdefgh1234567", false, -1},
		{"abcdefgh12345678", false, 16}, {"abcdefgi", false, 8}, {"abcdefgj", false, 0}, {"abcdöx", false, 6},
		{`abcd\u00f6fgh`, true, 13}, {`abcd\u00f7fgh`, true, 0}, {"abcdef\n\t> gh.", true, 12}, {"abcd", true, 0},
	} {
		if end := followForms([]byte(c.text), 0, forms, c.final); end != c.end {
			t.Errorf("%q, final %t: %d, want %d", c.text, c.final, end, c.end)
		}
	}
}

// TestFormsThatBeginAlikeTakeFewSteps: the work at one place does not grow with the number of values.
func TestFormsThatBeginAlikeTakeFewSteps(t *testing.T) {
	testgrowth.Linear(t, 1<<13, func(n int) func() {
		var forms [][]byte
		for i := range n {
			forms = append(forms, fmt.Appendf(nil, "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9%016b", i))
		}
		return func() {
			for _, f := range forms {
				if followForms(f, 0, forms, true) != len(f) {
					t.Fatal("not found")
				}
			}
		}
	})
}
