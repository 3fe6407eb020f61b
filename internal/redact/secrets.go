package redact

import (
	"bytes"
	"encoding/base64"
)

// prefix judges the "_" or "." at i.
func (x *scanner) prefix(i int) int {
	if i < 2 || len(x.s)-i < 10 {
		x.touched = x.touched || x.s[i] == '_' // a setting may follow
		return i + 1
	}
	a, b := x.s[i-2], x.s[i-1]
	if x.s[i] != '.' {
		if at := byUnderscore.list[anchorOf(a, b)]; at > 0 {
			x.oneOf(i, byUnderscore.lists[at])
		}
		if c := x.s[i+1]; c == 'K' || c == 'P' || c == 'S' || c == 'T' || c == 'k' {
			x.setting(i)
		}
		return i + 1
	}
	if at := byDot.list[anchorOf(a, b)]; at > 0 {
		x.oneOf(i, byDot.lists[at])
	}
	x.dottedParts(i)
	return i + 1
}

// oneOf tries the prefixes that end at i.
func (x *scanner) oneOf(i int, list []prefix) {
	for k := range list {
		p := &list[k]
		start := i + 1 - len(p.text)
		if x.has(start, p.text) && x.prefixed(start, p) {
			return
		}
	}
}

// prefixed judges what follows the text of p at start, and masks it.
func (x *scanner) prefixed(start int, p *prefix) bool {
	v := start + len(p.text)
	if p.bound && !x.begins(start) || p.then != "" && !x.has(v, p.then) {
		return false
	}
	v += len(p.then)
	if !x.follows(v, p) {
		return false
	}
	x.mask(start, x.tail(v, p), p.rule)
	return true
}

func (p *prefix) holds(c byte) bool {
	return class[c]&p.class != 0 || p.more != "" && indexByte(p.more, c) >= 0
}

// maxFollow is how far behind a prefix is read to decide.
const maxFollow = 128

// follows says whether enough of p's class stands at i, and not too much.
func (x *scanner) follows(i int, p *prefix) bool {
	mixed := !p.mixed
	n, stop := 0, maxFollow
	if p.max > 0 {
		stop = p.max + 1
	}
	for ; n < stop && i+n < len(x.s) && p.holds(x.s[i+n]); n++ {
		mixed = mixed || class[x.s[i+n]]&(isDigit|isUpper) != 0
	}
	if p.max > 0 && (n > p.max || x.is(i+n, isAlnum)) {
		return false
	}
	return n >= p.min && mixed
}

// tail returns the end of what belongs to p; a full stop at its end is the
// sentence's.
func (x *scanner) tail(i int, p *prefix) int {
	for i = max(i, x.low); i < len(x.s) && p.holds(x.s[i]); {
		i++
	}
	x.touch(i)
	for n := 0; n < maxTail && x.s[i-1] == '.'; n++ {
		i--
	}
	return i
}

// dash judges the "-" at i: a key's armour, a prefix, or a command's flag.
func (x *scanner) dash(i int) int {
	if i == 0 {
		return x.shortFlag(i)
	}
	if x.s[i-1] != '-' {
		if i > 1 {
			if at := byDash.list[anchorOf(x.s[i-2], x.s[i-1])]; at > 0 {
				x.oneOf(i, byDash.lists[at])
			}
		}
		if class[x.s[i-1]]&isSpace != 0 || isQuote(x.s[i-1]) {
			return x.shortFlag(i)
		}
		if x.has(i+1, "us") {
			x.mailchimp(i)
		}
		return i + 1
	}
	if x.has(i+1, "BEGIN ") && x.has(i-4, "-----") {
		return x.armour(i - 4)
	}
	if x.has(i+1, " BEGIN SSH2 ") && x.has(i-3, "----") {
		return x.armourSSH2(i - 3)
	}
	if x.is(i+1, isLetter) && (i < 2 || x.s[i-2] != '-') {
		return x.flag(i + 1)
	}
	return i + 1
}

// jwt judges the "J" of an "eyJ" at i: two or more dotted parts of which the
// first two are JSON objects (RFC 7519, RFC 7516).
func (x *scanner) jwt(i int) int {
	start := i - 2
	if start < x.jwtLow || !x.has(start, "eyJ") {
		x.azure(i)
		return i + 1
	}
	if x.has(start, "eyJrIjoi") && x.follows(start, &grafana) {
		x.mask(start, x.tail(start, &grafana), ruleToken)
	}
	dot := x.end(start, maxAhead/2, isURL64)
	x.jwtLow = dot
	if dot-start < 8 || !x.is(dot+1, isURL64) || x.s[dot] != '.' {
		return i + 1
	}
	end := x.end(dot+1, len(x.s), isURL64)
	if !x.has(dot+1, "eyJ") && (end == len(x.s) || x.s[end] != '.' || end-start > 3*maxAhead/4) {
		return i + 1
	}
	for n := 0; n < 3 && end < len(x.s) && x.s[end] == '.'; n++ {
		end = x.end(end+1, len(x.s), isURL64)
	}
	if x.s[end-1] == '.' {
		end--
	}
	x.mask(start, end, ruleJWT)
	return i + 1
}

// grafana is an API key of before 2023: the base64 of {"k":"...","n":...}.
var grafana = prefix{class: isStd64, more: "=", min: 60}

// awsKeyID judges the third letter of "AKIA" or the second of "ASIA" at i,
// and the secret that may stand close behind.
func (x *scanner) awsKeyID(i int) int {
	if i == 0 || x.s[i-1] != 'A' || !x.has(i+1, "IA") {
		return i + 1
	}
	if x.end(i+3, 16, isUpper|isDigit) < i+19 {
		return i + 1
	}
	end := x.rest(i+3, isUpper|isDigit)
	x.mask(i-1, end, ruleAWSKeyID)
	x.awsSecret(end)
	return i + 1
}

// awsSecret masks a run of exactly 40 base64 bytes within 80 bytes of i, with
// letters of both cases: a hash has one.
func (x *scanner) awsSecret(i int) {
	x.touch(i + 80 + 42)
	for p := i; p < min(i+80, len(x.s)); {
		e := x.end(p, 42, isStd64)
		if e-p == 40 && mixedCase(x.s[p:e]) {
			x.mask(p, e, ruleAWSSecret)
			return
		}
		p = e + 1
	}
}

func mixedCase(b []byte) bool {
	var have uint16
	for _, c := range b {
		have |= class[c]
	}
	return have&isUpper != 0 && have&isLower != 0
}

// google judges the "z" of an "AIza" at i.
func (x *scanner) google(i int) int {
	if !x.has(i-2, "AIza") || x.end(i+2, 32, isURL64)-i-2 < 30 {
		return i + 1
	}
	x.mask(i-2, x.rest(i+2, isURL64), ruleGoogle)
	return i + 1
}

// scheme judges the "b" of "Bearer x" or "Basic x" at i (RFC 9110 section 11).
func (x *scanner) scheme(i int) int {
	word, r := "bearer", ruleBearer
	if x.is(i+1, isAlnum) && x.s[i+1]|0x20 == 'a' {
		word, r = "basic", ruleBasic
	}
	if !x.fold(i, word) || !x.begins(i) {
		return i + 1
	}
	v := x.end(i+len(word), 8, isBlank)
	if x.has(v, "%20") {
		v += 3
	}
	if v == i+len(word) {
		return i + 1
	}
	e := x.end(v, len(x.s), isAlnum|isSymbol)
	for n := 0; n < maxTail && e > v && x.s[e-1] == '.'; n++ {
		e--
	}
	if e > v && e < min(len(x.s), v+maxJudged) && x.s[e-1] == '=' && (isQuote(x.s[e]) || x.s[e] == '\\') {
		return i + 1 // a challenge: realm="..."
	}
	if r == ruleBasic && isBasic(x.s[v:e]) || r == ruleBearer && isBearer(x.s[v:e]) {
		x.mask(v, e, r)
	}
	return i + 1
}

// isBearer tells a token from the next word of a sentence.
func isBearer(v []byte) bool {
	if len(v) >= 20 {
		return true
	}
	if len(v) < 4 {
		return false
	}
	for _, c := range v {
		if class[c]&(isDigit|isSymbol) != 0 {
			return true
		}
	}
	for _, c := range v[1:] {
		if class[c]&isUpper != 0 {
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
