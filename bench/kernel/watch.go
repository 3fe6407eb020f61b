package kernel

import (
	"fmt"
	"runtime"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// measureWatch measures what the watch adds to a crossing: its own part, as the kernel
// calls it, and the whole crossing with it and without, in turns, by the benchmark of
// package daemon; then what 10 000 agents take of memory and of a second.
func measureWatch(b *measure.Run) ([]measure.Figure, error) {
	m, err := programs.RunGoBenchmark(b, "./daemon", "BenchmarkWatch", b.Rounds(5))
	if err != nil {
		return nil, err
	}
	own := measure.Figure{Name: "watch, its part of a crossing, p50", Measured: m["own-p50-us"], Unit: "us", Target: "<= 2 us"}
	own = own.RatioTo(m["map-p50-us"], "a map's entry, counted")
	own.Met = own.Measured <= 2
	own.Note = fmt.Sprintf("p95 %s us, of %.0f crossings of 64 callers", measure.Number(m["own-p95-us"]), m["crossings"])
	whole := measure.Figure{Name: "processor time of a crossing that is watched", Measured: m["watched-us"], Unit: "us"}
	whole = whole.RatioTo(m["unwatched-us"], "unwatched")
	whole.Note = fmt.Sprintf("the difference is %+.1f us; pairs of runs differ by %+.1f to %+.1f us", whole.Measured-whole.Beside, m["least-difference-us"], m["greatest-difference-us"])
	return append([]measure.Figure{own, whole}, measureCrowd(b)...), nil
}

// measureCrowd measures 10 000 agents: what an hour of each takes of memory, and a second in
// which each of them acts of one core.
func measureCrowd(b *measure.Run) []measure.Figure {
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
	memory := measure.Figure{Name: "watch, memory of an agent's hour, of 10 000 agents", Measured: (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / (agents * hours), Unit: "bytes", Target: "<= 200"}
	memory.Met = memory.Measured <= 200
	var looks, seconds []time.Duration
	for i := range b.Rounds(20) {
		now := start.Add(hours*time.Hour + time.Duration(i)*time.Second)
		from := time.Now()
		all(now)
		acted := time.Now()
		w.Tick(now)
		looks, seconds = append(looks, time.Since(acted)), append(seconds, time.Since(from))
	}
	look := measure.Figure{Name: "watch, 10 000 agents in one tick, p50", Measured: measure.Millis(measure.Percentile(looks, 50)), Unit: "ms", Target: "< 1000 ms, each second", Met: measure.Percentile(looks, 50) < time.Second}
	second := measure.Figure{Name: "  with an action of each of them before it", Measured: measure.Millis(measure.Percentile(seconds, 50)), Unit: "ms", Target: "< 1000 ms, one core", Met: measure.Percentile(seconds, 50) < time.Second}
	runtime.KeepAlive(w)
	return []measure.Figure{memory, look, second}
}
