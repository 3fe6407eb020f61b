package redact

import "bytes"

// birth returns the end of a day that begins at g[0], where a word says that
// somebody was born on it, or 0: 1985-03-12, 12.3.1985, 03/12/85, 12 March
// 1985. A day alone is no personal datum.
func (x *scanner) birth(g []group) int {
	end := 0
	switch {
	case len(g) >= 3 && g[0].sep == g[1].sep && indexByte("-/.", g[0].sep) >= 0 && isDay(g):
		end = g[2].at + g[2].n
	case len(g) == 1 && g[0].n <= 2:
		if end = x.monthYear(g[0].at + g[0].n); end == 0 {
			return 0
		}
	default:
		return 0
	}
	if !x.born(g[0].at) {
		return 0
	}
	return end
}

// born says whether a word before i says that somebody was born.
func (x *scanner) born(i int) bool {
	return x.near(i, wordBirth|wordBorn) || bytes.Contains(x.s[max(0, i-8):i], []byte("D.O.B"))
}

// isDay says whether groups have the sizes of a day, month and year.
func isDay(g []group) bool {
	return isDate(g) || g[0].n <= 2 && g[1].n <= 2 && g[2].n == 2
}

// monthYear returns the end of " March 1985" at i, or 0.
func (x *scanner) monthYear(i int) int {
	if !x.is(i, isBlank) || !x.is(i+1, isLetter) {
		return 0
	}
	w := x.end(i+1, 10, isLetter)
	if !isMonth(x.s[i+1 : w]) {
		return 0
	}
	if x.has(w, ".") || x.has(w, ",") {
		w++
	}
	x.touch(w + 1)
	if !x.is(w, isBlank) || digitsFrom(x.s, w+1, 5) != 4 {
		return 0
	}
	return w + 5
}

// monthDay masks the "March 12, 1985" whose day of n digits stands at i,
// where a word for a birth stands before it.
func (x *scanner) monthDay(i, n int) {
	x.touch(i + n + 2)
	if !x.is(i-1, isBlank) || !x.is(i+n+1, isBlank) || digitsFrom(x.s, i+n+2, 5) != 4 {
		return
	}
	w := i - 1
	if w > 0 && x.s[w-1] == '.' {
		w--
	}
	b := w
	for b > 0 && w-b < 10 && class[x.s[b-1]]&isLetter != 0 {
		b--
	}
	if isMonth(x.s[b:w]) && x.born(b) {
		x.mask(b, i+n+6, ruleBirth)
	}
}

var months = [...]string{
	"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
}

var monthGate = monthGates()

func monthGates() (g gate) {
	for _, m := range months {
		g.add(m)
		g.add(m[:3])
	}
	g.add("sept")
	return g
}

func isMonth(w []byte) bool {
	if len(w) < 3 || !monthGate.may(w[0], len(w)) {
		return false
	}
	for _, m := range months {
		if lower(w[0]) == m[0] && (isFold(w, m) || isFold(w, m[:3])) {
			return true
		}
	}
	return isFold(w, "sept")
}
