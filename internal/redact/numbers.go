package redact

// group is a run of digits, and sep the one byte or bracket pair between it
// and the next run.
type group struct {
	at, n int
	sep   byte
}

const (
	wide      = 'w' // two blanks
	maxGroups = 8
	maxRun    = 20 // a longer run of digits is no number of ours
)

// digits judges the run of digits at i. It looks at no more than maxGroups
// runs ahead and 64 bytes back.
func (x *scanner) digits(i int) int {
	if x.is(i+1, isDigit) && x.is(i-1, isLetter) && x.is(i-2, isLetter) && !x.is(i-3, isAlnum) {
		if end := x.iban(i - 2); end > 0 {
			x.mask(i-2, end, ruleIBAN)
			return i + 1
		}
	}
	n := digitsFrom(x.s, i, maxRun)
	if n == maxRun {
		return x.end(i, len(x.s), isDigit)
	}
	if n < 2 && !x.is(i+n, isBlank|isSymbol) {
		return i + n
	}
	var buf [maxGroups]group
	g := x.groups(i, n, buf[:0])
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
	if start, end := x.phone(g); end > 0 {
		x.mask(start, end, rulePhone)
	}
	return i + n
}

// groups reads runs of digits with one separator between them; ") " and " ("
// count as one.
func (x *scanner) groups(i, n int, g []group) []group {
	for {
		g = append(g, group{at: i, n: n})
		if len(g) == maxGroups {
			return g
		}
		j := i + n
		sep, w := x.separator(j)
		if w == 0 {
			return g
		}
		m := digitsFrom(x.s, j+w, maxRun)
		if m == 0 || m == maxRun {
			return g
		}
		g[len(g)-1].sep = sep
		i, n = j+w, m
	}
}

func (x *scanner) separator(j int) (byte, int) {
	if j+1 >= len(x.s) {
		return 0, 0
	}
	c, d := x.s[j], x.s[j+1]
	switch c {
	case ')':
		if d == ' ' || d == '-' {
			return c, 2
		}
		return c, 1
	case ' ', '-', '.':
		if c == ' ' && d == ' ' {
			return wide, 2
		}
		if d == '(' {
			return '(', 2
		}
		return c, 1
	case '/', '\t':
		return c, 1
	case 0xc2, 0xe2: // no-break spaces and the dashes of typography
		if d == 0xa0 && c == 0xc2 {
			return ' ', 2
		}
		if d == 0x80 && j+2 < len(x.s) {
			switch x.s[j+2] {
			case 0xaf, 0x89, 0x8a:
				return ' ', 3
			case 0x90, 0x91, 0x92, 0x93, 0x94:
				return '-', 3
			}
		}
	case '(':
		return '(', 1
	}
	return 0, 0
}

// cardGroups are the ways cards are printed.
var cardGroups = [...][5]int{
	{4, 4, 4, 4, 3}, {4, 4, 4, 4, 2}, {4, 4, 4, 4, 1}, {4, 4, 4, 4}, {4, 6, 5}, {4, 6, 4}, {4, 4, 4, 1}, {4, 4, 5}, {8, 8}, {6, 13},
}

// card returns the end of the card number that begins at g[0], or 0: 13 to 19
// digits of a known issuer and its length that pass the Luhn check (ISO/IEC
// 7812-1). A fraction and the digits of a hexadecimal hash are none.
func (x *scanner) card(g []group) int {
	if x.is(g[0].at-2, isDigit) && x.s[g[0].at-1] == '.' {
		return 0
	}
	if n := g[0].n; n >= 13 {
		d := x.s[g[0].at : g[0].at+n]
		if isCard(d) && !x.inHash(g[0].at, n) {
			return g[0].at + n
		}
		return 0
	}
	if len(g) < 2 || g[0].n != 4 && g[0].n != 6 && g[0].n != 8 {
		return 0
	}
	for k := range cardGroups {
		if end := x.grouped(g, &cardGroups[k]); end > 0 {
			return end
		}
	}
	return 0
}

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

// isCard judges 13 to 19 digits.
func isCard(d []byte) bool { return issued(d) && luhn(d) }

func issued(d []byte) bool {
	n := len(d)
	if n < 13 || n > 19 {
		return false
	}
	six := 0
	for _, c := range d[:6] {
		six = six*10 + int(c-'0')
	}
	four, two := six/100, six/10000
	in := func(v, lo, hi int) bool { return v >= lo && v <= hi }
	switch {
	case two/10 == 4: // Visa
		return n == 13 || n == 16 || n == 19
	case two == 34 || two == 37: // American Express
		return n == 15
	case in(two, 51, 55) || in(four, 2221, 2720): // Mastercard
		return n == 16
	case in(four, 2200, 2204): // Mir
		return n >= 16
	case in(four, 3000, 3059) || four == 3095 || two == 36 || two == 38 || two == 39: // Diners Club
		return n == 14 || n >= 16
	case in(four, 3528, 3589): // JCB
		return n >= 16
	case four == 6011 || two == 65 || in(four, 6440, 6499): // Discover
		return n >= 16
	case two == 62 || two == 60 || two == 81: // UnionPay, RuPay
		return n >= 16
	case two == 50 || in(two, 56, 58) || two == 63 || two == 67: // Maestro
		return n >= 13
	case four == 9792: // Troy
		return n == 16
	}
	return false
}

func luhn(d []byte) bool {
	sum, double := 0, false
	for i := len(d) - 1; i >= 0; i-- {
		v := int(d[i] - '0')
		if double {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum, double = sum+v, !double
	}
	return sum%10 == 0
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
		if !isSSN(d) || x.is(g[0].at-1, isLetter) || !x.near(g[0].at, wordSSN) {
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
	return area != "000" && area != "666" && string(d[3:5]) != "00" && string(d[5:]) != "0000"
}

// phone judges a number without "+": North American and British forms stand
// alone, all others need a word for it within 32 bytes before.
func (x *scanner) phone(g []group) (start, end int) {
	at := g[0].at
	if x.is(at-1, isWord) || x.is(at-1, isSymbol) && x.is(at-2, isDigit) {
		return 0, 0
	}
	start = at
	bracket := at > 0 && x.s[at-1] == '('
	if bracket {
		start--
	}
	if k := x.national(g, bracket); k > 0 {
		return start, g[k-1].at + g[k-1].n
	}
	k, total := 0, 0
	for k < len(g) && total+g[k].n <= 15 {
		total += g[k].n
		k++
		if g[k-1].sep == '\t' || g[k-1].sep == wide {
			break
		}
	}
	if total < 7 || isDate(g[:k]) || isAddress(g[:k]) {
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

func isDate(g []group) bool {
	if len(g) < 3 {
		return false
	}
	return g[0].n == 4 && g[1].n <= 2 && g[2].n <= 2 || g[0].n <= 2 && g[1].n <= 2 && g[2].n == 4
}

// isAddress says whether groups are those of an IP address.
func isAddress(g []group) bool {
	if len(g) != 4 {
		return false
	}
	for k, v := range g {
		if v.n > 3 || k < 3 && v.sep != '.' {
			return false
		}
	}
	return true
}

// plusPhone judges the "+" of w bytes at i: 8 to 15 digits that begin with a
// country's code (E.164), with separators.
func (x *scanner) plusPhone(i, w int) int {
	j := i + w
	if x.is(i-1, isWord) || x.is(i-1, isSymbol) && x.s[i-1] == '+' || !x.is(j, isDigit) || x.s[j] == '0' {
		return j
	}
	n := digitsFrom(x.s, j, maxRun)
	if n > 15 {
		return j
	}
	var buf [maxGroups]group
	g := x.groups(j, n, buf[:0])
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
	if total >= 8 {
		x.mask(i, g[k-1].at+g[k-1].n, rulePhone)
		return j + n
	}
	return j
}

// iban returns the end of the international bank account number at i, or 0
// (ISO 13616): a known country's length and 1 modulo 97.
func (x *scanner) iban(i int) int {
	want := ibanLen(lower(x.s[i]), lower(x.s[i+1]))
	if want == 0 {
		return 0
	}
	var b [34]byte
	n, j := 0, i
	for n < want && j < len(x.s) {
		switch {
		case x.is(j, isAlnum):
			b[n] = lower(x.s[j])
			n++
		case x.s[j] != ' ' && x.s[j] != '-' || n%4 != 0:
			return 0
		}
		j++
	}
	if n < want || x.is(j, isAlnum) || mod97(b[:want]) != 1 {
		return 0
	}
	return j
}

func mod97(b []byte) int {
	r := 0
	for k := range b {
		c := b[(k+4)%len(b)]
		if c >= 'a' {
			r = (r*100 + int(c-'a') + 10) % 97
		} else {
			r = (r*10 + int(c-'0')) % 97
		}
	}
	return r
}

// ibanLen is the registry's length of a country's numbers, 0 for none.
func ibanLen(a, b byte) int {
	switch string([]byte{a, b}) {
	case "no":
		return 15
	case "be":
		return 16
	case "dk", "fo", "fi", "gl", "nl", "sd", "fk":
		return 18
	case "mk", "si":
		return 19
	case "at", "ba", "ee", "kz", "xk", "lt", "lu", "mn":
		return 20
	case "cr", "hr", "lv", "li", "ch":
		return 21
	case "bh", "bg", "ge", "de", "ie", "me", "rs", "gb", "va":
		return 22
	case "tl", "gi", "iq", "il", "ae", "om", "so":
		return 23
	case "ad", "cz", "md", "pk", "ro", "sa", "sk", "es", "se", "tn", "vg":
		return 24
	case "pt", "st", "ly":
		return 25
	case "is", "tr":
		return 26
	case "bi", "dj", "fr", "gr", "it", "mr", "mc", "sm":
		return 27
	case "al", "az", "by", "cy", "do", "eg", "sv", "gt", "hu", "lb", "pl", "hn", "ni":
		return 28
	case "br", "ps", "qa", "ua":
		return 29
	case "jo", "kw", "mu", "ye":
		return 30
	case "mt", "sc":
		return 31
	case "lc":
		return 32
	case "ru":
		return 33
	}
	return 0
}

// context is a word that says what a number is.
type context uint8

const (
	wordSSN   context = 1 << iota
	wordPhone         // says it plainly
	wordCall          // says it where the number looks like one
)

// near says whether a word of the wanted kind stands within 32 bytes before i.
func (x *scanner) near(i int, want context) bool {
	from := max(0, i-32)
	for j := i; j > from; {
		for j > from && class[x.s[j-1]]&isLetter == 0 {
			j--
		}
		end := j
		for j > from && class[x.s[j-1]]&isLetter != 0 {
			j--
		}
		if n := end - j; n >= 3 && n <= 11 && x.contextOf(j, end)&want != 0 {
			return true
		}
	}
	return false
}

func (x *scanner) contextOf(i, end int) context {
	var w [12]byte
	for k, c := range x.s[i:end] {
		w[k] = lower(c)
	}
	return wordContext(w[:end-i])
}

func wordContext(w []byte) context {
	switch string(w) {
	case "ssn", "ssns", "social", "taxpayer", "itin", "tin":
		return wordSSN
	case "phone", "phones", "telephone", "tel", "mobile", "cell", "cellphone", "fax", "whatsapp", "landline", "telefon",
		"handy", "mobil", "tlf", "msisdn", "phonenumber":
		return wordPhone
	case "call", "dial", "ring", "text", "sms", "contact", "reach":
		return wordCall
	}
	return 0
}
