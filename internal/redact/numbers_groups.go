package redact

// group is a run of digits, and sep the one byte or bracket pair between it
// and the next run.
type group struct {
	at, n int
	sep   byte
}

const (
	wide      = 'w' // two blanks
	maxGroups = 8
	maxRun    = 20 // a longer run of digits is no number of ours
)

// maxDigits is how many digits a number of any form has at most.
const maxDigits = 19

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

// groups reads runs of digits with one separator between them, the first with n
// digits at i, up to the one with which they are more than most; ") " and " ("
// count as one.
func (x *scanner) groups(i, n, most int, g []group) []group {
	g, _ = x.grow(append(g, group{at: i, n: n}), most)
	return g
}

// grow reads on behind groups, and returns where they end if it is not their
// number that ends them.
func (x *scanner) grow(g []group, most int) (all []group, end int) {
	for k := range g {
		most -= g[k].n
	}
	for most >= 0 && len(g) < maxGroups {
		last := &g[len(g)-1]
		j := last.at + last.n
		sep, w := x.separator(j)
		if w == 0 {
			return g, j
		}
		x.touch(j + w)
		m := x.digitRun(j + w)
		if m == 0 || m == maxRun {
			return g, j
		}
		last.sep = sep
		g = append(g, group{at: j + w, n: m})
		most -= m
	}
	return g, 0
}

// digitRun counts the digits at i, at most maxRun.
func (x *scanner) digitRun(i int) int {
	s := x.s
	if i+24 > len(s) {
		return digitsFrom(s, i, maxRun)
	}
	n := leadingDigits(s[i:])
	if n == 8 {
		n += leadingDigits(s[i+8:])
	}
	if n == 16 {
		n += min(leadingDigits(s[i+16:]), maxRun-16)
	}
	return n
}

func (x *scanner) separator(j int) (byte, int) {
	if j+1 >= len(x.s) {
		x.touched = x.touched || j >= len(x.s) || x.s[j] != '\n'
		return 0, 0
	}
	c, d := x.s[j], x.s[j+1]
	if d-'0' <= 9 && (c == ' ' || c == '-') {
		return c, 1
	}
	switch c {
	case ')':
		if d == ' ' || d == '-' {
			return c, 2
		}
		return c, 1
	case ' ', '-', '.':
		if c == ' ' && d == ' ' {
			return wide, 2
		}
		if d == '(' {
			return '(', 2
		}
		return c, 1
	case '/', '\t':
		return c, 1
	case 0xc2, 0xe2: // no-break spaces and the dashes of typography
		if d == 0xa0 && c == 0xc2 {
			return ' ', 2
		}
		if d == 0x80 && j+2 < len(x.s) {
			switch x.s[j+2] {
			case 0xaf, 0x89, 0x8a:
				return ' ', 3
			case 0x90, 0x91, 0x92, 0x93, 0x94:
				return '-', 3
			}
		}
	case '(':
		return '(', 1
	}
	return 0, 0
}
