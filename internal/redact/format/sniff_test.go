package format

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What is looked at by words is judged as by bytes.
func TestBinaryIsTheSameByWordsAndByBytes(t *testing.T) {
	slowly := func(b []byte) bool {
		controls, bad := 0, 0
		for i := 0; i < len(b); {
			r, w := utf8.DecodeRune(b[i:])
			switch {
			case plainByte[b[i]]:
			case b[i] < utf8.RuneSelf:
				controls++
			case r == utf8.RuneError && w == 1:
				bad++
			}
			i += w
		}
		return controls*16 > len(b) || bad*3 > len(b)
	}
	for c := range 256 {
		for n := range 40 {
			for _, each := range []int{1, 2, 3, 5, 9, 17} {
				b := []byte(strings.Repeat("a z~!", 9))[:n]
				for i := n % 3; i < n; i += each {
					b[i] = byte(c)
				}
				if got := isBinary(b); got != slowly(b) {
					t.Fatalf("isBinary(%q) = %v", b, got)
				}
			}
		}
	}
}
