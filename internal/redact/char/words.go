package char

// WordList is a list of lower-case ASCII words of fewer than 32 letters.
type WordList struct {
	gate  WordGate
	words []string
}

// NewWordList returns a list of words.
func NewWordList(words ...string) *WordList {
	l := &WordList{words: words}
	for _, w := range words {
		l.gate.Add(w)
	}
	return l
}

// Has reports whether w, in any case, is in the list.
func (l *WordList) Has(w []byte) bool {
	if len(w) == 0 || !l.gate.May(w[0], len(w)) {
		return false
	}
	for _, word := range l.words {
		if EqualFold(w, word) {
			return true
		}
	}
	return false
}

// IsIn reports whether a word of s is in the list; a word also begins where a capital
// follows a small letter.
func (l *WordList) IsIn(s []byte) bool {
	for i := 0; i < len(s); {
		if Class[s[i]]&Letter == 0 {
			i++
			continue
		}
		b := i
		for i++; i < len(s) && Class[s[i]]&Letter != 0 && (Class[s[i]]&Upper == 0 || Class[s[i-1]]&Lower == 0); {
			i++
		}
		if l.Has(s[b:i]) {
			return true
		}
	}
	return false
}
