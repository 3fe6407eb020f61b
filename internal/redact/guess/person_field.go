package guess

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/placeholder"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// fieldKind is what a field's name says of names in it.
type fieldKind uint8

const (
	fieldNone   fieldKind = iota
	fieldName             // "name": of a person only where a given name begins it
	fieldPerson           // of a person
	fieldHeader           // of a message: a name before an address, or alone
)

// personField judges the value behind the ":" or "=" at i.
func (x *reader) personField(i int) {
	v := x.End(i+1, 4, char.Blank)
	for n := 0; n < 3 && v < x.hi && x.S[v] == '\\'; n++ {
		v++
	}
	quote := byte(0)
	if v < x.hi && char.IsQuote(x.S[v]) {
		quote = x.S[v]
		v++
	}
	if v >= x.hi || v < x.low || !capital(x.S, v) {
		return
	}
	start, stop := x.Name(i)
	if start < x.lo || start >= stop {
		return
	}
	kind := x.fieldOf(start, stop)
	if kind == fieldNone {
		return
	}
	v = x.titlesHere(v)
	end, n := x.fieldWords(v, x.S[i] == '=')
	if n == 0 || !x.endsField(end, quote) {
		return
	}
	var buf [24]byte
	first := x.firstWord(&buf, v)
	switch {
	case kind == fieldPerson && (n > 1 || isGiven(first) || quote != 0 || x.atLineEnd(end)):
	case kind == fieldHeader && n > 1 && (isGiven(first) || end+1 < len(x.S) && x.S[end] == ' ' && x.S[end+1] == '<'):
	case kind == fieldName && isGiven(first) && (n > 1 || !ambiguous(first)):
	default:
		return
	}
	x.guess(v, end, rule.GuessName)
}

// titlesHere steps over titles at v.
func (x *reader) titlesHere(v int) int {
	var buf [24]byte
	if e := x.End(v, maxNameWord, char.Word); e < x.hi && announces(smallCased(&buf, x.S[v:e])) == byTitle {
		if w := x.titles(e); w > 0 {
			return w
		}
	}
	return v
}

// fieldWords reads a name; in a form "+" and "%20" stand for blanks.
func (x *reader) fieldWords(v int, form bool) (end, n int) {
	end, n = x.nameWords(v, 5)
	for form && n > 0 && n < 5 && end+3 < x.hi {
		w := 0
		switch {
		case x.S[end] == '+':
			w = 1
		case x.Has(end, "%20"):
			w = 3
		}
		if w == 0 {
			break
		}
		e, m := x.nameWords(end+w, 5-n)
		if m == 0 {
			break
		}
		end, n = e, n+m
	}
	if n == 0 && form {
		// The first word ends at a "+", which nameWord takes for no end.
		if e := x.End(v, maxNameWord, char.Letter); e < x.hi && (x.S[e] == '+' || x.S[e] == '%') && capital(x.S, v) &&
			e-v > 1 {
			if e2, m := x.fieldWords(e+1+2*b2i(x.S[e] == '%'), true); m > 0 {
				return e2, m + 1
			}
		}
	}
	return end, n
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// endsField says whether a field's value ends at i.
func (x *reader) endsField(i int, quote byte) bool {
	if i >= len(x.S) {
		return true
	}
	switch c := x.S[i]; c {
	case '\n', '\r', ',', ';', '<', '&', '|', '}', ')', '(', '\t', '\\':
		return true
	case ' ':
		return i+1 < len(x.S) && (x.S[i+1] == '<' || x.S[i+1] == '(' || x.S[i+1] == '|')
	case '.':
		return i+1 >= len(x.S) || char.Class[x.S[i+1]]&char.Space != 0
	default:
		return char.IsQuote(c)
	}
}

func (x *reader) atLineEnd(i int) bool {
	return i >= len(x.S) || x.S[i] == '\n' || x.S[i] == '\r' || x.S[i] == '<'
}

// fieldOf judges a field's name by its words; one of two words may stand
// behind a blank ("Patient name: x").
func (x *reader) fieldOf(start, stop int) fieldKind {
	if k := fieldOfName(x.S[start:stop]); k != fieldName {
		return k
	}
	if x.Is(start-1, char.Blank) {
		if b, e := x.wordBefore(start, 2); b < e {
			if k := fieldOfName(x.S[b:e]); k == fieldPerson {
				return k
			}
			if whose(x.S[b:e]) {
				return fieldPerson
			}
		}
	}
	return fieldName
}

func fieldOfName(name []byte) fieldKind {
	if len(name) > 64 {
		return fieldNone
	}
	best, last := fieldNone, fieldNone
	n := 0
	for i := 0; i < len(name); {
		if char.Class[name[i]]&char.Word == 0 {
			i++
			continue
		}
		j := humpEnd(name, i)
		last = fieldWord(name[i:j])
		if last == fieldPerson || last == fieldName && whoseIs(best) {
			best = fieldPerson
		} else if best == fieldNone || last != fieldNone {
			best = max(best, last)
		}
		n++
		i = j
	}
	if last == fieldNone || last == fieldHeader && n > 2 {
		return fieldNone
	}
	return best
}

func whoseIs(k fieldKind) bool { return k == fieldPerson }

func fieldWord(w []byte) fieldKind {
	var buf [24]byte
	l := smallCased(&buf, w)
	switch string(l) {
	case "name", "names", "fullname", "nom", "nombre", "displayname", "realname", "legalname":
		return fieldName
	case "from", "to", "cc", "bcc", "sender", "reply":
		return fieldHeader
	case "by", "author", "authors", "assignee", "reporter", "contact", "attn", "recipient", "cardholder", "beneficiary", "applicant", "candidate",
		"attendee", "attendees", "passenger", "guest", "patient", "employee", "student", "teacher", "doctor", "physician", "customer", "signatory", "signer", "signed",
		"holder", "insured", "claimant", "witness", "subscriber", "spouse", "nachname", "vorname", "prénom", "prenom", "apellido", "apellidos",
		"ansprechpartner", "kunde", "patientin", "firstname", "lastname", "surname", "person", "manager", "supervisor", "landlord", "tenant", "buyer", "seller",
		"borrower", "payee", "payer", "member", "driver", "owner", "requester", "approver", "caller", "interviewer", "lawyer", "attorney", "nurse", "participant", "participants":
		return fieldPerson
	}
	return fieldNone
}

// whose says whether a word before "name" makes it a person's.
func whose(w []byte) bool {
	var buf [24]byte
	switch string(smallCased(&buf, w)) {
	case "full", "legal", "real", "billing", "maiden", "birth", "account", "emergency", "given", "family", "user", "agent", "client", "contact", "your", "my":
		return true
	}
	return false
}

// displayName masks the name before the address that the "<" at i opens.
func (x *reader) displayName(i int) {
	if !(x.hi == i+1 && x.email) && !(i+1 < x.hi && (x.Has(i+1, placeholder.Email) || x.Has(i+1, "[email]"))) {
		return
	}
	e := i
	for n := 0; n < 2 && e > x.lo && (char.Class[x.S[e-1]]&char.Blank != 0); n++ {
		e--
	}
	if e > x.lo && x.S[e-1] == '"' {
		e--
	}
	b := e
	for b > x.lo && e-b < 64 && (char.Class[x.S[b-1]]&(char.Word|char.Alnum) != 0 || x.S[b-1] == ' ' ||
		x.S[b-1] == '.' || x.S[b-1] == '-' || x.S[b-1] == '\'' || x.S[b-1] == ',' && e < i-1) {
		b--
	}
	for b < e {
		for b < e && char.Class[x.S[b]]&char.Word == 0 {
			b++
		}
		if end := x.inverted(b, e); end == e && b >= x.low {
			x.guess(b, e, rule.GuessName)
			return
		}
		b = x.End(b, e-b, char.Word)
	}
}

// inverted reads "Ada Lovelace" or "Lovelace, Ada" at b.
func (x *reader) inverted(b, e int) int {
	end, n := x.nameWords(b, 4)
	if n > 0 && x.Has(end, ", ") && end+2 < e {
		end, n = x.nameWords(end+2, 3)
	}
	if n == 0 {
		return b
	}
	return end
}
