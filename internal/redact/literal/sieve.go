package literal

import (
	"encoding/binary"
	"math/bits"
)

// twoBytes is a set of two bytes.
type twoBytes [65536 / 64]uint64

func (p *twoBytes) add(a, b byte) {
	k := uint16(a)<<8 | uint16(b)
	p[k>>6] |= 1 << (k & 63)
}

func (p *twoBytes) has(k uint16) bool { return p[k>>6]&(1<<(k&63)) != 0 }

// join adds what is in o.
func (p *twoBytes) join(o *twoBytes) {
	for i := range p {
		p[i] |= o[i]
	}
}

// keyOf is the first four bytes of f.
func keyOf(f []byte) uint32 { return binary.BigEndian.Uint32(f) }

// sieve is a set of four bytes that may say yes to one that is not in it: to
// about one in sixty-four, or with the most secrets one in ten.
type sieve struct {
	bits  []uint64
	shift int
}

// The least and the most bits of a sieve, as powers of two: 512 bytes, 256 KiB.
const (
	leastSieve = 12
	mostSieve  = 21
)

func newSieve(forms map[uint32][][]byte) sieve {
	n := min(max(bits.Len(uint(64*len(forms))), leastSieve), mostSieve)
	v := sieve{bits: make([]uint64, 1<<n/64), shift: 32 - n}
	for k := range forms {
		h := v.hash(k)
		v.bits[h>>6] |= 1 << (h & 63)
	}
	return v
}

func (v *sieve) hash(key uint32) uint32 { return key * 0x9e3779b1 >> (v.shift & 31) }

func (v *sieve) has(key uint32) bool {
	h := v.hash(key)
	return v.bits[h>>6]&(1<<(h&63)) != 0
}

// sort of a byte, to near.
type byteSort uint8

const (
	sortBetween byteSort = iota
	sortCounts
	sortSpecial
)

var byteSorts = byteSortTable()

func byteSortTable() (t [256]byteSort) {
	for c := range 256 {
		switch {
		case special[c]:
			t[c] = sortSpecial
		case counts(byte(c)):
			t[c] = sortCounts
		}
	}
	return t
}

// near says whether a form may begin where t does, without a look at escapes:
// where one may stand before four bytes that count, the answer is yes.
func (l *loose) near(t []byte) bool {
	have, between, key := 0, 0, uint32(0)
	for p, c := range t {
		switch sort := byteSorts[c]; {
		case sort == sortCounts, c == '0' && p+1 < len(t) && t[p+1] != 'x':
			key = key<<8 | uint32(c)
			between = 0
			switch have++; {
			case have == 1 && !l.heads[c], have == 2 && !l.first.has(uint16(key)):
				return false
			case have == 4:
				return l.sieve.has(key)
			}
		case sort == sortSpecial:
			return true
		default:
			if between++; have == 0 || between > maxBetween {
				return false
			}
		}
	}
	return true
}
