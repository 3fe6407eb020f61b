package certain

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/checksum"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
	"github.com/holdfast-dev/holdfast/internal/redact/phone"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// digits judges the run of digits at i. It looks at no more than cursor.MaxGroups
// runs ahead and 64 bytes back. Digits of an escape ("%20") are judged as they
// stand, because "%" may be a sign, and else those behind the escape.
func (x *Scanner) digits(i int) int {
	if i >= x.lately.end || !x.lately.follows(i) {
		if end := x.idle(i); end > 0 {
			return end
		}
	}
	return x.busy(i)
}

// busy judges the run of digits at i whatever stands beside it.
func (x *Scanner) busy(i int) int {
	if i > 0 && (x.S[i-1] == '%' || char.Class[x.S[i-1]]&char.Alnum != 0) {
		if end := x.escape(i); end > i {
			found := len(x.spans)
			if next := x.judgeDigits(i); len(x.spans) > found {
				return next
			}
			return end
		}
	}
	return x.judgeDigits(i)
}

func (x *Scanner) judgeDigits(i int) int {
	n := 0
	if i < x.lately.end {
		n = x.lately.kept(i)
	}
	if n == 0 {
		n = char.DigitsFrom(x.S, i, cursor.MaxRun)
	}
	var prev, next uint16
	if i > 0 {
		prev = char.Class[x.S[i-1]]
	}
	if n == cursor.MaxRun {
		if prev&char.Letter != 0 {
			x.mixedRun(i, n)
		}
		return x.End(i, MaxAhead/2, char.Digit)
	}
	sep := byte(0)
	if i+n < len(x.S) {
		sep = x.S[i+n]
		next = char.Class[sep]
	}
	if sep == '/' && x.S[i] == '1' {
		x.googleRefresh(i)
	}
	switch {
	case i > 0 && x.S[i-1] == '$':
		x.cryptHash(i)
	case sep == 'Q' && x.Has(i+n, "Q~"):
		x.azureSecret(i + n - 1)
	case (prev|next)&char.Letter != 0:
		if end := x.mixedRun(i, n); end > 0 {
			return end
		}
	}
	if sep == ',' && n <= 2 {
		x.monthDay(i, n)
	}
	if !splits[sep] && n < 7 {
		return i + n
	}
	if n == 4 && sep == '-' && x.timestamp(i) {
		return i + n
	}
	return x.number(i, x.groupsAt(i, n))
}

// splits holds the bytes that may stand between the digits of one number.
var splits = [256]bool{' ': true, '-': true, '.': true, '/': true, '\t': true, '(': true, ')': true, 0xc2: true, 0xe2: true}

// timestamp says whether the four digits at i begin a day with its hour
// behind it, as machines write it: no number of ours begins like that.
func (x *Scanner) timestamp(i int) bool {
	s := x.S[i:]
	return len(s) > 16 && s[4] == '-' && s[7] == '-' && s[10] == 'T' && s[13] == ':' && string(s[11:16]) != "00:00"
}

// number judges the groups of digits that begin at i.
func (x *Scanner) number(i int, g []cursor.Group) int {
	n := g[0].N
	if len(g) == 1 && n > 2 && n < 7 || len(g) == 2 && n+g[1].N < 7 {
		return i + n // too few digits for anything
	}
	if end := x.card(g); end > 0 {
		x.mask(i, end, rule.Card)
		return end
	}
	if end := x.ssn(g); end > 0 {
		x.mask(i, end, rule.SSN)
		return i + n
	}
	if i < x.low {
		return i + n
	}
	mute := x.wordlessBefore(i)
	x.wordlessEnd = x.lately.end // the groups have no letter either
	if !mute {
		if end, r := x.identity(g); r != rule.None {
			x.mask(i, end, r)
			return i + n
		}
	}
	if start, end := x.phone(g, mute); end > 0 {
		x.mask(start, end, rule.Phone)
		return i + n
	}
	// Single digits in a row are judged once: no word comes between them.
	k := 0
	for len(g) == cursor.MaxGroups && k+1 < len(g) && g[k+1].N == 1 && n == 1 {
		k++
	}
	return max(i+n, g[k].At)
}

// ssn returns the end of a United States social security or taxpayer number,
// or 0. In the form 123-45-6789 it stands alone; written with blanks or
// without separators it needs a word for it within reachNear bytes before, because
// any nine digits might be one.
func (x *Scanner) ssn(g []cursor.Group) int {
	var d [9]byte
	switch {
	case g[0].N == 9:
		copy(d[:], x.S[g[0].At:])
		if !checksum.IsSSN(d) || !x.Begins(g[0].At) || !x.near(g[0].At, wordSSN) {
			return 0
		}
		return g[0].At + 9
	case len(g) >= 3 && g[0].N == 3 && g[1].N == 2 && g[2].N == 4 && g[0].Sep == g[1].Sep:
		copy(d[:3], x.S[g[0].At:])
		copy(d[3:5], x.S[g[1].At:])
		copy(d[5:], x.S[g[2].At:])
		end := g[2].At + 4
		if !checksum.IsSSN(d) {
			return 0
		}
		if g[0].Sep == '-' && g[2].Sep != '-' || x.near(g[0].At, wordSSN) {
			return end
		}
	}
	return 0
}

// phone evaluates a number without "+": some national forms are enough alone, others in
// prose, all others need a word for it near them. Mute text has no letter before.
func (x *Scanner) phone(g []cursor.Group, mute bool) (start, end int) {
	at := g[0].At
	if !x.Begins(at) || x.behindDash(at) || x.Is(at-1, char.Symbol) && x.Is(at-2, char.Digit) {
		return 0, 0
	}
	if g[0].N == 4 && at > 1 && x.S[at-1] == '-' && x.Is(at-2, char.Upper) {
		return 0, 0 // CVE-2026-12345
	}
	start = at
	bracket := at > 0 && x.S[at-1] == '(' && x.Begins(at-1)
	if bracket {
		start--
	}
	k, e := phone.MatchNational(x.S, g, bracket)
	if k > 0 {
		end = x.phoneEnd(g[k-1].At + g[k-1].N)
		x.Touch(end + phone.ReachAfter)
		switch {
		case e == phone.Prose && !phone.IsInProse(x.S, start, end), e == phone.Likely && x.isJoined(at),
			e != phone.Sure && phone.IsOtherKind(x.S, start):
		default:
			return start, end
		}
	}
	if k = x.namedPhone(g, mute); k > 0 {
		return start, x.phoneEnd(g[k-1].At + g[k-1].N)
	}
	return 0, 0
}

// phoneEnd returns the end of the number that ends at i, with its extension.
func (x *Scanner) phoneEnd(i int) int {
	x.Touch(i + phone.ReachExtension)
	return phone.ExtensionEnd(x.S, i)
}

// namedPhone returns the number of groups that make a number in any form with a word for it
// near them, or 0.
func (x *Scanner) namedPhone(g []cursor.Group, mute bool) int {
	k, total := 0, 0
	for k < len(g) && total+g[k].N <= 15 {
		total += g[k].N
		k++
		if g[k-1].Sep == '\t' || g[k-1].Sep == cursor.Wide {
			break
		}
	}
	if total < 7 {
		return 0
	}
	g = g[:k]
	at, end := g[0].At, g[k-1].At+g[k-1].N
	x.Touch(end + phone.ReachAfter)
	named := phone.HasWordAfter(x.S, g, end) || phone.HasMarkBefore(x.S, at)
	if phone.IsOtherNumber(&x.Cursor, at, end) || mute && !named || phone.IsDay(x.S, g) || phone.IsYears(x.S, g) ||
		k == 2 && g[0].Sep == '.' ||
		cursor.IsAddress(g) || phone.IsHalfDotted(g) || phone.IsContinued(x.S, end) {
		return 0
	}
	if named {
		return k
	}
	if x.wordlessBefore(at) {
		return 0
	}
	looks := k > 1 && (total == 9 || !phone.IsThousands(g)) || total >= 9 && x.S[at] == '0' ||
		total == 10 && x.S[at] >= '2' && x.S[at+3] >= '2'
	want := wordPhone
	if looks = looks && !x.isJoined(at); looks {
		want |= wordCall
	}
	if x.near(at, want) || phone.HasWordBefore(x.S, at) || looks && phone.IsOwned(x.S, at) {
		return k
	}
	return 0
}

// isJoined reports whether a dash joins the digits at i to a word, as in an identifier.
func (x *Scanner) isJoined(i int) bool { return i > 1 && x.S[i-1] == '-' && x.Is(i-2, char.Letter) }

// behindDash says whether a dash of typography with a digit before it ends at i.
func (x *Scanner) behindDash(i int) bool {
	return i > 3 && x.S[i-2] == 0x80 && x.S[i-3] == 0xe2 && x.S[i-1] >= 0x90 && x.S[i-1] <= 0x94 &&
		x.Is(i-4, char.Digit)
}

// plusPhone judges the "+" of w bytes at i: 8 to 15 digits that begin with a
// country's code (E.164), with separators.
func (x *Scanner) plusPhone(i, w int) int {
	j := i + w
	if !x.Begins(i) || x.Is(i-1, char.Symbol) && (x.S[i-1] == '+' || x.S[i-1] == '/') || !x.Is(j, char.Digit) ||
		x.S[j] == '0' {
		return j
	}
	n := x.DigitRun(j)
	if n > 15 {
		return j
	}
	var buf [cursor.MaxGroups]cursor.Group
	g := x.Groups(j, n, cursor.MaxDigits, buf[:0])
	limit := 15
	if x.S[j] == '1' {
		limit = 11
	}
	k, total := 0, 0
	for k < len(g) && total+g[k].N <= limit {
		total += g[k].N
		k++
		if g[k-1].Sep == '\t' || g[k-1].Sep == cursor.Wide {
			break
		}
	}
	if total < 8 || limit == 11 && total != 11 || x.added(i, g[:k]) {
		return j
	}
	x.mask(i, x.phoneEnd(g[k-1].At+g[k-1].N), rule.Phone)
	return j + n
}

// added says whether the "+" at i is a diff's, or a sign, rather than a
// phone's: a day, an address of a machine or a fraction follows. Where it begins
// a line, so do groups that no phone has, a book's number, and a hash.
func (x *Scanner) added(i int, g []cursor.Group) bool {
	if cursor.IsDate(g) && g[0].N == 4 && g[0].Sep != ' ' || cursor.IsAddress(g) || len(g) == 2 && g[0].Sep == '.' {
		return true
	}
	if i == 0 || x.S[i-1] != '\n' {
		return false
	}
	for k := 1; k < len(g)-1; k++ {
		if g[k].N == 1 {
			return true
		}
	}
	last := g[len(g)-1]
	book := len(g) == 1 && last.N == 13 && x.Has(last.At, "978")
	return book || len(g) == 2 && g[0].N == 4 && g[0].Sep == '-' || x.Is(last.At+last.N, char.Letter)
}
