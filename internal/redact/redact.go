// Package redact masks what must not be written, sent or shown. It is the one
// door: the ledger accepts only what it made.
//
// The scanner is written by hand and anchored: it skips from one telling byte
// (a digit, "@", ":", "_", ...) to the next and looks at a bounded window
// around it, so its time is linear in the text whatever the text is. It works
// on bytes; invalid UTF-8 cannot blind it (spec 003 section 1.7, D13, D14a).
//
// Where what stands, by the beginning of the files' names:
//
//   - redact, options: the engine, and its passes over a text until nothing more
//     is found. rule: the names of what is found.
//   - scan and the detectors it calls, for what is certain: secrets, token, conn
//     (credentials), assign, names (values behind a telling name), numbers, ident,
//     checksum (numbers and addresses that name a person).
//   - body chooses by type and by looking: json, strict, embedded, joined, events,
//     form, multipart, header, params, url; draft rewrites it. sniff, mediatype,
//     wide, nested, decode, runs, packed, zip open what is wrapped; peek does so
//     for the ledger. known keeps names of members.
//   - stream, stretch, armours: text in pieces, by stages that hold back what may be part
//     of a match.
//   - literal: registered secrets in every encoding. memory keeps them off the
//     disk.
//   - probable and the guesses it calls: generic, phone, person, place.
//   - mask: what is written in the place of a finding.
//
// doc/redaction.md says what is masked, how well, and what is not.
package redact

import (
	"bytes"
	"cmp"
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
// also why redacting a second time changes nothing. What is found even then is
// masked to the end of its line.
const maxPasses = 8

// clean returns s redacted, and what was masked in s's own offsets. Without a
// finding it returns s itself.
func (e *Engine) clean(s []byte) ([]byte, []span) {
	spans := e.pass(s, false)
	if spans == nil {
		return s, nil
	}
	var trail [][]edit
	var all []span
	for n := 1; ; n++ {
		for _, sp := range spans {
			sp.start, sp.end = back(trail, sp.start, sp.end)
			all = append(all, sp)
		}
		var edits []edit
		s, edits = e.apply(s, spans)
		trail = append(trail, edits)
		if n > maxPasses {
			return s, union(all)
		}
		if spans = e.pass(s, n == maxPasses); spans == nil {
			return s, union(all)
		}
	}
}

// pass returns what is found in s, and in s with its escapes written out, in
// order and apart. In the last pass a span goes on to its line's end.
func (e *Engine) pass(s []byte, last bool) []span {
	list := e.spans(s, last)
	u, edits := unfold(s)
	if u == nil {
		return list
	}
	more := e.spans(u, last)
	if more == nil {
		return list
	}
	for i := range more {
		more[i] = more[i].through(edits)
	}
	return union(append(list, more...))
}

// through carries a span over one list of edits, back to where it came from.
func (sp span) through(edits []edit) span {
	sp.start = origin(edits, sp.start, false)
	if sp.end != endless {
		sp.end = origin(edits, sp.end, true)
	}
	return sp
}

// spans returns what is to be masked in s, in order and without overlap.
func (e *Engine) spans(s []byte, last bool) []span {
	list, joined := find(s, last)
	var lit []span
	if e.literals != nil {
		lit = e.literals.find(s)
	}
	if lit != nil || joined {
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

// union sorts spans and joins those that overlap; a secret's rule wins, where
// it begins within maxSpan of what it overlaps.
func union(l []span) []span {
	slices.SortFunc(l, func(a, b span) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return cmp.Compare(b.end, a.end)
	})
	out := l[:0]
	for _, sp := range l {
		if n := len(out); n > 0 && sp.start < out[n-1].end {
			out[n-1].end = max(out[n-1].end, sp.end)
			if sp.start-out[n-1].start < maxSpan {
				out[n-1].rule = max(out[n-1].rule, sp.rule)
			}
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
		out = e.appendMask(out, sp.rule, told(s[sp.start:sp.end]))
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

// destination carries an offset forward over one list of edits, of which none
// covers it.
func destination(edits []edit, off int) int {
	i, _ := slices.BinarySearchFunc(edits, off, func(e edit, off int) int {
		if e.end <= off {
			return -1
		}
		return 1
	})
	if i == 0 {
		return off
	}
	e := edits[i-1]
	return e.out + e.n + off - e.end
}

// told returns what a mask may tell of the text behind it: its first maxSpan
// bytes, with escapes written out.
func told(text []byte) []byte {
	text = text[:min(len(text), maxSpan)]
	if u, _ := unfold(text); u != nil {
		return u
	}
	return text
}

// unfold writes out the escapes \u0020 to \u007e of s, so that a secret in
// JSON inside a string is seen. It returns nil where there is none.
func unfold(s []byte) ([]byte, []edit) {
	if bytes.IndexByte(s, '\\') < 0 || !bytes.Contains(s, []byte(`\u00`)) {
		return nil, nil
	}
	var f folded
	f.write(s, true)
	if f.edits == nil {
		return nil, nil
	}
	return f.s, f.edits
}

// folded is a text whose escapes are being written out; in and out count the
// bytes read and written.
type folded struct {
	s       []byte
	edits   []edit
	in, out int
}

// write reads t, but for an escape at its end that is cut off and not final.
func (f *folded) write(t []byte, final bool) {
	for len(t) > 0 {
		n := bytes.IndexByte(t, '\\')
		if n < 0 {
			n = len(t)
		}
		if n == 0 {
			c, w := unescape(t)
			if w < 0 && !final {
				return
			}
			if w > 0 {
				f.edits = append(f.edits, edit{f.in, f.in + w, f.out, 1})
				f.s = append(f.s, c)
				f.in, f.out, t = f.in+w, f.out+1, t[w:]
				continue
			}
			n = 1
		}
		f.s = append(f.s, t[:n]...)
		f.in, f.out, t = f.in+n, f.out+n, t[n:]
	}
}

// unescape reads the escape that t begins with; its width is 0 where there is
// none and -1 where t is too short to tell.
func unescape(t []byte) (c byte, width int) {
	if n := min(len(t), 4); string(t[:n]) != `\u00`[:n] {
		return 0, 0
	}
	if len(t) < 6 {
		return 0, -1
	}
	hi, lo := unhex(t[4]), unhex(t[5])
	c = hi<<4 | lo
	if hi < 2 || hi > 7 || lo > 15 || c == 0x7f || c == '"' || c == '\\' {
		return 0, 0
	}
	return c, 6
}
