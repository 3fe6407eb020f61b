package certain

import (
	"bytes"

	"github.com/holdfast-dev/holdfast/internal/redact/rule"
	"github.com/holdfast-dev/holdfast/internal/redact/span"
)

// ending is what ends a long span.
type ending uint8

const (
	endNone   ending = iota
	endLine          // the next line break
	endArmour        // an armour's end, and then the next line break
)

const (
	armourBegin = "-----BEGIN "
	maxLabel    = 80 // of an armour, after its BEGIN or END
)

// maskLong records a span that is longer than span.MaxLen: it hides the rest of
// the line on which it ends. While text may follow, that may not be in sight.
func (x *Scanner) maskLong(start, end int, r rule.Rule) {
	if start >= x.deaf {
		x.deaf = start + span.MaxLen
	}
	n := -1
	if !x.unended.open {
		n = bytes.IndexByte(x.S[end:], '\n')
	}
	switch {
	case n >= 0:
		end += n
	case x.more:
		if x.ending == endNone {
			x.top = x.low
		}
		x.ending, x.sought = max(x.ending, endLine), len(x.S)
		if x.unended.open {
			x.ending, x.body = endArmour, x.unended
		}
		x.spans = append(x.spans, span.Span{Start: start, End: span.Endless, Rule: r})
		x.hold()
		return
	default:
		end = len(x.S)
	}
	x.wake = max(x.wake, end-MaxAhead)
	if x.ending != endNone {
		x.top = max(x.top, end)
	}
	x.joined = x.joined || start < x.low
	x.spans = append(x.spans, span.Span{Start: start, End: end, Rule: r})
	x.low = max(x.low, end)
}

// hold says that everything so far belongs to a long span.
func (x *Scanner) hold() {
	x.joined = true
	x.low, x.wake = len(x.S), len(x.S)-MaxAhead
	if x.ending == endArmour {
		x.pemLow = len(x.S)
	}
}

// seek looks for the end of the long span in text that has come, and returns
// it where it is there, else 0.
func (x *Scanner) seek() int {
	if x.ending == endArmour && (x.readArmour(&x.body) || !x.more) {
		x.ending, x.pemLow, x.sought = endLine, x.body.at-len(armourMark), x.body.end
	}
	end := len(x.S)
	if n := bytes.IndexByte(x.S[x.sought:], '\n'); n >= 0 && x.ending == endLine {
		end = x.sought + n
	} else if x.more {
		if x.ending == endLine {
			x.sought = len(x.S)
		}
		stop := x.pemLow
		if x.hold(); x.ending == endLine {
			x.pemLow = stop
		}
		return 0
	}
	x.ending = endNone
	x.low = max(x.top, end)
	x.wake = end - MaxAhead
	return end
}

// listen judges the trigger at i, which stands before wake: in a long span it
// hears armours only. It returns where to go on.
func (x *Scanner) listen(i int) int {
	if i < x.deaf {
		return max(i+1, x.look(i))
	}
	from := max(0, i-4)
	to := min(len(x.S), x.wake+len(armourBegin)-5)
	if n := bytes.Index(x.S[from:max(from, to)], []byte(armourBegin)); n >= 0 && from+n+4 >= i {
		return x.armour(from + n)
	}
	return max(i+1, x.wake)
}
