package stream

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/redact/encoded"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// runs opens what is encoded in the text of a lane.
type runs struct {
	scan encoded.Scanner
	base int // where the scanner's text begins in the stream
	// out is what was found, in offsets of the stream.
	out []span.Span
}

// openRuns opens the runs of l that can be opened.
func (r *runs) openRuns(l *lane, final bool) {
	r.scan.Drop(l.base - r.base)
	r.base = l.base
	had := len(r.out)
	r.out = r.scan.Scan(l.s, final, r.out, l.e.OpenRun)
	for i := range r.out[had:] {
		sp := &r.out[had+i]
		sp.Start, sp.End = sp.Start+l.base, sp.End+l.base
	}
	r.out = slices.DeleteFunc(r.out, func(sp span.Span) bool { return !l.e.Class.Has(sp.Rule) })
}

// findSure returns the place before which no span begins that is found later, in offsets of the stream.
func (r *runs) findSure() int { return r.scan.Sure() + r.base }

// dropSent forgets what ended before sent.
func (r *runs) dropSent(sent int) {
	r.out = slices.DeleteFunc(r.out, func(sp span.Span) bool { return sp.End <= sent })
}
