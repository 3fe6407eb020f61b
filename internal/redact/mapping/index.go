package mapping

import (
	"bytes"
	"encoding/json"
	"sort"
	"strings"
	"sync"
)

// Index finds placeholders in text, and knows what is written in their place. It is immutable.
type Index struct {
	forms []form               // sorted by what is found
	heads [1 << 16 / 64]uint64 // their first two bytes
	quads [1 << 18 / 64]uint64 // hashes of their first four bytes
	most  int                  // the length of the longest
}

// form is one way in which a placeholder is written, and its value written in the same way.
type form struct {
	find, write string
	placeholder string
	number      bool // it has no letter, so that any longer number or word may have it
	isLine      bool // of a private key
}

// Snapshot is the placeholders of a session at the time at which a request left. What other requests change
// later does not change it, so that an answer is restored by what its own request had. It may be used by
// several goroutines.
type Snapshot struct {
	s       *Session
	entries []entry

	plainOnce, documentOnce sync.Once
	plain, document         *Index // of texts, and of texts that are JSON documents

	marksOnce sync.Once
	marks     *marks
}

// findMarks returns what shows altered placeholders.
func (p *Snapshot) findMarks() *marks {
	p.marksOnce.Do(func() { p.marks = newMarks(p.entries) })
	return p.marks
}

// Snapshot returns the placeholders that the session has now.
func (s *Session) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeSnapshot()
}

// takeSnapshot is Snapshot with mu held.
func (s *Session) takeSnapshot() *Snapshot {
	if s.last != nil {
		return s.last
	}
	s.last = &Snapshot{s: s, entries: make([]entry, 0, len(s.order))}
	for _, e := range s.order {
		if !e.oneWay {
			s.last.entries = append(s.last.entries, *e)
		}
	}
	return s.last
}

// findIndex returns the index of texts, or of texts that are JSON documents.
func (p *Snapshot) findIndex(inJSON bool) *Index {
	if inJSON {
		p.documentOnce.Do(func() { p.document = buildIndex(p.entries, true) })
		return p.document
	}
	p.plainOnce.Do(func() { p.plain = buildIndex(p.entries, false) })
	return p.plain
}

// buildIndex returns the index of entries in texts, or in texts that are JSON documents.
func buildIndex(entries []entry, inJSON bool) *Index {
	var forms []form
	for i := range entries {
		forms = append(forms, entries[i].listForms(inJSON)...)
	}
	return newIndex(forms)
}

// entryForms are the forms of one entry, made when they are first needed, in texts and in JSON documents.
type entryForms struct {
	plainOnce, documentOnce sync.Once
	plain, document         []form

	valueOnce sync.Once
	value     []valueForm
}

// listForms returns the forms of an entry in texts, or in texts that are JSON documents.
func (e *entry) listForms(inJSON bool) []form {
	if inJSON {
		e.forms.documentOnce.Do(func() { e.forms.document = appendForms(nil, e, quoteJSON) })
		return e.forms.document
	}
	e.forms.plainOnce.Do(func() { e.forms.plain = appendForms(nil, e, func(v string) string { return v }) })
	return e.forms.plain
}

// appendForms appends the forms of an entry in a text whose characters write writes: as it is, escaped as
// in a string of JSON, of code, of a shell or of a regular expression, and percent-encoded.
func appendForms(to []form, e *entry, write func(string) string) []form {
	isNumber := !strings.ContainsFunc(e.placeholder, isLetterRune)
	if isInert(e.placeholder) {
		return append(to, form{e.placeholder, write(e.value), e.placeholder, isNumber, e.isKeyLine()})
	}
	for i, way := range ways() {
		find := write(way(e.placeholder))
		known := false
		for _, f := range to[max(0, len(to)-i):] {
			known = known || f.find == find
		}
		if !known {
			to = append(to, form{find, write(way(e.value)), e.placeholder, isNumber, e.isKeyLine()})
		}
	}
	return to
}

// quoteJSON returns a text in the form that it has inside of a JSON string. It escapes only what it must, as models
// do.
func quoteJSON(v string) string {
	if isPlainJSON(v) {
		return v
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return v
	}
	return strings.TrimSuffix(strings.TrimSuffix(b.String(), "\n"), `"`)[1:]
}

// isPlainJSON reports whether a text is the same in a JSON string.
func isPlainJSON(v string) bool {
	for i := range len(v) {
		if c := v[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func newIndex(forms []form) *Index {
	ix := &Index{forms: forms}
	sort.Slice(ix.forms, func(i, k int) bool { return ix.forms[i].find < ix.forms[k].find })
	for _, f := range ix.forms {
		if len(f.find) < 4 {
			continue
		}
		h := headOf(f.find)
		ix.heads[h>>6] |= 1 << (h & 63)
		q := hashQuad(f.find[0], f.find[1], f.find[2], f.find[3])
		ix.quads[q>>6] |= 1 << (q & 63)
		ix.most = max(ix.most, len(f.find))
	}
	return ix
}

// hashQuad mixes four bytes. No form is shorter.
func hashQuad(a, b, c, d byte) uint32 {
	return (uint32(a) | uint32(b)<<8 | uint32(c)<<16 | uint32(d)<<24) * 0x9e3779b1 >> (32 - 18)
}

func headOf(s string) int { return int(s[0])<<8 | int(s[1]) }

// findAt returns the longest form that text has at i, nil for none. A number within a longer number or a word does
// not count.
func (ix *Index) findAt(text []byte, i int) *form {
	rest := text[i:min(len(text), i+ix.most)]
	for len(rest) > 0 {
		n := sort.Search(len(ix.forms), func(k int) bool { return ix.forms[k].find > string(rest) })
		if n == 0 {
			break
		}
		have := &ix.forms[n-1]
		same := commonPrefix(have.find, rest)
		if same == len(have.find) && (!have.number || isWordStart(text[:i]) && isWordEnd(text[i+same:])) {
			return have
		}
		rest = rest[:min(same, len(have.find)-1)] // what begins rest is no longer than this
	}
	return nil
}

// maxContext is the number of bytes before a number that isWordStart reads.
const maxContext = 6

// isWordStart reports whether a word or number may begin behind before: its last character is neither a letter
// nor a digit, or belongs to an escape (\n, \x0a, \u000a, %20) or to an option (-p).
func isWordStart(before []byte) bool {
	n := len(before)
	if n == 0 || isWordEnd(before[n-1:]) {
		return true
	}
	for _, size := range []int{2, 3, 6} {
		if at := n - size; at >= 0 && escapeLen(before[at:]) == size {
			return true
		}
	}
	switch {
	case n >= 4 && before[n-4] == '\\' && before[n-3] == 'x':
		return true
	case n >= 2 && before[n-2] == '-' && isLetter(before[n-1]):
		return n == 2 || isWordEnd(before[n-3:])
	}
	return false
}

// isWordEnd reports whether a word or number may end before rest.
func isWordEnd(rest []byte) bool { return len(rest) == 0 || !isLetter(rest[0]) && !isDigit(rest[0]) }

func isLetterRune(r rune) bool { return r < 0x80 && isLetter(byte(r)) }

func commonPrefix(a string, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// findHead returns where the next form may begin in text from i on, len(text) if nowhere. The last byte alone
// may be the beginning of any form.
func (ix *Index) findHead(text []byte, i int) int {
	if len(ix.forms) == 0 {
		return len(text)
	}
	for ; i+1 < len(text); i++ {
		h := int(text[i])<<8 | int(text[i+1])
		if ix.heads[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		if i+4 > len(text) {
			return i
		}
		if q := hashQuad(text[i], text[i+1], text[i+2], text[i+3]); ix.quads[q>>6]&(1<<(q&63)) != 0 {
			return i
		}
	}
	return i
}

// mayBegin reports whether rest, the end of what has come, may become a form, or a longer one: it begins one, or
// is a number whose next character has not come.
func (ix *Index) mayBegin(rest []byte) bool {
	if len(rest) == 0 || len(rest) > ix.most {
		return false
	}
	n := sort.Search(len(ix.forms), func(k int) bool { return ix.forms[k].find >= string(rest) })
	if n < len(ix.forms) && ix.forms[n].find == string(rest) {
		if ix.forms[n].number {
			return true
		}
		n++
	}
	return n < len(ix.forms) && strings.HasPrefix(ix.forms[n].find, string(rest))
}

// listIn returns the placeholders in texts.
func (ix *Index) listIn(texts [][]byte) (list []string) {
	for _, text := range texts {
		for i := ix.findHead(text, 0); i < len(text); i = ix.findHead(text, i) {
			f := ix.findAt(text, i)
			if f == nil {
				i++
				continue
			}
			list = append(list, f.placeholder)
			i += len(f.find)
		}
	}
	return list
}
