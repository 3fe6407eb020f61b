package format

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

const (
	// minRun is the shortest base64 or hexadecimal run that is decoded: 18
	// bytes, or 12.
	minRun = 24
	// maxShifted bounds the runs that are decoded at any alignment, because a
	// word may stand before the base64; longer ones begin where they begin.
	maxShifted = 64 << 10
)

// isRun is the class of a byte of base64, either alphabet.
const isRun = char.Std64 | char.URL64

// runs decodes what looks like base64, base64url, base32 or hexadecimal in s and
// returns those runs in which something was found, whole, under the rule of
// what is inside. What is masked already is left out.
func (n *nest) runs(s []byte, masked []span.Span, level int) ([]span.Span, error) {
	var out []span.Span
	for i := 0; i+minRun <= len(s); {
		// No run of 24 begins before a byte that is none.
		if j := i + minRun - 1; char.Class[s[j]]&isRun == 0 {
			i = j + 1
			continue
		}
		start := i
		for k := i + minRun - 1; k >= i; k-- {
			if char.Class[s[k]]&isRun == 0 {
				start = k + 1
				break
			}
		}
		run, end := lines(s, start)
		if i = end; len(run) < minRun || isMasked(masked, start, end) {
			continue
		}
		r, from, to, err := n.run(run, level)
		switch {
		case err != nil && n.peeks:
			r = rule.Fault
		case err != nil:
			return nil, err
		}
		if r != rule.None {
			stop := end
			if len(run) == end-start { // not of several lines
				if from == 0 && to == len(run) {
					from, to = n.withinPath(run, level)
				}
				start, stop = start+from, start+to
			}
			for stop < len(s) && s[stop] == '=' {
				stop++
			}
			out = append(out, span.Span{Start: start, End: stop, Rule: r})
		}
	}
	return out, nil
}

// withinPath returns the part of a run in which something was found without the words of a
// path around it, as in a URL, where something is found in that part: [0, len(run)) if not.
func (n *nest) withinPath(run []byte, level int) (from, to int) {
	to = len(run)
	for {
		k := bytes.IndexByte(run[from:to], '/')
		if k < 0 || !isPathWord(run[from:from+k]) {
			break
		}
		from += k + 1
	}
	for {
		k := bytes.LastIndexByte(run[from:to], '/')
		if k < 0 || from+k+1 == to || !isPathWord(run[from+k+1:to]) {
			break
		}
		to = from + k
	}
	if to-from == len(run) {
		return 0, len(run)
	}
	if to-from >= minRun {
		if r, err := n.base64Run(run[from:to], level); r != rule.None && err == nil {
			return from, to
		}
	}
	return 0, len(run)
}

// isPathWord reports whether w is one that base64 seldom has between two slashes: short and
// of one case.
func isPathWord(w []byte) bool {
	var have uint16
	for _, c := range w {
		have |= char.Class[c]
	}
	return len(w) < minRun && have&char.Letter != char.Letter
}

// lines returns the run that begins at i and where it ends. Lines of one
// length are one run, as base64 is written in mail (RFC 2045 section 6.8).
func lines(s []byte, i int) (run []byte, end int) {
	end = runEnd(s, i)
	width := end - i
	run = s[i:end]
	if width < 32 || width%4 != 0 {
		return run, end
	}
	run = run[:len(run):len(run)]
	for {
		next := end
		if next < len(s) && s[next] == '\r' {
			next++
		}
		if next >= len(s) || s[next] != '\n' {
			return run, end
		}
		next++
		stop := runEnd(s, next)
		if stop == next || stop-next > width {
			return run, end
		}
		run = append(run, s[next:stop]...)
		if end = stop; stop-next < width {
			return run, end
		}
	}
}

func runEnd(s []byte, i int) int {
	for i < len(s) && char.Class[s[i]]&isRun != 0 {
		i++
	}
	return i
}

// isMasked says whether [start, end) lies inside one of the spans.
func isMasked(spans []span.Span, start, end int) bool {
	lo, hi := 0, len(spans)
	for lo < hi {
		if mid := (lo + hi) / 2; spans[mid].End < end {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(spans) && spans[lo].Start <= start
}

// runByte says what a byte of a run is and is not.
type runByte uint8

const (
	noHex runByte = 1 << iota
	noBase32
	noUpper32
	noLower32
	upperByte
)

var runBytes = runByteTable()

func runByteTable() (t [256]runByte) {
	for i := range t {
		c := byte(i)
		if char.Class[c]&char.Hex == 0 {
			t[c] |= noHex
		}
		if char.Class[c]&char.Letter == 0 && (c < '2' || c > '7') {
			t[c] |= noBase32
		}
		if t[c]&noBase32 != 0 || char.Class[c]&char.Lower != 0 {
			t[c] |= noUpper32
		}
		if t[c]&noBase32 != 0 || char.Class[c]&char.Upper != 0 {
			t[c] |= noLower32
		}
		if char.Class[c]&char.Upper != 0 {
			t[c] |= upperByte
		}
	}
	return t
}

// run decodes one run in every way that gives something to read. What is found is in
// [from, to) of it.
func (n *nest) run(run []byte, level int) (r rule.Rule, from, to int, err error) {
	if r, from, to, err = n.plainRuns(run, level); r != rule.None || err != nil {
		return r, from, to, err
	}
	r, err = n.base64Run(run, level)
	return r, 0, len(run), err
}

// base64Run decodes one run of base64, or of hexadecimal as a whole.
func (n *nest) base64Run(run []byte, level int) (rule.Rule, error) {
	buf := n.scratch
	n.scratch = nil // what is decoded may hold runs itself
	defer func() { n.scratch = buf }()
	var seen runByte
	for _, c := range run {
		seen |= runBytes[c]
	}
	if seen&noHex == 0 {
		buf = unhexed(buf[:0], run)
		if r, _, err := n.decoded(buf, level); r != rule.None || err != nil {
			return r, err
		}
	}
	if n.peeks && seen&(upperByte|noHex|noBase32) == noHex|noBase32 {
		return rule.None, nil // a path, a name: base64 of text has capitals
	}
	ways, skip := byte(15), byte(0)
	if n.peeks {
		ways = texts(run)
	}
	for shift := 0; shift < 4 && len(run)-shift >= minRun-3; shift++ {
		if ways>>shift&1 == 0 {
			continue
		}
		buf = unbase64(buf[:0], run[shift:])
		if err := n.spend(len(buf)); err != nil {
			return rule.None, err
		}
		r, read, err := n.decoded(buf, level)
		if r != rule.None || err != nil {
			return r, err
		}
		if read {
			skip |= 1 << shift
		}
		if len(run) > maxShifted {
			break
		}
	}
	return n.readBinary(run, skip, level)
}

// decoded reads what a run held: a private key, text in any shape, something
// compressed. Other bytes are hashes, identifiers, pictures: read is false then.
func (n *nest) decoded(d []byte, level int) (r rule.Rule, read bool, err error) {
	if isKeyDER(d) && n.e.Class.Has(rule.PrivateKey) {
		return rule.PrivateKey, true, nil
	}
	if n.peeks && !readable(d) && wideOf(d).size == 0 {
		return rule.None, false, nil
	}
	if packing(d) == packNone && sealedName(d) == "" && wideOf(d).size == 0 && (!readable(d) || mediaName(d) != "") {
		return rule.None, false, nil
	}
	if level >= maxLevels {
		return rule.None, false, unscannable("text encoded more than 4 times", nil)
	}
	doc, err := n.doc("", d, level+1, true)
	if err != nil {
		return rule.None, false, within(err, "in base64")
	}
	return strongest(doc.Findings), true, nil
}

func unbase32(d, run []byte) []byte {
	acc, bits := uint32(0), 0
	for _, c := range run {
		v := uint32(char.ToLower(c) - 'a')
		if char.Class[c]&char.Digit != 0 {
			v = uint32(c-'2') + 26
		}
		acc = acc<<5 | v
		if bits += 5; bits >= 8 {
			bits -= 8
			d = append(d, byte(acc>>bits))
		}
	}
	return d
}

func unhexed(d, run []byte) []byte {
	for i := 0; i+1 < len(run); i += 2 {
		d = append(d, char.Unhex(run[i])<<4|char.Unhex(run[i+1]))
	}
	return d
}

// unbase64 decodes a run of either alphabet, or of both; what is left over at
// its end counts for nothing.
func unbase64(d, run []byte) []byte {
	d = slices.Grow(d, len(run)/4*3+3)
	i := 0
	for ; i+4 <= len(run); i += 4 {
		v := uint32(sextet[run[i]])<<18 | uint32(sextet[run[i+1]])<<12 | uint32(sextet[run[i+2]])<<6 | uint32(sextet[run[i+3]])
		d = append(d, byte(v>>16), byte(v>>8), byte(v))
	}
	switch len(run) - i {
	case 2:
		d = append(d, sextet[run[i]]<<2|sextet[run[i+1]]>>4)
	case 3:
		v := uint32(sextet[run[i]])<<12 | uint32(sextet[run[i+1]])<<6 | uint32(sextet[run[i+2]])
		d = append(d, byte(v>>10), byte(v>>2))
	}
	return d
}

var sextet = sextets()

func sextets() (t [256]byte) {
	for i, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		t[c] = byte(i)
	}
	t['-'], t['_'] = 62, 63
	return t
}

// readable says whether most of d is text, as it is where a word stood before
// the base64 and gave a few bytes of nonsense.
func readable(d []byte) bool {
	if len(d) < 12 {
		return false
	}
	bad, most := 0, len(d)*4/10
	for i := 0; i < len(d); i++ {
		c := d[i]
		if c < utf8.RuneSelf {
			if !textByte[c] {
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

// textByte are the bytes of ASCII that readable text has.
var textByte = textBytes()

func textBytes() (t [256]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		t[c] = true
	}
	t['\n'], t['\r'], t['\t'] = true, true, true
	return t
}

// isKeyDER says whether d begins as a private key does: PKCS #1 and #8, SEC 1
// and PKCS #12 (RFC 8017 A.1.2, 5208, 5915, 7292), or OpenSSH's own form.
func isKeyDER(d []byte) bool {
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
