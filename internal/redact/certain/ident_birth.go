package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// birth returns the end of a day that begins at g[0], where a word says that
// somebody was born on it, or 0: 1985-03-12, 12.3.1985, 03/12/85, 12 March
// 1985. A day alone is no personal datum.
func (x *Scanner) birth(g []cursor.Group) int {
	end := 0
	switch {
	case len(g) >= 3 && g[0].Sep == g[1].Sep && char.IndexByte("-/.", g[0].Sep) >= 0 && isDay(g):
		end = g[2].At + g[2].N
	case len(g) == 1 && g[0].N <= 2:
		if end = x.monthYear(g[0].At + g[0].N); end == 0 {
			return 0
		}
	default:
		return 0
	}
	if !x.born(g[0].At) {
		return 0
	}
	return end
}

// born says whether a word before i says that somebody was born.
func (x *Scanner) born(i int) bool {
	return x.near(i, wordBirth|wordBorn) || bytes.Contains(x.S[max(0, i-8):i], []byte("D.O.B"))
}

// isDay says whether groups have the sizes of a day, month and year.
func isDay(g []cursor.Group) bool {
	return cursor.IsDate(g) || g[0].N <= 2 && g[1].N <= 2 && g[2].N == 2
}

// monthYear returns the end of " March 1985" at i, or 0.
func (x *Scanner) monthYear(i int) int {
	if !x.Is(i, char.Blank) || !x.Is(i+1, char.Letter) {
		return 0
	}
	w := x.End(i+1, 10, char.Letter)
	if !isMonth(x.S[i+1 : w]) {
		return 0
	}
	if x.Has(w, ".") || x.Has(w, ",") {
		w++
	}
	x.Touch(w + 1)
	if !x.Is(w, char.Blank) || char.DigitsFrom(x.S, w+1, 5) != 4 {
		return 0
	}
	return w + 5
}

// monthDay masks the "March 12, 1985" whose day of n digits stands at i,
// where a word for a birth stands before it.
func (x *Scanner) monthDay(i, n int) {
	x.Touch(i + n + 2)
	if !x.Is(i-1, char.Blank) || !x.Is(i+n+1, char.Blank) || char.DigitsFrom(x.S, i+n+2, 5) != 4 {
		return
	}
	w := i - 1
	if w > 0 && x.S[w-1] == '.' {
		w--
	}
	b := w
	for b > 0 && w-b < 10 && char.Class[x.S[b-1]]&char.Letter != 0 {
		b--
	}
	if isMonth(x.S[b:w]) && x.born(b) {
		x.mask(b, i+n+6, rule.Birth)
	}
}

var months = [...]string{
	"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
}

var monthGate = monthGates()

func monthGates() (g char.WordGate) {
	for _, m := range months {
		g.Add(m)
		g.Add(m[:3])
	}
	g.Add("sept")
	return g
}

func isMonth(w []byte) bool {
	if len(w) < 3 || !monthGate.May(w[0], len(w)) {
		return false
	}
	for _, m := range months {
		if char.ToLower(w[0]) == m[0] && (char.EqualFold(w, m) || char.EqualFold(w, m[:3])) {
			return true
		}
	}
	return char.EqualFold(w, "sept")
}
