package redact

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
	v := x.end(i+1, 4, isBlank)
	for n := 0; n < 3 && v < x.hi && x.s[v] == '\\'; n++ {
		v++
	}
	quote := byte(0)
	if v < x.hi && isQuote(x.s[v]) {
		quote = x.s[v]
		v++
	}
	if v >= x.hi || v < x.low || !capital(x.s, v) {
		return
	}
	start, stop := x.name(i)
	if start < x.lo || start >= stop {
		return
	}
	kind := x.fieldOf(start, stop)
	if kind == fieldNone {
		return
	}
	v = x.titlesHere(v)
	end, n := x.fieldWords(v, x.s[i] == '=')
	if n == 0 || !x.endsField(end, quote) {
		return
	}
	var buf [24]byte
	first := x.firstWord(&buf, v)
	switch {
	case kind == fieldPerson && (n > 1 || isGiven(first) || quote != 0 || x.atLineEnd(end)):
	case kind == fieldHeader && n > 1 && (isGiven(first) || end+1 < len(x.s) && x.s[end] == ' ' && x.s[end+1] == '<'):
	case kind == fieldName && isGiven(first) && (n > 1 || !ambiguous(first)):
	default:
		return
	}
	x.guess(v, end, ruleGuessName)
}

// titlesHere steps over titles at v.
func (x *reader) titlesHere(v int) int {
	var buf [24]byte
	if e := x.end(v, maxNameWord, isWord); e < x.hi && announces(smallCased(&buf, x.s[v:e])) == byTitle {
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
		case x.s[end] == '+':
			w = 1
		case x.has(end, "%20"):
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
		if e := x.end(v, maxNameWord, isLetter); e < x.hi && (x.s[e] == '+' || x.s[e] == '%') && capital(x.s, v) && e-v > 1 {
			if e2, m := x.fieldWords(e+1+2*b2i(x.s[e] == '%'), true); m > 0 {
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
	if i >= len(x.s) {
		return true
	}
	switch c := x.s[i]; c {
	case '\n', '\r', ',', ';', '<', '&', '|', '}', ')', '(', '\t', '\\':
		return true
	case ' ':
		return i+1 < len(x.s) && (x.s[i+1] == '<' || x.s[i+1] == '(' || x.s[i+1] == '|')
	case '.':
		return i+1 >= len(x.s) || class[x.s[i+1]]&isSpace != 0
	default:
		return isQuote(c)
	}
}

func (x *reader) atLineEnd(i int) bool {
	return i >= len(x.s) || x.s[i] == '\n' || x.s[i] == '\r' || x.s[i] == '<'
}

// fieldOf judges a field's name by its words; one of two words may stand
// behind a blank ("Patient name: x").
func (x *reader) fieldOf(start, stop int) fieldKind {
	if k := fieldOfName(x.s[start:stop]); k != fieldName {
		return k
	}
	if x.is(start-1, isBlank) {
		if b, e := x.wordBefore(start, 2); b < e {
			if k := fieldOfName(x.s[b:e]); k == fieldPerson {
				return k
			}
			if whose(x.s[b:e]) {
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
		if class[name[i]]&isWord == 0 {
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
	if !(x.hi == i+1 && x.email) && !(i+1 < x.hi && (x.has(i+1, MaskEmail) || x.has(i+1, "[email]"))) {
		return
	}
	e := i
	for n := 0; n < 2 && e > x.lo && (class[x.s[e-1]]&isBlank != 0); n++ {
		e--
	}
	if e > x.lo && x.s[e-1] == '"' {
		e--
	}
	b := e
	for b > x.lo && e-b < 64 && (class[x.s[b-1]]&(isWord|isAlnum) != 0 || x.s[b-1] == ' ' || x.s[b-1] == '.' || x.s[b-1] == '-' || x.s[b-1] == '\'' || x.s[b-1] == ',' && e < i-1) {
		b--
	}
	for b < e {
		for b < e && class[x.s[b]]&isWord == 0 {
			b++
		}
		if end := x.inverted(b, e); end == e && b >= x.low {
			x.guess(b, e, ruleGuessName)
			return
		}
		b = x.end(b, e-b, isWord)
	}
}

// inverted reads "Ada Lovelace" or "Lovelace, Ada" at b.
func (x *reader) inverted(b, e int) int {
	end, n := x.nameWords(b, 4)
	if n > 0 && x.has(end, ", ") && end+2 < e {
		end, n = x.nameWords(end+2, 3)
	}
	if n == 0 {
		return b
	}
	return end
}
