// Package excerpt bounds what is quoted of somebody else's text.
package excerpt

// Of is s, or where it has more than most bytes so much of it as ends before
// them at a character's edge, and "...". It makes nothing fit to be looked at:
// what cannot be seen stays as it is.
func Of(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:max(most, 0)] + "..."
}

// Word is s as a message quotes it: at most 64 bytes of it.
func Word(s string) string { return Of(s, 64) }
