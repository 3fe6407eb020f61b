package mapping

import (
	"bytes"
	"encoding/json"
	"net/url"
	"sort"
	"strings"
)

// Index finds placeholders in text, and knows what is written in their place. It is immutable.
type Index struct {
	forms []form // sorted by what is found
	heads [1 << 16 / 64]uint64
	most  int // the length of the longest
}

// form is one way in which a placeholder is written, and its value written in the same way.
type form struct {
	find, write string
	placeholder string
	derived     int // where in find the derived part begins
}

// buildIndexes returns the session's indexes: of texts, and of texts that are JSON documents. mu must be held.
func (s *Session) buildIndexes() (plain, inJSON *Index) {
	if s.plain != nil {
		return s.plain, s.inJSON
	}
	var texts, documents []form
	for _, e := range s.order {
		if e.oneWay {
			continue
		}
		texts = appendForms(texts, e, func(v string) string { return v })
		documents = appendForms(documents, e, quoteJSON)
	}
	s.plain, s.inJSON = newIndex(texts), newIndex(documents)
	return s.plain, s.inJSON
}

// appendForms appends the forms of an entry in a text whose characters write writes: as it is, escaped as
// in a string of JSON or code, and percent-encoded.
func appendForms(to []form, e *entry, write func(string) string) []form {
	ways := []func(string) string{
		func(v string) string { return v },
		quoteJSON,
		func(v string) string { return quoteJSON(quoteJSON(v)) },
		url.QueryEscape,
		url.PathEscape,
	}
	for i, way := range ways {
		find := write(way(e.placeholder))
		known := false
		for _, f := range to[max(0, len(to)-i):] {
			known = known || f.find == find
		}
		if !known {
			to = append(to, form{find, write(way(e.value)), e.placeholder, min(e.kept, len(find))})
		}
	}
	return to
}

// quoteJSON returns a text in the form that it has inside of a JSON string. It escapes only what it must, as models
// do.
func quoteJSON(v string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return v
	}
	return strings.TrimSuffix(strings.TrimSuffix(b.String(), "\n"), `"`)[1:]
}

func newIndex(forms []form) *Index {
	ix := &Index{forms: forms}
	sort.Slice(ix.forms, func(i, k int) bool { return ix.forms[i].find < ix.forms[k].find })
	for _, f := range ix.forms {
		h := headOf(f.find)
		ix.heads[h>>6] |= 1 << (h & 63)
		ix.most = max(ix.most, len(f.find))
	}
	return ix
}

func headOf(s string) int { return int(s[0])<<8 | int(s[1]) }

// findAt returns the longest form that text has at i. near says that text only begins as one does, far enough
// to be an altered one.
func (ix *Index) findAt(text []byte, i int) (f *form, near bool) {
	rest := text[i:min(len(text), i+ix.most)]
	for len(rest) > 0 {
		n := sort.Search(len(ix.forms), func(k int) bool { return ix.forms[k].find > string(rest) })
		near = near || n < len(ix.forms) && ix.forms[n].isNear(rest)
		if n == 0 {
			break
		}
		have := &ix.forms[n-1]
		same := commonPrefix(have.find, rest)
		if same == len(have.find) {
			return have, false
		}
		near = near || have.isNear(rest)
		rest = rest[:same] // what begins rest is no longer than this
	}
	return nil, near
}

// isNear reports whether a text begins as the form does, and shares enough of what was derived.
func (f *form) isNear(text []byte) bool { return commonPrefix(f.find, text) >= f.derived+minMixed }

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
		if ix.heads[h>>6]&(1<<(h&63)) != 0 {
			return i
		}
	}
	return i
}

// hasFormWith reports whether a form begins with rest, and is longer.
func (ix *Index) hasFormWith(rest []byte) bool {
	n := sort.Search(len(ix.forms), func(k int) bool { return ix.forms[k].find >= string(rest) })
	return n < len(ix.forms) && len(ix.forms[n].find) > len(rest) && strings.HasPrefix(ix.forms[n].find, string(rest))
}

// listIn returns the placeholders in text.
func (ix *Index) listIn(text []byte) (list []string) {
	for i := ix.findHead(text, 0); i < len(text); i = ix.findHead(text, i) {
		f, _ := ix.findAt(text, i)
		if f == nil {
			i++
			continue
		}
		list = append(list, f.placeholder)
		i += len(f.find)
	}
	return list
}
