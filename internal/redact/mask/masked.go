package mask

import "strings"

// IsIn says whether a text may hold a mask, of any style. Whoever wrote what
// looks like one is taken for masked as well.
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
