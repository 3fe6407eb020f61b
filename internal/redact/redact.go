// Package redact masks what must not be written, sent or shown. It is the one
// door: the ledger accepts only what it made.
//
// The scanner is written by hand and anchored: it skips from one telling byte
// (a digit, "@", ":", "_", ...) to the next and looks at a bounded window
// around it, so its time is linear in the text whatever the text is. It works
// on bytes; invalid UTF-8 cannot blind it (spec 003 section 1.7, D13, D14a).
package redact

import (
	"bytes"
	"slices"
	"strings"
)

// Record is a document that passed the engine. The zero Record is empty and
// is refused by every store; only an Engine makes another (D14a).
type Record struct{ b []byte }

// Bytes returns the document. The caller must not change it.
func (r Record) Bytes() []byte { return r.b }

// Finding is one thing that was masked. Offset and Length are bytes of the
// input. In a JSON string that is written with escapes, or is a JSON document
// itself, they are those of the whole string, quotes included, and there is
// one finding for each rule.
type Finding struct {
	Rule   string `json:"rule"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
}

// Result is what a redaction gives. Findings are in order of offset; two
// overlap only where they name the same string. Out belongs to the caller unless nothing was found: then it is
// the input itself.
type Result struct {
	Out      []byte
	Findings []Finding
}

// Found says whether anything was masked.
func (r Result) Found() bool { return len(r.Findings) > 0 }

// Rules returns the names of the rules that found something, sorted, each
// once; nil where none did. It is the ledger's redaction_rules_applied.
func (r Result) Rules() []string {
	var names []string
	for _, f := range r.Findings {
		if !slices.Contains(names, f.Rule) {
			names = append(names, f.Rule)
		}
	}
	slices.Sort(names)
	return names
}

// PII says whether personal data was found: an address, a card, a number that
// names a person. Secrets alone are not personal. It is the ledger's
// contains_pii_before_redaction (D13).
func (r Result) PII() bool {
	for _, f := range r.Findings {
		if !strings.HasPrefix(f.Rule, "secret.") && f.Rule != ruleNames[ruleGuessSecret] && f.Rule != ruleNames[ruleFault] {
			return true
		}
	}
	return false
}

// Text redacts text of any kind. If the engine is not one that New made, or
// faults, the whole text is masked under the rule "fault".
func (e *Engine) Text(s []byte) (r Result) {
	defer func() {
		if recover() != nil {
			r = hidden(s)
		}
	}()
	if e == nil || !e.ready {
		return hidden(s)
	}
	out, spans := e.clean(s)
	return Result{Out: out, Findings: findings(spans, 0, nil)}
}

// hidden is the answer of an engine that cannot judge: nothing is shown.
func hidden(s []byte) Result {
	return Result{
		Out:      []byte(MaskSecret),
		Findings: []Finding{{Rule: ruleNames[ruleFault], Offset: 0, Length: len(s)}},
	}
}

func findings(spans []span, base int, to []Finding) []Finding {
	for _, sp := range spans {
		to = append(to, Finding{ruleNames[sp.rule], base + sp.start, sp.end - sp.start})
	}
	return to
}

// maxPasses bounds how often a text is read again. Masking can bring together
// what was apart, so the result is read until nothing is found in it; that is
// also why redacting a second time changes nothing.
const maxPasses = 8

// clean returns s redacted, and what was masked in s's own offsets. Without a
// finding it returns s itself.
func (e *Engine) clean(s []byte) ([]byte, []span) {
	cur, spans := e.pass(s)
	if spans == nil {
		return s, nil
	}
	var trail [][]edit
	var all []span
	for n := 1; ; n++ {
		text, edits := cur, []edit(nil)
		if u, ed := unfold(cur); u != nil && spans.unfolded {
			text = u
			trail = append(trail, ed)
		}
		for _, sp := range spans.list {
			sp.start, sp.end = back(trail, sp.start, sp.end)
			all = append(all, sp)
		}
		cur, edits = e.apply(text, spans.list)
		trail = append(trail, edits)
		if _, spans = e.pass(cur); spans == nil {
			return cur, union(all)
		}
		if n == maxPasses {
			return e.appendMask(nil, ruleFault, s), union(append(all, span{0, len(s), ruleFault}))
		}
	}
}

// found is what one pass found, and whether in the text with its escapes
// written out.
type found struct {
	list     []span
	unfolded bool
}

func (e *Engine) pass(s []byte) ([]byte, *found) {
	if u, _ := unfold(s); u != nil {
		if l := e.spans(u); l != nil {
			return s, &found{l, true}
		}
	}
	if l := e.spans(s); l != nil {
		return s, &found{l, false}
	}
	return s, nil
}

// spans returns what is to be masked in s, in order and without overlap.
func (e *Engine) spans(s []byte) []span {
	x := scanner{s: s}
	x.run()
	list := x.spans
	var lit []span
	if e.literals != nil {
		lit = e.literals.find(s)
	}
	if lit != nil || x.joined {
		list = union(append(list, lit...))
	}
	if e.probable != 0 {
		if more := e.guess.spans(s, list); more != nil {
			list = union(append(list, more...))
		}
	}
	return list
}

// span is a stretch of text to be masked: [start, end).
type span struct {
	start, end int
	rule       rule
}

// union sorts spans and joins those that overlap; a secret's rule wins.
func union(l []span) []span {
	slices.SortFunc(l, func(a, b span) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	out := l[:0]
	for _, sp := range l {
		if n := len(out); n > 0 && sp.start < out[n-1].end {
			out[n-1].end = max(out[n-1].end, sp.end)
			out[n-1].rule = max(out[n-1].rule, sp.rule)
			continue
		}
		out = append(out, sp)
	}
	return out
}

// edit says that [start, end) of a text became n bytes at out in the next.
type edit struct{ start, end, out, n int }

func (e *Engine) apply(s []byte, spans []span) ([]byte, []edit) {
	out := make([]byte, 0, len(s)+16*len(spans))
	edits := make([]edit, 0, len(spans))
	last := 0
	for _, sp := range spans {
		out = append(out, s[last:sp.start]...)
		at := len(out)
		out = e.appendMask(out, sp.rule, s[sp.start:sp.end])
		edits = append(edits, edit{sp.start, sp.end, at, len(out) - at})
		last = sp.end
	}
	return append(out, s[last:]...), edits
}

// back carries a stretch of the newest text to the oldest.
func back(trail [][]edit, start, end int) (int, int) {
	for i := len(trail) - 1; i >= 0; i-- {
		start, end = origin(trail[i], start, false), origin(trail[i], end, true)
	}
	return start, end
}

// origin carries one offset over one list of edits; one that lies inside an
// edit goes to its start, or for an end to its end.
func origin(edits []edit, off int, isEnd bool) int {
	i, _ := slices.BinarySearchFunc(edits, off, func(e edit, off int) int {
		if e.out < off || (e.out == off && !isEnd) {
			return -1
		}
		return 1
	})
	if i == 0 {
		return off
	}
	e := edits[i-1]
	switch {
	case off >= e.out+e.n:
		return e.end + off - e.out - e.n
	case isEnd:
		return e.end
	}
	return e.start
}

// unfold writes out the escapes \u0020 to \u007e of s, so that a secret in
// JSON inside a string is seen. It returns nil where there is none.
func unfold(s []byte) ([]byte, []edit) {
	if bytes.IndexByte(s, '\\') < 0 || !bytes.Contains(s, []byte(`\u00`)) {
		return nil, nil
	}
	var out []byte
	var edits []edit
	last := 0
	for i := 0; i+6 <= len(s); i++ {
		if s[i] != '\\' || s[i+1] != 'u' || s[i+2] != '0' || s[i+3] != '0' {
			continue
		}
		hi, lo := unhex(s[i+4]), unhex(s[i+5])
		c := hi<<4 | lo
		if hi < 2 || hi > 7 || lo > 15 || c == 0x7f || c == '"' || c == '\\' {
			continue
		}
		out = append(out, s[last:i]...)
		edits = append(edits, edit{i, i + 6, len(out), 1})
		out = append(out, c)
		last = i + 6
		i += 5
	}
	if edits == nil {
		return nil, nil
	}
	return append(out, s[last:]...), edits
}

func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
