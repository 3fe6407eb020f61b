package redact

// escape returns the end of the escape in whose hexadecimal digits i stands,
// or i.
func (x *scanner) escape(i int) int {
	if x.has(i-3, "%25") && x.end(i, 2, isHex) == i+2 {
		return i + 2
	}
	for back := 1; back <= 5 && back <= i; back++ {
		size := 0
		switch c := x.s[i-back]; {
		case c == '%':
			size = 2
		case c == 'x' && x.has(i-back-1, `\`):
			size = 2
		case c == 'u' && x.has(i-back-1, `\`):
			size = 4
		case class[c]&isHex == 0:
			return i
		}
		if from := i - back + 1; size >= back && x.end(from, size, isHex) == from+size {
			return from + size
		}
	}
	return i
}
