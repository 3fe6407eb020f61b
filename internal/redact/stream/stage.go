package stream

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/redact/certain"
	"github.com/holdfast-dev/holdfast/internal/redact/engine"
	"github.com/holdfast-dev/holdfast/internal/redact/escape"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// stage is one pass over a text that comes in pieces. What it masks goes to
// the next stage, as clean reads the result of one pass in the next.
type stage struct {
	e     *engine.Engine
	depth int // 1 for the first
	raw   lane
	// unfolded reads the text with its escapes written out, from the first
	// escape on; folded writes it, from where the stage began.
	unfolded *lane
	folded   escape.Folded
	runs     runs
	sent     int // up to where the text went on, in its own offsets
	put      int // how much that made
	cover    *cover
	edits    []span.Edit // what was changed, from the text's offsets to the next's
	next     *stage
	piece    []byte // what goes on now
	thrift   thrift
	found    func(depth int, sp span.Span)
}

// cover is a span whose mask has been sent and whose end has not.
type cover struct {
	start int
	rule  rule.Rule
}

// openStage returns a stage that continues after ctx, which is clean and was
// sent, and ends at offset at.
func openStage(e *engine.Engine, depth, at int, ctx []byte, found func(int, span.Span)) *stage {
	last := depth > engine.MaxPasses
	t := &stage{
		e: e, depth: depth, sent: at, put: at, found: found,
		raw: openLane(e, ctx, at-len(ctx), last),
	}
	t.runs.base = t.raw.base
	if escape.Has(ctx) {
		t.folded = escape.Folded{In: t.raw.base, Out: t.raw.base}
		t.folded.Write(ctx, true)
		u := openLane(e, t.folded.S, t.raw.base, last)
		u.edits, t.unfolded = t.folded.Edits, &u
	}
	return t
}

// write takes more of the text and returns what goes on, which is valid until
// the next call.
func (t *stage) write(p []byte, final bool) []byte {
	from := max(0, len(t.raw.s)-escape.MaxLen+1)
	t.thrift.came(len(p))
	t.raw.add(p)
	t.unfold(from, final)
	t.raw.read(final)
	if t.unfolded != nil {
		t.unfolded.read(final)
		if t.folded.In == t.raw.base+len(t.raw.s) && t.unfolded.twin(&t.raw) {
			t.unfolded = nil
		}
	}
	if t.e.Opens {
		t.runs.openRuns(&t.raw, final)
	}
	t.piece = t.piece[:0]
	t.send(final)
	t.forget()
	if t.next == nil {
		return t.piece
	}
	return t.next.write(t.piece, final)
}

// unfold feeds the lane of unfolded text, and opens it at the first escape,
// which is at from or after it.
func (t *stage) unfold(from int, final bool) {
	l := &t.raw
	if t.unfolded == nil {
		if !escape.Has(l.s[from:]) {
			return
		}
		t.fork(from)
	}
	f := &t.folded
	f.S, f.Edits = f.S[:0], nil
	f.Write(l.s[f.In-l.base:], final)
	t.unfolded.edits = append(t.unfolded.edits, f.Edits...)
	t.unfolded.add(f.S)
}

// fork opens the lane of unfolded text as the twin of the other, which has
// judged no trigger from from on, and before which no escape stands.
func (t *stage) fork(from int) {
	u := t.raw
	u.s = slices.Clone(u.s[:from])
	u.out, u.x = slices.Clone(u.out), t.raw.x.Fork()
	u.at, u.lit, u.tried = min(u.at, from), min(u.lit, from), min(u.tried, from)
	u.space = lastGap(u.s, 0)
	if u.clear > from {
		u.clear = -1
	}
	t.folded = escape.Folded{In: u.base + from, Out: u.base + from}
	t.unfolded = &u
}

// send sends on what nothing can change any more.
func (t *stage) send(final bool) {
	to, back := t.sure(final)
	if !final {
		to = t.gap(to, back)
	}
	for _, sp := range t.spans() {
		if sp.Start >= to {
			break
		}
		if t.cover == nil {
			if sp.End <= t.sent {
				continue // it was let go (Yield)
			}
			sp.Start = max(sp.Start, t.sent)
			if sp.End > to && to-sp.Start < span.MaxLen {
				if to = sp.Start; t.next == nil {
					to = t.gap(to, min(to, back))
				}
				break
			}
			t.copy(sp.Start)
			t.mask(sp)
		}
		t.sent = min(sp.End, to)
		t.edits[len(t.edits)-1].End = t.sent
		if sp.End <= to {
			t.found(t.depth, span.Span{Start: t.cover.start, End: sp.End, Rule: t.cover.rule})
			t.cover = nil
		}
	}
	if t.cover == nil {
		t.copy(to)
	}
}

// sure returns up to where everything has been judged, and how far back what
// is found later can reach.
func (t *stage) sure(final bool) (to, back int) {
	if final {
		to = t.raw.base + len(t.raw.s)
		return to, to
	}
	to, back = t.raw.sure()
	if t.unfolded != nil {
		n, b := t.unfolded.sure()
		to, back = min(to, n), min(back, b)
	}
	if t.e.Opens {
		n := t.runs.findSure()
		to, back = min(to, n), min(back, n)
	}
	return to, back
}

// gap returns up to where text can be sent, at most up to to: nothing that is
// found later begins before white space that comes before it, nor before back,
// unless the word before the white space leads to it.
// While there is no next stage, it also returns no place that a trigger before
// it reads over: the next stage, which will begin there, would not judge that
// trigger again with a mask in sight.
func (t *stage) gap(to, back int) int {
	opens := t.next == nil && t.depth <= engine.MaxPasses
	if opens {
		back -= certain.MaxAhead
	}
	low := max(back, t.sent)
	if opens {
		if t.thrift.wait > 0 {
			return low
		}
		t.thrift.looks = 0
	}
	tries := 0
	for p := to; p > low && tries < maxTries; p-- {
		if !isGap(t.raw.s, p-t.raw.base) || t.begins(p) {
			continue
		}
		if !opens {
			return p
		}
		q := t.reading(p)
		if q >= p {
			t.thrift.found()
			return p
		}
		if p = q + 1; t.thrift.looks > maxLooks {
			break
		}
		tries++
	}
	if tries > 0 {
		t.thrift.failed()
	}
	return low
}

// begins says whether the word before the white space before p may be the
// head of something that is told only by what follows.
func (t *stage) begins(p int) bool {
	if certain.Leads(t.raw.s[:p-t.raw.base]) {
		return true
	}
	u := t.unfolded
	if u == nil {
		return false
	}
	n := span.Destination(u.edits, p) - u.base
	return n > 0 && certain.Leads(u.s[:n])
}

// maxTries bounds how often gap looks further back.
const maxTries = 16

// reading returns a place before p from which a trigger reads over p, or p.
func (t *stage) reading(p int) int {
	q := t.raw.base + t.raw.reading(p-t.raw.base, &t.thrift.looks)
	if u := t.unfolded; u != nil {
		k := u.reading(span.Destination(u.edits, p)-u.base, &t.thrift.looks)
		q = min(q, span.Origin(u.edits, u.base+k, false))
	}
	return q
}

// spans returns what was found and has not been sent, in order and apart.
func (t *stage) spans() []span.Span {
	if t.unfolded == nil || len(t.unfolded.out) == 0 {
		return span.Union(slices.Concat(t.raw.out, t.runs.out))
	}
	return span.Union(slices.Concat(t.raw.out, t.unfolded.out, t.runs.out))
}

// copy sends text as it is.
func (t *stage) copy(to int) {
	if to > t.sent {
		t.piece = append(t.piece, t.raw.s[t.sent-t.raw.base:to-t.raw.base]...)
		t.put += to - t.sent
		t.sent = to
	}
}

// mask sends the mask of sp. From the first mask on there is a next stage.
func (t *stage) mask(sp span.Span) {
	if t.next == nil && t.depth <= engine.MaxPasses {
		at := t.put - len(t.piece) // nothing was changed before
		ctx := t.raw.s[:at-t.raw.base]
		t.next = openStage(t.e, t.depth+1, at, ctx[max(0, len(ctx)-maxWindow):], t.found)
	}
	text := t.raw.s[sp.Start-t.raw.base:]
	if sp.End-sp.Start < len(text) {
		text = text[:sp.End-sp.Start]
	}
	n := len(t.piece)
	if t.e.Replacement == nil {
		text = engine.SelectMaskText(text)
	}
	t.piece = t.e.AppendMask(t.piece, sp.Rule, text)
	n = len(t.piece) - n
	t.edits = append(t.edits, span.Edit{Start: sp.Start, End: sp.Start, Out: t.put, N: n})
	t.put += n
	t.cover = &cover{sp.Start, sp.Rule}
}

// forget drops what is needed no more.
func (t *stage) forget() {
	keep := t.sent
	if t.e.Opens {
		t.runs.dropSent(t.sent)
		keep = min(keep, t.runs.findSure())
	}
	t.raw.drop(keep-t.raw.base, t.sent)
	if t.unfolded != nil {
		t.unfolded.drop(len(t.unfolded.s), t.sent)
	}
	from := t.put
	if t.next != nil {
		from = t.next.raw.base
	}
	t.edits = prune(t.edits, from)
}
