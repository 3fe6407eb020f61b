package guess

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// A name is what stands where names stand: behind a title, a greeting, "my
// name is", above an address, in a field that holds one; or a given name and
// a surname.

// maxNameWord bounds one word of a name, and every word that announces one.
const maxNameWord = 24

// person judges the word at [i, end).
func (x *reader) person(i, end int) {
	var buf [24]byte
	w := smallCased(&buf, x.S[i:end])
	upper := char.Class[x.S[i]]&char.Upper != 0 || x.S[i] >= 0xc3
	switch announces(w) {
	case byTitle:
		if upper || end < x.hi && x.S[end] == '.' && w[0] != 'm' {
			x.nameBehind(x.titles(end), 1, 4, anyName)
		}
	case byGreeting:
		if upper {
			x.greeting(end)
		}
	case byHello:
		if upper {
			x.nameBehind(x.blank(end), 1, 3, givenName)
		}
	case byVerb:
		x.nameBehind(x.blank(end), 1, 4, anyName)
	case byIs:
		if v := x.isVerb(end); v > 0 {
			x.nameBehind(v, 1, 4, anyName)
		}
	case byAm:
		x.selfNamed(i, end)
	case byAuthor:
		if b, e := x.wordBefore(i, 2); b < e && didIt(x.S[b:e]) {
			x.nameBehind(x.blank(end), 1, 4, authorName)
		}
	case byClosing:
		x.closingLine(end)
	default:
		if upper && i >= x.low && len(w) >= 3 && isGiven(w) && !ambiguous(w) {
			x.fullName(i, end)
		}
	}
}

// blank steps over one to three blanks, and a mark behind an abbreviation. It
// returns -1 where there is none.
func (x *reader) blank(i int) int {
	j := i
	if j < x.hi && x.S[j] == '.' {
		j++
	}
	e := min(x.End(j, 3, char.Blank), x.hi)
	if e == j {
		return -1
	}
	return e
}

// titles steps over titles behind a title: "Prof. Dr. ".
func (x *reader) titles(end int) int {
	v := x.blank(end)
	for n := 0; n < 3 && v > 0; n++ {
		e := x.End(v, maxNameWord, char.Word)
		var buf [24]byte
		if e == v || announces(smallCased(&buf, x.S[v:e])) != byTitle {
			break
		}
		next := x.blank(e)
		if next < 0 {
			break
		}
		v = next
	}
	return v
}

// nameRule is what is asked of the first word of a name.
type nameRule uint8

const (
	anyName    nameRule = iota // no word that opens another sentence
	givenName                  // one of the list
	authorName                 // one of the list, unless a surname follows
)

// allows judges a first word, in small letters, of a name of so many.
func (k nameRule) allows(first []byte, words int) bool {
	switch {
	case k == anyName || k == authorName && words > 1:
		return !ambiguousOpening(first)
	}
	return isGiven(first)
}

// nameBehind masks the name of least to most words at v.
func (x *reader) nameBehind(v, least, most int, ok nameRule) int {
	if v < 0 || v < x.low {
		return -1
	}
	end, n := x.nameWords(v, most)
	if n < least {
		return -1
	}
	var buf [24]byte
	if !ok.allows(x.firstWord(&buf, v), n) {
		return -1
	}
	x.guess(v, end, rule.GuessName)
	return end
}

func (x *reader) firstWord(buf *[24]byte, v int) []byte {
	return smallCased(buf, x.S[v:min(x.hi, x.End(v, maxNameWord, char.Word))])
}

// greeting judges what stands behind "Dear": names, more of them with "and".
func (x *reader) greeting(end int) {
	v := x.titles(end)
	for n := 0; n < 3 && v >= 0; n++ {
		e := x.nameBehind(v, 1, 3, anyName)
		if e < 0 {
			return
		}
		v = -1
		for _, and := range [...]string{" and ", " & ", " und ", " et ", ", "} {
			if x.Has(e, and) && e+len(and) < x.hi {
				v = e + len(and)
				break
			}
		}
	}
}

// isVerb returns what stands behind "is", "'s", "ist", "est", "es" or ":" that
// follows "name".
func (x *reader) isVerb(end int) int {
	if x.Has(end, "'s ") {
		return end + 3
	}
	v := x.blank(end)
	if v < 0 {
		return 0
	}
	for _, verb := range [...]string{"is ", "ist ", "est ", "es ", "was "} {
		if x.Fold(v, verb) && v+len(verb) < x.hi {
			return x.End(v+len(verb), 2, char.Blank)
		}
	}
	return 0
}

// selfNamed judges "I am X", "I'm X" and "this is X": X must be a given name.
func (x *reader) selfNamed(i, end int) {
	v := -1
	switch {
	case x.Fold(i, "this is "):
		v = i + 8
	case end-i != 1 || x.S[i] != 'I':
	case x.Has(end, "'m "):
		v = end + 3
	case x.Has(end, " am "):
		v = end + 4
	}
	if v > 0 && v < x.hi {
		x.nameBehind(v, 1, 3, givenName)
	}
}

// closingLine judges the line below "Kind regards,".
func (x *reader) closingLine(end int) {
	j := end
	if j < x.hi && (x.S[j] == ',' || x.S[j] == '!' || x.S[j] == '.') {
		j++
	}
	lines := 0
	for ; j < x.hi && char.Class[x.S[j]]&char.Space != 0 && j-end < 8; j++ {
		if x.S[j] == '\n' {
			lines++
		}
	}
	if lines == 0 && x.S[min(end, len(x.S)-1)] == ',' && j > end+1 {
		x.nameBehind(j, 1, 3, givenName)
		return
	}
	if lines == 0 || lines > 2 || j >= x.hi {
		return
	}
	e, n := x.nameWords(j, 4)
	if n > 0 && (e == len(x.S) || x.S[e] == '\n' || x.S[e] == '\r' || x.S[e] == ',') {
		x.nameBehind(j, 1, 4, anyName)
	}
}

// fullName masks a given name of the list with the surname behind it.
func (x *reader) fullName(i, end int) {
	if x.Is(end, char.Symbol) && x.S[end] != '-' && !x.Has(end, ". ") || x.Is(i-1, char.Symbol) && x.S[i-1] != '-' {
		return
	}
	e, n := x.nameWords(i, 4)
	if n < 2 {
		return
	}
	var buf [24]byte
	v := x.blank(min(end, e))
	if v > 0 && v < e && commonWord(x.firstWord(&buf, v)) {
		return
	}
	x.guess(i, e, rule.GuessName)
}

// nameWords reads at most most words of a name at v, with initials and the
// small words inside names, and returns its end and how many they are.
func (x *reader) nameWords(v, most int) (end, n int) {
	i := v
	end = v
	for n < most {
		j := x.nameWord(i)
		if j == 0 {
			p := x.particle(i)
			if p == 0 || n == 0 && x.nameWord(p) == 0 {
				break
			}
			if j = x.nameWord(p); j == 0 {
				break
			}
		}
		n++
		end = j
		if j >= x.hi || x.S[j] != ' ' && x.S[j] != 0xc2 {
			break
		}
		i = j + 1
		if x.S[j] == 0xc2 {
			i = j + space(x.S, j)
			if i == j {
				break
			}
		}
	}
	// An initial alone is no name, and its stop belongs to it only inside.
	if n == 1 && end-v <= 2 {
		return v, 0
	}
	return end, n
}

// nameWord returns the end of the word of a name at i, 0 for none: a capital
// and small letters, with hyphens and apostrophes inside; or one capital with
// or without a stop.
func (x *reader) nameWord(i int) int {
	if i >= x.hi || !capital(x.S, i) {
		return 0
	}
	small, j := 0, i
	caps := 0
	for j < x.hi && j-i < 2*maxNameWord {
		c := x.S[j]
		switch {
		case char.Class[c]&char.Lower != 0:
			small++
		case char.Class[c]&char.Upper != 0:
			caps++
		case c >= 0x80:
			if space(x.S, j) > 0 {
				if !x.apostrophe(j) {
					goto done
				}
				j += 2
				break
			}
			small++
		case (c == '-' || c == '\'') && j+1 < x.hi && char.Class[x.S[j+1]]&(char.Letter|char.Word) != 0 &&
			char.Class[x.S[j+1]]&char.Digit == 0:
		default:
			goto done
		}
		j++
	}
done:
	var buf [24]byte
	w := smallCased(&buf, x.S[i:j])
	switch {
	case x.Is(j, char.Digit) || x.Is(j, char.URL64) && x.S[j] != '-':
		return 0
	case caps == 1 && small == 0: // an initial
		if j < x.hi && x.S[j] == '.' {
			j++
		}
		return j
	case small == 0 && (caps < 3 || caps > 12), caps > 3 && small > 0:
		return 0
	case len(w) == 0 || commonWord(w):
		return 0
	}
	if len(w) > 2 && w[len(w)-2] == '\'' && w[len(w)-1] == 's' {
		j -= 2
	}
	return j
}

// apostrophe says whether the typographic apostrophe at j stands inside a word.
func (x *reader) apostrophe(j int) bool {
	return j+3 < x.hi && x.S[j] == 0xe2 && x.S[j+2] == 0x99 && char.Class[x.S[j+3]]&char.Letter != 0
}

// capital says whether a capital letter stands at i: ASCII, Latin, Greek or
// Cyrillic.
func capital(s []byte, i int) bool {
	c := s[i]
	if char.Class[c]&char.Upper != 0 {
		return true
	}
	if c < 0xc3 || i+1 >= len(s) || space(s, i) > 0 {
		return false
	}
	d := s[i+1]
	switch c {
	case 0xc3:
		return d <= 0x9e
	case 0xc4, 0xc5:
		return d&1 == 0 || c == 0xc5 && d >= 0xb9
	case 0xce:
		return d >= 0x91 && d <= 0xa9
	case 0xd0:
		return d >= 0x81 && d <= 0xaf
	}
	return false
}

// particle returns where the word behind "von ", "de la " and the like begins,
// 0 for none.
func (x *reader) particle(i int) int {
	j := i
	for range 2 {
		e := min(x.End(j, 6, char.Lower), x.hi)
		if e == j || e >= x.hi || x.S[e] != ' ' {
			break
		}
		if !isParticle(x.S[j:e]) {
			break
		}
		j = e + 1
	}
	if j == i {
		return 0
	}
	return j
}
