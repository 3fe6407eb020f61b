package watch

import (
	"math"
	"time"
)

const (
	// least is how many values a history must have before anything is judged
	// against it (D39), and deviations how far off an outlier is.
	least      = 10
	deviations = 3
	// keep is how many hours of an agent are kept: a week of those in which it did
	// something.
	keep = 168
	hour = int64(time.Hour)
)

// Hour is what an agent did within one hour of the clock (UTC).
type Hour struct {
	Start   time.Time
	Actions int
	Steps   int // agent/step crossings
	Errors  int
	Cost    int64 // micro-dollars
}

// bucket is an Hour as it is kept.
type bucket struct {
	cost                   int64
	hour                   int32 // since 1970
	actions, steps, errors uint32
}

// measure is a value of an hour that is judged against the hours before.
type measure struct {
	name string
	of   func(bucket) float64
	// floor is the least deviation that counts, so that a history of one value does
	// not make an outlier of the next to it (findings.md 5.2, 9); a count's is its
	// root at least, for so much it varies however steady it is.
	floor   float64
	counted bool
}

func measures() [3]measure {
	return [3]measure{
		{name: "actions", of: func(b bucket) float64 { return float64(b.actions) }, floor: 2, counted: true},
		{name: "iterations", of: func(b bucket) float64 { return float64(b.steps) }, floor: 2, counted: true},
		{name: "micro-dollars", of: func(b bucket) float64 { return float64(b.cost) }, floor: 10_000},
	}
}

// span is what a history makes usual: from low to high. Of fewer than ten values
// nothing is known.
type span struct {
	low, high float64
	known     bool
}

func (s span) has(v float64) bool { return v >= s.low && v <= s.high }

// usual is within three standard deviations of the mean. The value that is judged must
// not stand in the history: with it, of ten values none ever could lie outside (D39;
// findings.md 5.2, 9). floor is the least deviation that counts.
func usual(history []float64, floor float64, counted bool) span {
	if len(history) < least {
		return span{}
	}
	mean, deviation := 0.0, 0.0
	for _, v := range history {
		mean += v / float64(len(history))
	}
	for _, v := range history {
		deviation += (v - mean) * (v - mean) / float64(len(history))
	}
	deviation = max(math.Sqrt(deviation), floor)
	if counted {
		deviation = max(deviation, math.Sqrt(mean))
	}
	return span{mean - deviations*deviation, mean + deviations*deviation, true}
}
