package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
)

// phoneWords say that a number of a phone follows, in addition to those of contexts.
var phoneWords = [...]string{
	"telefono", "telefone", "telefoon", "telefonnummer", "telefonnr", "rufnummer", "handynummer", "mobilnummer",
	"mobiltelefon", "durchwahl",
	"portable", "gsm", "natel", "movil", "celular", "cellulare", "puhelin", "telefonszam", "hotline", "helpline",
	"phoneno", "telno", "cellno",
	"mobileno", "voicemail", "pager",
}

// clauseWords say plainly that a number in the same clause is a phone's.
var clauseWords = [...]string{
	"phone", "phones", "telephone", "cellphone", "mobile", "landline", "fax", "whatsapp", "sms", "voicemail",
	"answering", "telefon",
}

var phoneWordGate, clauseWordGate = gateOf(phoneWords[:]), gateOf(clauseWords[:])

// phoneMarks are such words with letters beyond ASCII.
var phoneMarks = [...]string{"tél", "Tél", "тел", "Тел", "電話", "电话", "전화", "τηλ"}

// nearPhone reports whether one of phoneWords or phoneMarks is near before i, or one of
// clauseWords in the same clause as the number [i, end).
func (x *Scanner) nearPhone(i, end int) bool {
	before := x.S[max(0, i-reachNear):i]
	if !x.wordlessBefore(i) && (hasWord(before, &phoneWordGate, phoneWords[:]) ||
		hasWord(x.S[x.clauseStart(i, closesPhone):i], &clauseWordGate, clauseWords[:])) {
		return true
	}
	if x.Has(end, " is ") && hasWord(x.S[end:x.clauseEnd(end, closesPhone)], &clauseWordGate, clauseWords[:]) {
		return true
	}
	for k, c := range before {
		if c < 0xc2 {
			continue
		}
		for _, word := range phoneMarks {
			// The first letter may be of ASCII.
			if from := max(0, k-1); bytes.HasPrefix(before[k:], []byte(word)) || bytes.HasPrefix(before[from:],
				[]byte(word)) {
				return true
			}
		}
	}
	return false
}

// isDate reports whether groups are a day: with one sign between, a month and a day
// that can be, and no further group behind blanks.
func (x *Scanner) isDate(g []cursor.Group) bool {
	if !cursor.IsDate(g) || g[0].Sep != g[1].Sep || g[0].Sep == ' ' && len(g) > 3 {
		return false
	}
	year, a, b := g[0], g[1], g[2]
	if g[0].N != 4 {
		year, a, b = g[2], g[0], g[1]
	}
	m, d := x.smallNumber(a), x.smallNumber(b)
	c := x.S[year.At]
	return (c == '1' || c == '2') && m > 0 && d > 0 && min(m, d) <= 12 && max(m, d) <= 31
}

// smallNumber returns the value of a group of one or two digits.
func (x *Scanner) smallNumber(g cursor.Group) int {
	v := 0
	for _, c := range x.S[g.At : g.At+g.N] {
		v = v*10 + int(char.Unhex(c))
	}
	return v
}
