// Package span has stretches of text to be masked, and carries their offsets from a
// text that was changed back to the one before.
package span

import (
	"cmp"
	"math"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/redact/rule"
)

// Span is a stretch of text to be masked: [start, end).
type Span struct {
	Start, End int
	Rule       rule.Rule
}

// MaxLen is the length of a span, in bytes, from which on it is extended to
// its line's end without a further look.
const MaxLen = 8192

// Union sorts spans and joins those that overlap; a secret's rule wins, where
// it begins within MaxLen of what it overlaps.
func Union(l []Span) []Span {
	slices.SortFunc(l, func(a, b Span) int {
		if a.Start != b.Start {
			return a.Start - b.Start
		}
		return cmp.Compare(b.End, a.End)
	})
	out := l[:0]
	for _, sp := range l {
		if n := len(out); n > 0 && sp.Start < out[n-1].End {
			out[n-1].End = max(out[n-1].End, sp.End)
			if sp.Start-out[n-1].Start < MaxLen {
				out[n-1].Rule = max(out[n-1].Rule, sp.Rule)
			}
			continue
		}
		out = append(out, sp)
	}
	return out
}

// Through carries a span over one list of edits, back to where it came from.
func (sp Span) Through(edits []Edit) Span {
	sp.Start = Origin(edits, sp.Start, false)
	if sp.End != Endless {
		sp.End = Origin(edits, sp.End, true)
	}
	return sp
}

// Edit says that [start, end) of a text became n bytes at out in the next.
type Edit struct{ Start, End, Out, N int }

// Back carries a stretch of the newest text to the oldest.
func Back(trail [][]Edit, start, end int) (int, int) {
	for i := len(trail) - 1; i >= 0; i-- {
		start, end = Origin(trail[i], start, false), Origin(trail[i], end, true)
	}
	return start, end
}

// Origin carries one offset over one list of edits; one that lies inside an
// edit goes to its start, or for an end to its end.
func Origin(edits []Edit, off int, isEnd bool) int {
	i, _ := slices.BinarySearchFunc(edits, off, func(e Edit, off int) int {
		if e.Out < off || (e.Out == off && !isEnd) {
			return -1
		}
		return 1
	})
	if i == 0 {
		return off
	}
	e := edits[i-1]
	switch {
	case off >= e.Out+e.N:
		return e.End + off - e.Out - e.N
	case isEnd:
		return e.End
	}
	return e.Start
}

// Destination carries an offset forward over one list of edits, of which none
// covers it.
func Destination(edits []Edit, off int) int {
	i, _ := slices.BinarySearchFunc(edits, off, func(e Edit, off int) int {
		if e.End <= off {
			return -1
		}
		return 1
	})
	if i == 0 {
		return off
	}
	e := edits[i-1]
	return e.Out + e.N + off - e.End
}

// Endless is the end of a span whose end has not come yet.
const Endless = math.MaxInt
