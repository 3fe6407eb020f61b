package detector

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/redact/finding"
)

const (
	// maxLine bounds a line that is sent, with its end: less than 64 KiB, so a reader with a buffer of that size has
	// it whole.
	maxLine = 64<<10 - 1
	// maxWindow bounds the text in a line, escaped: the rest of it is the members' names and the id.
	maxWindow = maxLine - 64
	// maxOverlap is the number of bytes that two lines of one text share.
	maxOverlap = 1 << 10
)

// replaceInvalid returns text with "?" in place of each byte that is not UTF-8. It has the same length.
func replaceInvalid(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	out := bytes.Clone(text)
	for i := 0; i < len(out); {
		r, n := utf8.DecodeRune(out[i:])
		if r == utf8.RuneError && n == 1 {
			out[i] = '?'
		}
		i += n
	}
	return out
}

// cutWindow returns the end of the window of text that begins at from: it fits one line and ends between characters.
func cutWindow(text []byte, from int) int {
	cost := 0
	for i := from; i < len(text); i++ {
		switch c := text[i]; {
		case c < 0x20:
			cost += len(`\u0000`)
		case c == '"' || c == '\\':
			cost += 2
		default:
			cost++
		}
		if cost > maxWindow {
			return alignDown(text, i)
		}
	}
	return len(text)
}

// nextWindow returns the beginning of the window after [from, end): it shares maxOverlap bytes with it, or half of it.
func nextWindow(text []byte, from, end int) int {
	return alignDown(text, end-min(maxOverlap, (end-from)/2))
}

// alignDown returns the beginning of the character that i is in.
func alignDown(text []byte, i int) int {
	for i < len(text) && i > 0 && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}

// joinFindings sorts findings and joins those that overlap.
func joinFindings(list []finding.Finding) []finding.Finding {
	slices.SortFunc(list, func(a, b finding.Finding) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length))
	})
	out := list[:0]
	for _, f := range list {
		if n := len(out); n > 0 && f.Offset < out[n-1].Offset+out[n-1].Length {
			out[n-1].Length = max(out[n-1].Length, f.Offset+f.Length-out[n-1].Offset)
			continue
		}
		out = append(out, f)
	}
	return out
}
