package sandbox

import (
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

// tooMany is how many more clients there are at once than run and wait.
const tooMany = 18

// crowd are more calls at once than wait parked, than run, and than may wait for
// room: by what became of them. The first of each crowd find the pool full.
func (g *grpcBench) crowd() ([]measure.Figure, error) {
	room := api.DefaultRoom()
	clients := room.Running + room.Waiting + tooMany
	var all []called
	for range g.Rounds(5) {
		time.Sleep(200 * refill)
		list := make([]called, clients)
		var wg sync.WaitGroup
		for i := range list {
			wg.Go(func() { list[i] = g.call(i, hello, "python3") })
		}
		wg.Wait()
		for _, a := range list {
			if a.err != nil {
				return nil, a.err
			}
		}
		all = append(all, list...)
	}
	return crowdFigures(clients, all), nil
}

func crowdFigures(clients int, all []called) []measure.Figure {
	var out []measure.Figure
	came := map[string]int{}
	for _, a := range all {
		if a.refused {
			came["refused"]++
			continue
		}
		came[string(a.path)]++
	}
	row := func(name string, of func(called) bool) {
		var took, runs []time.Duration
		for _, a := range all {
			if of(a) {
				took, runs = append(took, a.took), append(runs, a.run)
			}
		}
		f := measure.Figure{Name: fmt.Sprintf("%d clients at once, %s, p50", clients, name), Measured: measure.Millis(measure.Percentile(took, 50)), Unit: "ms", Paths: came,
			Note: fmt.Sprintf("%d of %d (%.0f %%); p99 %s ms", len(took), len(all), 100*float64(len(took))/float64(len(all)), measure.Number(measure.Millis(measure.Percentile(took, 99))))}
		if run := measure.Millis(measure.Percentile(runs, 50)); run > 0 {
			f.Limits = measure.PartsOf("ms", map[string]float64{"the run": run, "room, gates and commits": f.Measured - run})
		}
		if len(took) == 0 {
			f = measure.Figure{Name: fmt.Sprintf("%d clients at once, %s", clients, name), Note: "there was none"}
		}
		out = append(out, f)
	}
	for _, p := range paths() {
		row(string(p), func(a called) bool { return a.path == p })
	}
	row("refused", func(a called) bool { return a.refused })
	return out
}
