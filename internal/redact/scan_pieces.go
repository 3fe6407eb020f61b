package redact

// find returns what is found in s, in order of triggers, and whether any of it
// overlaps. last makes every span go on to its line's end.
func find(s []byte, last bool) (list []span, joined bool) {
	x := scanner{state: state{cursor: cursor{s: s}, last: last}}
	x.run()
	return x.spans, x.joined
}

// findPlainly is find as it would be if it stopped at every trigger, judged every
// run of digits, and remembered nothing of the words and the groups before it.
// Tests ask that both find the same.
func findPlainly(s []byte, last bool) (list []span, joined bool) {
	x := scanner{state: state{cursor: cursor{s: s}, last: last}}
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
		case class[s[i]]&isDigit != 0:
			i = max(i+1, x.busy(i))
		default:
			i = max(i+1, x.look(i))
		}
	}
	return x.spans, x.joined
}

// newScanner returns a scanner of a text that comes in pieces (see feed and
// advance). last is find's.
func newScanner(last bool) scanner { return scanner{state: state{last: last}} }

// feed gives x its text, which goes on where more says so.
func (x *scanner) feed(s []byte, more bool) { x.s, x.more = s, more }

// isOpen reports whether a long span has no end yet.
func (x *scanner) isOpen() bool { return x.ending != endNone }

// advance has triggers judged from i on, until one waits for more text. It
// returns where to go on, and what was found, which is good until the next
// call. ended is where the long span ends that was open before, or -1. A text
// that ends within a word is hard: it is judged only where maxAhead follows.
func (x *scanner) advance(i int, hard bool) (next int, found []span, ended int) {
	ended = -1
	x.lately.forget()
	if x.ending != endNone {
		if end := x.seek(); x.ending == endNone {
			ended = end
		}
	}
	n := len(x.s)
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
		if next < 0 || x.more && x.touched && x.waits(i, len(before.spans)) {
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
func (x *scanner) waits(i, had int) bool {
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

// firstWaiting returns the first trigger from i on that waits for what follows
// s, or s's end. It asks the triggers that are judged one after another; those
// of which mayWait says so may wait.
func firstWaiting(s []byte, i int, mayWait func(i int) bool) int {
	x := scanner{state: state{cursor: cursor{s: s}, more: true}}
	f := newFinder(s)
	for i = f.next(i); i < len(s); {
		may := mayWait(i)
		next := max(i+1, x.look(i))
		if x.touched && !may {
			return i
		}
		x.touched = false
		i = f.next(next)
	}
	return len(s)
}

// anyWaiting is firstWaiting where it is not known which triggers the judgement
// comes by: it asks all of the last maxAhead bytes, and counts them in looks.
func anyWaiting(s []byte, looks *int) int {
	x := scanner{state: state{cursor: cursor{s: s}, more: true}}
	for i := max(0, len(s)-maxAhead); i < len(s); i++ {
		if !trigger[s[i]] {
			continue
		}
		*looks++
		if x.look(i); x.touched {
			return i
		}
	}
	return len(s)
}

// marks are the scanner's places in s.
func (x *scanner) marks() [8]*int {
	return [...]*int{&x.low, &x.top, &x.atLow, &x.jwtLow, &x.pemLow, &x.deaf, &x.wake, &x.sought}
}

// drop forgets the first n bytes of the text.
func (x *scanner) drop(n int) {
	x.wordless, x.wordlessEnd = 0, 0
	for _, p := range x.marks() {
		*p = max(0, *p-n)
	}
}

// fork returns a scanner that reads another text from here on, and has found
// nothing.
func (x *scanner) fork() scanner {
	u := *x
	u.spans = nil
	u.wordless, u.wordlessEnd = 0, 0
	return u
}

// isTwin reports whether x, whose text has n bytes, and o, whose text has m, will
// read the same from their ends on. Where they were is equal behind the last
// window bytes.
func (x *scanner) isTwin(o *scanner, n, m, window int) bool {
	if x.ending+o.ending != endNone {
		return false
	}
	mine, others := x.marks(), o.marks()
	for i := range mine {
		if min(n-*mine[i], window) != min(m-*others[i], window) {
			return false
		}
	}
	return true
}
