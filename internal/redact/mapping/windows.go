package mapping

import "encoding/binary"

// windows are the stretches of eight bytes of some texts, as bits by their hash: so a text of many megabytes is
// searched only for what may be in it.
type windows struct {
	bits  []uint64
	shift uint
}

const (
	windowSize = 8
	maxShift   = 64 - 14 // at least 2 KB of bits
	minShift   = 64 - 28 // at most 32 MB
)

func newWindows(texts [][]byte) *windows {
	total := 0
	for _, t := range texts {
		total += len(t)
	}
	w := &windows{shift: maxShift}
	for w.shift > minShift && 1<<(64-w.shift) < 8*total {
		w.shift--
	}
	w.bits = make([]uint64, 1<<(64-w.shift-6))
	for _, t := range texts {
		for i := 0; i+windowSize <= len(t); i++ {
			h := w.hashWindow(t[i:])
			w.bits[h>>6] |= 1 << (h & 63)
		}
	}
	return w
}

// hashWindow mixes the eight bytes that b begins with.
func (w *windows) hashWindow(b []byte) uint64 {
	v := binary.LittleEndian.Uint64(b)
	v ^= v >> 31
	return v * 0x9e3779b97f4a7c15 >> w.shift
}

// mayHave reports whether one of the texts may have b.
func (w *windows) mayHave(b []byte) bool {
	if len(b) < windowSize {
		return true
	}
	for _, at := range []int{0, len(b) - windowSize} {
		if h := w.hashWindow(b[at:]); w.bits[h>>6]&(1<<(h&63)) == 0 {
			return false
		}
	}
	return true
}
