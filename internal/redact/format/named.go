package format

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/certain"
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/checksum"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// namedForm is where the names around a value are, for forms that alone prove nothing: a
// card's number, a part of a private JSON Web Key.
type namedForm struct {
	at         int  // where the object or list begins
	name, end  int  // the name of the current member
	key, noKey bool // the object is a JSON Web Key, or is not
	part       bool // the current member is a private part of one
}

// nameForm notes the name s of a member, which is at [i, end).
func (w *walker) nameForm(t *frame, i, end int, s []byte) {
	f := &t.form
	f.name, f.end, f.part = i, end, false
	if !certain.IsPrivatePart(s) {
		return
	}
	if !f.key && !f.noKey {
		f.key = isWebKey(w.in[f.at:])
		f.noKey = !f.key
	}
	f.part = f.key
}

// isCard reports whether a name above says that the value is a card's number.
func (w *walker) isCard() bool {
	for k := range w.stack {
		if f := &w.stack[k].form; certain.NamesCard(w.in[f.name:f.end]) {
			return true
		}
	}
	return false
}

// maxWebKey bounds where the type of a JSON Web Key is looked for.
const maxWebKey = 16 << 10

// isWebKey reports whether the object that b begins with has a member "kty".
func isWebKey(b []byte) bool {
	b = b[:min(len(b), maxWebKey)]
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return false
			}
		case '"':
			start := i + 1
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 1 && i < len(b) && string(b[start:i]) == "kty" {
				return true
			}
		}
	}
	return false
}

// hideForm masks the string s at [i, end) if its name and its form tell what it is.
func (w *walker) hideForm(t *frame, i, end int, s []byte) bool {
	var r rule.Rule
	switch {
	case t.form.part && len(s) > 0 && char.Class[s[0]]&char.URL64 != 0:
		r = rule.PrivateKey
	case w.e.Class.Has(rule.Card) && len(s) >= 13 && checksum.IsCard(withoutSeparators(s)) && w.isCard():
		r = rule.Card
	}
	if r == rule.None || !w.e.Class.Has(r) {
		return false
	}
	w.findings = append(w.findings, finding.Finding{Rule: rule.Names[r], Offset: i, Length: end - i})
	w.replace(i, end, append(w.e.AppendMask([]byte{'"'}, r, s), '"'))
	return true
}

// withoutSeparators returns the digits of s, of which blanks and dashes are left out, or
// nil if s has other signs.
func withoutSeparators(s []byte) []byte {
	if len(s) > 32 || char.Class[s[0]]&char.Digit == 0 {
		return nil
	}
	d := bytes.Map(func(r rune) rune {
		if r == ' ' || r == '-' {
			return -1
		}
		return r
	}, s)
	if char.DigitsFrom(d, 0, len(d)) != len(d) {
		return nil
	}
	return d
}
