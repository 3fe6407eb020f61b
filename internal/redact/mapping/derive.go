package mapping

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// mailDomain is the reserved domain of placeholders for addresses (RFC 2606).
const mailDomain = "@mail.example"

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
		return s.makeWord(12) + mailDomain, 0
	}
	mixed := countMixed(value)
	if isNumber(value) && mixed < 2*minMixed {
		if mixed < 6 {
			return s.makeDigits(12), 0
		}
		return s.makeLike(value, 0), 0
	}
	if mixed < minMixed {
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

// isNumber reports whether a value has digits and no letters.
func isNumber(value []byte) bool {
	digits := 0
	for _, c := range value {
		switch {
		case isDigit(c):
			digits++
		case isLetter(c) || c >= 0x80:
			return false
		}
	}
	return digits > 0
}

// isArmour reports whether a value is a block such as a private key in PEM.
func isArmour(value []byte) bool {
	return bytes.HasPrefix(value, []byte("-----BEGIN ")) && bytes.IndexByte(value, '\n') > 0
}

// prefixOf returns the length of the prefix that shows a token's kind.
func prefixOf(rule string, value []byte) int {
	switch rule {
	case "secret.aws_key_id", "secret.google":
		return min(4, len(value)/3)
	case "secret.jwt":
		return min(3, len(value)/3)
	case "secret.assignment", "secret.field", "secret.again", "secret.literal", "secret.url", "secret.connection":
		return 0
	}
	if !strings.HasPrefix(rule, "secret.") {
		return 0
	}
	head := value[:min(len(value)/3, 16)]
	for i, c := range head {
		if !isLetter(c) && !isDigit(c) && c != '_' && c != '-' {
			head = head[:i]
			break
		}
	}
	return 1 + bytes.LastIndexAny(head, "_-")
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
// everything else unchanged.
func (s *source) makeLike(value []byte, kept int) string {
	out := bytes.Clone(value)
	first := true
	for i := kept; i < len(out); i++ {
		switch c := out[i]; {
		case c >= 'a' && c <= 'z':
			out[i] = 'a' + s.pickBelow(26)
		case c >= 'A' && c <= 'Z':
			out[i] = 'A' + s.pickBelow(26)
		case c >= '1' && c <= '9' && first: // a number stays one, and keeps its length
			out[i] = '1' + s.pickBelow(9)
		case isDigit(c):
			out[i] = '0' + s.pickBelow(10)
		case c >= 0x80:
			out[i] = 'a' + s.pickBelow(26)
		default:
			continue
		}
		first = false
	}
	return string(out)
}

// makeArmour is makeLike, with the lines that say what the block is as they are.
func (s *source) makeArmour(value []byte) string {
	var out []byte
	for line := range bytes.Lines(value) {
		if bytes.HasPrefix(line, []byte("-----")) {
			out = append(out, line...)
			continue
		}
		out = append(out, s.makeLike(line, 0)...)
	}
	return string(out)
}
