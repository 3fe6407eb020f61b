package mapping

import (
	"encoding/binary"
	"strings"
)

const (
	markSize = 8 // bytes of a placeholder by which an altered one is known
	// maxMarked is the number of placeholders, the newest ones, whose altered forms are counted.
	maxMarked = 4096
	// maxAlteredGap is the largest distance of the pieces of one altered placeholder, in bytes, beyond its length.
	maxAlteredGap = 48
)

// marks are what shows that a text has an altered placeholder: eight bytes at the beginning or end of what was
// derived, in small letters, or its base64.
type marks struct {
	filter []uint64
	shift  uint
	of     map[uint64]*entry
}

func newMarks(entries []entry) *marks {
	entries = entries[max(0, len(entries)-maxMarked):]
	m := &marks{of: map[uint64]*entry{}, shift: maxShift}
	for m.shift > minShift && 1<<(64-m.shift) < 64*len(entries) {
		m.shift--
	}
	m.filter = make([]uint64, 1<<(64-m.shift-6))
	for i := range entries {
		e := &entries[i]
		derived := strings.TrimSuffix(e.placeholder, MailDomain)
		derived = derived[min(e.kept, len(derived)):]
		if len(derived) < markSize {
			continue
		}
		m.addMark(e, derived[:markSize])
		m.addMark(e, derived[len(derived)-markSize:])
		for _, core := range listCores(derived) {
			if len(core) >= markSize {
				m.addMark(e, core[:markSize])
			}
		}
	}
	return m
}

func (m *marks) addMark(e *entry, mark string) {
	k := binary.LittleEndian.Uint64([]byte(strings.ToLower(mark)))
	h := hashEight(k, m.shift)
	m.filter[h>>6] |= 1 << (h & 63)
	m.of[k] = e
}

// alteredCounter counts altered placeholders in what is left of a text, which comes in pieces.
type alteredCounter struct {
	marks *marks
	eight uint64 // the last eight bytes, in small letters, the newest one first in significance
	have  int    // how many of them are part of the text
	at    int    // bytes that came
	last  *entry
	until int // where another mark of last counts again
	n     int
}

// countIn takes the next piece of what is left.
func (a *alteredCounter) countIn(text []byte) {
	if len(a.marks.of) == 0 {
		return
	}
	for _, c := range text {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		a.eight = a.eight>>8 | uint64(c)<<56
		a.at++
		if a.have++; a.have < markSize {
			continue
		}
		h := hashEight(a.eight, a.marks.shift)
		if a.marks.filter[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		if e := a.marks.of[a.eight]; e != nil && (e != a.last || a.at > a.until) {
			a.last, a.until = e, a.at+2*len(e.placeholder)+maxAlteredGap
			a.n++
		}
	}
}

// skipRestored notes that a placeholder was restored, so that no mark reaches over it.
func (a *alteredCounter) skipRestored() { a.have = 0 }
