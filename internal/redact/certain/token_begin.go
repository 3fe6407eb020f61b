package certain

import "github.com/holdfast-dev/holdfast/internal/redact/char"

// escape returns the end of the escape in whose hexadecimal digits i stands,
// or i.
func (x *Scanner) escape(i int) int {
	if x.Has(i-3, "%25") && x.End(i, 2, char.Hex) == i+2 {
		return i + 2
	}
	for back := 1; back <= 5 && back <= i; back++ {
		size := 0
		switch c := x.S[i-back]; {
		case c == '%':
			size = 2
		case c == 'x' && x.Has(i-back-1, `\`):
			size = 2
		case c == 'u' && x.Has(i-back-1, `\`):
			size = 4
		case char.Class[c]&char.Hex == 0:
			return i
		}
		if from := i - back + 1; size >= back && x.End(from, size, char.Hex) == from+size {
			return from + size
		}
	}
	return i
}
