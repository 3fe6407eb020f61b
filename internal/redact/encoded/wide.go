package encoded

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// Wide is how text of more than one byte to a character is written.
type Wide struct {
	Size int // 2 or 4; 0 for other text
	bom  int // bytes of the mark before it
	big  bool
}

// FindWide recognizes UTF-16 and UTF-32 by their mark, or by the places of the NULs in
// what is otherwise ASCII.
func FindWide(b []byte) Wide {
	switch {
	case bytes.HasPrefix(b, []byte("\xff\xfe\x00\x00")):
		return Wide{4, 4, false}
	case bytes.HasPrefix(b, []byte("\x00\x00\xfe\xff")):
		return Wide{4, 4, true}
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		return Wide{2, 2, false}
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		return Wide{2, 2, true}
	}
	if len(b) < 8 || bytes.IndexByte(b, 0) < 0 {
		return Wide{}
	}
	var nul [4]int
	n := min(len(b), 1<<16) &^ 3
	for i, c := range b[:n] {
		if c == 0 {
			nul[i&3]++
		}
	}
	q := n / 4
	much := func(k int) bool { return nul[k]*10 >= q*7 }
	little := func(k int) bool { return nul[k]*10 <= q }
	switch {
	case much(1) && much(2) && much(3) && little(0):
		return Wide{4, 0, false}
	case much(0) && much(1) && much(2) && little(3):
		return Wide{4, 0, true}
	case much(1) && much(3) && little(0) && little(2):
		return Wide{2, 0, false}
	case much(0) && much(2) && little(1) && little(3):
		return Wide{2, 0, true}
	}
	return Wide{}
}

// order reads and writes numbers of two and four bytes.
type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func (w Wide) byteOrder() order {
	if w.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// Decode returns b, without its mark, as UTF-8, and the bytes at its end that
// are no whole character. What is no character becomes U+FFFD.
func (w Wide) Decode(b []byte) (text, rest []byte) {
	b = b[w.bom:]
	n := len(b) - len(b)%w.Size
	order := w.byteOrder()
	text = make([]byte, 0, n)
	for i := 0; i < n; i += w.Size {
		if w.Size == 4 {
			v := order.Uint32(b[i:])
			text = utf8.AppendRune(text, rune(min(v, utf8.MaxRune+1)))
			continue
		}
		r := rune(order.Uint16(b[i:]))
		if utf16.IsSurrogate(r) && i+4 <= n {
			if p := utf16.DecodeRune(r, rune(order.Uint16(b[i+2:]))); p != utf8.RuneError {
				r, i = p, i+2
			}
		}
		text = utf8.AppendRune(text, r)
	}
	return text, b[n:]
}

// Encode appends text, and rest, after the mark of b.
func (w Wide) Encode(b, text, rest []byte) []byte {
	out := append(make([]byte, 0, w.bom+len(text)*w.Size+len(rest)), b[:w.bom]...)
	order := w.byteOrder()
	for _, r := range string(text) {
		if w.Size == 4 {
			out = order.AppendUint32(out, uint32(r))
			continue
		}
		for _, u := range utf16.AppendRune(nil, r) {
			out = order.AppendUint16(out, u)
		}
	}
	return append(out, rest...)
}
