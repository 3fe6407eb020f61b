package mapping

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// isProse reports whether a detector found a value by what it means: a name or an address in prose.
func isProse(rule string) bool { return rule == "detector.name" || rule == "detector.address" }

// The syllables of made-up words: one consonant and one vowel, which none of them shares with a digit.
const (
	consonants = "bdfgklmnprstvz"
	vowels     = "aeiou"
)

// Syllables of a made-up value: enough that no two values of a session get the same one, and that it occurs in no
// ordinary text.
const (
	minSyllables  = 6
	mostSyllables = 5 // of one word
)

// makeProse returns a text with the words of value made up: of syllables, and in the same case. Digits are replaced by
// digits, and everything between words stays. ok is false for a value without letters, or that is not UTF-8.
func (s *source) makeProse(value []byte) (text string, ok bool) {
	words := listWords(value)
	if words == nil || !utf8.Valid(value) {
		return "", false
	}
	left := max(0, minSyllables-len(words)) // beyond one for each word
	var out []byte
	last := 0
	for i, w := range words {
		out = s.appendDigits(out, value[last:w[0]])
		n := min(mostSyllables, 1+(left+len(words)-i-1)/(len(words)-i))
		left -= min(left, n-1)
		out = s.appendWord(out, value[w[0]:w[1]], n)
		last = w[1]
	}
	return string(s.appendDigits(out, value[last:])), true
}

// listWords returns where the words of a text are: stretches of letters, of which none is an escape.
func listWords(text []byte) (words [][2]int) {
	for i := 0; i < len(text); {
		if n := escapeLen(text[i:]); n > 0 {
			i += n
			continue
		}
		start := i
		for i < len(text) {
			r, n := utf8.DecodeRune(text[i:])
			if !unicode.IsLetter(r) && !unicode.IsMark(r) {
				break
			}
			i += n
		}
		if i > start {
			words = append(words, [2]int{start, i})
			continue
		}
		_, n := utf8.DecodeRune(text[i:])
		i += n
	}
	return words
}

// appendWord appends a word of n syllables in the case of word: all capitals, a capital first, or none.
func (s *source) appendWord(out, word []byte, n int) []byte {
	from := len(out)
	for range n {
		out = append(out, consonants[s.pickBelow(len(consonants))], vowels[s.pickBelow(len(vowels))])
	}
	first, size := utf8.DecodeRune(word)
	switch {
	case unicode.IsLower(first):
	case size < len(word) && bytes.Equal(word, bytes.ToUpper(word)) && !bytes.Equal(word, bytes.ToLower(word)):
		copy(out[from:], bytes.ToUpper(out[from:]))
	default:
		out[from] -= 'a' - 'A'
	}
	return out
}

// appendDigits appends a text between words with other digits. Escapes stay.
func (s *source) appendDigits(out, text []byte) []byte {
	for i := 0; i < len(text); {
		if n := escapeLen(text[i:]); n > 0 {
			out = append(out, text[i:i+n]...)
			i += n
			continue
		}
		c := text[i]
		if isDigit(c) {
			c = '0' + s.pickBelow(10)
		}
		out = append(out, c)
		i++
	}
	return out
}
