package guess

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// A number without a country code is a telephone number where its form or a
// word before it says so and a numbering plan has it.

// formHint is how much the form of groups of digits speaks for a phone.
type formHint uint8

const (
	formNone   formHint = iota
	formSpaced          // groups that a phone may have: a word must say it
	formPhone           // a form that little else has
)

// phoneAt judges the number whose first digit stands at i and steps over the
// groups that belong to it, so that none of them is judged as a number again.
func (x *reader) phoneAt(i int) {
	if i < x.groupLow || i-2 >= x.lo && x.S[i-1] == ':' && x.Is(i-2, char.Digit) || x.Is(i-1, char.Word) ||
		x.Is(i-1, char.Symbol) && (x.Is(i-2, char.Word) || x.S[i-1] == '=' && x.Is(i-2, char.Symbol)) {
		return
	}
	n := min(char.DigitsFrom(x.S, i, cursor.MaxRun), x.hi-i)
	if n == cursor.MaxRun {
		return
	}
	var buf [cursor.MaxGroups]cursor.Group
	g := x.cut(x.Groups(i, n, cursor.MaxGroups*cursor.MaxRun, buf[:0]))
	last := g[len(g)-1]
	end := last.At + last.N
	x.groupLow = end
	if len(g) == cursor.MaxGroups || x.Is(end, char.Word) || x.tail(end) {
		return
	}
	var d [16]byte
	total := 0
	for _, k := range g {
		if total+k.N > 15 {
			return
		}
		total += copy(d[total:], x.S[k.At:k.At+k.N])
	}
	if total < 7 || cursor.IsDate(g) || cursor.IsAddress(g) || year(g, x.S) || oneDigit(d[:total]) {
		return
	}
	start := i
	bracket := i > x.lo && x.S[i-1] == '('
	if bracket {
		start--
	}
	if x.isPhone(d[:total], g, start, bracket) {
		x.guess(start, x.extension(end), rule.GuessPhone)
	}
}

// oneDigit says whether all digits are the same, as in 000 000 0000.
func oneDigit(d []byte) bool {
	for _, c := range d {
		if c != d[0] {
			return false
		}
	}
	return true
}

// cut drops groups beyond the wall, and those behind a tab or two blanks.
func (x *reader) cut(g []cursor.Group) []cursor.Group {
	for k := range g {
		if g[k].At+g[k].N > x.hi {
			g[k].N = x.hi - g[k].At
			if g[k].N <= 0 {
				return g[:max(1, k)]
			}
			return g[:k+1]
		}
		if g[k].Sep == '\t' || g[k].Sep == cursor.Wide {
			return g[:k+1]
		}
	}
	return g
}

// tail says whether the number goes on as something else: a fraction, a unit,
// a time, a percentage.
func (x *reader) tail(end int) bool {
	if end+1 >= x.hi {
		return false
	}
	c, d := x.S[end], x.S[end+1]
	switch c {
	case '%', '_', '$', '=', '*', '^':
		return true
	case ':', '.', ',', '-', '/', '+':
		return char.Class[d]&char.Alnum != 0
	}
	return false
}

// year says whether a run of two groups is a pair of years or a date.
func year(g []cursor.Group, s []byte) bool {
	return len(g) == 2 && g[0].N == 4 && g[1].N == 4 && (s[g[0].At] == '1' || s[g[0].At] == '2') &&
		(s[g[1].At] == '1' || s[g[1].At] == '2')
}

func (x *reader) isPhone(d []byte, g []cursor.Group, start int, bracket bool) bool {
	form := phoneForm(d, g, bracket)
	if form == formNone && len(g) > 1 {
		return false
	}
	switch hint := x.phoneWord(start); {
	case hint == hintNot:
		return false
	case form == formPhone:
		return d[0] != '0' || planned(d) || d[1] == '0' && international(d[2:])
	case hint == hintPair && len(d) < 9, hint == hintNone:
		return false
	}
	return planned(d) || d[0] == '0' && d[1] == '0' && international(d[2:])
}

// phoneForm judges the form of a number.
func phoneForm(d []byte, g []cursor.Group, bracket bool) formHint {
	if len(g) == 1 {
		if d[0] == '0' && d[1] == '0' && len(d) >= 11 && international(d[2:]) {
			return formPhone
		}
		if len(d) >= 9 {
			return formSpaced
		}
		return formNone
	}
	even := true
	for _, k := range g[1:] {
		even = even && k.N == 2
	}
	switch {
	case len(g) == 2 && (g[0].N <= 2 && len(d) < 9 || g[0].Sep == '.'): // a fraction
		return formNone
	case d[0] == '0' && d[1] != '0' && len(g) == 5 && even && g[0].N == 2 && sameSep(g): // France
		return formPhone
	case d[0] == '0' && d[1] == '0' && international(d[2:]):
		return formPhone
	case d[0] == '0' && d[1] != '0' && (bracket && g[0].Sep == ')' || g[0].Sep == '/' && g[0].N >= 3) && len(d) >= 8:
		return formPhone
	case d[0] == '0' && d[1] != '0' && g[0].N >= 3 && g[0].N <= 5 && len(d) >= 9 && (g[0].Sep == ' ' ||
		g[0].Sep == '-'):
		return formPhone
	case d[0] == '0' && d[1] != '0' && g[0].N == 2 && len(g) == 3 && g[1].N == 4 && g[2].N == 4: // Australia, Japan
		return formPhone
	case d[0] == '0' && d[1] != '0' && g[0].N >= 2 && g[0].Sep == '-' && len(g) > 2 && inPlan(46, d[1:]): // Sweden
		return formPhone
	case bracket && g[0].N == 2 && len(g) == 3 && g[2].N == 4 && g[1].Sep == '-' && inPlan(55, d), // Brazil
		len(g) == 3 && g[0].N == 2 && g[1].N == 5 && g[2].N == 4 && g[1].Sep == '-' && inPlan(55, d):
		return formPhone
	case len(g) == 2 && g[0].N == 5 && g[1].N == 5 && d[0] >= '6' && inPlan(91, d): // India
		return formPhone
	case len(g) == 4 && len(d) == 9 && g[3].N == 2 && g[2].N == 2 && d[0] >= '6' && inPlan(34, d): // Spain
		return formPhone
	case len(g) == 3 && g[0].N == 3 && g[1].N == 3 && g[2].N == 4 && d[0] >= '2' && d[3] >= '2' && inPlan(1, d):
		return formPhone
	case d[0] == '0' && len(g) <= 2 && g[0].N > 2 && len(d) < 9 && g[0].Sep == '.':
		return formNone
	}
	return formSpaced
}

func sameSep(g []cursor.Group) bool {
	for _, k := range g[:len(g)-1] {
		if k.Sep != g[0].Sep {
			return false
		}
	}
	return true
}

// extension steps over "ext. 12" or "x12" behind a number.
func (x *reader) extension(end int) int {
	e := x.End(end, 2, char.Blank)
	for _, word := range [...]string{"ext", "extension", "durchwahl", "poste", "x"} {
		if !x.Fold(e, word) || x.Is(e+len(word), char.Letter) {
			continue
		}
		k := e + len(word)
		for n := 0; n < 3 && k < x.hi && (x.S[k] == '.' || x.S[k] == ' ' || x.S[k] == ':'); n++ {
			k++
		}
		if n := char.DigitsFrom(x.S, k, 7); n > 0 && n < 7 {
			return k + n
		}
	}
	return end
}

// phoneWord says whether a word within 48 bytes before i, on the same line,
// announces a telephone number (hintSecret) or another number (hintNot). Words
// such as "number" and "call" do so weakly (hintPair), if none of the words
// before them says of what.
func (x *reader) phoneWord(i int) hint {
	floor := max(x.lo, i-48)
	none := hintNone
	for e := i; e > floor; {
		b, end := x.wordBefore(e, 16)
		if b == end {
			return none
		}
		switch h := x.phoneHint(x.S[b:end]); h {
		case hintPair:
			none = hintPair
		case hintNone:
		default:
			return h
		}
		e = b
	}
	return none
}

// phoneHint says hintSecret for a word that announces a phone, hintNot for one
// that announces another number.
func (x *reader) phoneHint(w []byte) hint {
	var buf [24]byte
	switch string(smallCased(&buf, w)) {
	case "phone", "phones", "telephone", "tel", "mobile", "mob", "cell", "cellphone", "fax", "whatsapp", "signal", "landline", "hotline",
		"callback", "voicemail", "helpline", "phonenumber",
		"telefon", "telefonnummer", "handy", "handynummer", "mobil", "mobilnummer", "rufnummer", "festnetz", "durchwahl", "erreichbar", "anrufen", "rückruf", "ruf",
		"tél", "téléphone", "telephon", "portable", "appelez", "appeler", "appelle", "joindre", "joignable", "rappeler", "fixe", "tfn", "tfno", "fone", "mobilnr", "telnr", "contato", "ligar", "llámame", "llámanos", "ringa",
		"teléfono", "telefono", "móvil", "movil", "celular", "llamar", "llame", "cellulare", "chiamare", "telefone", "telemóvel", "ligue",
		"telefoonnummer", "telefoon", "mobiel", "bel", "bellen", "gsm", "tlf", "puh", "telefonu":
		return hintSecret
	case "order", "invoice", "ticket", "id", "port", "ref", "reference", "case", "account", "iban", "konto", "version", "build", "pid", "size", "bytes",
		"row", "rows", "isbn", "issn", "doi", "serial", "sku", "tracking", "timestamp", "ts", "time", "epoch", "date", "amount", "total",
		"price", "zip", "code", "bestellung", "rechnung", "commande", "facture", "page", "pages", "commit", "issue", "pr":
		return hintNot
	case "call", "calling", "dial", "ring", "text", "sms", "reach", "contact", "number", "nummer", "numéro", "número", "numero", "no", "nr":
		return hintPair
	}
	return hintNone
}
