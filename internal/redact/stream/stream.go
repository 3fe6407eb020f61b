// Package stream redacts text that comes in pieces. Its stages hold back what may be
// part of a finding.
package stream

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/redact/engine"
	"github.com/holdfast-dev/holdfast/internal/redact/finding"
	"github.com/holdfast-dev/holdfast/internal/redact/mask"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

const (
	// maxPiece is how much a stream reads at a time.
	maxPiece = 32 << 10
	// maxFound is how many findings of a stream are kept with their offsets.
	maxFound = 1000
)

// Stream redacts text that comes in pieces and writes on only what can no
// longer be part of anything that must be masked: what it has written when it
// is closed is Text's output for the whole (D25b). It holds back a word or
// two of prose, a credential or a value until it ends or is longer than 8 KiB,
// up to 9 KiB of text without white space or of an encoded run, and what a registered literal may
// begin with. Whatever the text,
// it keeps less than 256 KiB for each pass over it (1 while nothing is found,
// then 2, at most 9) besides the longest form of a literal.
//
// A Stream is for one goroutine. The zero Stream masks everything.
type Stream struct {
	e      *engine.Engine
	w      io.Writer
	first  *stage
	err    error
	closed bool
	counts map[string]int
	found  []span.Span
}

// Open returns a stream that e redacts, and that writes to w.
func Open(e *engine.Engine, w io.Writer) *Stream {
	s := &Stream{e: e, w: w}
	if e != nil {
		s.first = openStage(e, 1, 0, nil, s.note)
	}
	return s
}

// Write takes more of the text. The error is w's, or a RedactionError: the
// stream is closed, its engine is not one that New made, or it faulted; then a
// mask has been written for what was held. After an error nothing is taken.
func (s *Stream) Write(p []byte) (n int, err error) {
	if s.closed && s.err == nil {
		return 0, streamFault("the stream is closed", nil)
	}
	for s.err == nil && n < len(p) {
		piece := p[n:min(len(p), n+maxPiece)]
		if s.put(piece, false); s.err == nil {
			n += len(piece)
		}
	}
	return n, s.err
}

// Close ends the text and writes what was held. It does not close w. Closing
// again does nothing. The errors are Write's.
func (s *Stream) Close() error {
	if !s.closed && s.err == nil {
		s.put(nil, true)
	}
	s.closed, s.first = true, nil
	return s.err
}

// put reads a piece and writes what goes on.
func (s *Stream) put(p []byte, final bool) {
	out, err := s.read(p, final)
	if len(out) > 0 && s.w != nil {
		n, werr := s.w.Write(out)
		if werr == nil && n < len(out) {
			werr = io.ErrShortWrite
		}
		if err == nil {
			err = werr
		}
	}
	s.err = err
}

// read returns what goes on, or a mask and an error.
func (s *Stream) read(p []byte, final bool) (out []byte, err error) {
	defer func() {
		if f := recover(); f != nil {
			s.first = nil
			out, err = []byte(mask.Secret), streamFault("the redaction engine faulted", fmt.Errorf("panic: %v", f))
			s.count(span.Span{Rule: rule.Fault})
		}
	}()
	if s.first == nil {
		s.count(span.Span{Rule: rule.Fault})
		return []byte(mask.Secret), streamFault("the engine was not made by New", nil)
	}
	return s.first.write(p, final), nil
}

func streamFault(why string, err error) error {
	return &holdfast.Error{
		Kind: holdfast.KindRedaction, Gate: holdfast.K6, Rule: "redact/stream", Why: why, Err: err,
		Hint: "no more of this text is written; open a new stream",
	}
}

// note takes what a stage masked, in that stage's offsets.
func (s *Stream) note(depth int, sp span.Span) {
	for d := depth - 1; d > 0; d-- {
		t := s.first
		for range d - 1 {
			t = t.next
		}
		sp = sp.Through(t.edits)
	}
	s.count(sp)
}

func (s *Stream) count(sp span.Span) {
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	s.counts[rule.Names[sp.Rule]]++
	if len(s.found) < maxFound {
		s.found = append(s.found, sp)
	}
}

// Found is what a stream has masked so far. Counts says how often each rule
// masked something; masks that came together count each. First holds the
// first 1000 findings, in bytes of the input, in order and apart.
type Found struct {
	Counts map[string]int
	First  []finding.Finding
}

// Findings returns what has been masked so far.
func (s *Stream) Findings() Found {
	return Found{Counts: maps.Clone(s.counts), First: finding.FromSpans(span.Union(slices.Clone(s.found)), 0, nil)}
}
