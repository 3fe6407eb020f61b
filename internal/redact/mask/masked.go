package mask

import "strings"

// IsIn reports whether a text may contain a mask, of any style. A text that looks like a
// mask is treated as one, also one that an agent wrote.
func IsIn(text string) bool {
	if strings.Contains(text, Card) {
		return true
	}
	for i := range len(text) {
		if c := text[i]; (c == '[' || c == '<') && Len([]byte(text[i:min(len(text), i+2*MaxLen)])) > 0 {
			return true
		}
	}
	return false
}
