package daemon

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
)

// timedWatch is the watch of a kernel that can be looked away with, and timed.
type timedWatch struct {
	kernel.Observer
	off, timed atomic.Bool

	mu    sync.Mutex
	seen  map[string]int  // guarded by mu; crossings by agent
	took  []time.Duration // guarded by mu; the watch, of each crossing
	least []time.Duration // guarded by mu; what count took, of each crossing
}

// Crossed implements kernel.Observer.
func (w *timedWatch) Crossed(c kernel.Crossed) {
	switch {
	case w.off.Load():
	case !w.timed.Load():
		w.Observer.Crossed(c)
	default:
		w.timeCrossed(c)
	}
}

// timeCrossed times the watch and, before or after it in turns, the least that could be
// done in its place.
func (w *timedWatch) timeCrossed(c kernel.Crossed) {
	timed := func(do func()) time.Duration {
		start := time.Now()
		do()
		return time.Since(start)
	}
	count := func() { w.countAgent(c.Entry.Agent) }
	first, least := time.Now().UnixNano()/64%2 == 0, time.Duration(0)
	if first {
		least = timed(count)
	}
	took := timed(func() { w.Observer.Crossed(c) })
	if !first {
		least = timed(count)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took, w.least = append(w.took, took), append(w.least, least)
}

// countAgent finds an agent's entry in a map and counts it, under a lock.
func (w *timedWatch) countAgent(agent string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[agent]++
}

const measuredWatch = `version: 1
listen: {pages: none}
unsafe: {watch_looser: true}
watch: {responses: {loop: record, error_rate: record, cost_per_hour: record, rapid_actions: record, escalating_cost: record}}
boundaries:
  - {boundary: test/act, risk: LOW}
`

// BenchmarkWatch is what the watch adds to a crossing of 64 callers: its own part, as
// the kernel calls it, beside a map's entry found and counted, in microseconds; and the
// processor time of a whole crossing with the watch and without it, in turns.
func BenchmarkWatch(b *testing.B) {
	config := testfile.Write(b, map[string]string{"holdfast.yaml": measuredWatch})
	d, err := Open(b.Context(), Options{State: filepath.Join(b.TempDir(), "state"), Config: filepath.Join(config, "holdfast.yaml"), Version: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	seal, err := newSealer(make([]byte, 32))
	if err != nil {
		b.Fatal(err)
	}
	w := &timedWatch{Observer: d.watching, seen: map[string]int{}}
	c := d.kernelConfig(seal, make([]byte, 32))
	c.Observer = w
	k, err := kernel.New(c)
	if err != nil {
		b.Fatal(err)
	}
	var tokens []holdfast.Secret
	for i := range 64 {
		token, err := d.Mint(holdfast.Identity{Agent: fmt.Sprint("agent-", i), Session: "s"})
		if err != nil {
			b.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	var watched, unwatched, differences []float64
	for i := 0; b.Loop(); i++ {
		var work [2]float64
		for turn := range 2 {
			off := (i+turn)%2 == 1
			w.off.Store(off)
			n := 0
			if off {
				n = 1
			}
			work[n] = crossForASecond(b, k, tokens)
		}
		watched, unwatched = append(watched, work[0]), append(unwatched, work[1])
		differences = append(differences, work[0]-work[1])
	}
	w.off.Store(false)
	w.timed.Store(true)
	crossForASecond(b, k, tokens)
	micros := func(list []time.Duration, percent int) float64 {
		slices.Sort(list)
		return float64(list[min(len(list)-1, len(list)*percent/100)].Nanoseconds()) / 1e3
	}
	middle := func(list []float64) float64 { slices.Sort(list); return list[len(list)/2] }
	b.ReportMetric(micros(w.took, 50), "own-p50-us")
	b.ReportMetric(micros(w.took, 95), "own-p95-us")
	b.ReportMetric(micros(w.least, 50), "map-p50-us")
	b.ReportMetric(float64(len(w.took)), "crossings")
	b.ReportMetric(middle(watched), "watched-us")
	b.ReportMetric(middle(unwatched), "unwatched-us")
	b.ReportMetric(slices.Min(differences), "least-difference-us")
	b.ReportMetric(slices.Max(differences), "greatest-difference-us")
}

// madeCrossings makes the payloads of the benchmark's crossings differ.
var madeCrossings atomic.Int64

// crossForASecond lets each token's caller cross without pause, and returns the
// processor time of a crossing, in microseconds.
func crossForASecond(b *testing.B, k *kernel.Kernel, tokens []holdfast.Secret) float64 {
	var made atomic.Int64
	var wg sync.WaitGroup
	from, used := time.Now(), measureProcessorTime(b)
	for _, token := range tokens {
		wg.Go(func() {
			for time.Since(from) < time.Second {
				_, err := k.Cross(context.Background(), holdfast.Request{Boundary: "test/act", Payload: fmt.Appendf(nil, `{"n":%d}`, madeCrossings.Add(1)), Token: token},
					func(context.Context) (holdfast.Output, error) {
						return holdfast.Output{Body: []byte(`{"ok":true}`)}, nil
					})
				if err != nil {
					b.Error(err)
					return
				}
				made.Add(1)
			}
		})
	}
	wg.Wait()
	return float64((measureProcessorTime(b) - used).Microseconds()) / float64(max(1, made.Load()))
}

// measureProcessorTime is what this process has used.
func measureProcessorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
