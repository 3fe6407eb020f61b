package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/holdfast-dev/holdfast"
)

const (
	minLiteral = 4
	maxLiteral = 65_536
)

// literals finds known secrets in any of their forms. A table of the first
// two bytes decides in one step per byte whether any can begin here.
type literals struct {
	first []uint64 // 65 536 bits
	forms map[uint16][][]byte
}

func newLiterals(secrets []holdfast.Secret) (*literals, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	l := &literals{first: make([]uint64, 65536/64), forms: map[uint16][][]byte{}}
	for i, s := range secrets {
		text := s.Reveal()
		if len(text) < minLiteral || len(text) > maxLiteral {
			return nil, &holdfast.Error{
				Kind: holdfast.KindValue, Gate: holdfast.K6, Rule: "redact/literal",
				Why:  "literal " + strconv.Itoa(i) + " has " + strconv.Itoa(len(text)) + " bytes",
				Hint: "a registered secret is 4 to 65536 bytes long",
			}
		}
		for _, f := range forms(text) {
			l.add(f)
		}
	}
	for _, list := range l.forms {
		slices.SortFunc(list, func(a, b []byte) int { return len(b) - len(a) })
	}
	return l, nil
}

func (l *literals) add(f []byte) {
	k := uint16(f[0])<<8 | uint16(f[1])
	for _, have := range l.forms[k] {
		if bytes.Equal(have, f) {
			return
		}
	}
	l.first[k>>6] |= 1 << (k & 63)
	l.forms[k] = append(l.forms[k], f)
}

// forms returns every way in which text is expected to be written.
func forms(text string) [][]byte {
	out := [][]byte{[]byte(text)}
	quoted, _ := jsontext.AppendQuote(nil, text)
	out = append(out, quoted[1:len(quoted)-1])
	h := hex.EncodeToString([]byte(text))
	out = append(out, []byte(h), []byte(strings.ToUpper(h)))
	for _, u := range []string{url.QueryEscape(text), url.PathEscape(text)} {
		out = append(out, []byte(u), []byte(lowerEscapes(u)))
	}
	for shift := range 3 {
		out = append(out, aligned(text, shift, base64.RawStdEncoding), aligned(text, shift, base64.RawURLEncoding))
	}
	return slices.DeleteFunc(out, func(f []byte) bool { return len(f) < minLiteral })
}

// aligned returns the base64 characters that text alone decides when shift
// bytes stand before it.
func aligned(text string, shift int, enc *base64.Encoding) []byte {
	b := enc.EncodeToString(append(make([]byte, shift), text...))
	from := (shift*8 + 5) / 6
	to := (shift + len(text)) * 8 / 6
	return []byte(b[from:to])
}

func lowerEscapes(u string) string {
	b := []byte(u)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			b[i+1], b[i+2] = lower(b[i+1]), lower(b[i+2])
		}
	}
	return string(b)
}

// find returns where literals stand, in order and without overlap.
func (l *literals) find(s []byte) []span {
	var out []span
	for i := 0; i+1 < len(s); i++ {
		k := uint16(s[i])<<8 | uint16(s[i+1])
		if l.first[k>>6]&(1<<(k&63)) == 0 {
			continue
		}
		for _, f := range l.forms[k] {
			if bytes.HasPrefix(s[i:], f) {
				out = append(out, span{i, i + len(f), ruleLiteral})
				i += len(f) - 1
				break
			}
		}
	}
	return out
}
