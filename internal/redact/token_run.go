package redact

import (
	"bytes"
	"encoding/base64"
)

// runToken masks the token that begins the word at b.
func (x *scanner) runToken(b int, list []prefix) bool {
	if x.is(b-1, isSymbol) && x.s[b-1] != '=' && x.s[b-1] != '-' && x.s[b-1] != '.' {
		return false // inside base64 or a path
	}
	if x.has(b, armoured64) {
		return x.armour64(b)
	}
	for k := range list {
		p := &list[k]
		if x.has(b, p.text) && x.prefixed(b, p) {
			return true
		}
	}
	return false
}

// armoured64 is the base64 of "-----BEGIN".
const armoured64 = "LS0tLS1CRUdJTi"

// armour64 masks the base64 of an armoured private key, as kubeconfig and
// secrets of Kubernetes hold it; b is where "-----BEGIN" begins.
func (x *scanner) armour64(b int) bool {
	var text [48]byte
	head := x.s[b:min(len(x.s), b+64)]
	n, _ := base64.StdEncoding.Decode(text[:], head[:len(head)&^3]) // what decodes up to a fault counts
	if !isPrivate(text[:n]) {
		return false
	}
	end := x.rest(b, isStd64)
	for end < len(x.s) && x.s[end] == '=' {
		end++
	}
	x.touch(end)
	x.mask(b, end, rulePrivateKey)
	return true
}

func isPrivate(label []byte) bool {
	return bytes.Contains(label, []byte("PRIVATE KEY")) || bytes.Contains(label, []byte("OpenVPN Static key"))
}

// azure judges the "J" at i of "JQQJ99", which stands at the 53rd place of the
// 84 characters of a Microsoft key with a checksum.
func (x *scanner) azure(i int) {
	if !x.has(i, "JQQJ99") || i < 52 {
		return
	}
	b := i
	for b > 0 && i-b <= 52 && class[x.s[b-1]]&isAlnum != 0 {
		b--
	}
	if b = x.behindEscape(b, i); i-b == 52 && x.end(i, 33, isAlnum) == i+32 {
		x.mask(b, i+32, ruleAzure)
	}
}

// azureMarks are the four characters that stand before the last twelve of a
// 512-bit Azure key: storage, batch, event hub, service bus, Cosmos.
var azureMarks = [...]string{"+ASt", "+ABa", "+AEh", "+ASb", "ACDb", "+ARm"}

// azureKey masks the 88 base64 characters that end in the "==" at i.
func (x *scanner) azureKey(i int) {
	const body, mark = 86, 10
	if i < body || !x.has(i, "==") || x.s[i-mark] != '+' && x.s[i-mark] != 'A' {
		return
	}
	for _, m := range azureMarks {
		if !x.has(i-mark, m) {
			continue
		}
		b := i
		for b > 0 && i-b <= body && class[x.s[b-1]]&isStd64 != 0 {
			b--
		}
		if b = x.behindEscape(b, i); i-b == body {
			x.mask(b, i+2, ruleAzure)
		}
		return
	}
}

// azureSecret judges the digit at i before the "Q~" of an application's
// secret: three characters before it, 31 to 34 behind.
func (x *scanner) azureSecret(i int) {
	in := func(c byte) bool { return class[c]&isURL64 != 0 || c == '.' || c == '~' }
	if i < 3 || !in(x.s[i-1]) || !in(x.s[i-2]) || !in(x.s[i-3]) || i > 3 && in(x.s[i-4]) && !x.escaped(i-3) {
		return
	}
	e := i + 3
	for e < len(x.s) && e < i+40 && in(x.s[e]) {
		e++
	}
	for x.s[e-1] == '.' {
		e--
	}
	if n := e - i - 3; n >= 31 && n <= 34 {
		x.mask(i-3, e, ruleAzure)
	}
}

// googleRefresh masks the "1//0..." of OAuth whose "1" stands at i.
func (x *scanner) googleRefresh(i int) {
	if x.has(i, "1//0") && x.begins(i) && x.end(i+4, 40, isURL64) == i+44 {
		x.mask(i, x.rest(i+4, isURL64), ruleGoogle)
	}
}

// dottedParts judges the "." at i: the first of a Discord bot's token, the
// one of an Airtable token, of a Terraform token.
func (x *scanner) dottedParts(i int) {
	if i < 14 || i+27 > len(x.s) {
		return
	}
	switch {
	case x.s[i+7] == '.' && x.end(i+1, 6, isURL64) == i+7:
		b := i
		for b > 0 && i-b < 30 && class[x.s[b-1]]&isURL64 != 0 {
			b--
		}
		b = x.behindEscape(b, i)
		e := x.end(i+8, 40, isURL64)
		if i-b >= 23 && i-b <= 28 && indexByte("MNO", x.s[b]) >= 0 && e-i-8 >= 27 && e-i-8 <= 38 {
			x.mask(b, e, ruleToken)
		}
	case x.has(i, ".atlasv1."):
		b := i - 14
		if x.end(b, 14, isAlnum) == i && x.end(i+9, 60, isURL64) == i+69 {
			x.mask(b, x.rest(i+9, isURL64), ruleToken)
		}
	case x.has(i-17, "pat"):
		if x.end(i-14, 14, isAlnum) == i && x.end(i+1, 65, isHex) == i+65 {
			x.mask(i-17, i+65, ruleToken)
		}
	}
}

// mailchimp masks 32 hexadecimal digits before the "-us12" at i.
func (x *scanner) mailchimp(i int) {
	if i < 32 || !x.is(i+3, isDigit) || !x.begins(i-32) {
		return
	}
	if x.end(i-32, 32, isHex) == i {
		x.mask(i-32, x.end(i+3, 2, isDigit), ruleToken)
	}
}

// colonToken masks the tokens with a ":" of w bytes at i: Telegram's, Asana's
// and those of Firebase's old server keys.
func (x *scanner) colonToken(i, w int) int {
	v := i + w
	switch {
	case v < len(x.s) && x.s[v] == 'A' && x.has(v, "APA91b"):
		b := i
		for b > 0 && i-b < 12 && class[x.s[b-1]]&isURL64 != 0 {
			b--
		}
		if b = x.behindEscape(b, i); i-b == 11 && x.end(v, 100, isURL64) == v+100 {
			x.mask(b, x.rest(v, isURL64), ruleGoogle)
		}
		return v
	case x.is(i-1, isDigit) && x.is(i-8, isDigit) && x.is(v, isAlnum):
	default:
		return v
	}
	b := i
	for b > 0 && i-b < 20 && class[x.s[b-1]]&isDigit != 0 {
		b--
	}
	b = x.behindEscape(b, i)
	if i-b >= 8 && i-b <= 11 && x.has(v, "AA") && x.end(v, 36, isURL64)-v >= 33 {
		x.mask(b, x.rest(v, isURL64), ruleToken)
	}
	if i-b >= 14 && x.has(b-1, "/") && x.is(b-2, isDigit) && x.end(v, 33, isHex) == v+32 {
		x.mask(b-2, v+32, ruleToken)
	}
	return v
}
