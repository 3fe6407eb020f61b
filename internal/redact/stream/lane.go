package stream

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/redact/certain"
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/engine"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

const (
	// maxWindow is how much of what was sent a lane keeps to look back on.
	maxWindow = 2 * certain.MaxBefore
	// minRetry is by how much a text without white space grows before it is
	// looked at again.
	minRetry = 512
	// minTrim is how much is dropped at a time.
	minTrim = 8192
)

// lane reads one text that comes in pieces: a stream's, or that with its
// escapes written out. All its indexes are those of s.
type lane struct {
	e     *engine.Engine
	s     []byte // what was sent, as far as it is needed, and what is held
	base  int    // where s begins in the lane's text
	x     certain.Scanner
	at    int // the first trigger that has not been judged
	lit   int // where the next literal may begin
	space int // after the last gap (isGap)
	tried int // len(s) at the last look
	// clear is a place that no trigger before it reads over, negative where none
	// is known.
	clear int
	// out is what was found, in offsets of the stream.
	out []span.Span
	// edits carry this lane's offsets to the stream's.
	edits []span.Edit
}

// open returns a lane that continues after s, which is clean and was sent.
func openLane(e *engine.Engine, s []byte, base int, last bool) lane {
	n := len(s)
	return lane{
		e: e, s: slices.Clone(s), base: base, x: certain.New(last),
		at: n, lit: n, clear: n, space: lastGap(s, 0),
	}
}

// isGap reports whether white space, or a sign that ends a word as it does (char.IsStop), ends at i.
func isGap(s []byte, i int) bool { return char.Class[s[i-1]]&char.Space != 0 || char.IsStop(s, i) }

// lastGap returns the last gap of s after from, 0 for none.
func lastGap(s []byte, from int) int {
	for i := len(s); i > from; i-- {
		if isGap(s, i) {
			return i
		}
	}
	return 0
}

// add takes more of the text.
func (l *lane) add(p []byte) {
	from := len(l.s)
	l.s = append(l.s, p...)
	l.space = max(l.space, lastGap(l.s, from))
}

// read judges what can be judged.
func (l *lane) read(final bool) {
	view, hard := l.space, false
	switch {
	case final:
		view = len(l.s)
	case len(l.s)-l.space > certain.MaxAhead:
		if len(l.s)-l.tried < minRetry {
			return
		}
		view, hard = len(l.s), true
	}
	l.tried = len(l.s)
	l.x.Feed(l.s[:view], !final)
	if view > l.at || final {
		l.triggers(hard)
	}
	l.find(final)
}

// triggers has the scanner judge triggers until one waits for more text. A
// text that ends within a word is judged only where certain.MaxAhead follows.
func (l *lane) triggers(hard bool) {
	at, found, ended := l.x.Advance(l.at, hard)
	if ended >= 0 {
		l.ended(ended)
	}
	l.at = at
	l.collect(found)
}

// collect keeps what was found for certain.
func (l *lane) collect(list []span.Span) {
	l.note(list)
}

// note keeps what was found in offsets of the stream.
func (l *lane) note(list []span.Span) {
	for _, sp := range list {
		if !l.e.Class.Has(sp.Rule) {
			continue
		}
		sp.Start += l.base
		if sp.End != span.Endless {
			sp.End += l.base
		}
		if l.edits != nil {
			sp = sp.Through(l.edits)
		}
		l.out = append(l.out, sp)
	}
}

// ended gives the long span its end, and those inside it.
func (l *lane) ended(end int) {
	end += l.base
	if l.edits != nil {
		end = span.Origin(l.edits, end, true)
	}
	for i := range l.out {
		if l.out[i].End == span.Endless {
			l.out[i].End = end
		}
	}
}

// find looks for registered literals.
func (l *lane) find(final bool) {
	if l.e.Literals == nil {
		l.lit = len(l.s)
		return
	}
	var list []span.Span
	list, l.lit = l.e.Literals.Scan(l.s, l.lit, final, nil)
	l.collect(list)
}

// sure returns up to where everything has been judged, and how far back what
// is found later can reach, in offsets of the stream.
func (l *lane) sure() (to, back int) {
	n := min(l.at, l.lit) + l.base
	return span.Origin(l.edits, n, false), span.Origin(l.edits, n-certain.MaxBefore, false)
}

// reachNext is how far before a place the triggers stand that mostly read over
// it: they are asked first.
const reachNext = 64

// maxWalk is how far before a place the triggers are asked one after another,
// where it is known that none reads over where that begins: mostly they are
// fewer than those within certain.MaxAhead at which the search may come by.
const maxWalk = 2 * certain.MaxAhead

// reading returns a trigger before p whose judgement reads over p, or p itself
// where there is none. looks counts the triggers it asked.
func (l *lane) reading(p int, looks *int) int {
	if p == len(l.x.S) && l.at == p {
		l.clear = p
		return p // that was just asked
	}
	if i := l.over(max(0, p-reachNext), p, looks); i < p {
		return i
	}
	if l.clear > p || l.clear < max(0, p-maxWalk) {
		return certain.AnyWaiting(l.s[:p], looks)
	}
	i := l.over(l.clear, p, looks)
	if i == p {
		l.clear = p
	}
	return i
}

// over asks the triggers that are judged one after another from i on.
func (l *lane) over(i, p int, looks *int) int {
	return certain.FirstWaiting(l.s[:p], i, func(int) bool {
		*looks++
		return false
	})
}

// twin says whether two lanes will read the same from here on: the last escape
// lies before both windows, and nothing is pending in either.
func (l *lane) twin(o *lane) bool {
	if len(l.out)+len(o.out) > 0 || !l.x.IsTwin(&o.x, len(l.s), len(o.s), 2*maxWindow) {
		return false
	}
	if n := len(l.edits); n > 0 && l.edits[n-1].Out >= l.base+l.at-maxWindow {
		return false
	}
	mine, others := l.listMarks(), o.listMarks()
	for i := range mine {
		if min(len(l.s)-*mine[i], 2*maxWindow) != min(len(o.s)-*others[i], 2*maxWindow) {
			return false
		}
	}
	return true
}

// listMarks are the lane's places in s, besides the scanner's.
func (l *lane) listMarks() [4]*int { return [...]*int{&l.at, &l.lit, &l.space, &l.tried} }

// drop forgets text that lies far before, and found spans that ended before
// sent. Nothing from keep on is dropped.
func (l *lane) drop(keep, sent int) {
	l.out = slices.DeleteFunc(l.out, func(sp span.Span) bool { return sp.End <= sent })
	n := min(l.at, l.lit, keep) - maxWindow
	if n < minTrim {
		return
	}
	l.s = l.s[:copy(l.s, l.s[n:])]
	l.base += n
	l.clear = max(-1, l.clear-n)
	l.x.Drop(n)
	for _, p := range l.listMarks() {
		*p = max(0, *p-n)
	}
	l.edits = prune(l.edits, l.base)
}

// prune forgets the edits that lie before from, but for the last, which tells
// how far the offsets are apart.
func prune(edits []span.Edit, from int) []span.Edit {
	n := 0
	for n+1 < len(edits) && edits[n+1].Out+edits[n+1].N <= from {
		n++
	}
	if n == 0 {
		return edits
	}
	return edits[:copy(edits, edits[n:])]
}
