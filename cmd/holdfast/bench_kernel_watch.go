package main

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/watch"
	"github.com/holdfast-dev/holdfast/kernel"
)

// watched is the watch of a daemon that can be looked away with, and timed.
type watched struct {
	kernel.Observer
	off, timed atomic.Bool

	mu    sync.Mutex
	seen  map[string]int  // guarded by mu; crossings by agent
	took  []time.Duration // guarded by mu; the watch, of each crossing
	least []time.Duration // guarded by mu; what count took, of each crossing
}

// Crossed implements kernel.Observer.
func (w *watched) Crossed(c kernel.Crossed) {
	switch {
	case w.off.Load():
	case !w.timed.Load():
		w.Observer.Crossed(c)
	default:
		w.time(c)
	}
}

// time times the watch and, before or behind it in turns, the least that could be done
// in its place.
func (w *watched) time(c kernel.Crossed) {
	least := func() time.Duration { return timed(func() { w.count(c.Entry.Agent) }) }
	first, before := time.Now().UnixNano()/64%2 == 0, time.Duration(0)
	if first {
		before = least()
	}
	took := timed(func() { w.Observer.Crossed(c) })
	if !first {
		before = least()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took, w.least = append(w.took, took), append(w.least, before)
}

func timed(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}

// count finds an agent's entry in a map and counts it, under a lock.
func (w *watched) count(agent string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[agent]++
}

// watching measures what the watch adds to a crossing: its own part, as the kernel
// calls it, and the whole crossing with it and without, in turns; then what 10 000
// agents take of memory and of a second.
func (b *bench) watching() (_ []figure, err error) {
	w := &watched{seen: map[string]int{}}
	s, err := b.openWith("watch", benchConfig(), func(o *daemon.Options) {
		o.Watch = func(own kernel.Observer) kernel.Observer { w.Observer = own; return w }
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.d.Close()) }()
	const callers = 64
	reqs, err := s.requests(benchOrder, benchPayload(), callers, 1)
	if err != nil {
		return nil, err
	}
	var n atomic.Int64
	cross := func(off bool) func(int) error {
		return func(caller int) error {
			w.off.Store(off)
			req := reqs[caller] // no two are alike, as agents' are not
			req.Payload = bytes.Replace(req.Payload, []byte(`"count":7`), fmt.Appendf(nil, `"count":%d`, n.Add(1)), 1)
			_, err := s.d.Kernel.Cross(b.ctx, req, done)
			return err
		}
	}
	r, err := b.compare(callers, cross(false), cross(true))
	if err != nil {
		return nil, err
	}
	w.timed.Store(true)
	if _, err := drive(callers, b.span(2*time.Second), cross(false)); err != nil {
		return nil, err
	}
	own := figure{Name: "watch, its part of a crossing, p50", Measured: micros(at(w.took, 50)), Unit: "us", Target: "<= 2 us"}
	own = own.ratioTo(micros(at(w.least, 50)), "a map's entry, counted")
	own.Met = own.Measured <= 2
	own.Note = fmt.Sprintf("p95 %s us, of %d crossings of %d callers", number(micros(at(w.took, 95))), len(w.took), callers)
	whole := figure{Name: "processor time of a crossing that is watched", Measured: middle(r.ours, work), Unit: "us"}
	whole = whole.ratioTo(middle(r.theirs, work), "unwatched")
	whole.Ratio = r.middleRatio(work)
	whole.Note = fmt.Sprintf("the difference is %+.1f us; pairs of runs differ by %s", whole.Measured-whole.Beside, r.spread())
	return append([]figure{own, whole}, b.crowd()...), nil
}

// spread is by how much processor time the pairs of runs differ, in order.
func (c compared) spread() string {
	var v []float64
	for i := range c.ours {
		v = append(v, work(c.ours[i])-work(c.theirs[i]))
	}
	return fmt.Sprintf("%+.1f to %+.1f us", at(v, 0), at(v, 100))
}

// crowd measures 10 000 agents: what an hour of each takes of memory, and a second in
// which each of them acts of one core.
func (b *bench) crowd() []figure {
	const agents, hours = 10_000, 24
	names := make([]string, agents)
	for i := range names {
		names[i] = fmt.Sprint("agent-", i)
	}
	start := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w := watch.New(watch.Limits{})
	all := func(at time.Time) {
		for _, name := range names {
			w.Add(watch.Seen{Tenant: "local", Agent: name, At: at, Action: uint64(at.Unix()), Cost: 10})
		}
	}
	for h := range hours {
		all(start.Add(time.Duration(h) * time.Hour))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	memory := figure{Name: "watch, memory of an agent's hour, of 10 000 agents", Measured: (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / (agents * hours), Unit: "bytes", Target: "<= 200"}
	memory.Met = memory.Measured <= 200
	var looks, seconds []time.Duration
	for i := range b.rounds(20) {
		now := start.Add(hours*time.Hour + time.Duration(i)*time.Second)
		from := time.Now()
		all(now)
		acted := time.Now()
		w.Tick(now)
		looks, seconds = append(looks, time.Since(acted)), append(seconds, time.Since(from))
	}
	look := figure{Name: "watch, 10 000 agents in one tick, p50", Measured: millis(at(looks, 50)), Unit: "ms", Target: "< 1000 ms, each second", Met: at(looks, 50) < time.Second}
	second := figure{Name: "  with an action of each of them before it", Measured: millis(at(seconds, 50)), Unit: "ms", Target: "< 1000 ms, one core", Met: at(seconds, 50) < time.Second}
	runtime.KeepAlive(w)
	return []figure{memory, look, second}
}
