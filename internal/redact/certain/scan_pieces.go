package certain

import (
	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/cursor"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// Find returns what is found in s, in order of triggers, and whether any of it
// overlaps. last extends every span to its line's end.
func Find(s []byte, last bool) (list []span.Span, joined bool) {
	x := Scanner{state: state{Cursor: cursor.Cursor{S: s}, last: last}}
	x.run()
	return x.spans, x.joined
}

// FindPlainly returns what Find returns, without any shortcut: it stops at every
// trigger, evaluates every run of digits, and remembers no words and groups. Tests
// compare both.
func FindPlainly(s []byte, last bool) (list []span.Span, joined bool) {
	x := Scanner{state: state{Cursor: cursor.Cursor{S: s}, last: last}}
	for i := 0; i < len(s); {
		if !trigger[s[i]] {
			i++
			continue
		}
		x.wordless, x.wordlessEnd = 0, 0
		x.lately.forget()
		switch {
		case i < x.wake:
			i = x.listen(i)
		case char.Class[s[i]]&char.Digit != 0:
			i = max(i+1, x.busy(i))
		default:
			i = max(i+1, x.look(i))
		}
	}
	return x.spans, x.joined
}

// New returns a scanner of a text that comes in pieces (Feed, Advance). last is that
// of Find.
func New(last bool) Scanner { return Scanner{state: state{last: last}} }

// Feed sets the text. more reports whether text may follow.
func (x *Scanner) Feed(s []byte, more bool) { x.S, x.more = s, more }

// IsOpen reports whether a long span has no end yet.
func (x *Scanner) IsOpen() bool { return x.ending != endNone }

// Advance evaluates triggers from i on, until one needs more text. It returns
// where to continue, and what was found, which is valid until the next call.
// ended is where a long span ends that was open before, or -1. hard says that the
// text ends within a word: triggers are evaluated only where MaxAhead follows.
func (x *Scanner) Advance(i int, hard bool) (next int, found []span.Span, ended int) {
	ended = -1
	x.lately.forget()
	if x.ending != endNone {
		if end := x.seek(); x.ending == endNone {
			ended = end
		}
	}
	n := len(x.S)
	f := newFinder(x.S)
	for {
		if i = f.next(i); i >= n || hard && n-i < MaxAhead {
			break
		}
		before := x.state
		x.Touched = false
		next := 0
		switch {
		case i >= x.deaf && i < x.wake:
			next = x.listen(i)
		case i >= x.deaf && x.ending != endNone:
			next = -1
		default:
			next = max(i+1, x.look(i))
		}
		if next < 0 || x.more && x.Touched && x.waits(i, len(before.spans)) {
			x.state = before
			break
		}
		i = next
	}
	found = x.spans
	x.spans = x.spans[:0]
	return min(i, n), found, ended
}

// waits says whether the trigger at i, judged up to the end of the text, must
// be judged again when there is more: the decision has not been made, or what
// it found may go on and is not yet long.
func (x *Scanner) waits(i, had int) bool {
	switch ahead := len(x.S) - i; {
	case ahead < MaxAhead:
		return true
	case len(x.spans) == had || ahead > MaxAhead+span.MaxLen+MaxBefore:
		return false
	}
	for _, sp := range x.spans[had:] {
		if sp.End == span.Endless || sp.End-sp.Start > span.MaxLen {
			return false
		}
	}
	return true
}

// FirstWaiting returns the first trigger from i on that waits for what follows
// s, or s's end. It evaluates one trigger after the other, as Advance does; those
// for which mayWait returns true may wait.
func FirstWaiting(s []byte, i int, mayWait func(i int) bool) int {
	x := Scanner{state: state{Cursor: cursor.Cursor{S: s}, more: true}}
	f := newFinder(s)
	for i = f.next(i); i < len(s); {
		may := mayWait(i)
		next := max(i+1, x.look(i))
		if x.Touched && !may {
			return i
		}
		x.Touched = false
		i = f.next(next)
	}
	return len(s)
}

// AnyWaiting is FirstWaiting for a text of which no trigger is known to be
// evaluated: it evaluates all triggers of the last MaxAhead bytes, and counts them
// in looks.
func AnyWaiting(s []byte, looks *int) int {
	x := Scanner{state: state{Cursor: cursor.Cursor{S: s}, more: true}}
	for i := max(0, len(s)-MaxAhead); i < len(s); i++ {
		if !trigger[s[i]] {
			continue
		}
		*looks++
		if x.look(i); x.Touched {
			return i
		}
	}
	return len(s)
}

// listPlaces returns the scanner's places in s.
func (x *Scanner) listPlaces() [14]*int {
	return [...]*int{
		&x.low, &x.top, &x.atLow, &x.jwtLow, &x.pemLow, &x.deaf, &x.wake, &x.sought, &x.webKeyEnd,
		&x.body.at, &x.body.end, &x.body.stop, &x.body.sure, &x.keyed,
	}
}

// Drop forgets the first n bytes of the text.
func (x *Scanner) Drop(n int) {
	x.wordless, x.wordlessEnd = 0, 0
	for _, p := range x.listPlaces() {
		*p = max(0, *p-n)
	}
}

// Fork returns a scanner that reads another text from here on, and has found
// nothing.
func (x *Scanner) Fork() Scanner {
	u := *x
	u.spans = nil
	u.wordless, u.wordlessEnd = 0, 0
	return u
}

// IsTwin reports whether x, whose text has n bytes, and o, whose text has m, will
// read the same from their ends on. Where they were is equal behind the last
// window bytes.
func (x *Scanner) IsTwin(o *Scanner, n, m, window int) bool {
	if x.ending+o.ending != endNone {
		return false
	}
	mine, others := x.listPlaces(), o.listPlaces()
	for i := range mine {
		if min(n-*mine[i], window) != min(m-*others[i], window) {
			return false
		}
	}
	return true
}
