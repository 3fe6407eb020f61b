// Package counters counts requests and measures the stages of their way.
package counters

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Stage is a part of a request's way whose time is measured.
type Stage int

// The stages, in the order in which a request goes through them. Of Stream the
// time runs from the first byte of the answer to the last; of a WebSocket from
// its dial to its end, which has no Connect and FirstByte.
const (
	Parse Stage = iota
	Decide
	ReadBody
	Redact
	Cross
	Connect
	FirstByte
	Stream
	stages
)

// String names the stage in one word.
func (s Stage) String() string {
	names := [...]string{"parse", "decide", "body", "redact", "cross", "connect", "first_byte", "stream"}
	if s < 0 || s >= stages {
		return "unknown"
	}
	return names[s]
}

// buckets are the upper bounds of the histograms, in microseconds; what is
// longer stands in one more.
var buckets = [...]int64{50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000, 30_000_000}

// Histogram is how often a stage took how long.
type Histogram struct {
	// Under are counts by upper bound (Bounds), with one more for the rest;
	// each holds only its own.
	Under [len(buckets) + 1]int64
	Count int64
	Sum   time.Duration
}

// Bounds are the upper bounds of every Histogram's buckets. The slice is the
// caller's.
func Bounds() []time.Duration {
	out := make([]time.Duration, len(buckets))
	for i, b := range buckets {
		out[i] = time.Duration(b) * time.Microsecond
	}
	return out
}

// Outcome names one counter of requests.
type Outcome struct {
	// Domain is the row's name as it is listed, "" where none was found.
	Domain string
	// Kind is the error's kind, "" for what was answered.
	Kind string
}

// Snapshot is what was counted since the proxy was made.
type Snapshot struct {
	Requests map[Outcome]int64
	Stages   [stages]Histogram
	// Open is how many connections are open, Crowded how many were turned
	// away because there were too many.
	Open, Crowded int64
	// Redacted is how often something was redacted, in requests and in answers.
	RedactedOut, RedactedIn int64
	// Names is how many questions the resolver answered, Malformed how many it
	// dropped.
	Names, Malformed int64
}

// maxOutcomes bounds the map of counters: domains are listed, but lists change.
const maxOutcomes = 4096

// Counters are the figures of one proxy. They are safe for concurrent use.
type Counters struct {
	times            [stages]times
	Open, Crowded    atomic.Int64
	MaskedOut        atomic.Int64
	MaskedIn         atomic.Int64
	names, malformed atomic.Int64

	mu       sync.Mutex
	requests map[Outcome]int64 // guarded by mu
}

type times struct {
	under [len(buckets) + 1]atomic.Int64
	sum   atomic.Int64
}

// Observe counts one time of a stage.
func (c *Counters) Observe(s Stage, d time.Duration) {
	t := &c.times[s]
	us, i := d.Microseconds(), 0
	for i < len(buckets) && us > buckets[i] {
		i++
	}
	t.under[i].Add(1)
	t.sum.Add(int64(d))
}

// Ended counts one request.
func (c *Counters) Ended(domain, kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests == nil {
		c.requests = map[Outcome]int64{}
	}
	o := Outcome{Domain: domain, Kind: kind}
	if _, ok := c.requests[o]; !ok && len(c.requests) >= maxOutcomes {
		o.Domain = "other"
	}
	c.requests[o]++
}

// CountName counts one message to the resolver.
func (c *Counters) CountName(question bool) {
	if question {
		c.names.Add(1)
	} else {
		c.malformed.Add(1)
	}
}

// Snapshot returns what was counted so far; the parts are of nearly one moment.
func (c *Counters) Snapshot() Snapshot {
	s := Snapshot{Open: c.Open.Load(), Crowded: c.Crowded.Load(), RedactedOut: c.MaskedOut.Load(), RedactedIn: c.MaskedIn.Load(),
		Names: c.names.Load(), Malformed: c.malformed.Load()}
	for i := range s.Stages {
		h := &s.Stages[i]
		for b := range h.Under {
			h.Under[b] = c.times[i].under[b].Load()
			h.Count += h.Under[b]
		}
		h.Sum = time.Duration(c.times[i].sum.Load())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Requests = maps.Clone(c.requests)
	return s
}
