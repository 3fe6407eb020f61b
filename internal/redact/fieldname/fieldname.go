// Package fieldname tells from the name of a member, a variable or a header field
// whether its value is secret or personal.
package fieldname

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
)

// Kind is what a name says of its value.
type Kind uint8

const (
	None     Kind = iota
	Password      // numbers are secrets too
	Secret
	Line   // a header: the value is the rest of the line
	Cookie // a header that is also a word of prose
	Weak   // "pass": a secret in JSON and before "="
	Likely // "auth": a secret where the value looks like one
	Key    // "<service>_key": a secret where the value is random
	PII    // a birthday, an address, a passport's number
	Person // a person's name
	Number // a phone or social security number: in text its digits tell
)

// IsSecret reports whether the value is a secret rather than personal.
func (k Kind) IsSecret() bool { return k >= Password && k <= Key }

// wordsBy holds words by their first byte, pairsBy pairs by that of their second word.
var wordGate, pairGate, aboutGate, qualifierGate, wordsBy, pairsBy = nameTables()

func nameTables() (w, p, a, q char.WordGate, by [256][]word, pairsBy [256][]pair) {
	for _, t := range about {
		a.Add(t)
	}
	for _, t := range qualifiers {
		q.Add(t)
	}
	for _, e := range words {
		w.Add(e.text)
		by[e.text[0]] = append(by[e.text[0]], e)
	}
	for _, e := range pairs {
		p.Add(e.second)
		pairsBy[e.second[0]] = append(pairsBy[e.second[0]], e)
	}
	return w, p, a, q, by, pairsBy
}

// Tails has the last two bytes of words, of each its low five bits: most words of
// ordinary names have other ones than those that tell something.
type Tails [32]uint32

// Add adds a word of at least two bytes.
func (t *Tails) Add(w string) { t[w[len(w)-2]&31] |= 1 << (w[len(w)-1] & 31) }

// May reports whether t may hold a word that ends in those bytes.
func (t *Tails) May(a, b byte) bool { return t[a&31]>>(b&31)&1 != 0 }

// tails are those of the words that kindOfWord knows.
var tails = tailsOfWords()

func tailsOfWords() (t Tails) {
	for _, e := range words {
		t.Add(e.text)
	}
	for _, e := range pairs {
		t.Add(e.second)
	}
	for _, w := range endings {
		t.Add(w)
	}
	for _, w := range [...]string{"passwd", "password", "secret", "token", "key", "passwords"} {
		t.Add(w)
	}
	return t
}

// NewTails returns the tails of the names that OfName knows and that end in a letter of ASCII.
func NewTails() Tails {
	t := tails
	for _, w := range qualifiers {
		t.Add(w)
	}
	return t
}

// mayTell reports whether kindOfWord may know w: by its tail, or as it has digits at it.
func mayTell(w []byte) bool {
	n := len(w)
	return n > 1 && (tails.May(w[n-2], w[n-1]) || char.Class[w[n-1]]&char.Digit != 0)
}

// Of judges a name such as X-Api-Key, dbPassword or client_secret.
func Of(name []byte) Kind { return OfName(mask.Without(name)) }

// OfName is Of for a name without a mask in it. It looks at the last
// 64 bytes, word by word.
func OfName(name []byte) Kind {
	if len(name) > 64 {
		name = name[len(name)-64:]
	}
	best := None
	var prev []byte
	if len(name) == 2 && string(name) == "PW" {
		return Likely // a country too
	}
	for i := 0; i < len(name); {
		if char.Class[name[i]]&char.Word == 0 {
			i++
			continue
		}
		start := i
		before := char.Class[name[i]]
		for i++; i < len(name); i++ {
			bits := char.Class[name[i]]
			if bits&char.Word == 0 || bits&char.Upper != 0 && before&char.Lower != 0 {
				break
			}
			before = bits
		}
		w := name[start:i]
		if prev == nil && i < len(name) && isAnyOf(w, headWords[:]) || len(w) == 8 && char.EqualFold(w, "nopasswd") {
			return None
		}
		k := None
		if mayTell(w) {
			k = kindOfWord(prev, w, name[i:], prev == nil)
		}
		if k != None {
			best = k
		} else if best != None && isIn(w, &aboutGate, about[:]) && isQualified(name[i:]) {
			return None
		}
		prev = w
	}
	return best
}

// HasName reports whether one of the words of a sentence, or two of them, names a password or another secret.
func HasName(sentence []byte) bool {
	var last []byte
	for w := range bytes.FieldsSeq(sentence) {
		w = bytes.Trim(w, "*_`'\",.")
		if k := OfName(w); k == Password || k == Secret {
			return true
		}
		if last != nil && len(w) > 1 && MayEndPair(w) && OfPair(last, w).IsSecret() {
			return true
		}
		last = w
	}
	return false
}

// nextWord returns the word of name that begins at i or after it, and its end, or
// nil. A word ends at a sign or where a capital follows a small letter.
func nextWord(name []byte, i int) (w []byte, end int) {
	for i < len(name) && char.Class[name[i]]&char.Word == 0 {
		i++
	}
	if i == len(name) {
		return nil, i
	}
	start := i
	before := char.Class[name[i]]
	for i++; i < len(name); i++ {
		bits := char.Class[name[i]]
		if bits&char.Word == 0 || bits&char.Upper != 0 && before&char.Lower != 0 {
			break
		}
		before = bits
	}
	return name[start:i], i
}

// isIn reports whether list, which gate describes, has w in any case.
func isIn(w []byte, gate *char.WordGate, list []string) bool {
	if !gate.May(w[0], len(w)) {
		return false
	}
	for _, t := range list {
		if char.EqualFold(w, t) {
			return true
		}
	}
	return false
}

// isQualified reports whether rest, what follows a word of a name, has only numbers
// and qualifiers.
func isQualified(rest []byte) bool {
	for i := 0; ; {
		w, end := nextWord(rest, i)
		if w == nil {
			return true
		}
		if !isIn(w, &qualifierGate, qualifiers[:]) && char.DigitsFrom(w, 0, len(w)) < len(w) {
			return false
		}
		i = end
	}
}

// kindOfWord judges one word after another, in any case. rest is what follows it in
// the name. Digits at its end do not count.
func kindOfWord(prev, w, rest []byte, first bool) Kind {
	if w[len(w)-1] <= '9' {
		w = bytes.TrimRight(w, "0123456789")
	}
	if len(w) < 2 {
		return None
	}
	if prev != nil && MayEndPair(w) {
		if k := OfPair(prev, w); k != None {
			return k
		}
		if len(prev) > 1 && char.EqualFold(w, "key") && isQualified(rest) && !isRenamed(prev, w) {
			return Key
		}
	}
	if wordGate.May(w[0], len(w)) {
		list := wordsBy[char.ToLower(w[0])]
		for k := range list {
			e := &list[k]
			if !char.EqualFold(w, e.text) {
				continue
			}
			if e.place == anywhere && (e.kind != Likely || len(rest) < 24 && bytes.IndexByte(rest, '=') < 0) ||
				isQualified(rest) && (e.place == atEnd || first) {
				if prev != nil && isRenamed(prev, w) {
					return None
				}
				return e.kind
			}
		}
	}
	return kindOfEnding(w, rest)
}

// isRenamed reports whether the word before w makes it something else.
func isRenamed(prev, w []byte) bool {
	for k := range notBefore {
		if e := &notBefore[k]; char.EqualFold(w, e.word) {
			for _, t := range e.before {
				if char.EqualFold(prev, t) {
					return true
				}
			}
		}
	}
	return false
}

// kindOfEnding reads words that run together: dbpassword, mytoken.
func kindOfEnding(w, rest []byte) Kind {
	if len(w) < 6 {
		return None
	}
	switch c := w[len(w)-1]; c | 0x20 {
	case 'd':
		if char.HasFoldSuffix(w, "passwd") || char.HasFoldSuffix(w, "password") {
			return Password
		}
	case 't':
		if char.HasFoldSuffix(w, "secret") {
			return Secret
		}
	case 'n':
		if char.HasFoldSuffix(w, "token") && isQualified(rest) && !isRenamed(w[:len(w)-len("token")],
			w[len(w)-len("token"):]) {
			return Secret
		}
	case 'y':
		if char.HasFoldSuffix(w, "apikey") || char.HasFoldSuffix(w, "accesskey") ||
			char.HasFoldSuffix(w, "secretkey") || char.HasFoldSuffix(w, "privatekey") {
			return Secret
		}
		if n := len(w) - len("key"); char.HasFoldSuffix(w, "key") && !hasDigit(w) && isQualified(rest) &&
			!isRenamed(w[:n], w[n:]) {
			return Key
		}
	case 's':
		if char.HasFoldSuffix(w, "passwords") {
			return Password
		}
	default:
		if c < 0x80 {
			return None
		}
		for _, t := range endings {
			if bytes.HasSuffix(w, []byte(t)) {
				return Password
			}
		}
	}
	return None
}

// MayEndPair reports whether w may be the second of two words that OfPair knows.
func MayEndPair(w []byte) bool { return pairGate.May(w[0], len(w)) }

// OfPair judges two words that follow each other.
func OfPair(a, b []byte) Kind {
	list := pairsBy[char.ToLower(b[0])]
	for k := range list {
		e := &list[k]
		if !char.EqualFold(b, e.second) {
			continue
		}
		for _, first := range e.first {
			if char.EqualFold(a, first) {
				return e.kind
			}
		}
	}
	return None
}

// OfFlag says what a string of a list tells of the next one.
func OfFlag(s []byte) Kind {
	if len(s) < 4 || len(s) > 64 || s[0] != '-' || bytes.IndexByte(s, '=') >= 0 || bytes.IndexByte(s, ' ') >= 0 {
		return None
	}
	if k := Of(bytes.TrimLeft(s, "-")); k.IsSecret() {
		return k
	}
	return None
}
