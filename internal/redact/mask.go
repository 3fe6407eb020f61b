package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"github.com/holdfast-dev/holdfast"
)

// The masks of spec 003 section 1.7. A card's mask ends in its last four
// digits, in section 3.1 too.
const (
	MaskEmail  = "[email hidden]"
	MaskSecret = "[secret redacted]"
	MaskPII    = "[pii redacted]"
	MaskCard   = "****-****-****-"
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

// maskStyle writes masks of one style.
type maskStyle struct {
	masks Masks
	// key is the tenant's key of pseudonyms.
	key holdfast.Secret
}

// sort is what a mask says of the thing behind it.
type sort uint8

const (
	sortSecret sort = iota // what has no sort of its own is a secret
	sortPII
	sortEmail
	sortCard
	sortPhone
	sortDB
)

// sortWords are the words of the masks of section 3.1 and of pseudonyms.
var sortWords = [...]string{
	sortSecret: "secret", sortPII: "pii", sortEmail: "email", sortCard: "card", sortPhone: "phone", sortDB: "db_string",
}

// sortOf returns what r finds.
func sortOf(r rule) sort {
	switch r {
	case ruleEmail:
		return sortEmail
	case ruleCard:
		return sortCard
	case rulePhone, ruleGuessPhone:
		return sortPhone
	case ruleConnection:
		return sortDB
	}
	if r.secret() {
		return sortSecret
	}
	return sortPII
}

// appendMask appends the mask of what r found in text.
func (e *maskStyle) appendMask(to []byte, r rule, text []byte) []byte {
	m := e.newMask()
	m.write(text)
	return m.appendTo(to, r)
}

// maskOf reads the text behind a mask piece by piece, so that a text which is
// not held whole gets the mask it would get otherwise; the rule may come last.
type maskOf struct {
	e     *maskStyle
	mac   hasher
	last4 [4]byte
	n     int
}

// hasher is the part of hash.Hash that is used.
type hasher interface {
	Write(p []byte) (int, error)
	Sum(b []byte) []byte
}

func (e *maskStyle) newMask() maskOf {
	m := maskOf{e: e}
	if e.masks == Pseudonyms {
		m.mac = hmac.New(sha256.New, []byte(e.key.Reveal()))
	}
	return m
}

// write reads more of the text.
func (m *maskOf) write(text []byte) {
	if m.mac != nil {
		_, _ = m.mac.Write(text) // a hash takes everything
		return
	}
	for _, c := range text[max(0, len(text)-maxCardText):] {
		if class[c]&isDigit != 0 {
			m.last4[m.n&3] = c
			m.n++
		}
	}
}

// maxCardText bounds where a card's last four digits are looked for: 19 digits
// and what may stand between them, even URL-encoded.
const maxCardText = 128

// appendTo appends the mask of what r found in the text that was written.
func (m *maskOf) appendTo(to []byte, r rule) []byte {
	kind := sortOf(r)
	if m.e.masks == Pseudonyms {
		// The sort stands behind the value and a NUL, because it is known
		// only when the value has been read; no sort holds a NUL.
		_, _ = m.mac.Write(append([]byte{0}, sortWords[kind]...))
		sum := m.mac.Sum(nil)
		to = append(append(append(to, '<'), sortWords[kind]...), ':')
		return append(hex.AppendEncode(to, sum[:pseudonymSize/2]), '>')
	}
	if kind == sortCard {
		to = append(to, MaskCard...)
		for k := max(0, m.n-4); k < m.n; k++ {
			to = append(to, m.last4[k&3])
		}
		return to
	}
	if m.e.masks == Egress {
		return append(append(append(to, '['), sortWords[kind]...), ']')
	}
	switch kind {
	case sortEmail:
		return append(to, MaskEmail...)
	case sortPII, sortPhone:
		return append(to, MaskPII...)
	}
	return append(to, MaskSecret...)
}

// pseudonymSize is the length of a pseudonym's hash, in hex digits.
const pseudonymSize = 8

// maskLen returns the length of the mask that s begins with, of any style, or
// 0.
func maskLen(s []byte) int {
	if len(s) == 0 {
		return 0
	}
	switch s[0] {
	case '[':
		return bracketLen(s)
	case '<':
		return pseudonymLen(s)
	case '*':
		n := len(MaskCard)
		if len(s) >= n+4 && string(s[:n]) == MaskCard && digitsFrom(s, n, 5) == 4 {
			return n + 4
		}
	}
	return 0
}

// bracketLen returns the length of the mask in brackets that s begins with.
func bracketLen(s []byte) int {
	for _, m := range [...]string{MaskSecret, MaskPII, MaskEmail, "[secret]", "[pii]", "[email]", "[phone]", "[db_string]"} {
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
		if class[c]&isHex == 0 || class[c]&isUpper != 0 {
			return 0
		}
	}
	for _, w := range sortWords {
		if string(s[1:colon]) == w {
			return end + 1
		}
	}
	return 0
}

// maxMaskWord bounds where a pseudonym's colon stands: behind "<db_string".
const maxMaskWord = 11

// inPseudonym returns where the pseudonym ends whose colon stands at i, or 0.
func inPseudonym(s []byte, i int) int {
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

// endsMask says whether a mask in brackets ends s.
func endsMask(s []byte) bool {
	if len(s) == 0 || s[len(s)-1] != ']' {
		return false
	}
	from := bytes.LastIndexByte(s[max(0, len(s)-len(MaskSecret)):], '[')
	if from < 0 {
		return false
	}
	s = s[max(0, len(s)-len(MaskSecret))+from:]
	return bracketLen(s) == len(s)
}

// withinMask says whether [from, to) is part of one mask: a registered secret
// that reads like a mask's own words is not there.
func withinMask(s []byte, from, to int) bool {
	for k := from; k >= 0 && k > from-maxMask; k-- {
		if k+maskLen(s[k:]) >= to {
			return true
		}
	}
	return false
}

// maxMask is the length of the longest mask: a card's.
const maxMask = len(MaskCard) + 4

// nextMask returns where the next mask stands in s from i on, or s's end.
func nextMask(s []byte, i int) int {
	for i < len(s) && maskLen(s[i:]) == 0 {
		i++
	}
	return i
}

// withoutMasks returns a name in which a word that says nothing stands in the
// place of each mask: what was masked must not be taken for what names it.
func withoutMasks(name []byte) []byte {
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
		last = from + maskLen(name[from:])
		from = nextMask(name, last)
	}
}
