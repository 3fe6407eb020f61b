package redact

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast"
)

const (
	minLiteral = 4
	maxLiteral = 65_536
	// maxCount and maxLiterals bound them all: their forms take some fifty
	// times their own bytes, in memory of which little may be locked.
	maxCount    = 1024
	maxLiterals = 262_144
)

// literals finds known secrets in any of their forms. A table of the first
// two bytes decides in one step per byte whether any can begin here.
type literals struct {
	first  []uint64            // 65 536 bits
	forms  map[uint16][][]byte // in memory
	memory *Memory
}

func newLiterals(secrets []holdfast.Secret) (*literals, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	l := &literals{first: make([]uint64, 65536/64), forms: map[uint16][][]byte{}, memory: new(Memory)}
	most, all := 0, 0
	for i, s := range secrets {
		n := len(plain(s))
		if n < minLiteral || n > maxLiteral {
			return nil, invalid("literal", "literal "+strconv.Itoa(i)+" has "+strconv.Itoa(n)+" bytes", "a registered secret is 4 to 65536 bytes long")
		}
		most, all = max(most, n), all+n
	}
	if all > maxLiterals || len(secrets) > maxCount {
		return nil, invalid("literal", strconv.Itoa(len(secrets))+" literals have "+strconv.Itoa(all)+" bytes", "at most 1024 secrets of 262144 bytes together can be registered")
	}
	scratch := l.memory.Buffer(maxGrowth*(most+16) + maxGrowth*most)
	defer clear(scratch)
	for _, s := range secrets {
		f := former{text: plain(s), scratch: scratch, take: l.add}
		f.forms()
	}
	for _, list := range l.forms {
		slices.SortFunc(list, func(a, b []byte) int { return len(b) - len(a) })
	}
	return l, nil
}

// add keeps a form that is long enough to be told from ordinary text.
func (l *literals) add(f []byte) {
	if len(f) < minLiteral {
		return
	}
	k := uint16(f[0])<<8 | uint16(f[1])
	for _, have := range l.forms[k] {
		if bytes.Equal(have, f) {
			return
		}
	}
	l.first[k>>6] |= 1 << (k & 63)
	l.forms[k] = append(l.forms[k], l.memory.keep(f))
}

// find returns where literals stand, in order and without overlap.
func (l *literals) find(s []byte) []span {
	var out []span
	for i := 0; i+1 < len(s); i++ {
		k := uint16(s[i])<<8 | uint16(s[i+1])
		if l.first[k>>6]&(1<<(k&63)) == 0 {
			continue
		}
		for _, f := range l.forms[k] {
			if bytes.HasPrefix(s[i:], f) && !withinMask(s, i, i+len(f)) {
				out = append(out, span{i, i + len(f), ruleLiteral})
				i += len(f) - 1
				break
			}
		}
	}
	return out
}
