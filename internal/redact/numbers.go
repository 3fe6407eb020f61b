package redact

// digits judges the run of digits at i. It looks at no more than maxGroups
// runs ahead and 64 bytes back. Digits of an escape ("%20") are judged as they
// stand, because "%" may be a sign, and else those behind the escape.
func (x *scanner) digits(i int) int {
	if i >= x.lately.end || !x.lately.follows(i) {
		if end := x.idle(i); end > 0 {
			return end
		}
	}
	return x.busy(i)
}

// busy judges the run of digits at i whatever stands beside it.
func (x *scanner) busy(i int) int {
	if i > 0 && (x.s[i-1] == '%' || class[x.s[i-1]]&isAlnum != 0) {
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

func (x *scanner) judgeDigits(i int) int {
	n := 0
	if i < x.lately.end {
		n = x.lately.kept(i)
	}
	if n == 0 {
		n = digitsFrom(x.s, i, maxRun)
	}
	var prev, next uint16
	if i > 0 {
		prev = class[x.s[i-1]]
	}
	if n == maxRun {
		if prev&isLetter != 0 {
			x.mixedRun(i, n)
		}
		return x.end(i, maxAhead/2, isDigit)
	}
	sep := byte(0)
	if i+n < len(x.s) {
		sep = x.s[i+n]
		next = class[sep]
	}
	if sep == '/' && x.s[i] == '1' {
		x.googleRefresh(i)
	}
	switch {
	case i > 0 && x.s[i-1] == '$':
		x.cryptHash(i)
	case sep == 'Q' && x.has(i+n, "Q~"):
		x.azureSecret(i + n - 1)
	case (prev|next)&isLetter != 0:
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
func (x *scanner) timestamp(i int) bool {
	s := x.s[i:]
	return len(s) > 16 && s[4] == '-' && s[7] == '-' && s[10] == 'T' && s[13] == ':' && string(s[11:16]) != "00:00"
}

// number judges the groups of digits that begin at i.
func (x *scanner) number(i int, g []group) int {
	n := g[0].n
	if len(g) == 1 && n > 2 && n < 7 || len(g) == 2 && n+g[1].n < 7 {
		return i + n // too few digits for anything
	}
	if end := x.card(g); end > 0 {
		x.mask(i, end, ruleCard)
		return end
	}
	if end := x.ssn(g); end > 0 {
		x.mask(i, end, ruleSSN)
		return i + n
	}
	if i < x.low {
		return i + n
	}
	mute := x.wordlessBefore(i)
	x.wordlessEnd = x.lately.end // no letter stands in the groups either
	if !mute {
		if end, r := x.identity(g); r != ruleNone {
			x.mask(i, end, r)
			return i + n
		}
	}
	if start, end := x.phone(g, mute); end > 0 {
		x.mask(start, end, rulePhone)
		return i + n
	}
	// Single digits in a row are judged once: no word comes between them.
	k := 0
	for len(g) == maxGroups && k+1 < len(g) && g[k+1].n == 1 && n == 1 {
		k++
	}
	return max(i+n, g[k].at)
}

// cardGroups are the ways cards are printed.
var cardGroups = [...][5]int{
	{4, 4, 4, 4, 3}, {4, 4, 4, 4, 2}, {4, 4, 4, 4, 1}, {4, 4, 4, 4}, {4, 6, 5}, {4, 6, 4}, {4, 4, 4, 1}, {4, 4, 5}, {8, 8}, {6, 13},
}

// card returns the end of the card number that begins at g[0], or 0: 13 to 19
// digits of a known issuer and its length that pass the Luhn check (ISO/IEC
// 7812-1). A fraction and the digits of a hexadecimal hash are none.
func (x *scanner) card(g []group) int {
	at, n := g[0].at, g[0].n
	if n >= 13 {
		if !x.fraction(at) && isCard(x.s[at:at+n]) && !x.inHash(at, n) {
			return at + n
		}
		return 0
	}
	if len(g) < 2 {
		return 0
	}
	switch second := g[1].n; {
	case n == 4 && (second == 4 || second == 6), n == 6 && second == 13, n == 8 && second == 8:
	default:
		return 0
	}
	if c := x.s[at]; c < '2' || c == '7' || x.fraction(at) {
		return 0 // no issuer's
	}
	for k := range cardGroups {
		if end := x.grouped(g, &cardGroups[k]); end > 0 {
			return end
		}
	}
	return 0
}

// fraction says whether the digits at i stand behind a point.
func (x *scanner) fraction(i int) bool { return x.is(i-2, isDigit) && x.s[i-1] == '.' }

func (x *scanner) grouped(g []group, want *[5]int) int {
	var d [24]byte
	n := 0
	end := 0
	for k, size := range want {
		if size == 0 {
			break
		}
		if k >= len(g) || g[k].n != size || k > 0 && !joinsCard(g[k-1].sep) {
			return 0
		}
		end = g[k].at + size
		n += copy(d[n:], x.s[g[k].at:end])
	}
	if !isCard(d[:n]) {
		return 0
	}
	return end
}

func joinsCard(sep byte) bool { return sep == ' ' || sep == wide || sep == '-' || sep == '.' }

// inHash says whether digits stand in a run of at least 24 hexadecimal digits
// that has letters too.
func (x *scanner) inHash(i, n int) bool {
	l, r := i, i+n
	for l > 0 && i-l < 64 && class[x.s[l-1]]&isHex != 0 {
		l--
	}
	r = x.end(r, 64, isHex)
	return r-l >= 24 && r-l > n
}

// ssn returns the end of a United States social security or taxpayer number,
// or 0. In the form 123-45-6789 it stands alone; written with blanks or
// without separators it needs a word for it within 32 bytes before, because
// any nine digits might be one.
func (x *scanner) ssn(g []group) int {
	var d [9]byte
	switch {
	case g[0].n == 9:
		copy(d[:], x.s[g[0].at:])
		if !isSSN(d) || !x.begins(g[0].at) || !x.near(g[0].at, wordSSN) {
			return 0
		}
		return g[0].at + 9
	case len(g) >= 3 && g[0].n == 3 && g[1].n == 2 && g[2].n == 4 && g[0].sep == g[1].sep:
		copy(d[:3], x.s[g[0].at:])
		copy(d[3:5], x.s[g[1].at:])
		copy(d[5:], x.s[g[2].at:])
		end := g[2].at + 4
		if !isSSN(d) {
			return 0
		}
		if g[0].sep == '-' && g[2].sep != '-' || x.near(g[0].at, wordSSN) {
			return end
		}
	}
	return 0
}

// isSSN knows the numbers that are never given out; 9xx is a taxpayer's.
func isSSN(d [9]byte) bool {
	area := string(d[:3])
	if d[0] == '9' && !isTaxpayer(d[3], d[4]) {
		return false
	}
	return area != "000" && area != "666" && string(d[3:5]) != "00" && string(d[5:]) != "0000"
}

// isTaxpayer knows the fourth and fifth digit of a taxpayer's number (ITIN,
// ATIN): 50 to 65, 70 to 88, 90 to 99.
func isTaxpayer(a, b byte) bool {
	v := int(a-'0')*10 + int(b-'0')
	return v >= 50 && v <= 65 || v >= 70 && v <= 88 || v >= 90
}

// phone judges a number without "+": North American and British forms stand
// alone, all others need a word for it within 32 bytes before: in mute text
// there is none.
func (x *scanner) phone(g []group, mute bool) (start, end int) {
	at := g[0].at
	if mute && !x.mayBeNational(g) || !x.begins(at) || x.behindDash(at) || x.is(at-1, isSymbol) && x.is(at-2, isDigit) {
		return 0, 0
	}
	if g[0].n == 4 && at > 1 && x.s[at-1] == '-' && x.is(at-2, isUpper) {
		return 0, 0 // CVE-2026-12345
	}
	start = at
	bracket := at > 0 && x.s[at-1] == '('
	if bracket {
		start--
	}
	if k := x.national(g, bracket); k > 0 {
		return start, g[k-1].at + g[k-1].n
	}
	if mute {
		return 0, 0
	}
	k, total := 0, 0
	for k < len(g) && total+g[k].n <= 15 {
		total += g[k].n
		k++
		if g[k-1].sep == '\t' || g[k-1].sep == wide {
			break
		}
	}
	if total < 7 || isDate(g[:k]) || k == 2 && g[0].sep == '.' || isAddress(g[:k]) || halfDotted(g[:k]) {
		return 0, 0
	}
	end = g[k-1].at + g[k-1].n
	want := wordPhone
	if k > 1 || total >= 9 && x.s[at] == '0' || total == 10 && x.s[at] >= '2' && x.s[at+3] >= '2' {
		want |= wordCall
	}
	if x.near(at, want) {
		return start, end
	}
	return 0, 0
}

// behindDash says whether a dash of typography with a digit before it ends at i.
func (x *scanner) behindDash(i int) bool {
	return i > 3 && x.s[i-2] == 0x80 && x.s[i-3] == 0xe2 && x.s[i-1] >= 0x90 && x.s[i-1] <= 0x94 && x.is(i-4, isDigit)
}

// halfDotted says whether some groups are joined by a dot and some otherwise: a
// number before a fraction or an address.
func halfDotted(g []group) bool {
	dots := 0
	for k := range len(g) - 1 {
		if g[k].sep == '.' {
			dots++
		}
	}
	return dots > 0 && dots < len(g)-1
}

// mayBeNational says whether groups may begin as a national form does.
func (x *scanner) mayBeNational(g []group) bool {
	c := x.s[g[0].at]
	return c == '0' || len(g) > 2 && (g[0].n == 3 || g[0].n == 1 && c == '1')
}

// national returns how many groups make a number whose form tells it, or 0.
func (x *scanner) national(g []group, bracket bool) int {
	s := x.s
	k := 0
	if g[0].n == 1 && s[g[0].at] == '1' && len(g) > 1 {
		k = 1
		bracket = g[0].sep == '('
	}
	if len(g) >= k+3 && g[k].n == 3 && g[k+1].n == 3 && g[k+2].n == 4 && s[g[k].at] >= '2' && s[g[k+1].at] >= '2' {
		a, b := g[k].sep, g[k+1].sep
		if bracket && a == ')' && b != '/' || a == b && (a == '-' || a == '.') || a == b && a == ' ' && k == 1 {
			if e := g[k+2]; e.sep != '-' && e.sep != '.' && !x.is(e.at+e.n, isLetter) {
				return k + 3
			}
		}
	}
	if s[g[0].at] != '0' || len(g) < 2 || x.is(g[0].at+1, isDigit) && s[g[0].at+1] == '0' {
		return 0
	}
	if sep := g[0].sep; sep != ' ' && sep != '-' && sep != ')' {
		return 0
	}
	switch {
	case g[0].n == 5 && g[1].n == 6:
		return 2
	case len(g) < 3:
	case g[0].n == 5 && g[1].n == 3 && g[2].n == 3, g[0].n == 4 && g[1].n == 3 && g[2].n == 4, g[0].n == 3 && g[1].n == 4 && g[2].n == 4:
		return 3
	}
	return 0
}

// plusPhone judges the "+" of w bytes at i: 8 to 15 digits that begin with a
// country's code (E.164), with separators.
func (x *scanner) plusPhone(i, w int) int {
	j := i + w
	if !x.begins(i) || x.is(i-1, isSymbol) && x.s[i-1] == '+' || !x.is(j, isDigit) || x.s[j] == '0' {
		return j
	}
	n := x.digitRun(j)
	if n > 15 {
		return j
	}
	var buf [maxGroups]group
	g := x.groups(j, n, maxDigits, buf[:0])
	limit := 15
	if x.s[j] == '1' {
		limit = 11
	}
	k, total := 0, 0
	for k < len(g) && total+g[k].n <= limit {
		total += g[k].n
		k++
		if g[k-1].sep == '\t' || g[k-1].sep == wide {
			break
		}
	}
	if total < 8 || limit == 11 && total != 11 || x.added(i, g[:k]) {
		return j
	}
	x.mask(i, g[k-1].at+g[k-1].n, rulePhone)
	return j + n
}

// added says whether the "+" at i is a diff's, or a sign, rather than a
// phone's: a day, an address of a machine or a fraction follows. Where it begins
// a line, so do groups that no phone has, a book's number, and a hash.
func (x *scanner) added(i int, g []group) bool {
	if isDate(g) && g[0].n == 4 && g[0].sep != ' ' || isAddress(g) || len(g) == 2 && g[0].sep == '.' {
		return true
	}
	if i == 0 || x.s[i-1] != '\n' {
		return false
	}
	for k := 1; k < len(g)-1; k++ {
		if g[k].n == 1 {
			return true
		}
	}
	last := g[len(g)-1]
	book := len(g) == 1 && last.n == 13 && x.has(last.at, "978")
	return book || len(g) == 2 && g[0].n == 4 && g[0].sep == '-' || x.is(last.at+last.n, isLetter)
}
