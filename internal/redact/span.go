package redact

import (
	"cmp"
	"math"
	"slices"
)

// span is a stretch of text to be masked: [start, end).
type span struct {
	start, end int
	rule       rule
}

// maxSpan is the length of a span, in bytes, from which on nothing more is asked of
// what it hides: the rest of its line is hidden too.
const maxSpan = 8192

// union sorts spans and joins those that overlap; a secret's rule wins, where
// it begins within maxSpan of what it overlaps.
func union(l []span) []span {
	slices.SortFunc(l, func(a, b span) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return cmp.Compare(b.end, a.end)
	})
	out := l[:0]
	for _, sp := range l {
		if n := len(out); n > 0 && sp.start < out[n-1].end {
			out[n-1].end = max(out[n-1].end, sp.end)
			if sp.start-out[n-1].start < maxSpan {
				out[n-1].rule = max(out[n-1].rule, sp.rule)
			}
			continue
		}
		out = append(out, sp)
	}
	return out
}

// through carries a span over one list of edits, back to where it came from.
func (sp span) through(edits []edit) span {
	sp.start = origin(edits, sp.start, false)
	if sp.end != endless {
		sp.end = origin(edits, sp.end, true)
	}
	return sp
}

// edit says that [start, end) of a text became n bytes at out in the next.
type edit struct{ start, end, out, n int }

// back carries a stretch of the newest text to the oldest.
func back(trail [][]edit, start, end int) (int, int) {
	for i := len(trail) - 1; i >= 0; i-- {
		start, end = origin(trail[i], start, false), origin(trail[i], end, true)
	}
	return start, end
}

// origin carries one offset over one list of edits; one that lies inside an
// edit goes to its start, or for an end to its end.
func origin(edits []edit, off int, isEnd bool) int {
	i, _ := slices.BinarySearchFunc(edits, off, func(e edit, off int) int {
		if e.out < off || (e.out == off && !isEnd) {
			return -1
		}
		return 1
	})
	if i == 0 {
		return off
	}
	e := edits[i-1]
	switch {
	case off >= e.out+e.n:
		return e.end + off - e.out - e.n
	case isEnd:
		return e.end
	}
	return e.start
}

// destination carries an offset forward over one list of edits, of which none
// covers it.
func destination(edits []edit, off int) int {
	i, _ := slices.BinarySearchFunc(edits, off, func(e edit, off int) int {
		if e.end <= off {
			return -1
		}
		return 1
	})
	if i == 0 {
		return off
	}
	e := edits[i-1]
	return e.out + e.n + off - e.end
}

// endless is the end of a span whose end has not come yet.
const endless = math.MaxInt
