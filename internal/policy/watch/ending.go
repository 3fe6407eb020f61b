package watch

import "math/bits"

const (
	// ofLast is how many of the last crossings the error rate is of (spec 001,
	// "Metrics to Track"), and leastJudged of how many at least.
	ofLast      = 100
	leastJudged = 20
	// inRow is how many errors in a row ask for a person (spec 001, "On error").
	inRow = 3
)

// endings is how the last crossings of one sort came to an end.
type endings struct {
	failed [2]uint64 // the newest is bit 0 of the first
	judged uint8     // how many there were, at most ofLast
	row    uint8     // errors in a row
}

func (e *endings) add(failed bool) {
	bit := uint64(0)
	if failed {
		bit = 1
	}
	e.failed[1] = (e.failed[1]<<1 | e.failed[0]>>63) & (1<<(ofLast-64) - 1)
	e.failed[0] = e.failed[0]<<1 | bit
	e.judged = min(e.judged+1, ofLast)
	if !failed {
		e.row = 0
		return
	}
	e.row = min(e.row+1, 1<<8-2)
}

// rate is the share of errors, and whether there were enough to say.
func (e *endings) rate() (rate float64, known bool) {
	if e.judged < leastJudged {
		return 0, false
	}
	n := bits.OnesCount64(e.failed[0]) + bits.OnesCount64(e.failed[1])
	return float64(n) / float64(e.judged), true
}
