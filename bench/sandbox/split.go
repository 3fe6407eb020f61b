package sandbox

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// split is where the time of runs went: by the name of the part, one duration
// for each run.
type split struct {
	order []string
	took  map[string][]time.Duration
	ahead []string // of those, what had been done before the request came
	whole []time.Duration
}

func newSplit() *split { return &split{took: map[string][]time.Duration{}} }

// The parts of a run, beside the stages of building its walls.
const (
	partRelease     = "release"     // from the request to the interpreter's go
	partInterpreter = "interpreter" // from there until it has ended, or is leaving
	partEnd         = "end"         // until all its processes are gone
	partReading     = "reading"     // until the result is there
)

// add takes a run in, which began at from and took that long for who asked.
func (s *split) add(res *posture.Result, from time.Time, whole time.Duration) {
	began, last, torn := reached(res.States, posture.Executing), reached(res.States, res.State), reached(res.States, posture.Collecting)
	if torn.IsZero() {
		torn = reached(res.States, posture.Cleanup)
	}
	if began.IsZero() || last.IsZero() || torn.IsZero() {
		return // a trail that is not there splits nothing
	}
	s.whole = append(s.whole, whole)
	release, runs := began.Sub(from), last.Sub(began)
	seat, stood := reached(res.Around, posture.Initializing).Before(from), reached(res.Around, posture.Ready).Before(from)
	for _, g := range res.Stages {
		ahead := false
		switch g.Name {
		case "program", "end", "collect":
			continue // the part that it is in is measured from outside
		case "identity", "scratch":
			ahead = seat
		case "files": // comes with the request; by whom it is waited for, after the go
			if res.Path != posture.PathCold {
				runs -= g.Took
				s.put(g.Name, g.Took, false)
				continue
			}
		default:
			ahead = stood
		}
		s.put(g.Name, g.Took, ahead)
		if !ahead {
			release -= g.Took
		}
	}
	s.put(partRelease, release, false)
	s.put(partInterpreter, runs, false)
	s.put(partEnd, torn.Sub(last), false)
	s.put(partReading, whole-torn.Sub(from), false)
}

// reached is when a state was first reached; the zero time if it never was, which
// is before everything.
func reached(steps []posture.Step, state posture.State) time.Time {
	for _, s := range steps {
		if s.State == state {
			return s.At
		}
	}
	return time.Time{}
}

func (s *split) put(name string, took time.Duration, ahead bool) {
	if s.took[name] == nil {
		s.order = append(s.order, name)
	}
	if ahead && !slices.Contains(s.ahead, name) {
		s.ahead = append(s.ahead, name)
	}
	s.took[name] = append(s.took[name], took)
}

// parts are the medians of what lies between request and result.
func (s *split) parts() []measure.Part {
	m := map[string]float64{}
	for _, name := range s.order {
		if !slices.Contains(s.ahead, name) {
			m[name] = measure.Millis(measure.Percentile(s.took[name], 50))
		}
	}
	return measure.PartsOf("ms", m)
}

// figures are the whole and each part of it, by its median.
func (s *split) figures(what string) []measure.Figure {
	p50 := measure.Millis(measure.Percentile(s.whole, 50))
	all := []measure.Figure{{Name: what + ", the whole run", Measured: p50, Unit: "ms", Note: fmt.Sprintf("median of %d", len(s.whole))}}
	for _, name := range s.order {
		f := measure.Figure{Name: "  " + name, Measured: measure.Millis(measure.Percentile(s.took[name], 50)), Unit: "ms"}
		if slices.Contains(s.ahead, name) {
			f.Name += " (ahead of it)"
		}
		all = append(all, f.RatioTo(p50, "the whole run"))
	}
	return all
}
