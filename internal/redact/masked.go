package redact

import "strings"

// Masked says whether a text may hold a mask, of any style. Whoever wrote what
// looks like one is taken for masked as well.
func Masked(text string) bool {
	if strings.Contains(text, MaskCard) {
		return true
	}
	for i := range len(text) {
		if c := text[i]; (c == '[' || c == '<') && maskLen([]byte(text[i:min(len(text), i+2*maxMask)])) > 0 {
			return true
		}
	}
	return false
}
