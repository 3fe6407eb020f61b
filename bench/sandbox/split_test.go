package sandbox

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// TestSplit_isWhole: the parts of a run from its request to its result are all of
// it, whether its walls stood before or not, and none is counted twice.
func TestSplit_isWhole(t *testing.T) {
	from := time.Now()
	after := func(d time.Duration) time.Time { return from.Add(d * time.Millisecond) }
	stages := []posture.Stage{{Name: "identity", Took: time.Millisecond}, {Name: "scratch", Took: time.Millisecond},
		{Name: "rights", Took: 3 * time.Millisecond}, {Name: "files", Took: 2 * time.Millisecond},
		{Name: "program", Took: 9 * time.Millisecond}, {Name: "end", Took: 4 * time.Millisecond}, {Name: "collect", Took: time.Millisecond}}
	for name, c := range map[string]struct {
		path          posture.Path
		raised, ready time.Time
		want          map[string]float64
	}{
		"cold":            {posture.PathCold, after(-60), after(8), map[string]float64{partRelease: 5, "rights": 3, "files": 2, partInterpreter: 10, partEnd: 4, partReading: 6}},
		"cold, no seat":   {posture.PathCold, after(2), after(8), map[string]float64{partRelease: 3, "identity": 1, "scratch": 1, "rights": 3, "files": 2, partInterpreter: 10, partEnd: 4, partReading: 6}},
		"parked":          {posture.PathParked, after(-60), after(-50), map[string]float64{partRelease: 10, "files": 2, partInterpreter: 8, partEnd: 4, partReading: 6}},
		"made on request": {posture.PathForked, after(2), after(8), map[string]float64{partRelease: 5, "identity": 1, "scratch": 1, "rights": 3, "files": 2, partInterpreter: 8, partEnd: 4, partReading: 6}},
	} {
		res := &posture.Result{State: posture.Completed, Stages: stages, Path: c.path}
		res.Walk(posture.Instants{Received: from, Parsed: after(1), Raised: c.raised, Ready: c.ready, Began: after(10), Ended: after(20), Torn: after(24), Freed: after(29)})
		s := newSplit()
		s.add(res, from, 30*time.Millisecond)
		got, sum, share := map[string]float64{}, 0.0, 0.0
		for _, p := range s.parts() {
			got[p.What] = p.Amount
			sum, share = sum+p.Amount, share+p.Share
		}
		for what, v := range c.want {
			if math.Abs(got[what]-v) > 1e-6 {
				t.Errorf("%s: %s is %v, not %v", name, what, got[what], v)
			}
		}
		if len(got) != len(c.want) || math.Abs(sum-30) > 1e-6 || math.Abs(share-1) > 1e-9 {
			t.Errorf("%s: %v are %v of 30 ms, their shares %v", name, got, sum, share)
		}
	}
}

// TestSplit_withoutATrail: a run of which is not known when what happened is left
// out, and not guessed.
func TestSplit_withoutATrail(t *testing.T) {
	s := newSplit()
	s.add(&posture.Result{Stages: []posture.Stage{{Name: "files", Took: time.Second}}}, time.Now(), time.Second)
	if len(s.whole) != 0 || len(s.parts()) != 0 {
		t.Errorf("%v %v", s.whole, s.parts())
	}
}

// TestMeasure_leftovers: the command fails where a figure that must be met is
// not, when the table has been printed; of other figures it says so and no more.
func TestMeasure_leftovers(t *testing.T) {
	for _, c := range []struct {
		f    measure.Figure
		fail bool
	}{
		{leftBy(10, [len(counts)]int{1, 1}, [len(counts)]int{1, 2}), true},
		{leftBy(10, [len(counts)]int{1, 2}, [len(counts)]int{1, 1}), false},
		{measure.Figure{Name: "slow", Measured: 2, Unit: "ms", Target: "<= 1 ms"}, false},
	} {
		var out, errs bytes.Buffer
		c.f.Binding = c.f.Target == "0"
		s := measure.Subject{Name: "sandbox", Measurements: []measure.Measurement{{Name: "one", Do: func(*measure.Run) ([]measure.Figure, error) { return []measure.Figure{c.f}, nil }}}}
		err := s.Execute(t.Context(), []string{"--dir", t.TempDir()}, &out, &errs)
		if (err != nil) != c.fail || errors.Is(err, measure.ErrUsage) {
			t.Errorf("%s: %v", c.f.Name, err)
		}
		if !strings.Contains(out.String(), c.f.Name) {
			t.Errorf("the table does not have it: %s", out.String())
		}
	}
}
