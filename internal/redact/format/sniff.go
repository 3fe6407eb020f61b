package format

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/redact/encoded"
)

// form is what a body is made of, told by its bytes.
type form uint8

const (
	formText form = iota
	formWide      // UTF-16 or UTF-32
	formPacked
	formSealed // compressed or closed in a way that cannot be opened here
	formMedia
	formBinary
)

// sniff tells a body's form by its head and by the bytes it is made of.
func sniff(b []byte) form {
	switch {
	case packing(b) != packNone:
		return formPacked
	case sealedName(b) != "":
		return formSealed
	case mediaName(b) != "":
		return formMedia
	case encoded.FindWide(b).Size > 0:
		return formWide
	case isBinary(b):
		return formBinary
	}
	return formText
}

// isBinary says whether b is no text: more than one byte in sixteen is a
// control byte, or more than one in three no UTF-8. Western text in an old
// 8-bit encoding has fewer letters beyond ASCII than that.
func isBinary(b []byte) bool {
	controls, bad := 0, 0
	for i := 0; i < len(b); {
		c := b[i]
		if plainByte[c] {
			i++
			for i+8 <= len(b) && allVisible(binary.LittleEndian.Uint64(b[i:])) {
				i += 8
			}
			continue
		}
		if c < utf8.RuneSelf {
			controls++
			i++
			continue
		}
		r, w := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && w == 1 {
			bad++
		}
		i += w
	}
	return controls*16 > len(b) || bad*3 > len(b)
}

// allVisible says whether each byte of a word can be seen, or is a blank. Of some
// words in which one follows a smaller one it does not.
func allVisible(x uint64) bool { return (x|(x-eachBlank)|(x+eachOne))&eachHigh == 0 }

// plainByte are the bytes of ASCII that text has: what can be seen, blanks and
// the few control bytes of terminals and JSON sequences.
var plainByte = plainBytes()

func plainBytes() (t [256]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		t[c] = true
	}
	for _, c := range []byte("\t\n\r\f\x1b\x1e") {
		t[c] = true
	}
	return t
}

// signature is what a format begins with, at a place.
type signature struct {
	at   int
	text string
	name string
}

// sealed are the formats that are refused unread.
var sealed = [...]signature{
	{0, "\xfd7zXZ\x00", "xz"},
	{0, "\x28\xb5\x2f\xfd", "zstd"},
	{0, "7z\xbc\xaf\x27\x1c", "7z"},
	{0, "Rar!\x1a\x07", "rar"},
	{0, "\x04\x22\x4d\x18", "lz4"},
	{0, "LZIP\x01", "lzip"},
	{0, "\x1f\x9d\x90", "compress"},
	{0, "\xff\x06\x00\x00sNaPpY", "snappy"},
	{0, "MSCF\x00\x00\x00\x00", "cabinet"},
	{0, "%PDF-", "PDF"},
	{0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "OLE document"},
	{0, "age-encryption.org/v1", "age-encrypted"},
	{0, "Salted__", "encrypted"},
}

func sealedName(b []byte) string {
	if len(b) == 0 || !sealedHead[b[0]] {
		return ""
	}
	return nameIn(sealed[:], b)
}

// sealedHead are the first bytes of the sealed formats: one look spares most
// bodies the list.
var sealedHead = heads(sealed[:])

func heads(list []signature) (t [256]bool) {
	for _, s := range list {
		t[s.text[0]] = true
	}
	return t
}

// mediaName names the medium that b is. Text is none, whatever it begins with.
func mediaName(b []byte) string {
	name := encoded.FindMedium(b)
	if name == "" || !isBinary(b[:min(len(b), 4096)]) {
		return ""
	}
	return name
}

func nameIn(list []signature, b []byte) string {
	for i := range list {
		if s := &list[i]; len(b) > s.at && bytes.HasPrefix(b[s.at:], []byte(s.text)) {
			return s.name
		}
	}
	return ""
}

// stretches calls f with each readable stretch of at least six bytes in b and
// where it begins, until f says no.
func stretches(b []byte, f func(at int, s []byte) bool) {
	start := 0
	end := func(i int) bool { return i-start < 6 || f(start, b[start:i]) }
	for i := 0; i < len(b); {
		w := 1
		if c := b[i]; c >= utf8.RuneSelf {
			var r rune
			if r, w = utf8.DecodeRune(b[i:]); r == utf8.RuneError {
				w = 0
			}
		} else if !plainByte[c] {
			w = 0
		}
		if w > 0 {
			i += w
			continue
		}
		if !end(i) {
			return
		}
		i++
		start = i
	}
	end(len(b))
}
