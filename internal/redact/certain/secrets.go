package certain

import (
	"bytes"
	"encoding/base64"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/token"
)

// prefix judges the "_" or "." at i.
func (x *Scanner) prefix(i int) int {
	if i < 2 || len(x.S)-i < 10 {
		x.Touched = x.Touched || x.S[i] == '_' // a setting may follow
		return i + 1
	}
	a, b := x.S[i-2], x.S[i-1]
	if x.S[i] != '.' {
		x.oneOf(i, token.ByUnderscore.Find(a, b))
		if c := x.S[i+1]; c == 'K' || c == 'P' || c == 'S' || c == 'T' || c == 'k' {
			x.setting(i)
		}
		return i + 1
	}
	x.oneOf(i, token.ByDot.Find(a, b))
	x.dottedParts(i)
	return i + 1
}

// oneOf tries the prefixes that end at i.
func (x *Scanner) oneOf(i int, list []token.Prefix) {
	for k := range list {
		p := &list[k]
		start := i + 1 - len(p.Text)
		if x.Has(start, p.Text) && x.maskPrefixed(start, p) {
			return
		}
	}
}

// maskPrefixed masks the token of p if it begins at start, where its text is.
func (x *Scanner) maskPrefixed(start int, p *token.Prefix) bool {
	if !p.Match(&x.Cursor, start) {
		return false
	}
	x.mask(start, p.End(&x.Cursor, max(start+len(p.Text)+len(p.Then), x.low)), p.Rule)
	return true
}

// dash judges the "-" at i: a key's armour, a prefix, or a command's flag.
func (x *Scanner) dash(i int) int {
	if i == 0 {
		return x.shortFlag(i)
	}
	if x.S[i-1] != '-' {
		if i > 1 {
			x.oneOf(i, token.ByDash.Find(x.S[i-2], x.S[i-1]))
		}
		if char.Class[x.S[i-1]]&char.Space != 0 || char.IsQuote(x.S[i-1]) {
			return x.shortFlag(i)
		}
		if x.Has(i+1, "us") {
			x.mailchimp(i)
		}
		return i + 1
	}
	if x.Has(i+1, "BEGIN ") && x.Has(i-4, "-----") {
		return x.armour(i - 4)
	}
	if x.Has(i+1, " BEGIN SSH2 ") && x.Has(i-3, "----") {
		return x.armourSSH2(i - 3)
	}
	if x.Is(i+1, char.Letter) && (i < 2 || x.S[i-2] != '-') {
		return x.flag(i + 1)
	}
	return i + 1
}

// jwt judges the "J" of an "eyJ" at i: two or more dotted parts of which the
// first two are JSON objects (RFC 7519, RFC 7516).
func (x *Scanner) jwt(i int) int {
	start := i - 2
	if start < x.jwtLow || !x.Has(start, "eyJ") {
		x.azure(i)
		return i + 1
	}
	if x.Has(start, "eyJrIjoi") && grafana.Follows(&x.Cursor, start) {
		x.mask(start, grafana.End(&x.Cursor, max(start, x.low)), rule.Token)
	}
	dot := x.End(start, MaxAhead/2, char.URL64)
	x.jwtLow = dot
	if dot-start < 8 || !x.Is(dot+1, char.URL64) || x.S[dot] != '.' {
		return i + 1
	}
	end := x.End(dot+1, len(x.S), char.URL64)
	if !x.Has(dot+1, "eyJ") && (end == len(x.S) || x.S[end] != '.' || end-start > 3*MaxAhead/4) {
		return i + 1
	}
	for n := 0; n < 3 && end < len(x.S) && x.S[end] == '.'; n++ {
		end = x.End(end+1, len(x.S), char.URL64)
	}
	if x.S[end-1] == '.' {
		end--
	}
	x.mask(start, end, rule.JWT)
	return i + 1
}

// grafana is an API key of before 2023: the base64 of {"k":"...","n":...}.
var grafana = token.Prefix{Class: char.Std64, More: "=", Min: 60}

// awsKeyID judges the third letter of "AKIA" or the second of "ASIA" at i,
// and the secret that may follow closely.
func (x *Scanner) awsKeyID(i int) int {
	if i == 0 || x.S[i-1] != 'A' || !x.Has(i+1, "IA") {
		return i + 1
	}
	if x.End(i+3, 16, char.Upper|char.Digit) < i+19 || token.IsInside(x.S, i-1, token.SureNoise) {
		return i + 1
	}
	end := x.rest(i+3, char.Upper|char.Digit)
	x.mask(i-1, end, rule.AWSKeyID)
	x.awsSecret(end)
	return i + 1
}

// awsSecret masks a run of exactly 40 base64 bytes within 80 bytes of i, with
// letters of both cases: a hash has one.
func (x *Scanner) awsSecret(i int) {
	x.Touch(i + 80 + 42)
	for p := i; p < min(i+80, len(x.S)); {
		e := x.End(p, 42, char.Std64)
		if e-p == 40 && mixedCase(x.S[p:e]) {
			x.mask(p, e, rule.AWSSecret)
			return
		}
		p = e + 1
	}
}

func mixedCase(b []byte) bool {
	var have uint16
	for _, c := range b {
		have |= char.Class[c]
	}
	return have&char.Upper != 0 && have&char.Lower != 0
}

// google judges the "z" of an "AIza" at i.
func (x *Scanner) google(i int) int {
	if !x.Has(i-2, "AIza") || x.End(i+2, 32, char.URL64)-i-2 < 30 || token.IsInside(x.S, i-2, token.SureNoise) {
		return i + 1
	}
	x.mask(i-2, x.rest(i+2, char.URL64), rule.Google)
	return i + 1
}

// scheme judges the "b" of "Bearer x" or "Basic x" at i (RFC 9110 section 11).
func (x *Scanner) scheme(i int) int {
	word, r := "bearer", rule.Bearer
	if x.Is(i+1, char.Alnum) && x.S[i+1]|0x20 == 'a' {
		word, r = "basic", rule.Basic
	}
	if !x.Fold(i, word) || !x.Begins(i) {
		return i + 1
	}
	v := x.End(i+len(word), 8, char.Blank)
	if x.Has(v, "%20") {
		v += 3
	}
	if v == i+len(word) {
		return i + 1
	}
	e := x.End(v, len(x.S), char.Alnum|char.Symbol)
	for x.Has(e, "%") && x.End(e+1, 2, char.Hex) == e+3 {
		e = x.End(e+3, len(x.S), char.Alnum|char.Symbol)
	}
	for n := 0; n < maxTail && e > v && x.S[e-1] == '.'; n++ {
		e--
	}
	if e > v && e < min(len(x.S), v+maxJudged) && x.S[e-1] == '=' && (char.IsQuote(x.S[e]) || x.S[e] == '\\') {
		return i + 1 // a challenge: realm="..."
	}
	if r == rule.Bearer && e-v < minLong && (x.Has(e, "...") || e-v < minBearer && !x.isHeader(i)) {
		return i + 1 // an example, or one that is cut
	}
	if r == rule.Basic && isBasic(x.S[v:e]) || r == rule.Bearer && isBearer(x.S[v:e]) {
		x.mask(v, e, r)
	}
	return i + 1
}

// The shortest token after a scheme without the name of a header, and the length from which
// it needs neither digits nor capitals. Shorter ones are examples: abc123.
const (
	minBearer = 12
	minLong   = 20
)

// isHeader reports whether the name of a header for credentials is before i.
func (x *Scanner) isHeader(i int) bool {
	e := x.back(i, max(0, i-8), char.Blank, "\"'`\\")
	if e == 0 || x.S[e-1] != ':' && x.S[e-1] != '=' {
		return false
	}
	b, e := x.Name(e - 1)
	return fieldname.OfName(x.S[b:e]) == fieldname.Line
}

// isBearer tells a token from the next word of a sentence and from what a text wants
// replaced: YOUR_TOKEN.
func isBearer(v []byte) bool {
	if len(v) < 4 || fieldname.IsFiller(v) || fieldname.IsNameOfSecret(v) {
		return false
	}
	if len(v) >= minLong {
		return true
	}
	for _, c := range v {
		if char.Class[c]&(char.Digit|char.Symbol) != 0 {
			return true
		}
	}
	for _, c := range v[1:] {
		if char.Class[c]&char.Upper != 0 {
			return true
		}
	}
	return false
}

// isBasic says whether v is the base64 of "user:password".
func isBasic(v []byte) bool {
	v = bytes.TrimRight(v, "=")
	if len(v) < 4 {
		return false
	}
	var buf [48]byte
	head := v[:min(len(v), 64)]
	n, err := base64.RawStdEncoding.Decode(buf[:], head[:len(head)&^3])
	if err != nil {
		return false
	}
	return bytes.IndexByte(buf[:n], ':') >= 0 || len(v) >= 24
}
