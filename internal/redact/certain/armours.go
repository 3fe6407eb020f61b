package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// armourBody is the text after the line that begins a private key: lines of base64,
// the fields before them (RFC 1421, 4880, 4716), and the line that ends it. It may be a
// string of code or JSON, quoted, indented, or on one line.
type armourBody struct {
	at    int  // where reading continues
	end   int  // where the text that belongs to the key ends
	stop  int  // where it ends at the latest
	sure  int  // where an end begins, with only base64 before it
	pem   int  // the number of armours that have begun and not ended
	ssh2  int  // the same, in the form of RFC 4716
	inner bool // at is inside a chunk of base64 that is long enough
	began bool // base64 was read
	field bool // fields may come
	last  bool // a short line was read: only an end may follow
	open  bool // the text ended before the armour
}

const (
	maxArmour  = 64 << 10 // a key with its armour
	minChunk   = 24       // more base64 than a word has
	maxBetween = 96       // between two lines
	maxField   = 512      // a line before the base64
	maxShort   = 1024     // lines that are shorter than minChunk, before an end
	armourMark = "-----"
)

// readArmour reads on in b, and reports true at its end and false at the end of the text.
func (x *Scanner) readArmour(b *armourBody) bool {
	b.open = false
	for {
		from := b.at
		if !b.inner {
			from = x.nextLine(b.at)
		}
		switch {
		case from >= len(x.S):
			x.Touched, b.open = true, true
			return false
		case from > b.stop || from-b.at > maxBetween:
			return true
		case x.S[from] == '-':
			if done, known := x.armourLine(b, from); !known {
				x.Touched, b.open = true, true
				return false
			} else if done {
				return true
			}
			continue
		case b.field:
			if e := x.armourField(from); e > from {
				b.at = e
				continue
			}
		}
		e := x.base64End(from, b.stop)
		short := !b.inner && e-from < minChunk
		if e >= len(x.S) {
			x.Touched = true
			if x.more {
				if !short && !b.last && (b.began || isKeyText(x.S[from:e])) {
					b.at, b.end, b.inner, b.began, b.field = e, e, true, true, false
				}
				b.open = true
				return false
			}
		}
		if b.last || short && !x.endsArmour(b, from, e) || !b.began && !short && !isKeyText(x.S[from:e]) {
			if b.open = x.more && x.Touched && short && e > from; b.open {
				return false
			}
			return true
		}
		b.at, b.end, b.inner, b.began, b.field, b.last = e, e, false, true, false, short && e > b.sure
	}
}

// armourLine reads the dashes at i: an end, or a beginning inside. known is false if only more text can tell.
func (x *Scanner) armourLine(b *armourBody, i int) (done, known bool) {
	e := i
	for e < len(x.S) && x.S[e] == '-' && e < i+8 {
		e++
	}
	rest := x.S[e:]
	if x.more && len(rest) < maxLabel && bytes.IndexByte(rest, '\n') < 0 {
		return false, false
	}
	rest = rest[:min(len(rest), maxLabel)]
	ssh2 := e-i == 4 && len(rest) > 0 && rest[0] == ' '
	if ssh2 {
		rest = rest[1:]
	} else if e-i < 5 {
		return true, true
	}
	count := &b.pem
	if ssh2 {
		count = &b.ssh2
	}
	switch {
	case bytes.HasPrefix(rest, []byte("END")):
		*count = max(0, *count-1) // one without a beginning ends nothing
	case bytes.HasPrefix(rest, []byte("BEGIN ")):
		*count++
	default:
		return true, true
	}
	end := e
	for end < len(x.S) && end < e+maxLabel && (char.Class[x.S[end]]&(char.Alnum|char.Blank) != 0 || x.S[end] == '/') {
		end++
	}
	if ssh2 || x.Has(end, armourMark) {
		for n := 0; n < 5 && end < len(x.S) && x.S[end] == '-'; n++ {
			end++
		}
	}
	b.at, b.end, b.last, b.field = end, end, false, true
	return b.pem+b.ssh2 == 0, true
}

// endsArmour reports whether the few bytes of base64 in [i, e) belong to a key: an end follows, or they end it.
func (x *Scanner) endsArmour(b *armourBody, i, e int) bool {
	if e == i {
		return false
	}
	if i < b.sure || isChunk(x.S[i:e]) && x.findsEnd(b, e) {
		return true
	}
	if x.S[i] == '=' || e < len(x.S) && x.S[e-1] == '=' {
		return b.began
	}
	return b.began && (e == len(x.S) || char.Class[x.S[e]]&char.Blank == 0) && !isWord(x.S[i:e])
}

// findsEnd reports whether base64 leads from i to a line of dashes.
func (x *Scanner) findsEnd(b *armourBody, i int) bool {
	for stop := min(b.stop, i+maxShort); i < stop; {
		i = x.nextLine(i)
		if x.Has(i, "----") {
			b.sure = i
			return true
		}
		e := x.base64End(i, b.stop)
		if x.Touch(e); !isChunk(x.S[i:e]) {
			return false
		}
		i = e
	}
	return false
}

// isChunk reports whether s may be a line of base64 rather than a word.
func isChunk(s []byte) bool { return len(s) >= 4 && !isWord(s) }

// isWord reports whether s has small letters only after its first.
func isWord(s []byte) bool {
	for _, c := range s[1:] {
		if char.Class[c]&char.Lower == 0 {
			return false
		}
	}
	return char.Class[s[0]]&char.Letter != 0
}

// isKeyText reports whether s may be a key's first line: neither a name of code nor a path.
func isKeyText(s []byte) bool {
	var have uint16
	for _, c := range s {
		have |= char.Class[c]
	}
	if have&char.Upper != 0 && have&char.Lower != 0 {
		return len(s) >= 48 || have&char.Digit != 0
	}
	return len(s) >= 32 && have&char.Digit != 0
}

// nextLine returns where the next line of an armour begins, after the end of the one
// at i: over line breaks, also escaped, quotes, commas and marks of quoted text.
func (x *Scanner) nextLine(i int) int {
	for stop := min(len(x.S), i+maxBetween+1); i < stop; {
		switch c := x.S[i]; {
		case char.Class[c]&char.Space != 0 || char.IsQuote(c) || char.IndexByte(",;|>#*()[]:", c) >= 0:
			i++
		case c == '\\':
			if i++; i < len(x.S) && char.IndexByte("nrt", x.S[i]) >= 0 {
				i++
			}
		case c == '+' && (x.Is(i+1, char.Space) || i+1 < len(x.S) && char.IsQuote(x.S[i+1])):
			i++ // joins two strings
		case c == '-' && x.Is(i+1, char.Std64):
			i++ // a line that a patch removes
		default:
			if e := x.lineNumberEnd(i); e > i {
				i = e
				continue
			}
			return i
		}
	}
	return i
}

// lineNumberEnd returns the end of the number of a line at i, as `cat -n` and tools of agents show it, or i.
func (x *Scanner) lineNumberEnd(i int) int {
	const arrow = "\u2192"
	e := i
	for e < len(x.S) && e < i+6 && char.Class[x.S[e]]&char.Digit != 0 {
		e++
	}
	switch {
	case e > i && x.more && len(x.S)-e < len(arrow):
		return len(x.S) // what follows is unknown
	case e > i && x.Has(e, arrow):
		return e + len(arrow)
	case e > i && (x.Is(e, char.Blank) || x.Has(e, ":") || x.Has(e, `\t`)):
		return e
	}
	return i
}

// base64End returns the end of the base64 that begins at i, with its padding; a "/" may be escaped.
func (x *Scanner) base64End(i, stop int) int {
	stop = min(stop, len(x.S))
	for i < stop && (char.Class[x.S[i]]&char.Std64 != 0 || x.S[i] == '\\' && x.Has(i+1, "/")) {
		i++
	}
	for n := 0; n < 8 && i < stop && x.S[i] == '='; n++ {
		for i++; i < stop && n == 0 && char.Class[x.S[i]]&char.Std64 != 0; {
			i++ // the sum after OpenPGP's base64
		}
	}
	return i
}

// armourField returns the end of the line "Proc-Type: 4,ENCRYPTED" at i, or i.
func (x *Scanner) armourField(i int) int {
	e := i
	for e < len(x.S) && e < i+40 && (char.Class[x.S[e]]&char.Alnum != 0 || x.S[e] == '-') {
		e++
	}
	if e == i || !x.Has(e, ": ") {
		return i
	}
	for e += 2; e < len(x.S) && e < i+maxField; e++ {
		if x.S[e] == '\n' || x.S[e] == '\\' && !x.Has(e+1, "\n") {
			break
		}
	}
	x.Touch(e)
	return e
}

// armour masks the private key whose "-----BEGIN" is at i. A line that only names such a key has nothing of it.
func (x *Scanner) armour(i int) int {
	label := i + len(armourBegin)
	if i < x.pemLow {
		return label
	}
	n := bytes.Index(x.S[label:min(len(x.S), label+maxLabel)], []byte(armourMark))
	if n < 0 {
		x.Touch(label + maxLabel)
		return label
	}
	if isPrivate(x.S[label : label+n]) {
		x.maskArmour(armourBody{end: i, at: label + n + len(armourMark), pem: 1})
	}
	return label
}

// armourSSH2 masks the private key whose "---- BEGIN SSH2" is at i (RFC 4716, as commercial SSH writes them).
func (x *Scanner) armourSSH2(i int) int {
	label := i + len("---- BEGIN ")
	n := bytes.Index(x.S[label:min(len(x.S), label+maxLabel)], []byte("----"))
	if n < 0 {
		x.Touch(label + maxLabel)
	} else if i >= x.pemLow && isPrivate(x.S[label:label+n]) {
		x.maskArmour(armourBody{end: i, at: label + n + len("----"), ssh2: 1})
	}
	return label
}

// maskArmour masks the key that begins at b's end, and whose text begins where b is.
func (x *Scanner) maskArmour(b armourBody) {
	i := b.end
	b.stop, b.field = i+maxArmour, true
	x.readArmour(&b)
	x.pemLow = b.at - len(armourMark) // the dashes of an end may be a beginning's
	if !b.began {
		return
	}
	if b.open && x.more {
		x.unended = b
	}
	x.mask(i, b.end, rule.PrivateKey)
	x.unended = armourBody{}
}
