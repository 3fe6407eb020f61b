package certain

import (
	"math/bits"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/token"
)

// A trigger is looked at only if the bytes next to it may belong to a finding there.
// Each bit is for a few triggers. A byte has it if it is one of them (at), may
// precede one (before) or may follow one (after). A byte is looked at if it, the byte
// before it and the byte after it have the same bit. A bit may let through more than
// its triggers need, never less.
const (
	tellAlways uint32 = 1 << iota // no neighbour rules them out
	tellRun                       // the first digit of a run
	tellInner                     // a dot in a word, "+" and "%" before a digit
	tellTail                      // AKIA, ASIA, AIza, eyJ, and what ends in "sw"
	tellNext                      // JQQJ99, -us12, _KEY
	tellWord                      // by, bearer, basic
	tellFlag                      // "--x", " -x", armours
	tellHead                      // the end of a prefix

	tellAll    = 1<<8 - 1
	tellBefore = 8 // where the bits for neighbours begin
	tellAfter  = 16
)

var telling = tellings()

func tellings() (t [256]uint32) {
	for c := range 256 {
		b := byte(c)
		t[c] = tells(b) | mayPrecede(b)<<tellBefore | mayFollow(b)<<tellAfter
	}
	for _, p := range token.Prefixes() {
		n := len(p.Text)
		if last := p.Text[n-1]; last != '-' && last != '_' {
			continue
		}
		for c := int(p.Text[n-2] & 31); c < 256; c += 32 { // as token.Index tells them apart
			t[c] |= tellHead << tellBefore
		}
	}
	return t
}

// tells returns the bits of a trigger, 0 where b is none.
func tells(b byte) uint32 {
	switch b {
	case '@', ':', '=', '>', '|', '?', 0x9a:
		return tellAlways
	case '.', '+', '%', ',', '#':
		return tellInner
	case '(':
		return tellNext
	case 'i', 'e':
		return tellFlag
	case 'K', 'S', 'z', 'w', 'W':
		return tellTail
	case 'J':
		return tellTail | tellNext
	case 'b', 'B':
		return tellWord
	case '-':
		return tellNext | tellFlag | tellHead
	case '_':
		return tellNext | tellHead
	}
	if char.Class[b]&char.Digit != 0 {
		return tellRun
	}
	return 0
}

// mayPrecede returns the triggers that b may stand before.
func mayPrecede(b byte) uint32 {
	m := tellAlways | tellInner | tellNext
	if char.Class[b]&char.Digit == 0 {
		m |= tellRun
	}
	if char.Class[b]&char.Alnum == 0 || char.Class[b]&char.Hex != 0 || char.IndexByte("nrtbfvm", b) >= 0 {
		m |= tellWord // a word begins, or an escape ends
	}
	if char.Class[b]&char.Space != 0 || char.IsQuote(b) || b == '-' {
		m |= tellFlag
	}
	switch b {
	case 'A', 'I', 's', 'S', 'y':
		m |= tellTail
	}
	return m
}

// mayFollow returns the triggers that b may follow.
func mayFollow(b byte) uint32 {
	m := tellAlways | tellRun | tellTail | tellHead
	if char.Class[b]&char.URL64 != 0 || b == '.' || b == '=' {
		m |= tellInner
	}
	if char.Class[b]&char.Letter != 0 || b == ' ' {
		m |= tellFlag
	}
	switch b {
	case 'Q', 'u', 'K', 'P', 'S', 'T', 'k', '"', '\'', '`':
		m |= tellNext
	}
	switch b | 0x20 {
	case 'y', 'e', 'a':
		m |= tellWord
	}
	return m
}

// finder finds the triggers of a text that are worth a look, 64 bytes at a
// time and without a branch for each.
type finder struct {
	s    []byte
	base int    // of the 64 bytes in hand; -1 for none
	bits uint64 // which of them
}

func newFinder(s []byte) finder { return finder{s: s, base: -1} }

// next returns the first place from i on that is worth a look, or the end of
// the text. A digit within a run is one only where the search begins at it.
func (f *finder) next(i int) int {
	if i >= len(f.s) {
		return len(f.s)
	}
	if f.s[i]-'0' <= 9 && i > 0 && f.s[i-1]-'0' <= 9 {
		return i
	}
	base := i &^ 63
	if base != f.base {
		f.block(base)
	}
	found := f.bits >> (i & 63) << (i & 63)
	for found == 0 {
		if base += 64; base >= len(f.s) {
			return len(f.s)
		}
		f.block(base)
		found = f.bits
	}
	return base + bits.TrailingZeros64(found)
}

// block looks at the 64 bytes at base.
func (f *finder) block(base int) {
	before, at := uint32(tellAll), telling[f.s[base]]
	if base > 0 {
		before = telling[f.s[base-1]] >> tellBefore
	}
	found, k := uint64(0), 0
	s := f.s[base+1:]
	for ; k < 64 && k+8 <= len(s); k += 8 {
		w := (*[8]byte)(s[k:])
		t0, t1, t2, t3 := telling[w[0]], telling[w[1]], telling[w[2]], telling[w[3]]
		m := uint64(uint8(at&before&(t0>>tellAfter))) |
			uint64(uint8(t0&(at>>tellBefore)&(t1>>tellAfter)))<<8 |
			uint64(uint8(t1&(t0>>tellBefore)&(t2>>tellAfter)))<<16 |
			uint64(uint8(t2&(t1>>tellBefore)&(t3>>tellAfter)))<<24
		t4, t5, t6, t7 := telling[w[4]], telling[w[5]], telling[w[6]], telling[w[7]]
		m |= uint64(uint8(t3&(t2>>tellBefore)&(t4>>tellAfter)))<<32 |
			uint64(uint8(t4&(t3>>tellBefore)&(t5>>tellAfter)))<<40 |
			uint64(uint8(t5&(t4>>tellBefore)&(t6>>tellAfter)))<<48 |
			uint64(uint8(t6&(t5>>tellBefore)&(t7>>tellAfter)))<<56
		before, at = t6>>tellBefore, t7
		found |= packed(m) << (k & 63)
	}
	for ; k < 64 && k <= len(s); k++ {
		after, next := uint32(tellAll), uint32(0) // the byte after the last one is unknown
		if k < len(s) {
			next = telling[s[k]]
			after = next >> tellAfter
		}
		if at&before&after&tellAll != 0 {
			found |= 1 << (k & 63)
		}
		before, at = at>>tellBefore, next
	}
	f.base, f.bits = base, found
}

// packed has one bit for each byte of m that is not 0.
func packed(m uint64) uint64 {
	const low, ones = 0x7f7f7f7f7f7f7f7f, 0x0101010101010101
	m = ((m&low + low) | m) >> 7 & ones
	return m * 0x0102040810204080 >> 56
}
