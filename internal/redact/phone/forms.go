package phone

import (
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
)

// A pattern has a character for each digit: N is 2 to 9, Z is 1 to 9, X is any, a digit is
// itself. Between groups "-", "." and "/" are themselves, and " " is any separator that hasSeparators allows.
//
// The patterns follow the national formats that numbering plans and ITU-T E.123 describe.
// With the trunk prefix 0, most groupings are no other kind of number's. Without it, those are
// listed that neither thousands, dates nor identifiers have.
var named = []namedForm{
	// United Kingdom, Ireland, Netherlands, Australia and others.
	{"0ZXXX XXXXXX", Likely}, {"0ZXXX XXX XXX", Likely}, {"0ZXX XXX XXXX", Likely}, {"0ZX XXXX XXXX", Likely},
	{"0ZXXX XXXXX", Prose}, {"0ZXXXX XXXXX", Prose},
	{"0ZX XXX XXXX", Prose},    // Netherlands, South Africa, Israel, Japan, Korea
	{"0Z XX XX XX XX", Prose},  // France
	{"0Z XXXX XXXX", Prose},    // Australia, Japan, Taiwan
	{"0Z XXX XXXX", Prose},     // Ireland, Israel, New Zealand
	{"0Z XXX XX XX", Prose},    // Belgium, Slovenia
	{"0Z XXX XXX XX", Prose},   // Sweden
	{"0Z XXXX XXX", Prose},     // Croatia
	{"0Z XXXXXXXX", Prose},     // Netherlands, Italy
	{"0Z XXXXXXX", Prose},      // Austria, Finland, Israel
	{"0ZX XXX XX XX", Prose},   // Switzerland, Sweden, Ukraine
	{"0ZX XXX-XX-XX", Prose},   // Ukraine
	{"0ZX XX XX XX", Prose},    // Belgium, Sweden
	{"0ZX XX XX XX XX", Prose}, // Germany
	{"0ZX XXX XXX", Prose},     // Slovenia, New Zealand
	{"0ZX XXXXXXXX", Prose},    // Germany
	{"0ZX XXXXXXX", Prose},     // Finland, Israel, Italy
	{"0ZX XXXX XXX", Prose},
	{"0ZX XXXX-XXXX", Prose},  // Argentina
	{"0ZXX XXX XX XX", Prose}, // Turkey, Austria
	{"0ZXX XX XX XX", Prose},  // Belgium
	{"0ZXX XXX XXX", Prose},   // Australia, Netherlands, Romania, Taiwan
	{"0ZXX XXX XX", Prose},    // Sweden
	{"0ZXX XXXXXX", Prose},    // Germany, Italy, Kenya
	{"0ZXX XXXXXXX", Prose},   // Germany, Austria, Pakistan
	{"0ZXX XXXXXXXX", Prose},  // Germany
	{"0ZXX XXXX XXXX", Prose}, // Indonesia
	{"0ZXX XXXX XXX", Prose},  // Germany
	{"0ZXXX XX XX XX", Prose}, // Germany
	{"06 NX XXX XXXX", Prose}, // Hungary
	{"06 NX XXX-XXXX", Prose}, // Hungary
	{"06 Z XXX XXXX", Prose},  // Hungary
	{"0ZX/XXXXXX", Prose}, {"0ZXX/XXXXX", Prose}, {"0ZXXX/XXXXX", Prose}, {"0ZXXX/XXXX", Prose},
	{"8 XXX XXX XX XX", Prose}, // Russia
	{"8 XXX XXX-XX-XX", Prose}, // Russia

	// Without a trunk prefix.
	{"NXX XXX XXXX", Prose}, // North America, Italy, Greece
	{"XXX-XXX-XXXX", Prose}, {"XXX.XXX.XXXX", Prose},
	{"NX XXX XX XX", Prose},   // Poland, Spain
	{"NX XXX-XX-XX", Prose},   // Poland
	{"NXX XX XX XX", Prose},   // Spain
	{"4XX XX XXX", Prose},     // Norway
	{"9XX XX XXX", Prose},     // Norway
	{"1ZX XXXX XXXX", Prose},  // China
	{"6XXXX XXXXX", Prose},    // India
	{"7XXXX XXXXX", Prose},    // India
	{"8XXXX XXXXX", Prose},    // India
	{"9XXXX XXXXX", Prose},    // India
	{"55 XXXX XXXX", Prose},   // Mexico
	{"33 XXXX XXXX", Prose},   // Mexico
	{"81 XXXX XXXX", Prose},   // Mexico
	{"9 XXXX XXXX", Prose},    // Chile
	{"1300 XXX XXX", Prose},   // Australia
	{"1800 XXX XXX", Prose},   // Australia, Ireland
	{"NXX-XXXXXXX", Prose},    // Italy, North America
	{"(XX) XXXX-XXXX", Prose}, // Brazil
	{"(XX) XXXXX-XXXX", Prose},
	{"(NX) XXX-XXXX", Prose}, // Hungary
	{"(XXX) XXX-XXXX", Prose},
	{"(XXX) XXX XXXX", Prose},
	{"(XXX) XXXXXXX", Prose},
	{"(XXX) XXX XX XX", Prose}, // Russia, Ukraine, Turkey
	{"(NX) XXX XX XX", Prose},  // Poland
	{"(9Z) XXX XX XX", Prose},  // Spain
}

type namedForm struct {
	pattern  string
	evidence Evidence
}

const (
	maxForm = 6 // groups in a form
	maxSize = 6 // digits of a first group
)

// form is a pattern that is compiled.
type form struct {
	sizes    [maxForm]int
	digits   string // the pattern without what separates it
	seps     [maxForm]byte
	groups   int
	bracket  bool
	evidence Evidence
}

func compileForms(list []namedForm) (out []form) {
	for _, x := range list {
		f := form{evidence: x.evidence, bracket: x.pattern[0] == '('}
		pattern := strings.NewReplacer("(", "", ")", "").Replace(x.pattern)
		for _, c := range []byte(pattern) {
			if c < '0' {
				f.seps[f.groups] = c
				f.groups++
				continue
			}
			f.sizes[f.groups]++
			f.digits += string(rune(c))
		}
		f.groups++
		out = append(out, f)
	}
	return out
}

// formTable has the forms by the first digit and the size of the first group.
type formTable [10][maxSize + 1][]*form

// forms is compiled when it is needed first.
var forms = sync.OnceValue(indexForms)

func indexForms() *formTable {
	var t formTable
	list := compileForms(named)
	for k := range list {
		f := &list[k]
		for c := range t {
			if isOfClass(f.digits[0], byte('0'+c)) {
				t[c][f.sizes[0]] = append(t[c][f.sizes[0]], f)
			}
		}
	}
	return &t
}

// isOfClass reports whether a digit is one of a character of a pattern.
func isOfClass(p, c byte) bool {
	switch p {
	case 'X':
		return true
	case 'N':
		return c >= '2'
	case 'Z':
		return c >= '1'
	}
	return p == c
}

// matchGroups returns the number of groups of the form at the beginning of g, or 0.
func (f *form) matchGroups(s []byte, g []cursor.Group, bracket bool) int {
	if len(g) < f.groups || f.bracket && !bracket {
		return 0
	}
	at := 0
	for k := range f.groups {
		if g[k].N != f.sizes[k] {
			return 0
		}
		for _, c := range s[g[k].At : g[k].At+g[k].N] {
			if !isOfClass(f.digits[at], c) {
				return 0
			}
			at++
		}
	}
	if !f.hasSeparators(g, bracket) || endsInNumber(g, f.groups) {
		return 0
	}
	return f.groups
}

// hasSeparators reports whether separators are those of one number: one kind for all but the first,
// which may be a slash, a dash or a closing bracket.
func (f *form) hasSeparators(g []cursor.Group, bracket bool) bool {
	rest := byte(0)
	for k := 1; k < f.groups-1; k++ {
		sep := g[k].Sep
		switch {
		case f.seps[k] != ' ':
			if sep != f.seps[k] {
				return false
			}
		case rest == 0 && (isJoiner(sep) || sep == '.'):
			rest = sep
		case sep != rest:
			return false
		}
	}
	if f.groups == 2 && f.sizes[0] == f.sizes[1] && g[0].Sep == '-' {
		return false // a range
	}
	trunk := f.digits[0] == '0'
	switch first := g[0].Sep; {
	case f.bracket:
		return first == ')'
	case f.seps[0] != ' ':
		return first == f.seps[0]
	case first == ')':
		return bracket && trunk
	case first == '/':
		return rest != '.' && trunk
	case first == '.':
		return rest == '.' && trunk && !cursor.IsAddress(g[:f.groups])
	default:
		return isJoiner(first) && rest != '.'
	}
}

// endsInNumber reports whether the first n groups are followed by more digits of the same number.
func endsInNumber(g []cursor.Group, n int) bool {
	if n == len(g) {
		return false
	}
	sep := g[n-1].Sep
	return isJoiner(sep) || sep == '.' || sep == '/'
}

// isCountryCode reports whether a country's code of ITU-T E.164 begins at i.
func isCountryCode(s []byte, i int) bool {
	if i+1 >= len(s) {
		return false
	}
	switch s[i] {
	case '1', '7':
		return true
	case '2':
		return s[i+1] != '8'
	case '3', '4', '5', '6', '9':
		return s[i+1] >= '0' && s[i+1] <= '9'
	case '8':
		return s[i+1] != '3' && s[i+1] != '7' && s[i+1] != '9'
	}
	return false
}
