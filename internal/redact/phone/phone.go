// Package phone recognizes phone numbers: national forms, extensions, the words next to a
// number, and whether a number is in prose.
//
// Everything here is a pure function of a text and the groups of digits in it. A function
// reads at most 160 bytes before a number and ReachAfter after it.
package phone

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
)

// ReachAfter bounds the bytes that are read after a number.
const ReachAfter = 96

// Evidence tells how far the form of a number shows that it is a phone's.
type Evidence uint8

const (
	None   Evidence = iota // a word has to name it
	Prose                  // enough between words of a sentence, or alone on a line below one
	Likely                 // enough unless a word names another kind of number
	Sure                   // enough
)

// MatchNational returns the number of groups that make a number in a national form, and the
// evidence of that form. bracket tells that "(" precedes the first group.
func MatchNational(s []byte, g []cursor.Group, bracket bool) (groups int, e Evidence) {
	if len(g) == 1 {
		return matchWithExtension(s, g[0])
	}
	if n := matchAmerican(s, g, bracket); n > 0 {
		return n, Sure
	}
	if s[g[0].At] == '8' && g[0].N == 1 && g[0].Sep == '(' { // Russia: 8 (912) 345-67-89
		if n, _ := matchForms(s, g[1:], true); n > 0 {
			return n + 1, Likely
		}
	}
	groups, e = matchForms(s, g, bracket)
	if n := matchExit(s, g); n > groups {
		return n, Prose
	}
	if groups > 0 && hasExtension(s, g[groups-1]) {
		e = max(e, Likely)
	}
	return groups, e
}

// matchForms returns the longest of the forms that g begins with.
func matchForms(s []byte, g []cursor.Group, bracket bool) (groups int, e Evidence) {
	at := g[0].At
	if g[0].N > maxSize {
		return 0, None
	}
	for _, f := range forms()[s[at]-'0'][g[0].N] {
		if n := f.matchGroups(s, g, bracket); n > groups {
			groups, e = n, f.evidence
			if f.evidence == Prose && g[0].Sep == ')' && s[at] == '0' {
				e = Likely // an area code in brackets
			}
		}
	}
	return groups, e
}

// matchWithExtension accepts ten digits of North America with an extension.
func matchWithExtension(s []byte, g cursor.Group) (int, Evidence) {
	if (g.N == 10 || g.N == 11 && s[g.At] == '1') && hasExtension(s, g) {
		return 1, Sure
	}
	return 0, None
}

func hasExtension(s []byte, last cursor.Group) bool {
	end := last.At + last.N
	return ExtensionEnd(s, end) > end
}

// matchAmerican returns the number of groups of a number of the North American plan whose
// area and exchange begin with 2 to 9, or 0: (415) 555-0123, 415-555-0123, 415.555.0123,
// with "1" or "001" before them. With blanks it needs the "1".
func matchAmerican(s []byte, g []cursor.Group, bracket bool) int {
	k := 0
	if c := s[g[0].At]; g[0].N == 1 && c == '1' || g[0].N == 3 && string(s[g[0].At:g[0].At+3]) == "001" {
		k = 1
		bracket = g[0].Sep == '('
	}
	if len(g) < k+3 || g[k].N != 3 || g[k+1].N != 3 || g[k+2].N != 4 || s[g[k].At] < '2' || s[g[k+1].At] < '2' {
		return 0
	}
	a, b, last := g[k].Sep, g[k+1].Sep, g[k+2]
	if !(bracket && a == ')' && b != '/' || a == b && (a == '-' || a == '.') || a == b && a == ' ' && k == 1) {
		return 0
	}
	end := last.At + last.N
	if last.Sep == '-' || last.Sep == '.' || end < len(s) && char.Class[s[end]]&char.Letter != 0 &&
		ExtensionEnd(s, end) == end {
		return 0
	}
	return k + 3
}

// matchExit returns the number of groups of a number after the exit code 00 and a country's
// code, or 0: 0044 20 7946 0958, 00 33 1 23 45 67 89.
func matchExit(s []byte, g []cursor.Group) int {
	at := g[0].At
	if g[0].N > 5 || g[0].N == 1 || len(g) < 3 || s[at] != '0' || s[at+1] != '0' {
		return 0
	}
	code, pairs := g[0].At+2, g[0].N == 2
	if pairs {
		code = g[1].At
	}
	if !isCountryCode(s, code) {
		return 0
	}
	total := g[0].N - 2
	k := 1
	for ; k < len(g) && isJoiner(g[k-1].Sep); k++ {
		total += g[k].N
		pairs = pairs && g[k].N == 2
	}
	if k < len(g) || total < 9 || total > 15 || pairs || s[code] == '1' && total != 11 {
		return 0
	}
	return k
}

func isJoiner(sep byte) bool { return sep == ' ' || sep == '-' }

// IsHalfDotted reports whether some groups are joined by a dot and some otherwise: a number
// before a fraction or an address.
func IsHalfDotted(g []cursor.Group) bool {
	dots := 0
	for k := range len(g) - 1 {
		if g[k].Sep == '.' {
			dots++
		}
	}
	return dots > 0 && dots < len(g)-1
}

// IsDay reports whether groups are a day: with one sign between, a month and a day
// that can be, and no further group after blanks.
func IsDay(s []byte, g []cursor.Group) bool {
	if !cursor.IsDate(g) || g[0].Sep != g[1].Sep || g[0].Sep == ' ' && len(g) > 3 {
		return false
	}
	year, a, b := g[0], g[1], g[2]
	if g[0].N != 4 {
		year, a, b = g[2], g[0], g[1]
	}
	m, d := readNumber(s, a), readNumber(s, b)
	c := s[year.At]
	return (c == '1' || c == '2') && m > 0 && d > 0 && min(m, d) <= 12 && max(m, d) <= 31
}

// IsContinued reports whether a dash joins more digits to the number that ends at i, also after
// letters: it is a part of an identifier such as a UUID.
func IsContinued(s []byte, i int) bool {
	if i >= len(s) || s[i] != '-' {
		return false
	}
	for j := i + 1; j < min(len(s), i+reachAfterWord) && char.Class[s[j]]&char.Alnum != 0; j++ {
		if char.Class[s[j]]&char.Digit != 0 {
			return true
		}
	}
	return false
}

// IsYears reports whether groups are two years with a dash between.
func IsYears(s []byte, g []cursor.Group) bool {
	if len(g) != 2 || g[0].N != 4 || g[1].N != 4 || g[0].Sep != '-' {
		return false
	}
	a, b := readNumber(s, g[0]), readNumber(s, g[1])
	return a >= 1900 && b >= a && b < 2100
}

// readNumber returns the value of a short group.
func readNumber(s []byte, g cursor.Group) int {
	v := 0
	for _, c := range s[g.At : g.At+g.N] {
		v = v*10 + int(c-'0')
	}
	return v
}

// IsThousands reports whether blanks or dots set groups of three digits apart, as in 1 234 567.
func IsThousands(g []cursor.Group) bool {
	for k := 1; k < len(g); k++ {
		if g[k].N != 3 || g[k-1].Sep != ' ' && g[k-1].Sep != '.' {
			return false
		}
	}
	return g[0].N <= 3
}

// IsOtherNumber reports whether the number [at, end) is a part of something else: of hexadecimal digits, of a version,
// or the number of an issue.
func IsOtherNumber(x *cursor.Cursor, at, end int) bool {
	next := x.End(end, 2, char.Hex)
	return x.Has(at-1, "#") || x.Is(end, char.Letter) && next > end && !x.Is(next, char.Letter&^char.Hex) &&
		ExtensionEnd(x.S, end) == end
}
