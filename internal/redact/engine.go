package redact

// engine redacts text. It is immutable and may be used by many goroutines.
type engine struct {
	maskStyle
	literals *literals
	probable Probable
	guess    *guesser // nil where nothing is probable
}

// newTextEngine returns an engine that knows lit, writes masks of a style, and
// guesses what is probable.
func newTextEngine(lit *literals, style maskStyle, probable Probable) *engine {
	e := &engine{maskStyle: style, literals: lit, probable: probable}
	if probable != 0 {
		e.guess = newGuesser(probable)
	}
	return e
}

// withMasks returns an engine that is e but for the style of its masks.
func (e *engine) withMasks(masks Masks) *engine {
	other := *e
	other.masks = masks
	return &other
}

// onlyRules reports whether nothing but the rules says what is masked: no secret
// is registered, and nothing is guessed.
func (e *engine) onlyRules() bool { return e.literals == nil && e.probable == 0 }

// Text redacts text of any kind. If the engine is nil or faults, the whole text
// is masked under the rule "fault".
func (e *engine) Text(s []byte) (r Result) {
	defer func() {
		if recover() != nil {
			r = hidden(s)
		}
	}()
	if e == nil {
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

// maxPasses bounds how often a text is read again. Masking can bring together
// what was apart, so the result is read until nothing is found in it; that is
// also why redacting a second time changes nothing. What is found even then is
// masked to the end of its line.
const maxPasses = 8

// clean returns s redacted, and what was masked in s's own offsets. Without a
// finding it returns s itself.
func (e *engine) clean(s []byte) ([]byte, []span) {
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
func (e *engine) pass(s []byte, last bool) []span {
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

// spans returns what is to be masked in s, in order and without overlap.
func (e *engine) spans(s []byte, last bool) []span {
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

func (e *engine) apply(s []byte, spans []span) ([]byte, []edit) {
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

// told returns what a mask may tell of the text behind it: its first maxSpan
// bytes, with escapes written out.
func told(text []byte) []byte {
	text = text[:min(len(text), maxSpan)]
	if u, _ := unfold(text); u != nil {
		return u
	}
	return text
}
