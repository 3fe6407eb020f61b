package guess

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// A postal address is known by a number beside the name of a street, as the
// United Kingdom, the United States, France and Germany write it; by a post
// office box; or by a postal code whose form little else has.

// place judges the number whose first digit stands at i.
func (x *reader) place(i int) {
	if i < x.placeLow || x.Is(i-1, char.Word) || x.Is(i-1, char.Symbol) && x.Is(i-2, char.Word) {
		return
	}
	n := char.DigitsFrom(x.S, i, 7)
	if n > 6 {
		return
	}
	if n <= 5 {
		if end := x.streetAhead(i, i+n); end > 0 {
			x.address(x.unitBefore(i), end)
			return
		}
	}
	if start := x.streetBehind(i); start >= 0 && n <= 4 {
		x.address(start, x.houseEnd(i+n))
		return
	}
	if n <= 3 {
		if start := x.beforeCode(i, x.houseEnd(i+n)); start >= 0 {
			x.address(start, x.houseEnd(i+n))
			return
		}
	}
	if start := x.boxBehind(i); start >= 0 {
		e := i + n
		for k := 0; k < 3 && x.Is(e, char.Blank) && x.Is(e+1, char.Digit) && char.DigitsFrom(x.S, e+1, 4) <= 3; k++ {
			e += 1 + char.DigitsFrom(x.S, e+1, 4)
		}
		x.address(start, e)
		return
	}
	if n == 5 {
		x.zip(i)
	}
}

// address masks from start to end, with the place and the postal code behind.
func (x *reader) address(start, end int) {
	end = x.placeBehind(end)
	x.placeLow = end
	x.guess(max(start, x.low), end, rule.GuessAddress)
}

// houseEnd steps over the letter or the range of a house number: 12a, 12-14,
// 221B.
func (x *reader) houseEnd(e int) int {
	for range 2 {
		if x.Is(e, char.Letter) && !x.Is(e+1, char.Word) {
			e++
		} else if e < x.hi && x.S[e] == ' ' && x.Is(e+1, char.Lower) && x.S[e+1] <= 'd' && !x.Is(e+2, char.Word) &&
			(e+2 >= x.hi || x.S[e+2] == ',') {
			e += 2
		}
		if e < x.hi && (x.S[e] == '-' || x.S[e] == '/') && x.Is(e+1, char.Digit) && char.DigitsFrom(x.S, e+1, 5) <= 4 {
			e += 1 + char.DigitsFrom(x.S, e+1, 5)
		}
	}
	return min(e, x.hi)
}

// boxBehind returns where "PO Box", "Postfach" or "BP" begins before the
// number at i, or -1.
func (x *reader) boxBehind(i int) int {
	b, e := x.wordBefore(i, 3)
	if b == e || e-b > 8 {
		return -1
	}
	var buf [24]byte
	switch string(smallCased(&buf, x.S[b:e])) {
	case "postfach", "postbus", "pobox":
		return b
	case "bp":
		if x.S[b] == 'B' && x.S[b+1] == 'P' && i == e+1 {
			return b
		}
	case "box":
		for _, po := range [...]string{"p.o. ", "po ", "p.o ", "p. o. ", "post office ", "gpo ", "p.o."} {
			if at := b - len(po); at >= x.lo && x.Fold(at, po) && !x.Is(at-1, char.Alnum) {
				return at
			}
		}
	case "postale":
		if at := b - len("Boîte "); at >= x.lo && x.Has(at, "Boîte ") {
			return at
		}
	}
	return -1
}

// unitBefore returns where "Flat 3, " or the like begins before i, or i.
func (x *reader) unitBefore(i int) int {
	if i-x.lo < 6 || x.S[i-1] != ' ' || x.S[i-2] != ',' {
		return i
	}
	b := i - 2
	for b > x.lo && i-b < 24 && char.Class[x.S[b-1]]&(char.Alnum|char.Blank) != 0 {
		b--
	}
	for b < i && char.Class[x.S[b]]&char.Blank != 0 {
		b++
	}
	if unit(x.S[b:min(i, x.End(b, 12, char.Letter))]) {
		return b
	}
	return i
}

func unit(w []byte) bool {
	var buf [24]byte
	switch string(smallCased(&buf, w)) {
	case "flat", "apt", "apartment", "suite", "ste", "unit", "floor", "room", "building", "bldg", "c", "appt", "wohnung":
		return true
	}
	return false
}

// placeBehind steps over what follows a street: a unit, towns, a state, a
// postal code, a country.
func (x *reader) placeBehind(end int) int {
	stop := min(x.hi, end+guessAhead/4)
	for range 5 {
		v := end
		if v < stop && x.S[v] == ',' {
			v++
		}
		lines := 0
		for v < stop && v-end < 6 && char.Class[x.S[v]]&char.Space != 0 {
			if x.S[v] == '\n' {
				lines++
			}
			v++
		}
		if v == end || v >= stop || lines > 1 {
			return end
		}
		e := x.placePart(v, stop, v > end && x.S[end] == ',')
		if e == 0 || lines > 0 && !x.codeIn(v, e) {
			return end
		}
		end = e
	}
	return end
}

// codeIn says whether [v, e) holds a digit: a line below a street belongs to
// it if it has a postal code.
func (x *reader) codeIn(v, e int) bool {
	for ; v < e; v++ {
		if char.Class[x.S[v]]&char.Digit != 0 {
			return true
		}
	}
	return false
}

// placePart returns the end of one part of an address at v, or 0.
func (x *reader) placePart(v, stop int, comma bool) int {
	if e := x.unitAt(v, stop); e > 0 {
		return e
	}
	if e := x.ukCode(v); e > 0 && e <= stop {
		return e
	}
	if x.Has(v, "D-") || x.Has(v, "F-") {
		v += 2
	}
	if n := char.DigitsFrom(x.S, v, 6); n == 5 || n == 4 {
		e := v + n
		if x.Has(e, "-") && char.DigitsFrom(x.S, e+1, 5) == 4 {
			return e + 5
		}
		if x.Is(e, char.Word) {
			return 0
		}
		if x.Has(e, " ") && e+1 < stop && capital(x.S, e+1) {
			return x.town(e+1, stop)
		}
		if n == 5 {
			return e
		}
		return 0
	}
	if e := min(x.End(v, 3, char.Upper), stop); e-v == 2 && !x.Is(e, char.Word) && isState(x.S[v:e]) {
		if x.Has(e, " ") && char.DigitsFrom(x.S, e+1, 6) == 5 {
			e += 6
			if x.Has(e, "-") && char.DigitsFrom(x.S, e+1, 5) == 4 {
				e += 5
			}
		}
		return e
	}
	if comma && v < stop && capital(x.S, v) {
		return x.town(v, stop)
	}
	return 0
}

// unitAt returns the end of "Apt 4B", "Suite 500", "#12" at v, or 0.
func (x *reader) unitAt(v, stop int) int {
	e := min(x.End(v, 12, char.Letter), stop)
	if v < stop && x.S[v] == '#' && x.Is(v+1, char.Alnum) {
		return min(x.End(v+1, 6, char.Alnum), stop)
	}
	if e == v || !unit(x.S[v:e]) {
		return 0
	}
	if x.Has(e, ".") {
		e++
	}
	if !x.Has(e, " ") {
		return 0
	}
	w := min(x.End(e+1, 6, char.Alnum), stop)
	if w == e+1 || w-e > 5 {
		return 0
	}
	return w
}

// town returns the end of one to three capitalised words at v.
func (x *reader) town(v, stop int) int {
	end := 0
	for n := 0; n < 3 && v < stop && (capital(x.S, v) || n > 0 && smallTown(x.S[v:min(stop, v+6)])); n++ {
		e := v
		for e < stop && e-v < 24 && (char.Class[x.S[e]]&char.Word != 0 && char.Class[x.S[e]]&char.Digit == 0 &&
			space(x.S, e) == 0 || x.S[e] == '-' || x.S[e] == '\'') {
			e++
		}
		var buf [24]byte
		if n > 0 && (x.ukCode(v) > 0 || e-v == 2 && isState(x.S[v:e])) || sentenceWord(smallCased(&buf, x.S[v:e])) ||
			x.Is(e, char.Digit) {
			break
		}
		if capital(x.S, v) {
			end = e
		}
		if e >= stop || x.S[e] != ' ' {
			break
		}
		v = e + 1
	}
	return end
}

func smallTown(s []byte) bool {
	for _, w := range [...]string{"am ", "an ", "der ", "upon ", "on ", "sur ", "en ", "de ", "la ", "im "} {
		if len(s) >= len(w) && string(s[:len(w)]) == w {
			return true
		}
	}
	return false
}

func sentenceWord(w []byte) bool {
	switch string(w) {
	case "the", "and", "please", "phone", "tel", "email", "call", "we", "he", "she", "it", "they", "i", "you", "if", "but", "or", "thanks", "attn", "fax", "dob", "on":
		return true
	}
	return false
}

// zip judges five digits behind a town and a state: "Springfield, IL 62704".
func (x *reader) zip(i int) {
	end := i + 5
	if x.Has(end, "-") && char.DigitsFrom(x.S, end+1, 5) == 4 {
		end += 5
	}
	if x.Is(end, char.Word) || i-x.lo < 6 || x.S[i-1] != ' ' || !isState(x.S[i-3:i-1]) || x.S[i-4] != ' ' {
		return
	}
	if x.S[i-5] != ',' {
		return
	}
	start, b := i-3, i-5
	for n := 0; n < 3; n++ {
		p := b
		for p > x.lo && b-p < 24 && char.Class[x.S[p-1]]&char.Letter != 0 {
			p--
		}
		if p == b || !capital(x.S, p) {
			break
		}
		start, b = p, p
		if b-1 <= x.lo || x.S[b-1] != ' ' {
			break
		}
		b--
	}
	if start == i-3 {
		return
	}
	x.guess(start, end, rule.GuessAddress)
}

// postcodeAt judges a British postal code at i that stands alone.
func (x *reader) postcodeAt(i int) {
	if i < x.low || i < x.placeLow || x.Is(i-1, char.Word) || x.Is(i-1, char.Symbol) {
		return
	}
	if end := x.ukCode(i); end > 0 {
		x.guess(i, end, rule.GuessAddress)
	}
}

// ukCode returns the end of a British postal code at i, or 0: one or two
// letters, a digit, a digit or a letter, a blank, a digit, two letters.
func (x *reader) ukCode(i int) int {
	s := x.S
	a := min(x.End(i, 3, char.Upper), x.hi)
	if n := a - i; n < 1 || n > 2 || !x.Is(a, char.Digit) {
		return 0
	}
	b := a + 1
	if b < x.hi && char.Class[s[b]]&(char.Digit|char.Upper) != 0 {
		b++
	}
	if b+4 > x.hi || s[b] != ' ' || char.Class[s[b+1]]&char.Digit == 0 || !inward(s[b+2]) || !inward(s[b+3]) ||
		x.Is(b+4, char.Word) || !ukArea(s[i:a]) {
		return 0
	}
	return b + 4
}

func inward(c byte) bool {
	switch c {
	case 'C', 'I', 'K', 'M', 'O', 'V':
		return false
	}
	return char.Class[c]&char.Upper != 0
}
