package redact

import (
	"slices"
)

const (
	// maxWindow is how much of what was sent a lane keeps to look back on.
	maxWindow = 2 * maxBehind
	// minRetry is by how much a text without white space grows before it is
	// looked at again.
	minRetry = 512
	// minTrim is how much is dropped at a time.
	minTrim = 8192
)

// lane reads one text that comes in pieces: a stream's, or that with its
// escapes written out. All its indexes are those of s.
type lane struct {
	e     *Engine
	s     []byte // what was sent, as far as it is needed, and what is held
	base  int    // where s begins in the lane's text
	x     scanner
	at    int    // the first trigger that has not been judged
	lit   int    // where the next literal may begin
	known int    // up to where guesses are made
	taken []span // what is certain in s, where guesses are wanted
	space int    // behind the last white space, or what stands for it
	tried int    // len(s) at the last look
	// clear is a place that no trigger before it reads over, negative where none
	// is known.
	clear int
	// out is what was found, in offsets of the stream.
	out []span
	// edits carry this lane's offsets to the stream's.
	edits []edit
}

// open returns a lane that goes on behind s, which is clean and was sent.
func openLane(e *Engine, s []byte, base int, last bool) lane {
	n := len(s)
	return lane{
		e: e, s: slices.Clone(s), base: base, x: scanner{state: state{last: last}},
		at: n, lit: n, known: n, clear: n, space: lastGap(s, 0),
	}
}

// isGap says whether white space ends at i, or what stands for it.
func isGap(s []byte, i int) bool { return class[s[i-1]]&isSpace != 0 || isStop(s, i) }

// lastGap returns the last gap of s behind from, 0 for none.
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
	case len(l.s)-l.space > maxAhead:
		if len(l.s)-l.tried < minRetry {
			return
		}
		view, hard = len(l.s), true
	}
	l.tried = len(l.s)
	l.x.s, l.x.more = l.s[:view], !final
	if view > l.at || final {
		l.triggers(hard)
	}
	l.find(final)
	if l.e.probable != 0 {
		l.guess(final)
	}
}

// triggers has the scanner judge triggers until one waits for more text. A
// text that ends within a word is judged only where maxAhead follows.
func (l *lane) triggers(hard bool) {
	x := &l.x
	x.lately.forget()
	if x.ending != endNone {
		if end := x.seek(); x.ending == endNone {
			l.ended(end)
		}
	}
	i, n := l.at, len(x.s)
	f := newFinder(x.s)
	for {
		if i = f.next(i); i >= n || hard && n-i < maxAhead {
			break
		}
		before := x.state
		x.touched = false
		next := 0
		switch {
		case i >= x.deaf && i < x.wake:
			next = x.listen(i)
		case i >= x.deaf && x.ending != endNone:
			next = -1
		default:
			next = max(i+1, x.look(i))
		}
		if next < 0 || x.more && x.touched && l.waits(i, len(before.spans)) {
			x.state = before
			break
		}
		i = next
	}
	l.at = min(i, n)
	l.collect(x.spans)
	x.spans = x.spans[:0]
}

// waits says whether the trigger at i, judged up to the end of the text, must
// be judged again when there is more: the decision has not been made, or what
// it found may go on and is not yet long.
func (l *lane) waits(i, had int) bool {
	x := &l.x
	switch ahead := len(x.s) - i; {
	case ahead < maxAhead:
		return true
	case len(x.spans) == had || ahead > maxAhead+maxSpan+maxBehind:
		return false
	}
	for _, sp := range x.spans[had:] {
		if sp.end == endless || sp.end-sp.start > maxSpan {
			return false
		}
	}
	return true
}

// collect keeps what was found for certain.
func (l *lane) collect(list []span) {
	if l.e.probable != 0 {
		l.taken = append(l.taken, list...)
	}
	l.note(list)
}

// note keeps what was found in offsets of the stream.
func (l *lane) note(list []span) {
	for _, sp := range list {
		sp.start += l.base
		if sp.end != endless {
			sp.end += l.base
		}
		if l.edits != nil {
			sp = sp.through(l.edits)
		}
		l.out = append(l.out, sp)
	}
}

// ended gives the long span its end, and those inside it.
func (l *lane) ended(end int) {
	for i := range l.taken {
		if l.taken[i].end == endless {
			l.taken[i].end = end
		}
	}
	end += l.base
	if l.edits != nil {
		end = origin(l.edits, end, true)
	}
	for i := range l.out {
		if l.out[i].end == endless {
			l.out[i].end = end
		}
	}
}

// find looks for registered literals.
func (l *lane) find(final bool) {
	if l.e.literals == nil {
		l.lit = len(l.s)
		return
	}
	var list []span
	list, l.lit = l.e.literals.scan(l.s, l.lit, final, nil)
	l.collect(list)
}

// sure returns up to where everything has been judged, and how far back what
// is found later can reach, in offsets of the stream.
func (l *lane) sure() (to, back int) {
	n := min(l.at, l.lit)
	if l.e.probable != 0 {
		n = min(n, l.known)
	}
	n += l.base
	return origin(l.edits, n, false), origin(l.edits, n-maxBehind, false)
}

// reachNext is how far before a place the triggers stand that mostly read over
// it: they are asked first.
const reachNext = 64

// maxWalk is how far before a place the triggers are asked one after another,
// where it is known that none reads over where that begins: mostly they are
// fewer than those within maxAhead at which the search may come by.
const maxWalk = 2 * maxAhead

// reading returns a trigger before p whose judgement reads over p, or p itself
// where there is none. looks counts the triggers it asked.
func (l *lane) reading(p int, looks *int) int {
	if p == len(l.x.s) && l.at == p {
		l.clear = p
		return p // that was just asked
	}
	if i := l.over(max(0, p-reachNext), p, looks); i < p {
		return i
	}
	if l.clear > p || l.clear < max(0, p-maxWalk) {
		return l.overAny(p, looks)
	}
	i := l.over(l.clear, p, looks)
	if i == p {
		l.clear = p
	}
	return i
}

// over asks the triggers that are judged one after another from i on.
func (l *lane) over(i, p int, looks *int) int {
	x := scanner{state: state{s: l.s[:p], more: true}}
	f := newFinder(x.s)
	for i = f.next(i); i < p; {
		*looks++
		next := max(i+1, x.look(i))
		if x.touched {
			return i
		}
		i = f.next(next)
	}
	return p
}

// overAny asks every trigger that may reach p, as it is not known at which of
// them the search before p comes by.
func (l *lane) overAny(p int, looks *int) int {
	x := scanner{state: state{s: l.s[:p], more: true}}
	for i := max(0, p-maxAhead); i < p; i++ {
		if !trigger[x.s[i]] {
			continue
		}
		*looks++
		if x.look(i); x.touched {
			return i
		}
	}
	return p
}

// twin says whether two lanes will read the same from here on: the last escape
// lies behind both windows, and nothing is pending in either.
func (l *lane) twin(o *lane) bool {
	if len(l.out)+len(o.out)+len(l.taken)+len(o.taken) > 0 || l.x.ending+o.x.ending != endNone {
		return false
	}
	if n := len(l.edits); n > 0 && l.edits[n-1].out >= l.base+l.at-maxWindow {
		return false
	}
	mine, others := l.marks(), o.marks()
	for i := range mine {
		if min(len(l.s)-*mine[i], 2*maxWindow) != min(len(o.s)-*others[i], 2*maxWindow) {
			return false
		}
	}
	return true
}

// marks are the lane's places in s.
func (l *lane) marks() []*int {
	x := &l.x
	return []*int{
		&l.at, &l.lit, &l.known, &l.space, &l.tried, &x.low, &x.top, &x.atLow, &x.jwtLow, &x.pemLow, &x.deaf, &x.wake, &x.sought,
	}
}

// drop forgets text that lies far behind, and found spans that ended before
// sent. Nothing from keep on is dropped.
func (l *lane) drop(keep, sent int) {
	l.out = slices.DeleteFunc(l.out, func(sp span) bool { return sp.end <= sent })
	n := min(l.at, l.lit, l.known, keep) - maxWindow
	if l.e.probable == 0 {
		n = min(l.at, l.lit, keep) - maxWindow
	}
	if n < minTrim {
		return
	}
	l.s = l.s[:copy(l.s, l.s[n:])]
	l.base += n
	l.clear = max(-1, l.clear-n)
	l.x.wordless, l.x.wordlessEnd = 0, 0
	for _, p := range l.marks() {
		*p = max(0, *p-n)
	}
	kept := l.taken[:0]
	for _, sp := range l.taken {
		if sp.end <= n {
			continue
		}
		if sp.start = max(0, sp.start-n); sp.end != endless {
			sp.end -= n
		}
		kept = append(kept, sp)
	}
	l.taken = kept
	l.edits = prune(l.edits, l.base)
}

// prune forgets the edits that lie before from, but for the last, which tells
// how far the offsets are apart.
func prune(edits []edit, from int) []edit {
	n := 0
	for n+1 < len(edits) && edits[n+1].out+edits[n+1].n <= from {
		n++
	}
	if n == 0 {
		return edits
	}
	return edits[:copy(edits, edits[n:])]
}
