package redact

import (
	"bytes"
	"encoding/base64"
)

// prefix is a credential that its first bytes tell.
type prefix struct {
	text  string
	class uint16 // what follows
	more  string // what may follow besides
	min   int    // how much must follow
	bound bool   // nothing of a word may stand before it
	mixed bool   // a digit or a capital must follow
	rule  rule
}

// underscored, dashed and dotted are the prefixes that end in "_", "-" and
// ".". What is not bound is found inside longer words too.
var (
	underscored = [...]prefix{
		{text: "ghp_", class: isAlnum, more: "_", min: 16, rule: ruleGitHub},
		{text: "gho_", class: isAlnum, more: "_", min: 16, rule: ruleGitHub},
		{text: "ghu_", class: isAlnum, more: "_", min: 16, rule: ruleGitHub},
		{text: "ghs_", class: isURL64, more: ".", min: 16, rule: ruleGitHub},
		{text: "ghr_", class: isAlnum, more: "_", min: 16, rule: ruleGitHub},
		{text: "github_pat_", class: isAlnum, more: "_", min: 20, rule: ruleGitHub},
		{text: "sk_live_", class: isAlnum, min: 10, rule: ruleStripe},
		{text: "rk_live_", class: isAlnum, min: 10, rule: ruleStripe},
		{text: "sk_test_", class: isAlnum, min: 10, rule: ruleStripe},
		{text: "rk_test_", class: isAlnum, min: 10, rule: ruleStripe},
		{text: "whsec_", class: isStd64, more: "=", min: 16, rule: ruleStripe},
		{text: "npm_", class: isAlnum, min: 30, rule: ruleNPM},
		{text: "hf_", class: isAlnum, min: 30, bound: true, rule: ruleModel},
		{text: "gsk_", class: isAlnum, min: 40, bound: true, rule: ruleModel},
		{text: "dop_v1_", class: isHex, min: 40, rule: ruleToken},
		{text: "doo_v1_", class: isHex, min: 40, rule: ruleToken},
		{text: "shpat_", class: isHex, min: 32, rule: ruleToken},
		{text: "shpss_", class: isHex, min: 32, rule: ruleToken},
		{text: "dckr_pat_", class: isURL64, min: 20, rule: ruleToken},
		{text: "lin_api_", class: isAlnum, min: 30, rule: ruleToken},
	}
	dashed = [...]prefix{
		{text: "sk-", class: isURL64, min: 20, bound: true, mixed: true, rule: ruleModel},
		{text: "glpat-", class: isURL64, more: ".", min: 16, rule: ruleGitLab},
		{text: "gldt-", class: isURL64, more: ".", min: 16, bound: true, rule: ruleGitLab},
		{text: "glrt-", class: isURL64, more: ".", min: 16, bound: true, rule: ruleGitLab},
		{text: "glptt-", class: isURL64, more: ".", min: 16, bound: true, rule: ruleGitLab},
		{text: "glcbt-", class: isURL64, more: ".", min: 16, bound: true, rule: ruleGitLab},
		{text: "xoxa-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xoxb-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xoxc-", class: isURL64, more: "%", min: 10, rule: ruleSlack},
		{text: "xoxd-", class: isURL64, more: "%+/=", min: 10, rule: ruleSlack},
		{text: "xoxe-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xoxo-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xoxp-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xoxr-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xoxs-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "xapp-", class: isURL64, min: 10, rule: ruleSlack},
		{text: "GOCSPX-", class: isURL64, min: 20, rule: ruleGoogle},
		{text: "pypi-", class: isURL64, min: 50, rule: ruleToken},
		{text: "AGE-SECRET-KEY-", class: isAlnum, min: 20, rule: rulePrivateKey},
	}
	dotted = [...]prefix{
		{text: "ya29.", class: isURL64, more: ".", min: 20, rule: ruleGoogle},
		{text: "SG.", class: isURL64, more: ".", min: 40, bound: true, rule: ruleToken},
		{text: "hvs.", class: isURL64, min: 20, bound: true, rule: ruleToken},
	}
)

// before holds, for the last byte but one of a prefix, the bytes that may
// stand before that: two looks decide whether the list is worth reading.
type before [256]string

var beforeUnderscore, beforeDash, beforeDot = beforeOf(underscored[:]), beforeOf(dashed[:]), beforeOf(dotted[:])

func beforeOf(list []prefix) (t before) {
	for _, p := range list {
		n := len(p.text)
		t[p.text[n-2]] += p.text[n-3 : n-2]
	}
	return t
}

func (t *before) may(a, b byte) bool {
	set := t[b]
	for k := range len(set) {
		if set[k] == a {
			return true
		}
	}
	return false
}

// prefix judges the "_" or "." at i.
func (x *scanner) prefix(i int) int {
	if i < 2 || len(x.s)-i < 10 {
		return i + 1
	}
	a, b := x.s[i-2], x.s[i-1]
	if x.s[i] == '.' {
		if beforeDot.may(a, b) {
			return x.oneOf(i, dotted[:])
		}
	} else if beforeUnderscore.may(a, b) {
		return x.oneOf(i, underscored[:])
	}
	return i + 1
}

// oneOf tries the prefixes that end at i.
func (x *scanner) oneOf(i int, list []prefix) int {
	for k := range list {
		p := &list[k]
		start := i + 1 - len(p.text)
		if !x.has(start, p.text) || p.bound && x.is(start-1, isWord) || !x.follows(i+1, p) {
			continue
		}
		x.mask(start, x.tail(i+1, p), p.rule)
		break
	}
	return i + 1
}

func (p *prefix) holds(c byte) bool {
	if class[c]&p.class != 0 {
		return true
	}
	for k := range len(p.more) {
		if p.more[k] == c {
			return true
		}
	}
	return false
}

// follows says whether enough of p's class stands at i. It looks at 64 bytes
// at most.
func (x *scanner) follows(i int, p *prefix) bool {
	mixed := !p.mixed
	n := 0
	for ; n < 64 && i+n < len(x.s) && p.holds(x.s[i+n]); n++ {
		mixed = mixed || class[x.s[i+n]]&(isDigit|isUpper) != 0
	}
	return n >= p.min && mixed
}

// tail returns the end of what belongs to p; a full stop at its end is the
// sentence's.
func (x *scanner) tail(i int, p *prefix) int {
	for i = max(i, x.low); i < len(x.s) && p.holds(x.s[i]); {
		i++
	}
	for x.s[i-1] == '.' {
		i--
	}
	return i
}

// dash judges the "-" at i: a key's armour, a prefix, or a command's flag.
func (x *scanner) dash(i int) int {
	if i == 0 {
		return i + 1
	}
	if x.s[i-1] != '-' {
		if i > 1 && beforeDash.may(x.s[i-2], x.s[i-1]) {
			return x.oneOf(i, dashed[:])
		}
		if x.has(i+1, "u ") && x.is(i-1, isBlank) {
			x.userFlag(i + 3)
		}
		return i + 1
	}
	if x.has(i+1, "BEGIN ") && x.has(i-4, "-----") {
		return x.armour(i - 4)
	}
	if x.is(i+1, isLetter) && (i < 2 || x.s[i-2] != '-') {
		return x.flag(i + 1)
	}
	return i + 1
}

// armour masks the private key whose "-----BEGIN" stands at i; one that does
// not end is masked to the end of the text.
func (x *scanner) armour(i int) int {
	label := i + len("-----BEGIN ")
	if i < x.pemLow {
		return label
	}
	n := bytes.Index(x.s[label:min(len(x.s), label+64)], []byte("-----"))
	if n < 0 || !bytes.Contains(x.s[label:label+n], []byte("PRIVATE KEY")) {
		return label
	}
	body := label + n + 5
	stop := bytes.Index(x.s[body:], []byte("-----END"))
	if stop < 0 {
		x.mask(i, len(x.s), rulePrivateKey)
		return len(x.s)
	}
	end := body + stop + len("-----END")
	if n := bytes.Index(x.s[end:min(len(x.s), end+80)], []byte("-----")); n >= 0 {
		end += n + 5
	}
	x.mask(i, end, rulePrivateKey)
	x.pemLow = body + stop
	return label
}

// flag masks the argument of a secret-looking flag whose name starts at i:
// "--password hunter2". The form with "=" is an assignment.
func (x *scanner) flag(i int) int {
	e := x.end(i, 64, isIdent)
	if !x.is(e, isBlank) {
		return i
	}
	k := kindOf(x.s[i:e])
	v := x.end(e, 8, isBlank)
	if k.secret() && v < len(x.s) && x.s[v] != '-' && v >= x.low {
		x.value(v, k, '=', i)
	}
	return i
}

// userFlag masks the "name:password" of "curl -u name:password" at v. Numbers
// alone are a user and a group.
func (x *scanner) userFlag(v int) {
	end, colon, letters := v, false, false
	for ; end < len(x.s) && end < v+256 && class[x.s[end]]&isSpace == 0; end++ {
		colon = colon || x.s[end] == ':'
		letters = letters || class[x.s[end]]&isLetter != 0
	}
	if colon && letters && x.is(v, isAlnum) {
		x.mask(v, end, ruleAssignment)
	}
}

// jwt judges the "J" of an "eyJ" at i: two or more dotted parts of which the
// first two are JSON objects (RFC 7519, RFC 7516).
func (x *scanner) jwt(i int) int {
	start := i - 2
	if start < x.jwtLow || !x.has(start, "eyJ") {
		return i + 1
	}
	dot := x.end(start, len(x.s), isURL64)
	x.jwtLow = dot
	if dot-start < 8 || !x.is(dot+1, isURL64) || x.s[dot] != '.' {
		return i + 1
	}
	end := x.end(dot+1, len(x.s), isURL64)
	if end == len(x.s) || x.s[end] != '.' {
		if !x.has(dot+1, "eyJ") {
			return i + 1
		}
		x.mask(start, end, ruleJWT)
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
	if !x.fold(i, word) || x.is(i-1, isWord) {
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
	for e > v && x.s[e-1] == '.' {
		e--
	}
	if r == ruleBasic && isBasic(x.s[v:e]) || r == ruleBearer && isBearer(x.s[v:e]) {
		x.mask(v, e, r)
	}
	return i + 1
}

// fold says whether the lower-case word stands at i in any case.
func (x *scanner) fold(i int, word string) bool {
	if len(x.s)-i < len(word) {
		return false
	}
	for k := range len(word) {
		if x.s[i+k]|0x20 != word[k] {
			return false
		}
	}
	return true
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
