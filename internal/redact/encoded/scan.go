package encoded

import (
	"encoding/binary"

	"github.com/holdfast-dev/holdfast/internal/redact/char"
	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

const (
	// MaxWhole is the longest run, in bytes, that is opened as a whole. A longer one is opened in windows.
	MaxWhole = 4096
	// windowStep is the distance of windows; each reads windowMargin more bytes of the run before and after it.
	windowStep   = 4096
	windowMargin = 512
	// maxWidth is the longest line of a run of several lines (RFC 2045 section 6.8 has 76 at most).
	maxWidth = 256
	// maxPadding is the largest number of "=" at the end of a run.
	maxPadding = 6
)

// Scanner finds the runs of base64, base32 and hexadecimal in a text that comes in pieces. The spans that it returns do
// not depend on how the text is cut. Its places are those of the text that Scan is given.
type Scanner struct {
	// at is the place before which everything has been opened.
	at int
	// inRun says that the run from start on is being read, which ends at end so far. line is where its last line
	// begins, width how long its lines are, 0 within the first. closed says that end is final.
	inRun, closed    bool
	start, end, line int
	width            int
	// long says that the run is opened in windows.
	long bool
	// code is a run without its line breaks.
	code []byte
}

// Sure returns the place before which no span begins that is found later.
func (c *Scanner) Sure() int {
	if c.long {
		return max(c.start, c.at-windowMargin)
	}
	return c.at
}

// Drop tells c that the first n bytes of the text are no longer there. They must be before Sure.
func (c *Scanner) Drop(n int) {
	c.at, c.start, c.end, c.line = c.at-n, c.start-n, c.end-n, c.line-n
}

// Begin has c begin at a place, before which there is no text that it needs.
func (c *Scanner) Begin(at int) { *c = Scanner{at: at, code: c.code} }

// Scan opens the runs of s that have not been opened, and appends a span for each in which open finds something. open
// gets a run without its line breaks and returns the rule and the part of the run that is to be masked. Unless final is
// set, s may continue.
func (c *Scanner) Scan(s []byte, final bool, to []span.Span, open func(code []byte) (rule.Rule, int, int)) []span.Span {
	for {
		if !c.inRun {
			start := findRun(s, c.at)
			if start < 0 {
				c.at = len(s)
				for !final && c.at > 0 && runClass[s[c.at-1]] {
					c.at-- // fewer than MinRun
				}
				return to
			}
			c.at, c.start, c.end, c.line, c.width = start, start, start+MinRun, start, 0
			c.inRun, c.closed, c.long = true, false, false
		}
		c.extendRun(s, final)
		var done bool
		if to, done = c.openRun(s, final, to, open); !done {
			return to
		}
	}
}

// openRun opens what can be opened of the run. done reports whether the text is to be read on.
func (c *Scanner) openRun(s []byte, final bool, to []span.Span, open func([]byte) (rule.Rule, int, int)) (
	spans []span.Span, done bool,
) {
	if !c.long && c.end-c.start > MaxWhole {
		c.long = true
	}
	for c.long && c.end > c.at+windowStep+windowMargin {
		to = c.openWindow(s, c.at-windowMargin, c.at+windowStep+windowMargin, to, open)
		c.at += windowStep
	}
	if !c.closed {
		return to, false
	}
	stop := c.end
	for stop < len(s) && stop < c.end+maxPadding && s[stop] == '=' {
		stop++
	}
	if stop == len(s) && stop < c.end+maxPadding && !final {
		return to, false
	}
	n := len(to)
	if to = c.openWindow(s, c.at-windowMargin, c.end, to, open); len(to) > n && to[n].End == c.end {
		to[n].End = stop
	}
	c.at, c.inRun, c.long = c.end, false, false
	return to, true
}

// openWindow opens the part of the run that is in [from, end).
func (c *Scanner) openWindow(
	s []byte, from, end int, to []span.Span, open func([]byte) (rule.Rule, int, int),
) []span.Span {
	from = max(from, c.start)
	code := s[from:end]
	if c.width > 0 {
		c.code = c.code[:0]
		for _, b := range code {
			if b != '\n' && b != '\r' {
				c.code = append(c.code, b)
			}
		}
		code = c.code
	}
	if len(code) < MinRun {
		return to
	}
	r, first, last := open(code)
	switch {
	case r == rule.None:
		return to
	case len(code) == end-from:
		from, end = from+first, from+last
	}
	return append(to, span.Span{Start: from, End: end, Rule: r})
}

// extendRun reads on to where the run ends. Lines of one length are one run.
func (c *Scanner) extendRun(s []byte, final bool) {
	for !c.closed {
		for c.end < len(s) && runClass[s[c.end]] {
			c.end++
		}
		if c.end == len(s) {
			c.closed = final
			return
		}
		width := c.end - c.line
		if width != c.width && (c.width != 0 || width < 32 || width%4 != 0 || width > maxWidth) {
			c.closed = true
			return
		}
		next := c.end
		if s[next] == '\r' {
			next++
		}
		if next < len(s) && s[next] != '\n' {
			c.closed = true
			return
		}
		next++
		stop := next
		for stop < len(s) && stop <= next+width && runClass[s[stop]] {
			stop++
		}
		switch {
		case stop >= len(s) && stop <= next+width && !final:
			return
		case stop <= next || stop > next+width || stop > len(s) || stop < next+width && !EndsLine(s, stop):
			c.closed = true
			return
		}
		c.width, c.line, c.end = width, next, stop
	}
}

// EndsLine reports whether a run of several lines may end in a shorter one that ends at s[i]: nothing else is on it.
func EndsLine(s []byte, i int) bool {
	return i >= len(s) || char.IndexByte("\r\n=\"'`-<\\)", s[i]) >= 0
}

// findRun returns where the first run of at least MinRun bytes begins in s, at from or after it, or -1.
// from is not within a run, or at its beginning.
func findRun(s []byte, from int) int {
	// A run of MinRun bytes covers two words of eight bytes next to each other, wherever they begin.
	for i := from; ; {
		if i = skipGaps(s, i); i < 0 {
			return -1
		}
		// Words of eight bytes may have other bytes that a run has not.
		last := i + 15
		for last >= i && runClass[s[last]] {
			last--
		}
		if last >= i {
			i = last + 1
			continue
		}
		start, end := i, i+16
		for start > from && runClass[s[start-1]] {
			start--
		}
		for end < len(s) && end < start+MinRun && runClass[s[end]] {
			end++
		}
		if end-start >= MinRun {
			return start
		}
		i = end + 1
	}
}

// skipGaps returns a place, at i or after it, from which on two words have no gap, or -1.
func skipGaps(s []byte, i int) int {
	if i+16 > len(s) {
		return -1
	}
	gap := findGaps(binary.LittleEndian.Uint64(s[i:]))
	for ; i+40 <= len(s); i += 32 {
		w := s[i+8 : i+40]
		a, b := findGaps(binary.LittleEndian.Uint64(w)), findGaps(binary.LittleEndian.Uint64(w[8:]))
		c, d := findGaps(binary.LittleEndian.Uint64(w[16:])), findGaps(binary.LittleEndian.Uint64(w[24:]))
		switch {
		case gap|a == 0:
			return i
		case a|b == 0:
			return i + 8
		case b|c == 0:
			return i + 16
		case c|d == 0:
			return i + 24
		}
		gap = d
	}
	for ; i+16 <= len(s); i += 8 {
		next := findGaps(binary.LittleEndian.Uint64(s[i+8:]))
		if gap|next == 0 {
			return i
		}
		gap = next
	}
	return -1
}

// findGaps returns 0 if no byte of x is below "+" or beyond ASCII, as none of a run is.
func findGaps(x uint64) uint64 {
	const plus, high = 0x2b2b2b2b2b2b2b2b, 0x8080808080808080
	return ((x - plus) | x) & high
}

// runClass holds for each byte whether a run has it.
var runClass = runClasses()

func runClasses() (t [256]bool) {
	for c := range 256 {
		t[c] = char.Class[c]&IsRun != 0
	}
	return t
}
