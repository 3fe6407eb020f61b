package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// IsPrivatePart reports whether a member of a JSON Web Key is a part that its owner
// keeps (RFC 7518 section 6, RFC 8037, and "priv" of the keys of ML-DSA).
func IsPrivatePart(name []byte) bool {
	switch string(name) {
	case "d", "p", "q", "dp", "dq", "qi", "k", "priv":
		return true
	}
	return false
}

// minPart is the shortest private part of a JSON Web Key in text.
const minPart = 16

// endsPart are the bytes that may precede the ":" after a name that webKeyMember knows.
var endsPart = endsOfParts()

func endsOfParts() (t [256]bool) {
	for _, c := range []byte("dpqikvy\"'`") {
		t[c] = true
	}
	return t
}

// webKeyMember masks the private part of a JSON Web Key whose name ends before the ":"
// at i, and reports whether it is one. It remembers that a key's type was read: its
// other members follow.
func (x *Scanner) webKeyMember(i int) bool {
	if i < 2 || !endsPart[x.S[i-1]] || char.IsQuote(x.S[i-1]) && x.S[i-2] != '\\' && !endsPart[x.S[i-2]] {
		return false
	}
	e := i
	if char.IsQuote(x.S[e-1]) {
		for e--; e > 0 && x.S[e-1] == '\\' && i-e < 8; {
			e--
		}
	}
	b := e
	for b > 0 && e-b < 5 && char.Class[x.S[b-1]]&char.Lower != 0 {
		b--
	}
	if n := e - b; n == 0 || n > 4 || b > 0 && char.Class[x.S[b-1]]&(char.Ident|char.Word) != 0 {
		return false
	}
	isType := string(x.S[b:e]) == "kty"
	if !isType && !IsPrivatePart(x.S[b:e]) {
		return false
	}
	v := x.End(i+1, 8, char.Space)
	for n := 0; n < 8 && x.Has(v, `\`); n++ {
		v++
	}
	if v < len(x.S) && char.IsQuote(x.S[v]) {
		v++
	}
	if isType {
		for _, t := range [...]string{"RSA", "EC", "OKP", "oct", "AKP"} {
			if x.Has(v, t) && !x.Is(v+len(t), char.Alnum) {
				x.webKeyEnd = i + MaxAhead
			}
		}
		return false
	}
	end := x.End(v, MaxAhead/2, char.URL64)
	if end-v < minPart || i >= x.webKeyEnd && !x.isInWebKey(i) {
		return false
	}
	x.mask(v, end, rule.PrivateKey)
	return true
}

// isInWebKey reports whether the object around i has a key's type.
func (x *Scanner) isInWebKey(i int) bool {
	before := x.S[max(0, i-MaxBefore):i]
	before = before[bytes.LastIndexByte(before, '{')+1:]
	if bytes.Contains(before, []byte("kty")) {
		return true
	}
	after := x.S[i:min(len(x.S), i+MaxAhead)]
	if n := bytes.IndexByte(after, '}'); n >= 0 {
		after = after[:n]
	} else {
		x.Touch(i + MaxAhead)
	}
	return bytes.Contains(after, []byte("kty"))
}
