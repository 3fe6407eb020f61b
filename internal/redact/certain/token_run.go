package certain

import (
	"bytes"
	"encoding/base64"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/line"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/token"
)

// runToken masks the token that begins the word at b.
func (x *Scanner) runToken(b int, list []token.Prefix) bool {
	if x.Has(b, armoured64) {
		return x.armour64(b)
	}
	for k := range list {
		p := &list[k]
		if x.Has(b, p.Text) && x.maskPrefixed(b, p) {
			return true
		}
	}
	return false
}

// minArmoured is the number of bytes behind the first line that make it more than named.
const minArmoured = 4

// armoured64 is the base64 of "-----BEGIN".
const armoured64 = "LS0tLS1CRUdJTi"

// armour64 masks the base64 of an armoured private key, as kubeconfig and
// secrets of Kubernetes hold it; b is where "-----BEGIN" begins.
func (x *Scanner) armour64(b int) bool {
	var text [72]byte
	head := x.S[b:min(len(x.S), b+96)]
	n, _ := base64.StdEncoding.Decode(text[:], head[:len(head)&^3]) // what decodes up to a fault counts
	label := text[:n]
	if at := bytes.LastIndex(label, []byte(armourMark)); at > len(armourMark) {
		label = label[:at]
	}
	if !isPrivate(label) {
		return false
	}
	end := x.rest(b, char.Std64)
	if line := len(label) + len(armourMark); end-b < (line+minArmoured+2)/3*4 {
		x.Touch(end)
		return false // a first line that is only named
	}
	for end < len(x.S) && x.S[end] == '=' {
		end++
	}
	x.Touch(end)
	x.mask(b, end, rule.PrivateKey)
	return true
}

func isPrivate(label []byte) bool {
	return bytes.Contains(label, []byte("PRIVATE KEY")) || bytes.Contains(label, []byte("OpenVPN Static key"))
}

// azure judges the "J" at i of "JQQJ99", which stands at the 53rd place of the
// 84 characters of a Microsoft key with a checksum.
func (x *Scanner) azure(i int) {
	if !x.Has(i, "JQQJ99") || i < 52 {
		return
	}
	b := i
	for b > 0 && i-b <= 52 && char.Class[x.S[b-1]]&char.Alnum != 0 {
		b--
	}
	if b = x.BehindEscape(b, i); i-b == 52 && x.End(i, 33, char.Alnum) == i+32 {
		x.mask(b, i+32, rule.Azure)
	}
}

// azureMarks are the four characters that stand before the last twelve of a
// 512-bit Azure key: storage, batch, event hub, service bus, Cosmos.
var azureMarks = [...]string{"+ASt", "+ABa", "+AEh", "+ASb", "ACDb", "+ARm"}

// azureKey masks the 88 base64 characters that end in the "==" at i.
func (x *Scanner) azureKey(i int) {
	const body, mark = 86, 10
	if i < body || !x.Has(i, "==") || x.S[i-mark] != '+' && x.S[i-mark] != 'A' {
		return
	}
	for _, m := range azureMarks {
		if !x.Has(i-mark, m) {
			continue
		}
		b := i
		for b > 0 && i-b <= body && char.Class[x.S[b-1]]&char.Std64 != 0 {
			b--
		}
		if b = x.BehindEscape(b, i); i-b == body {
			x.mask(b, i+2, rule.Azure)
		}
		return
	}
}

// azureSecret judges the digit at i before the "Q~" of an application's
// secret: three characters before it, 31 to 34 behind.
func (x *Scanner) azureSecret(i int) {
	in := func(c byte) bool { return char.Class[c]&char.URL64 != 0 || c == '.' || c == '~' }
	if i < 3 || !in(x.S[i-1]) || !in(x.S[i-2]) || !in(x.S[i-3]) || i > 3 && in(x.S[i-4]) && !x.Escaped(i-3) {
		return
	}
	e := i + 3
	for e < len(x.S) && e < i+40 && in(x.S[e]) {
		e++
	}
	for x.S[e-1] == '.' {
		e--
	}
	if n := e - i - 3; n >= 31 && n <= 34 {
		x.mask(i-3, e, rule.Azure)
	}
}

// googleRefresh masks the "1//0..." of OAuth whose "1" stands at i.
func (x *Scanner) googleRefresh(i int) {
	if i > 0 && (x.S[i-1] == '+' || x.S[i-1] == '/') {
		return // base64
	}
	if x.Has(i, "1//0") && x.Begins(i) && x.End(i+4, 40, char.URL64) == i+44 {
		x.mask(i, x.rest(i+4, char.URL64), rule.Google)
	}
}

// dottedParts judges the "." at i: the first of a Discord bot's token, the
// one of an Airtable token, of a Terraform token.
func (x *Scanner) dottedParts(i int) {
	if x.Is(i-1, char.Hex) && x.End(i+1, 17, char.Alnum) == i+17 && x.maskZhipu(i) {
		return
	}
	if i < 14 || i+27 > len(x.S) {
		return
	}
	switch {
	case x.S[i+7] == '.' && x.End(i+1, 6, char.URL64) == i+7:
		b := i
		for b > 0 && i-b < 30 && char.Class[x.S[b-1]]&char.URL64 != 0 {
			b--
		}
		b = x.BehindEscape(b, i)
		e := x.End(i+8, 40, char.URL64)
		if i-b >= 23 && i-b <= 28 && char.IndexByte("MNO", x.S[b]) >= 0 && e-i-8 >= 27 && e-i-8 <= 38 {
			x.mask(b, e, rule.Token)
		}
	case x.Has(i, ".atlasv1."):
		b := i - 14
		if x.End(b, 14, char.Alnum) == i && x.End(i+9, 60, char.URL64) == i+69 {
			x.mask(b, x.rest(i+9, char.URL64), rule.Token)
		}
	case x.Has(i-17, "pat"):
		if x.End(i-14, 14, char.Alnum) == i && x.End(i+1, 65, char.Hex) == i+65 {
			x.mask(i-17, i+65, rule.Token)
		}
	}
}

// maskZhipu masks the key of Zhipu whose "." is at i: 32 hexadecimal digits before it, and 16
// letters and digits after it.
func (x *Scanner) maskZhipu(i int) bool {
	b, e := i-32, i+17
	if b < 0 || !x.Begins(b) || x.End(b, 32, char.Hex) != i || !mixedCase(x.S[i+1:e]) || !line.HasDigit(x.S[i+1:e]) {
		return false
	}
	x.mask(b, e, rule.Model)
	return true
}

// mailchimp masks 32 hexadecimal digits before the "-us12" at i.
func (x *Scanner) mailchimp(i int) {
	if i < 32 || !x.Is(i+3, char.Digit) || !x.Begins(i-32) {
		return
	}
	if x.End(i-32, 32, char.Hex) == i {
		x.mask(i-32, x.End(i+3, 2, char.Digit), rule.Token)
	}
}

// colonToken masks the tokens with a ":" of w bytes at i: Telegram's, Asana's
// and those of Firebase's old server keys.
func (x *Scanner) colonToken(i, w int) int {
	v := i + w
	switch {
	case v < len(x.S) && x.S[v] == 'A' && x.Has(v, "APA91b"):
		b := i
		for b > 0 && i-b < 12 && char.Class[x.S[b-1]]&char.URL64 != 0 {
			b--
		}
		if b = x.BehindEscape(b, i); i-b == 11 && x.End(v, 100, char.URL64) == v+100 {
			x.mask(b, x.rest(v, char.URL64), rule.Google)
		}
		return v
	case x.Is(i-1, char.Digit) && x.Is(i-8, char.Digit) && x.Is(v, char.Alnum):
	default:
		return v
	}
	b := i
	for b > 0 && i-b < 20 && char.Class[x.S[b-1]]&char.Digit != 0 {
		b--
	}
	b = x.BehindEscape(b, i)
	if i-b >= 8 && i-b <= 11 && x.Has(v, "AA") && x.End(v, 36, char.URL64)-v >= 33 {
		x.mask(b, x.rest(v, char.URL64), rule.Token)
	}
	if i-b >= 14 && x.Has(b-1, "/") && x.Is(b-2, char.Digit) && x.End(v, 33, char.Hex) == v+32 {
		x.mask(b-2, v+32, rule.Token)
	}
	return v
}
