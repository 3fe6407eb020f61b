package encoded

import (
	"bytes"
	"math/bits"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// IsReadable reports whether most of d is text: a word before the base64 gives a few bytes of
// nonsense.
func IsReadable(d []byte) bool {
	if len(d) < 12 {
		return false
	}
	bad, most := 0, len(d)*4/10
	for i := 0; i < len(d); i++ {
		c := d[i]
		if c < utf8.RuneSelf {
			if !TextByte[c] {
				bad++
			}
		} else if r, w := utf8.DecodeRune(d[i:]); r != utf8.RuneError {
			i += w - 1
		} else {
			bad++
		}
		if bad > most {
			return false
		}
	}
	return true
}

// isAllText reports whether d is text, except for what is left over at its ends.
func isAllText(d []byte) bool {
	const most = 4 // bytes of a character, which may be cut
	if len(d) < 2*most {
		return false
	}
	head := 0
	for head < most && !utf8.RuneStart(d[head]) {
		head++
	}
	tail := len(d)
	for range most {
		if r, n := utf8.DecodeLastRune(d[:tail]); r != utf8.RuneError || n != 1 {
			break
		}
		tail--
	}
	return IsText(d[head:tail])
}

// IsText reports whether d is UTF-8 without control bytes.
func IsText(d []byte) bool {
	for _, c := range d {
		if c < utf8.RuneSelf && !TextByte[c] {
			return false
		}
	}
	return utf8.Valid(d)
}

// TextByte are the bytes of ASCII that readable text has.
var TextByte = textBytes()

func textBytes() (t [256]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		t[c] = true
	}
	t['\n'], t['\r'], t['\t'] = true, true, true
	return t
}

// IsPrivateKey reports whether d begins as a private key does: PKCS #1 and #8, SEC 1
// and PKCS #12 (RFC 8017 A.1.2, 5208, 5915, 7292), or OpenSSH's own form.
func IsPrivateKey(d []byte) bool {
	if bytes.HasPrefix(d, []byte("openssh-key-v1\x00")) {
		return true
	}
	if len(d) < 16 || d[0] != 0x30 {
		return false
	}
	body := d[2:]
	switch d[1] {
	case 0x81:
		body = d[3:]
	case 0x82:
		body = d[4:]
	default:
		if d[1] >= 0x80 {
			return false
		}
	}
	for _, head := range []string{
		"\x02\x01\x00\x02\x82", "\x02\x01\x00\x02\x81", "\x02\x01\x00\x02\x41", // RSA
		"\x02\x01\x00\x30", "\x02\x01\x01\x30", // PKCS #8
		"\x02\x01\x01\x04", // elliptic curves
		"\x02\x01\x03\x30", // PKCS #12
	} {
		if bytes.HasPrefix(body, []byte(head)) {
			return true
		}
	}
	// Encrypted PKCS #8: an algorithm of PKCS #5 or #12.
	if len(body) > 2 && body[0] == 0x30 && body[1] < 0x80 {
		alg := body[2:]
		return bytes.HasPrefix(alg, []byte("\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05")) ||
			bytes.HasPrefix(alg, []byte("\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x0c"))
	}
	return false
}

// findTexts says, for each of the four places at which base64 may begin in a run
// whether what it holds can be text, as a bit: where seven bytes in ten are
// ASCII or three in four are not; or, as in text of both, none of the last ones
// is a control byte. An identifier or a hash, half of whose bytes are ASCII by
// chance and one in eight a control byte, is recognized by this without being read.
func findTexts(run []byte) (ways byte) {
	// Of four characters the first three hold the highest bit of a byte each.
	var low [4]uint64
	for i, c := range run {
		low[i&3] += topBits[c]
	}
	n := len(run) / 4 * 3
	for p := range 4 {
		ascii := int(low[p]&(1<<20-1)) + int(low[(p+1)&3]>>20&(1<<20-1)) + int(low[(p+2)&3]>>40)
		if ascii*10 >= n*7 || ascii*4 <= n || !endsRandom(run[p:]) {
			ways |= 1 << p
		}
	}
	return ways
}

// MayHold reports whether something may be encoded in a run. It is quick for the most frequent runs: identifiers,
// hashes, names and paths.
func MayHold(run []byte) bool {
	if len(run) > 64 {
		return true
	}
	// A bit for each character that as the first, second or third of four leaves the highest bit of a byte unset.
	var first, second, third uint64
	var seen runByte
	for from := 0; from < len(run); from += 16 {
		block := uint64(0)
		for i, c := range run[from:min(from+16, len(run))] {
			block |= topMarks[c] << i
			seen |= runBytes[c]
		}
		first |= block & 0xffff << from
		second |= block >> 16 & 0xffff << from
		third |= block >> 32 << from
	}
	switch {
	case seen&noHex == 0: // a hash; base64 of text has other letters
		return hasReadableHex(run) || hasReadableHex(run[1:])
	case mayHoldPlain(run):
		return true
	case seen&(upperByte|noBase32) == noBase32:
		return false // a path, a name: base64 of text has capitals
	}
	return mayHoldText(run, first, second, third)
}

// topMarks are three bits for each character of base64, 16 apart: topBits as marks.
var topMarks = topMarkTable()

func topMarkTable() (t [256]uint64) {
	for c := range 256 {
		t[c] = topBits[c]&1 | topBits[c]>>20&1<<16 | topBits[c]>>40<<32
	}
	return t
}

// mayHoldPlain reports whether MinRun bytes of a run are hexadecimal or base32.
func mayHoldPlain(run []byte) bool {
	const all = noHex | noUpper32 | noLower32
	for i := MinRun - 1; i < len(run); {
		seen, k := runByte(0), i
		for ; k > i-MinRun && seen&all != all; k-- {
			seen |= runBytes[run[k]]
		}
		if seen&all != all {
			return true
		}
		i = k + 1 + MinRun
	}
	return false
}

// mayHoldText reports whether base64 in a run of at most 64 bytes may hold text from any of the four places at which it
// may begin: findTexts says so, or four groups of four have three bytes of ASCII each.
func mayHoldText(run []byte, first, second, third uint64) bool {
	second, third = second>>1, third>>2
	if group := first & second & third; group&(group>>4)&(group>>8)&(group>>12) != 0 {
		return true
	}
	n := len(run) / 4 * 3
	for p := range 4 {
		each := uint64(0x1111111111111111) << p
		ascii := bits.OnesCount64(first&each) + bits.OnesCount64(second&each) + bits.OnesCount64(third&each)
		if ascii*10 >= n*7 || ascii*4 <= n || !endsRandom(run[p:]) {
			return true
		}
	}
	return false
}

// topBits are three counters for each character of base64: whether as the first,
// the second or the third of four it leaves the highest bit of a byte unset.
var topBits = topBitTable()

func topBitTable() (t [256]uint64) {
	for c := range 256 {
		v := sextet[c]
		t[c] = uint64(^v>>5&1) | uint64(^v>>3&1)<<20 | uint64(^v>>1&1)<<40
	}
	return t
}

// endsRandom reports whether the last bytes of what a run of base64 holds are not those of text in UTF-8: a control
// byte, or a byte beyond ASCII in the wrong place.
func endsRandom(run []byte) bool {
	run = run[:len(run)&^3]
	var last uint8
	for i := max(0, len(run)-16); i < len(run); i += 4 {
		g := (*[4]byte)(run[i:])
		a, b, c, d := sextet[g[0]], sextet[g[1]], sextet[g[2]], sextet[g[3]]
		x, y, z := kinds[a<<2|b>>4], kinds[b<<4|c>>2], kinds[c<<6|d]
		if orders[last]>>x&1|orders[x]>>y&1|orders[y]>>z&1 != 0 {
			return true
		}
		last = z
	}
	return false
}

// The kinds of bytes of text in UTF-8.
const (
	anyByte uint8 = iota // or none
	plain                // ASCII
	lead                 // of a character
	further              // of a character, behind a lead
	noByte               // control bytes, and what UTF-8 does not have
)

// orders has, for each kind, a bit for each kind that cannot follow it.
var orders = [...]uint8{
	anyByte: 1 << noByte,
	plain:   1<<noByte | 1<<further,
	lead:    1<<noByte | 1<<plain | 1<<lead,
	further: 1 << noByte,
	noByte:  1<<noByte | 1<<plain | 1<<lead | 1<<further,
}

var kinds = byteKinds()

func byteKinds() (t [256]uint8) {
	for c := range 256 {
		switch {
		case c < utf8.RuneSelf && !TextByte[c] || c == 0xc0 || c == 0xc1 || c > 0xf4:
			t[c] = noByte
		case c < utf8.RuneSelf:
			t[c] = plain
		case c < 0xc0:
			t[c] = further
		default:
			t[c] = lead
		}
	}
	return t
}

// Strongest returns the rule that a run is masked under for what was found in it, or rule.None. In media only
// secrets count.
func Strongest(found []span.Span, media bool) rule.Rule {
	best := rule.None
	for _, sp := range found {
		if !media || sp.Rule.IsSecret() {
			best = max(best, sp.Rule)
		}
	}
	if best == rule.Card {
		return rule.PIIField // its mask would show digits
	}
	return best
}
