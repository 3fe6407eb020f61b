package token

import "github.com/holdfast-dev/holdfast/internal/redact/char"

// maxChance is the length up to which a prefix occurs by chance: one of six characters
// once in 64 GB of base64, but there are many of them, and many that are shorter.
const maxChance = 6

const (
	reachNoise = 128 // what IsInside looks at
)

// The number of letters before a prefix that tell that it is inside: fewer than MinNoise
// prove nothing, and a prefix of more than three characters wants SureNoise.
const (
	MinNoise  = 16
	SureNoise = 64
)

// leastNoise returns the number of letters before a prefix of n characters that tell that
// it is inside.
func leastNoise(n int) int {
	if n <= 3 {
		return MinNoise
	}
	return SureNoise
}

// IsInside reports whether what begins at i is inside a longer run of base64, base32 or
// hexadecimal: at least that many letters precede it, and their kind changes at every
// second place, where in names and paths it changes at every sixth.
func IsInside(s []byte, i, least int) bool {
	letters, changes := 0, 0
	var last, have uint16
	for k := i - 1; k >= 0 && i-k <= reachNoise; k-- {
		kind := char.Class[s[k]]
		if kind&(char.URL64|char.Std64) == 0 {
			break
		}
		if kind &= char.Alnum; kind == 0 {
			last = 0 // a dash or a slash
			continue
		}
		// Read from its end, a word with a capital is small letters and then one.
		if last != 0 && kind != last && (kind != char.Upper || last != char.Lower) {
			changes++
		}
		letters++
		last = kind
		have |= kind
	}
	if letters < least {
		return false
	}
	if have == char.Upper|char.Digit {
		return changes*8 >= letters // base32
	}
	return changes*9 >= letters*2
}

// isWrapped reports whether the line before the one that begins at i is a line of base64 of a usual length.
func isWrapped(s []byte, i int) bool {
	end := i - 1
	if end < 0 || s[end] != '\n' {
		return false
	}
	if end > 0 && s[end-1] == '\r' {
		end--
	}
	n := 0
	for n < end && n < reachNoise && char.Class[s[end-1-n]]&char.Std64 != 0 {
		n++
	}
	return n == 60 || n == 64 || n == 72 || n == 76
}

// EndsBase64 reports whether a run of base64 is before the name at i, so that the name is its end.
func EndsBase64(s []byte, i int) bool {
	const least = 24
	mixed := false
	for n := 1; n <= least; n++ {
		if i-n < 0 {
			return false
		}
		switch c := s[i-n]; {
		case c == '+' || c == '/' || char.Class[c]&char.Digit != 0:
			mixed = true
		case char.Class[c]&char.Alnum == 0:
			return false
		}
	}
	return mixed
}
