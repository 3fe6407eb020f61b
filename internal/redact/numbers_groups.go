package redact

// lately holds the groups of digits that were read last, g[lo:hi]: of the runs
// that follow each other each reads on where the one before it ended. What it
// holds was read in the scanner's text as it is now; who changes that forgets it.
type lately struct {
	lo, hi int
	end    int // of the last group, 0 where there is none
	// closed says that nothing belongs to the last group, whatever follows it.
	closed bool
	g      [2 * maxGroups]group
}

// forget drops what was read.
func (l *lately) forget() { l.lo, l.hi, l.end = 0, 0, 0 }

// kept returns how many digits stand from i on, which is before end, where the
// run that i stands in was read lately, and lets what was read begin there; it
// returns 0 otherwise.
func (l *lately) kept(i int) int {
	for k := l.lo; k < l.hi; k++ {
		g := &l.g[k]
		if i >= g.at+g.n {
			continue
		}
		if i < g.at {
			return 0
		}
		l.lo = k
		g.at, g.n = i, g.at+g.n-i
		return g.n
	}
	return 0
}

// follows says whether at i, which is before end and follows what begins the
// groups, stand too many digits to be idle.
func (l *lately) follows(i int) bool {
	k := l.lo + 1
	if k >= l.hi || l.g[k].at != i {
		return false
	}
	n := l.g[k].n
	return n > 6 || k+1 < l.hi && n+l.g[k+1].n > 6
}

// groupsAt is groups for the n digits at i, of a number of any form. The result
// is good until the next call.
func (x *scanner) groupsAt(i, n int) []group {
	l := &x.lately
	switch {
	case l.lo == l.hi || l.g[l.lo].at != i || l.g[l.lo].n != n:
		l.lo, l.hi, l.closed = 0, 1, false
		l.g[0] = group{at: i, n: n}
	case l.lo >= maxGroups:
		l.lo, l.hi = 0, copy(l.g[:], l.g[l.lo:l.hi])
	}
	g := l.g[l.lo : l.hi : l.lo+maxGroups]
	if l.closed {
		return g
	}
	g, end := x.grow(g, maxDigits)
	last := &g[len(g)-1]
	l.hi, l.end, l.closed = l.lo+len(g), last.at+last.n, end > 0 && end+4 <= len(x.s)
	return g
}
