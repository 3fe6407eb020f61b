package mapping

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

const (
	// minEncoded is the length of the shortest encoding of a value that is looked for, in bytes.
	minEncoded = 8
	// maxEncoded is the number of values, the newest ones, whose encodings are looked for.
	maxEncoded = 4096
	// maxEncodedRun is the length of the longest run of base64 that is decoded, in bytes.
	maxEncodedRun = 64 << 10
)

// valueForm is an encoding of a value, and its placeholder in the same encoding. A code is part of a run of base64
// or hexadecimal, which is decoded as a whole.
type valueForm struct {
	rule        string // of the value
	find, write string
	isCode      bool
}

// valueIndex finds encodings of values in texts. It is immutable.
type valueIndex struct {
	filter  []uint64         // hashes of the first eight bytes of all forms
	shift   uint             // of a hash
	lengths map[uint64][]int // of the forms, by their first eight bytes, longest first
	forms   map[string]valueForm
}

// newValueIndex returns an index of the encodings of the newest entries.
func newValueIndex(entries []*entry) *valueIndex {
	ix := &valueIndex{lengths: map[uint64][]int{}, forms: map[string]valueForm{}, shift: maxShift}
	entries = entries[max(0, len(entries)-maxEncoded):]
	for ix.shift > minShift && 1<<(64-ix.shift) < 128*len(entries) {
		ix.shift--
	}
	ix.filter = make([]uint64, 1<<(64-ix.shift-6))
	for _, e := range entries {
		if e.oneWay || e.rule == ruleAgain || len(e.value) < minAgain || len(e.value) > maxAgain {
			continue
		}
		for _, f := range e.listValueForms() {
			k := binary.LittleEndian.Uint64([]byte(f.find))
			h := hashEight(k, ix.shift)
			ix.filter[h>>6] |= 1 << (h & 63)
			if !slices.Contains(ix.lengths[k], len(f.find)) {
				ix.lengths[k] = append(ix.lengths[k], len(f.find))
			}
			f.rule = e.rule
			ix.forms[f.find] = f
		}
	}
	for _, list := range ix.lengths {
		slices.SortFunc(list, func(a, b int) int { return b - a })
	}
	return ix
}

// listValueForms returns the encodings of an entry's value, except the value itself.
func (e *entry) listValueForms() []valueForm {
	e.forms.valueOnce.Do(func() { e.forms.value = appendValueForms(nil, e.value, e.placeholder) })
	return e.forms.value
}

func appendValueForms(to []valueForm, value, placeholder string) []valueForm {
	add := func(f valueForm) {
		isNew := len(f.find) >= minEncoded && f.find != value
		for _, have := range to {
			isNew = isNew && have.find != f.find
		}
		if isNew {
			to = append(to, f)
		}
	}
	if !isInert(value) {
		for _, way := range ways() {
			find, write := way(value), way(placeholder)
			add(valueForm{find: find, write: write})
			add(valueForm{find: quoteJSON(find), write: quoteJSON(write)})
		}
	}
	digits := hex.EncodeToString([]byte(value))
	add(valueForm{find: digits, isCode: true})
	add(valueForm{find: strings.ToUpper(digits), isCode: true})
	for _, core := range listCores(value) {
		add(valueForm{find: core, isCode: true})
		if strings.ContainsAny(core, "+/") {
			add(valueForm{find: toURLAlphabet.Replace(core), isCode: true})
		}
	}
	return to
}

var toURLAlphabet = strings.NewReplacer("+", "-", "/", "_")

// listCores returns the characters of base64 that a value alone decides, at each of the three places at which it may
// begin in what was encoded.
func listCores(value string) (list [3]string) {
	padded := append(make([]byte, 3, 3+len(value)), value...)
	for shift := range list {
		from, to := (shift*8+5)/6, (shift+len(value))*8/6
		list[shift] = base64.RawStdEncoding.EncodeToString(padded[3-shift:])[from:to]
	}
	return list
}

func hashEight(k uint64, shift uint) uint64 {
	k ^= k >> 31
	return k * 0x9e3779b97f4a7c15 >> shift
}

// findAt returns the longest encoding that text begins with.
func (ix *valueIndex) findAt(text []byte) (f valueForm, found bool) {
	k := binary.LittleEndian.Uint64(text)
	if h := hashEight(k, ix.shift); ix.filter[h>>6]&(1<<(h&63)) == 0 {
		return f, false
	}
	for _, n := range ix.lengths[k] {
		if len(text) < n {
			continue
		}
		if f, found = ix.forms[string(text[:n])]; found {
			return f, true
		}
	}
	return f, false
}

// ReplaceEncoded replaces encodings of the session's values in a text by the same encodings of their placeholders, and
// reports what it found. It returns text itself if it has none.
func (r *Request) ReplaceEncoded(text []byte) (out []byte, found []redact.Finding) {
	ix := r.s.findValueIndex()
	if len(ix.forms) == 0 {
		return text, nil
	}
	from := 0
	for i := 0; i+minEncoded <= len(text); {
		f, is := ix.findAt(text[i:])
		if !is {
			i++
			continue
		}
		start, end, write := i, i+len(f.find), []byte(f.write)
		if f.isCode {
			if start, end = runAround(text, from, i, end); end-start <= maxEncodedRun {
				write = r.replaceRun(text[start:end])
			} else {
				write = nil
			}
		}
		if write != nil {
			out, from = append(append(out, text[from:start]...), write...), end
			found = append(found, redact.Finding{Rule: f.rule, Offset: start, Length: end - start})
		}
		i = end
	}
	if found == nil {
		return text, nil
	}
	return append(out, text[from:]...), found
}

// runAround returns the run of base64 around text[start:end], behind from.
func runAround(text []byte, from, start, end int) (int, int) {
	for start > from && isCode(text[start-1]) {
		start--
	}
	for end < len(text) && isCode(text[end]) {
		end++
	}
	for k := 0; k < 2 && end < len(text) && text[end] == '='; k++ {
		end++
	}
	return start, end
}

func isCode(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '+' || c == '/' || c == '-' || c == '_'
}

// replaceRun returns the placeholder of a run of base64 or hexadecimal, nil if it cannot be decoded.
func (r *Request) replaceRun(run []byte) []byte {
	if p, known := r.findPlaceholder("secret.again", run); known {
		return p
	}
	return r.replaceDecoded("secret.again", run)
}

// findValueIndex returns the index of the encodings of the session's values.
func (s *Session) findValueIndex() *valueIndex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.encodings == nil {
		s.encodings = newValueIndex(s.order)
	}
	return s.encodings
}
