// Package engine redacts text. It reads a text until nothing more is found in it.
package engine

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/redact/certain"
	"github.com/holdfast-dev/holdfast/internal/redact/encoded"
	"github.com/holdfast-dev/holdfast/internal/redact/escape"
	"github.com/holdfast-dev/holdfast/internal/redact/fieldname"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/literal"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// Engine redacts text. It is immutable and may be used by many goroutines.
type Engine struct {
	mask.Style
	Literals *literal.Set
	// OnlyRegistered says that nothing but registered secrets is found.
	OnlyRegistered bool
	// Class is what is found; registered values are secrets.
	Class rule.Class
	// Opens says that base64, base32 and hexadecimal in a text are searched.
	Opens bool
	// Finder, if not nil, finds in place of the rules and the registered secrets.
	Finder func(text []byte) []span.Span
}

// NameKind returns what a name says of its value, as far as e looks for it.
func (e *Engine) NameKind(name []byte) fieldname.Kind { return e.SoughtKind(fieldname.Of(name)) }

// SoughtKind returns k, or fieldname.None if e does not look for it.
func (e *Engine) SoughtKind(k fieldname.Kind) fieldname.Kind {
	if e.OnlyRegistered || !e.Class.Seeks(k.IsSecret()) {
		return fieldname.None
	}
	return k
}

// KeepSought removes from list what e does not look for. Where a secret has personal data in it, list has the
// secret only.
func (e *Engine) KeepSought(list []span.Span) []span.Span {
	if e.Class == rule.AnyClass && !e.OnlyRegistered {
		return list
	}
	list = slices.DeleteFunc(list, func(sp span.Span) bool {
		return !e.Class.Has(sp.Rule) || e.OnlyRegistered && sp.Rule < e.Literals.Rule()
	})
	if len(list) == 0 {
		return nil
	}
	return list
}

// New returns an engine that knows lit and writes masks of a style.
func New(lit *literal.Set, style mask.Style) *Engine {
	return &Engine{Style: style, Literals: lit}
}

// WithMasks returns a copy of e with another style of masks.
func (e *Engine) WithMasks(masks mask.Masks) *Engine {
	other := *e
	other.Masks = masks
	return &other
}

// WithReplace returns a copy of e that writes what replace returns in place of what it finds.
func (e *Engine) WithReplace(replace func(rule string, text []byte) []byte) *Engine {
	other := *e
	other.Replacement = replace
	return &other
}

// WithClass returns a copy of e that finds only that class.
func (e *Engine) WithClass(class rule.Class) *Engine {
	other := *e
	if other.Class = class; class == rule.OnlyPersonal {
		other.Literals = nil
	}
	return &other
}

// WithFinder returns a copy of e that finds what find returns, in order and apart, and nothing else.
func (e *Engine) WithFinder(find func(text []byte) []span.Span) *Engine {
	other := *e
	other.Finder, other.Literals, other.OnlyRegistered = find, nil, true
	other.Class, other.Opens = rule.AnyClass, false
	return &other
}

// OnlyRules reports whether no secret is registered and personal data is found.
func (e *Engine) OnlyRules() bool {
	return e.Literals == nil && e.Class == rule.AnyClass && e.Finder == nil
}

// WithOpening returns a copy of e that searches base64, base32 and hexadecimal in texts too.
func (e *Engine) WithOpening() *Engine {
	other := *e
	other.Opens = true
	return &other
}

// Text redacts text of any kind. If the engine is nil or faults, the whole text
// is masked under the rule "fault".
func (e *Engine) Text(s []byte) (r finding.Result) {
	defer func() {
		if recover() != nil {
			r = Hidden(s)
		}
	}()
	if e == nil {
		return Hidden(s)
	}
	out, spans := e.Clean(s)
	return finding.Result{Out: out, Findings: finding.FromSpans(spans, 0, nil)}
}

// Hidden returns the result of an engine that failed: all of s is masked.
func Hidden(s []byte) finding.Result {
	return finding.Result{
		Out:      []byte(mask.Secret),
		Findings: []finding.Finding{{Rule: rule.Names[rule.Fault], Offset: 0, Length: len(s)}},
	}
}

// MaxPasses bounds how often a text is read again. Masking can bring together
// what was apart, so the result is read until nothing is found in it; that is
// also why redacting a second time changes nothing. What is found even then is
// masked to the end of its line.
const MaxPasses = 8

// Clean returns s redacted, and what was masked in s's own offsets. Without a
// finding it returns s itself.
func (e *Engine) Clean(s []byte) ([]byte, []span.Span) {
	spans := e.Pass(s, false)
	if spans == nil {
		return s, nil
	}
	var trail [][]span.Edit
	var all []span.Span
	for n := 1; ; n++ {
		for _, sp := range spans {
			sp.Start, sp.End = span.Back(trail, sp.Start, sp.End)
			all = append(all, sp)
		}
		var edits []span.Edit
		s, edits = e.Apply(s, spans)
		trail = append(trail, edits)
		if n > MaxPasses || e.Replacement != nil {
			return s, span.Union(all)
		}
		if spans = e.Pass(s, n == MaxPasses); spans == nil {
			return s, span.Union(all)
		}
	}
}

// Pass returns what is found in s, in s with its escapes written out, and in what is encoded in s, in order and
// apart. In the last pass a span extends to the end of its line.
func (e *Engine) Pass(s []byte, last bool) []span.Span {
	list := e.plainPass(s, last)
	if !e.Opens {
		return list
	}
	var scan encoded.Scanner
	had := len(list)
	if list = scan.Scan(s, true, list, e.OpenRun); len(list) > had {
		return span.Union(e.KeepSought(list))
	}
	return list
}

// plainPass is Pass without what is encoded.
func (e *Engine) plainPass(s []byte, last bool) []span.Span {
	list := e.spans(s, last)
	u, edits := escape.Unfold(s)
	if u == nil {
		return list
	}
	more := e.spans(u, last)
	if more == nil {
		return list
	}
	for i := range more {
		more[i] = more[i].Through(edits)
	}
	return span.Union(append(list, more...))
}

// spans returns what is to be masked in s, in order and without overlap.
func (e *Engine) spans(s []byte, last bool) []span.Span {
	if e.Finder != nil {
		return e.Finder(s)
	}
	var list []span.Span
	joined := false
	if !e.OnlyRegistered {
		list, joined = certain.Find(s, last)
	}
	var lit []span.Span
	if e.Literals != nil {
		lit = e.Literals.Find(s)
	}
	if lit != nil || joined {
		list = span.Union(append(list, lit...))
	}
	return e.KeepSought(list)
}

// Apply returns s with a mask for each of spans, and where they are in the result.
func (e *Engine) Apply(s []byte, spans []span.Span) ([]byte, []span.Edit) {
	out := make([]byte, 0, len(s)+16*len(spans))
	edits := make([]span.Edit, 0, len(spans))
	last := 0
	for _, sp := range spans {
		out = append(out, s[last:sp.Start]...)
		at := len(out)
		text := s[sp.Start:sp.End]
		if e.Replacement == nil {
			text = SelectMaskText(text)
		}
		out = e.AppendMask(out, sp.Rule, text)
		edits = append(edits, span.Edit{Start: sp.Start, End: sp.End, Out: at, N: len(out) - at})
		last = sp.End
	}
	return append(out, s[last:]...), edits
}

// SelectMaskText returns the part of a finding of which a mask is made: its first span.MaxLen
// bytes, with escapes written out.
func SelectMaskText(text []byte) []byte {
	text = text[:min(len(text), span.MaxLen)]
	if u, _ := escape.Unfold(text); u != nil {
		return u
	}
	return text
}
