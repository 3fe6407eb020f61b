package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// part is what one thing takes of a figure, in the figure's unit or in that of
// the whole that it is a part of.
type part struct {
	What   string  `json:"what"`
	Amount float64 `json:"amount"`
	Unit   string  `json:"unit"`
	Share  float64 `json:"share"` // of all parts together, from 0 to 1
}

// partsOf are the parts of a whole with their shares, the greatest first. What is
// below nothing, because two medians were taken from each other, counts as none.
func partsOf(unit string, amounts map[string]float64) []part {
	sum := 0.0
	var list []part
	for what, v := range amounts {
		if v > 0 {
			sum += v
			list = append(list, part{What: what, Amount: v, Unit: unit})
		}
	}
	for i := range list {
		list[i].Share = list[i].Amount / sum
	}
	slices.SortFunc(list, func(a, b part) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), strings.Compare(a.What, b.What))
	})
	return list
}

// limitedBy is parts in words, without those that are next to nothing.
func limitedBy(list []part) string {
	var words []string
	for _, p := range list {
		if p.Share >= 0.02 {
			words = append(words, fmt.Sprintf("%s %.0f %% (%s %s)", p.What, 100*p.Share, number(p.Amount), p.Unit))
		}
	}
	return strings.Join(words, ", ")
}

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
func (s *split) add(res *sandbox.Result, from time.Time, whole time.Duration) {
	began, last, torn := reached(res.States, sandbox.Executing), reached(res.States, res.State), reached(res.States, sandbox.Collecting)
	if torn.IsZero() {
		torn = reached(res.States, sandbox.Cleanup)
	}
	if began.IsZero() || last.IsZero() || torn.IsZero() {
		return // a trail that is not there splits nothing
	}
	s.whole = append(s.whole, whole)
	release, runs := began.Sub(from), last.Sub(began)
	seat, stood := reached(res.Around, sandbox.Initializing).Before(from), reached(res.Around, sandbox.Ready).Before(from)
	for _, g := range res.Stages {
		ahead := false
		switch g.Name {
		case "program", "end", "collect":
			continue // the part that it is in is measured from outside
		case "identity", "scratch":
			ahead = seat
		case "files": // comes with the request; by whom it is waited for, after the go
			if res.Path != sandbox.PathCold {
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
func reached(steps []sandbox.Step, state sandbox.State) time.Time {
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
func (s *split) parts() []part {
	m := map[string]float64{}
	for _, name := range s.order {
		if !slices.Contains(s.ahead, name) {
			m[name] = millis(at(s.took[name], 50))
		}
	}
	return partsOf("ms", m)
}

// figures are the whole and each part of it, by its median.
func (s *split) figures(what string) []figure {
	p50 := millis(at(s.whole, 50))
	all := []figure{{Name: what + ", the whole run", Measured: p50, Unit: "ms", Note: fmt.Sprintf("median of %d", len(s.whole))}}
	for _, name := range s.order {
		f := figure{Name: "  " + name, Measured: millis(at(s.took[name], 50)), Unit: "ms"}
		if slices.Contains(s.ahead, name) {
			f.Name += " (ahead of it)"
		}
		all = append(all, f.ratioTo(p50, "the whole run"))
	}
	return all
}
