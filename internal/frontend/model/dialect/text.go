package dialect

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf8"
)

// No tokenizer gives more tokens than the bytes that it reads, and each gives as many
// for some text: of letters, figures and signs alike (doc/models.md has what was
// measured). What reads text can make it longer before, though: Anthropic's published
// tokenizer brings it into Unicode's form NFKC, in which the three bytes of one Arabic
// ligature are 33.

// expansion is how many bytes the text of a JSON document can have at most beyond the
// document's own in the forms NFC and NFKC. Letters that are escaped are looked at as
// well, also where the backslash is escaped itself.
func expansion(doc []byte) int64 {
	const tops = 0x8080808080808080
	more := int64(0)
	for i := 0; i < len(doc); {
		if i+8 <= len(doc) && binary.LittleEndian.Uint64(doc[i:])&tops == 0 {
			i += 8
			continue
		}
		for i < len(doc) && doc[i] < utf8.RuneSelf {
			if i++; i%8 == 0 {
				break
			}
		}
		for i < len(doc) && doc[i] >= utf8.RuneSelf {
			if n := quiet(doc[i:]); n > 0 {
				i += n
				continue
			}
			r, n := utf8.DecodeRune(doc[i:])
			more += grown(r)
			i += n
		}
	}
	return more + expansionOfEscapes(doc)
}

// expansionOfEscapes is expansion of the letters that are escaped.
func expansionOfEscapes(doc []byte) int64 {
	more := int64(0)
	for {
		i := bytes.Index(doc, []byte(escape))
		if i < 0 {
			return more
		}
		for doc = doc[i:]; len(doc) >= escaped && doc[0] == escape[0] && doc[1] == escape[1]; {
			r, ok := figures(doc[len(escape):escaped])
			if !ok {
				break
			}
			if r >= growing[0].first { // one of two surrogates is no letter, and grows by nothing
				more += max(0, int64(utf8.RuneLen(r))+grown(r)-escaped)
			}
			doc = doc[escaped:]
		}
		if len(doc) < escaped {
			return more
		}
		if doc[0] == escape[0] {
			doc = doc[1:]
		}
	}
}

// figures reads four hexadecimal ones.
func figures(b []byte) (r rune, ok bool) {
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// quiet is the length of the letter that b begins with, where its first bytes tell that
// it does not grow: of Latin with one mark, Cyrillic, Armenian, what stands from U+4000 to
// U+9FFF and from U+A000 to U+DFFF, and pictures from U+1F300. 0 where they do not tell.
func quiet(b []byte) int {
	switch c := b[0]; {
	case c == 0xc3, c >= 0xd0 && c <= 0xd5:
		return min(2, len(b))
	case c >= 0xe4 && c <= 0xed:
		return min(3, len(b))
	case c == 0xf0 && len(b) >= 4 && b[1] == 0x9f && b[2] >= 0x8c:
		return 4
	}
	return 0
}

// escape begins a letter that is written with four figures, of escaped bytes in all.
const (
	escape  = `\u`
	escaped = 6
)

// grown is how many bytes more than its own r can come to.
func grown(r rune) int64 {
	from, to := 0, len(growing)
	for from < to {
		mid := int(uint(from+to) / 2)
		switch g := &growing[mid]; {
		case r < g.first:
			to = mid
		case r > g.last:
			from = mid + 1
		default:
			return g.bytes
		}
	}
	return 0
}

// WindowAsked is the context window, in tokens, that the values of the field
// Anthropic-Beta ask for, such as context-1m-2025-08-07: a client can have a larger one
// than its model has without. 0 where they ask for none.
func WindowAsked(betas []string) int64 {
	most := int64(0)
	for _, value := range betas {
		for _, beta := range strings.Split(strings.ToLower(value), ",") {
			size, ok := strings.CutPrefix(strings.TrimSpace(beta), "context-")
			if !ok {
				continue
			}
			if size, _, ok = strings.Cut(size, "m"); !ok {
				continue
			}
			if n, err := strconv.ParseInt(size, 10, 64); err == nil && n > 0 {
				most = max(most, min(n, maxTokens>>20)<<20)
			}
		}
	}
	return most
}
