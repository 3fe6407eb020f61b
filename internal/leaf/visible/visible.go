// Package visible answers which characters of a text a reader sees.
package visible

import (
	"strings"
	"unicode"
)

// brailleBlank is a symbol without a dot.
const brailleBlank = '\u2800'

// IsVisible reports whether r shows as itself. Control and format characters, spaces other than U+0020, and characters
// that display nothing do not.
func IsVisible(r rune) bool {
	return unicode.IsPrint(r) && r != brailleBlank &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// IsGraphicWord reports whether s has only graphic characters (unicode.IsGraphic) and no spaces.
func IsGraphicWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) })
}

// ReplaceControls returns s with each control character (unicode.IsControl) replaced, such as those that move the
// cursor of a terminal.
func ReplaceControls(s string, replacement rune) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return replacement
		}
		return r
	}, s)
}

// ReplaceUnprintable returns s with a question mark for each character that unicode.IsPrint does not accept, and for
// each byte that is not UTF-8.
func ReplaceUnprintable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// Shorten returns at most 64 bytes of a word of another program, as ReplaceUnprintable leaves them.
func Shorten(s string) string {
	s = ReplaceUnprintable(s)
	return s[:min(len(s), 64)]
}
