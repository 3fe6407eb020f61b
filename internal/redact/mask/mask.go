// Package mask writes masks in place of findings, in each style, and finds the masks
// that a text has already. A mask cannot be undone. What can be is a placeholder
// (package mapping).
package mask

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// The masks of spec 003 section 1.7. A card's mask ends in its last four
// digits, in section 3.1 too.
const (
	Email  = "[email hidden]"
	Secret = "[secret redacted]"
	PII    = "[pii redacted]"
	Card   = "****-****-****-"
)

// Masks is a style of masks. Every engine knows the masks of every style, so
// that redacting again changes nothing, whichever style came first.
type Masks uint8

const (
	// Ledger is spec 003 section 1.7: [email hidden], [secret redacted],
	// [pii redacted] and a card's last four digits.
	Ledger Masks = iota
	// Egress is spec 003 section 3.1: [email], [secret], [phone], [pii],
	// [db_string] and a card's last four digits.
	Egress
	// Pseudonyms are typed and the same for the same value under one key,
	// as <email:7f3a91c2>: 32 bits of a keyed hash (D14a).
	Pseudonyms
)

// Style writes masks of one style.
type Style struct {
	Masks Masks
	// Key is the tenant's key of pseudonyms.
	Key holdfast.Secret
	// Replacement, if not nil, returns what is written in place of a finding instead of a mask. It gets the
	// name of the rule and the text. A text is then read once.
	Replacement func(rule string, text []byte) []byte
}

// label is the word in a mask, such as email. Several rules share one.
type label uint8

const (
	labelSecret label = iota // a rule without another label is a secret
	labelPII
	labelEmail
	labelCard
	labelPhone
	labelDB
)

// labelWords are the words of the masks of spec 003 section 3.1 and of pseudonyms.
var labelWords = [...]string{
	labelSecret: "secret", labelPII: "pii", labelEmail: "email", labelCard: "card", labelPhone: "phone", labelDB: "db_string",
}

// labelOf returns the label of what r finds.
func labelOf(r rule.Rule) label {
	switch r {
	case rule.Email:
		return labelEmail
	case rule.Card:
		return labelCard
	case rule.Phone:
		return labelPhone
	case rule.Connection:
		return labelDB
	}
	if r.IsSecret() {
		return labelSecret
	}
	return labelPII
}

// AppendMask appends the mask of what r found in text.
func (e *Style) AppendMask(to []byte, r rule.Rule, text []byte) []byte {
	if e.Replacement != nil {
		return append(to, e.Replacement(rule.Names[r], text)...)
	}
	m := e.newMask()
	m.write(text)
	return m.appendTo(to, r)
}

// Mask reads the value that a mask replaces in pieces, so that a value which is
// not held whole gets the same mask; the rule may come last.
type Mask struct {
	e     *Style
	mac   hasher
	last4 [4]byte
	n     int
}

// hasher is the part of hash.Hash that is used.
type hasher interface {
	Write(p []byte) (int, error)
	Sum(b []byte) []byte
}

func (e *Style) newMask() Mask {
	m := Mask{e: e}
	if e.Masks == Pseudonyms {
		m.mac = hmac.New(sha256.New, []byte(e.Key.Reveal()))
	}
	return m
}

// write reads more of the text.
func (m *Mask) write(text []byte) {
	if m.mac != nil {
		_, _ = m.mac.Write(text) // a hash takes everything
		return
	}
	for _, c := range text[max(0, len(text)-maxCardText):] {
		if char.Class[c]&char.Digit != 0 {
			m.last4[m.n&3] = c
			m.n++
		}
	}
}

// maxCardText bounds where a card's last four digits are looked for: 19 digits
// and what may stand between them, even URL-encoded.
const maxCardText = 128

// appendTo appends the mask of what r found in the text that was written.
func (m *Mask) appendTo(to []byte, r rule.Rule) []byte {
	is := labelOf(r)
	if m.e.Masks == Pseudonyms {
		// The label follows the value and a NUL, because it is known
		// only when the value has been read; no label has a NUL.
		_, _ = m.mac.Write(append([]byte{0}, labelWords[is]...))
		sum := m.mac.Sum(nil)
		to = append(append(append(to, '<'), labelWords[is]...), ':')
		return append(hex.AppendEncode(to, sum[:pseudonymSize/2]), '>')
	}
	if is == labelCard {
		to = append(to, Card...)
		for k := max(0, m.n-4); k < m.n; k++ {
			to = append(to, m.last4[k&3])
		}
		return to
	}
	if m.e.Masks == Egress {
		return append(append(append(to, '['), labelWords[is]...), ']')
	}
	switch is {
	case labelEmail:
		return append(to, Email...)
	case labelPII, labelPhone:
		return append(to, PII...)
	}
	return append(to, Secret...)
}

// pseudonymSize is the length of a pseudonym's hash, in hex digits.
const pseudonymSize = 8

// Len returns the length of the mask that s begins with, of any style, or
// 0.
func Len(s []byte) int {
	if len(s) == 0 {
		return 0
	}
	switch s[0] {
	case '[':
		return bracketLen(s)
	case '<':
		return pseudonymLen(s)
	case '*':
		n := len(Card)
		if len(s) >= n+4 && string(s[:n]) == Card && char.DigitsFrom(s, n, 5) == 4 {
			return n + 4
		}
	}
	return 0
}

// bracketLen returns the length of the mask in brackets that s begins with.
func bracketLen(s []byte) int {
	for _, m := range [...]string{Secret, PII, Email, "[secret]", "[pii]", "[email]", "[phone]", "[db_string]"} {
		if len(s) >= len(m) && string(s[:len(m)]) == m {
			return len(m)
		}
	}
	return 0
}

// pseudonymLen returns the length of the pseudonym that s begins with.
func pseudonymLen(s []byte) int {
	colon := bytes.IndexByte(s[:min(len(s), maxMaskWord)], ':')
	if colon < 0 {
		return 0
	}
	end := colon + 1 + pseudonymSize
	if end >= len(s) || s[end] != '>' {
		return 0
	}
	for _, c := range s[colon+1 : end] {
		if char.Class[c]&char.Hex == 0 || char.Class[c]&char.Upper != 0 {
			return 0
		}
	}
	for _, w := range labelWords {
		if string(s[1:colon]) == w {
			return end + 1
		}
	}
	return 0
}

// maxMaskWord bounds where the colon of a pseudonym is: after "<db_string".
const maxMaskWord = 11

// PseudonymEnd returns the end of the pseudonym whose colon is at i, or 0.
func PseudonymEnd(s []byte, i int) int {
	if i+1+pseudonymSize >= len(s) || s[i+1+pseudonymSize] != '>' {
		return 0
	}
	from := bytes.LastIndexByte(s[max(0, i-maxMaskWord+1):i], '<')
	if from < 0 {
		return 0
	}
	from += max(0, i-maxMaskWord+1)
	if n := pseudonymLen(s[from:]); n > 0 {
		return from + n
	}
	return 0
}

// EndsIn reports whether a mask in brackets ends s.
func EndsIn(s []byte) bool {
	if len(s) == 0 || s[len(s)-1] != ']' {
		return false
	}
	from := bytes.LastIndexByte(s[max(0, len(s)-len(Secret)):], '[')
	if from < 0 {
		return false
	}
	s = s[max(0, len(s)-len(Secret))+from:]
	return bracketLen(s) == len(s)
}

// IsWithin reports whether [from, to) is part of one mask. A registered secret that is
// equal to words of a mask is not found there.
func IsWithin(s []byte, from, to int) bool {
	for k := from; k >= 0 && k > from-MaxLen; k-- {
		if k+Len(s[k:]) >= to {
			return true
		}
	}
	return false
}

// MaxLen is the length of the longest mask: a card's.
const MaxLen = len(Card) + 4

// nextMask returns where the next mask stands in s from i on, or s's end.
func nextMask(s []byte, i int) int {
	for i < len(s) && Len(s[i:]) == 0 {
		i++
	}
	return i
}

// Without returns a name with a neutral word in place of each mask: a mask must not
// announce the value after it.
func Without(name []byte) []byte {
	from := nextMask(name, 0)
	if from == len(name) {
		return name
	}
	var out []byte
	for last := 0; ; {
		out = append(out, name[last:from]...)
		if from == len(name) {
			return out
		}
		out = append(out, " x "...)
		last = from + Len(name[from:])
		from = nextMask(name, last)
	}
}
