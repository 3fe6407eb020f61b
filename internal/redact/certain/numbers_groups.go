package certain

import "github.com/holdfast-dev/holdfast/internal/redact/cursor"

// lately holds the groups of digits that were read last, g[lo:hi]: of the runs
// that follow each other each reads on where the one before it ended. What it
// holds was read in the scanner's text as it is now; who changes that forgets it.
type lately struct {
	lo, hi int
	end    int // of the last group, 0 where there is none
	// closed says that nothing belongs to the last group, whatever follows it.
	closed bool
	g      [2 * cursor.MaxGroups]cursor.Group
}

// forget drops what was read.
func (l *lately) forget() { l.lo, l.hi, l.end = 0, 0, 0 }

// kept returns how many digits stand from i on, which is before end, where the
// run that i stands in was read lately, and lets what was read begin there; it
// returns 0 otherwise.
func (l *lately) kept(i int) int {
	for k := l.lo; k < l.hi; k++ {
		g := &l.g[k]
		if i >= g.At+g.N {
			continue
		}
		if i < g.At {
			return 0
		}
		l.lo = k
		g.At, g.N = i, g.At+g.N-i
		return g.N
	}
	return 0
}

// follows says whether at i, which is before end and follows what begins the
// groups, stand too many digits to be idle.
func (l *lately) follows(i int) bool {
	k := l.lo + 1
	if k >= l.hi || l.g[k].At != i {
		return false
	}
	n := l.g[k].N
	return n > 6 || k+1 < l.hi && n+l.g[k+1].N > 6
}

// groupsAt is groups for the n digits at i, of a number of any form. The result
// is good until the next call.
func (x *Scanner) groupsAt(i, n int) []cursor.Group {
	l := &x.lately
	switch {
	case l.lo == l.hi || l.g[l.lo].At != i || l.g[l.lo].N != n:
		l.lo, l.hi, l.closed = 0, 1, false
		l.g[0] = cursor.Group{At: i, N: n}
	case l.lo >= cursor.MaxGroups:
		l.lo, l.hi = 0, copy(l.g[:], l.g[l.lo:l.hi])
	}
	g := l.g[l.lo : l.hi : l.lo+cursor.MaxGroups]
	if l.closed {
		return g
	}
	g, end := x.Grow(g, cursor.MaxDigits)
	last := &g[len(g)-1]
	l.hi, l.end, l.closed = l.lo+len(g), last.At+last.N, end > 0 && end+4 <= len(x.S)
	return g
}
