package guess

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// The least lengths of a secret that nothing but its surroundings tells: the
// value of a name that says so, a run near a word that says so, and a run that
// stands alone.
const (
	minNamedSecret = 8
	minNearSecret  = 10
	minLoneSecret  = 20
	// maxLoneSecret: what is longer is data, not a credential.
	maxLoneSecret = 200
)

// How many bits of evidence speak for random characters (see evidence).
const (
	bitsNamed = 7
	bitsNear  = 14
	bitsLone  = 32
)

// token is a run of words joined by signs.
type token struct {
	at, end int
	have    uint16
	joins   uint
}

// opaqueRun judges a run that no assignment named: near a word for secrets,
// or alone.
func (x *reader) opaqueRun(t token) {
	for n := cursor.Mark(x.S[:t.end], t.at); n > 0 && t.at+n < t.end; n = cursor.Mark(x.S[:t.end], t.at) {
		t.at += n
	}
	t.at = x.BehindEscape(t.at, t.end)
	if t.have&char.Digit == 0 || t.have&char.Letter == 0 {
		if t.have&char.Upper == 0 || t.have&char.Lower == 0 || t.end-t.at < 16 {
			return
		}
	}
	if t.end-t.at > maxLoneSecret {
		return
	}
	v := x.S[t.at:t.end]
	if x.inAddress(t) || structured(v, t.joins) || x.hashed(t.at) {
		return
	}
	bits := evidence(v)
	if bits < bitsNear {
		return
	}
	hint, direct := x.secretNear(t.at)
	switch {
	case hint == hintNot:
		return
	case hint == hintSecret && (direct || longestPart(v) >= minNearSecret):
		if hexOnly(v) && t.end-t.at < 16 {
			return
		}
	case t.end-t.at < minLoneSecret || bits < bitsLone || t.joins&(joinDot|joinSlash) != 0 && looksLikePath(v):
		return
	case hexOnly(v) || t.have&char.Digit == 0 || x.inBlock(t) || knownID(v) || encodesText(v):
		return
	case t.have&char.Upper == 0 && t.joins != 0 && longestPart(v) < minLoneSecret:
		return
	}
	x.guess(t.at, x.padding(t.end), rule.GuessSecret)
}

// padding steps over the "=" that fill up base64.
func (x *reader) padding(i int) int {
	e := i
	for e < x.hi && e-i < 2 && x.S[e] == '=' {
		e++
	}
	if e < x.hi && char.Class[x.S[e]]&char.Word != 0 {
		return i
	}
	return e
}

// opaqueValue judges the value behind the sign at i by the name before it. The
// value is looked at first: most are no candidates, and names are dearer.
func (x *reader) opaqueValue(i int) {
	if i < x.valueLow {
		return
	}
	v := i + 1
	for n := 0; n < 2 && v < x.hi && (x.S[v] == '=' || x.S[v] == '>'); n++ {
		v++
	}
	v = min(x.End(v, 4, char.Blank), x.hi)
	quoted := byte(0)
	for n := 0; n < 4 && v < x.hi && x.S[v] == '\\'; n++ {
		v++
	}
	if v < x.hi && char.IsQuote(x.S[v]) {
		quoted = x.S[v]
		v++
	}
	end, t := x.opaqueEnd(v, quoted)
	if end-v < minNamedSecret || v < x.low || t.have&char.Alnum == 0 {
		return
	}
	start, stop := x.Name(i)
	if start < x.lo || start >= stop {
		return
	}
	if x.secretName(start, stop) != hintSecret {
		return
	}
	if !opaque(x.S[v:min(end, v+guessAhead)], t) {
		return
	}
	x.guess(v, end, rule.GuessSecret)
}

// secretName judges the name at [start, stop), with the word before it where
// it stands behind a blank ("signing key: x").
func (x *reader) secretName(start, stop int) hint {
	h := hintOfName(x.S[start:stop])
	if h != hintNone || !x.Is(start-1, char.Blank) {
		return h
	}
	b, e := x.wordBefore(start, 2)
	if b == e {
		return hintNone
	}
	return hintOfName(x.S[b:stop])
}

// opaqueEnd finds the end of a value: its quote, or what cannot belong to one.
// What is not ended by then goes on over opaque characters.
func (x *reader) opaqueEnd(v int, quote byte) (int, token) {
	t := token{at: v}
	j := v
	for ; j < x.hi; j++ {
		c := x.S[j]
		bits := char.Class[c]
		switch {
		case bits&char.Space != 0, c == quote && quote != 0, char.IsQuote(c), c == '<', c == '>', c == '\\':
		case quote == 0 && (c == ',' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '{' ||
			c == '}' || c == '[' || c == ']'):
		case c == '=' && j+1 < x.hi && char.Class[x.S[j+1]]&char.Word != 0: // a name, not a value
			return v, t
		case j-v >= guessAhead && bits&(char.Alnum|char.Symbol) == 0:
		default:
			t.have |= bits
			t.joins |= joint(c)
			continue
		}
		break
	}
	x.valueLow = max(x.valueLow, j)
	if quote != 0 && j < x.hi && char.Class[x.S[j]]&char.Blank != 0 {
		return v, t // a quoted sentence
	}
	for quote == 0 && j > v && (x.S[j-1] == '.' || x.S[j-1] == ':' || x.S[j-1] == '!' || x.S[j-1] == '?') {
		j--
	}
	t.end = j
	return j, t
}

// opaque says whether the value of a name that says "secret" looks like one.
func opaque(v []byte, t token) bool {
	if structured(v, t.joins) || looksLikePath(v) || refersTo(v) {
		return false
	}
	if hexOnly(v) {
		return len(v) >= 12 && t.have&char.Digit != 0
	}
	if t.have&char.Digit != 0 && t.have&char.Letter == 0 {
		return false
	}
	return evidence(v) >= bitsNamed
}

// inAddress says whether the run is a part of a URL, of a path or of an
// encoded image: what stands before it tells.
func (x *reader) inAddress(t token) bool {
	if t.at == x.lo {
		return false
	}
	s := x.S
	switch s[t.at-1] {
	case '/':
		return true
	case ',':
		return t.at-x.lo >= 8 && x.Has(t.at-7, "base64,")
	case '\\':
		return t.at-x.lo >= 2 && char.Class[s[t.at-2]]&char.Word != 0
	case '.', '#', '$', '@', '%':
		return true
	}
	return false
}

// hashed says whether "sha256:", "SHA256:", "h1:", "sha512-" or the like
// stands before i.
func (x *reader) hashed(i int) bool {
	if i == x.lo || x.S[i-1] != ':' && x.S[i-1] != '-' && x.S[i-1] != ' ' {
		return false
	}
	b := i - 1
	for b > x.lo && i-b < 24 && char.Class[x.S[b-1]]&(char.Alnum|char.URL64) != 0 {
		b--
	}
	b = x.BehindEscape(b, i-1)
	var buf [24]byte
	switch string(smallCased(&buf, x.S[b:i-1])) {
	case "sha1", "sha-1", "sha256", "sha-256", "sha384", "sha512", "sha-512", "md5", "h1", "blake3", "blake2b", "xxh64",
		"ssh-rsa", "ssh-ed25519", "ssh-dss", "ecdsa-sha2-nistp256":
		return true
	}
	return false
}

// inBlock says whether the run is a line of its own in a block of base64: a
// line before it or behind it is one too.
func (x *reader) inBlock(t token) bool {
	end := x.padding(t.end)
	from := t.at
	for from > 0 && t.at-from < 80 && char.Class[x.S[from-1]]&char.Std64 != 0 {
		from--
	}
	if from > 0 && x.S[from-1] != '\n' || end < len(x.S) && x.S[end] != '\n' && x.S[end] != '\r' {
		return false
	}
	b := from - 1
	if b > 0 && x.S[b-1] == '\r' {
		b--
	}
	n := 0
	for b > 0 && n < minBlock && char.Class[x.S[b-1]]&char.Std64 != 0 {
		b, n = b-1, n+1
	}
	if n == minBlock {
		return true
	}
	next := min(x.End(end, 2, char.Space), len(x.S))
	return x.End(next, minBlock, char.Std64)-next == minBlock
}

// minBlock is how long a line is that makes a block.
const minBlock = 40
