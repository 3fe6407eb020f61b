package mapping

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
)

// MailDomain ends the placeholders of addresses: a reserved domain (RFC 2606).
const MailDomain = "@mail.example"

// minMixed is the number of letters and digits that distinguish a placeholder from ordinary text. A value
// that has fewer gets a longer placeholder.
const minMixed = 8

// letters are those of the placeholders that do not keep the form of their value: no two of them look alike.
const letters = "abcdefghjkmnpqrstuvwxyz23456789"

// derivePlaceholder returns the placeholder of a value under a key. n is 0 but where that one is real text. It has the
// form of the value: of an address that of an address, of a token its prefix and length, of a number its
// digits; signs and blanks stay where they are, so that escapes that a model writes are the same as
// those of the value. kept is the number of bytes at its beginning that are the value's own.
func derivePlaceholder(key []byte, rule string, value []byte, n byte) (placeholder string, kept int) {
	s := newSource(key, value, n)
	if rule == "email" && bytes.IndexByte(value, '@') > 0 {
		return s.makeWord(12) + MailDomain, 0
	}
	if isProse(rule) && !hasEscapedLetter(value) {
		if text, ok := s.makeProse(value); ok {
			return text, 0
		}
	}
	mixed := countMixed(value)
	if mixed < minMixed && isDigits(value) {
		return s.makeDigits(12), 0
	}
	if rule == rulePrivateKey && mixed < minMixed { // the last line of a key
		return s.makeWord(12), 0
	}
	if mixed < minMixed || hasEscapedLetter(value) { // makeLike would keep it
		return "hf-" + s.makeWord(10), 3
	}
	if isArmour(value) {
		return s.makeArmour(value), 0
	}
	kept = prefixOf(rule, value)
	return s.makeLike(value, kept), kept
}

// countMixed returns how many letters and digits of ASCII a value has.
func countMixed(value []byte) (n int) {
	for _, c := range value {
		if isLetter(c) || isDigit(c) {
			n++
		}
	}
	return n
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// isDigits reports whether a value has digits alone, of which the first is not 0.
func isDigits(value []byte) bool {
	for _, c := range value {
		if !isDigit(c) {
			return false
		}
	}
	return len(value) > 0 && value[0] != '0'
}

// tokenPrefixes are beginnings by which people and models know a token.
var tokenPrefixes = [...]string{
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-ant-api03-", "sk-ant-", "sk-proj-",
	"sk-svcacct-", "sk-",
	"xoxb-", "xoxp-", "xoxa-", "xapp-", "sk_live_", "sk_test_", "rk_live_", "pk_live_", "whsec_", "npm_",
	"pypi-", "hf_", "gsk_",
	"xai-", "r8_", "pplx-", "AKIA", "ASIA", "AIza", "ya29.", "eyJ", "dop_v1_", "shpat_", "lin_api_", "SG.",
}

// prefixOf returns the length of the prefix that shows a token's kind.
func prefixOf(rule string, value []byte) int {
	if !strings.HasPrefix(rule, "secret.") {
		return 0
	}
	n := 0
	for _, p := range tokenPrefixes {
		if len(p) > n && len(p) <= len(value)/3 && bytes.HasPrefix(value, []byte(p)) {
			n = len(p)
		}
	}
	return n
}

// source is a stream of bytes that only who has the key can foresee.
type source struct {
	key, seed []byte
	block     []byte
	n         uint32
}

// newSource returns the source of a value, the same of every rule: one may find it by its name, another by
// its form.
func newSource(key, value []byte, n byte) *source {
	mac := hmac.New(sha256.New, key)
	mac.Write(value)
	mac.Write([]byte{0, n})
	return &source{key: key, seed: mac.Sum(nil)}
}

func (s *source) nextByte() byte {
	if len(s.block) == 0 {
		mac := hmac.New(sha256.New, s.key)
		mac.Write(s.seed)
		mac.Write(binary.BigEndian.AppendUint32(nil, s.n))
		s.block, s.n = mac.Sum(nil), s.n+1
	}
	c := s.block[0]
	s.block = s.block[1:]
	return c
}

// pickBelow returns a number below n, each as often as the others.
func (s *source) pickBelow(n int) byte {
	for {
		if c := int(s.nextByte()); c < 256/n*n {
			return byte(c % n)
		}
	}
}

// makeWord returns n letters, the first of which is no digit.
func (s *source) makeWord(n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = letters[s.pickBelow(len(letters))]
	}
	out[0] = letters[s.pickBelow(23)]
	return string(out)
}

// makeDigits returns n digits, the first of which is not 0.
func (s *source) makeDigits(n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = '0' + s.pickBelow(10)
	}
	out[0] = '1' + s.pickBelow(9)
	return string(out)
}

// makeLike returns a text like value behind the first kept bytes: letters of the same case, digits, and
// everything else unchanged, escapes among it.
func (s *source) makeLike(value []byte, kept int) string {
	out := bytes.Clone(value)
	first, count := true, letterCount(value[kept:])
	for i := kept; i < len(out); i++ {
		if n := escapeLen(value[i:]); n > 0 {
			i += n - 1
			continue
		}
		switch c := out[i]; {
		case c >= 'a' && c <= 'z':
			out[i] = 'a' + s.pickBelow(count)
		case c >= 'A' && c <= 'Z':
			out[i] = 'A' + s.pickBelow(count)
		case c >= '1' && c <= '9' && first: // a number stays one, and keeps its length
			out[i] = '1' + s.pickBelow(9)
		case isDigit(c) && !(c == '0' && first):
			out[i] = '0' + s.pickBelow(10)
		case c >= 0x80:
			out[i] = 'a' + s.pickBelow(26)
		default:
			continue
		}
		first = false
	}
	s.endBase64(out)
	return string(out)
}

// letterCount returns of how many letters, from a on, a text like value is made: 6 for hexadecimal.
func letterCount(value []byte) int {
	if len(value) < 2*minMixed || len(value)%2 != 0 {
		return 26
	}
	for _, c := range value {
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return 26
		}
	}
	return 6
}

// endBase64 has base64 with padding end as encoders end it: with bits that are zero.
func (s *source) endBase64(out []byte) {
	plain := bytes.TrimRight(out, "=")
	if len(out)%4 != 0 || len(plain) < minMixed {
		return
	}
	last := &out[len(plain)-1]
	switch n := len(out) - len(plain); {
	case n == 1 && isDigit(*last):
		*last = "048"[s.pickBelow(3)]
	case n == 1 && *last >= 'a' && *last <= 'z':
		*last = "cgkosw"[s.pickBelow(6)]
	case n == 1 && *last >= 'A' && *last <= 'Z':
		*last = "AEIMQUY"[s.pickBelow(7)]
	case n == 2 && *last >= 'a' && *last <= 'z':
		*last = "gw"[s.pickBelow(2)]
	case n == 2 && *last >= 'A' && *last <= 'Z':
		*last = "AQ"[s.pickBelow(2)]
	}
}

// escapeLen returns the length of the escape of JSON, of code or of a URL that text begins with, 0 for none.
func escapeLen(text []byte) int {
	isHex := func(from, to int) bool {
		for i := from; i < to; i++ {
			if i >= len(text) || !isDigit(text[i]) && (text[i]|0x20 < 'a' || text[i]|0x20 > 'f') {
				return false
			}
		}
		return true
	}
	switch {
	case len(text) > 2 && text[0] == '%' && isHex(1, 3):
		return 3
	case len(text) < 2 || text[0] != '\\':
		return 0
	case text[1] == 'u' && isHex(2, 6):
		return 6
	case bytes.IndexByte([]byte(`nrtbf"\/`), text[1]) >= 0:
		return 2
	}
	return 0
}

// hasEscapedLetter reports whether a value has a letter or digit that is percent-encoded or written as \u0041, or a
// character beyond ASCII that is.
func hasEscapedLetter(value []byte) bool {
	for i := 0; i < len(value); i++ {
		n := escapeLen(value[i:])
		if n > 2 {
			c, err := strconv.ParseUint(string(value[i+n/3:i+n]), 16, 16)
			if err != nil || c >= 0x80 || isLetter(byte(c)) || isDigit(byte(c)) {
				return true
			}
		}
		i += max(0, n-1)
	}
	return false
}
