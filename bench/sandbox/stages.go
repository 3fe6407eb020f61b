package sandbox

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// measureStages shows where the time of a run goes: of a Python program whose
// interpreter is started for it, of one that makes a forbidden call, and of runs
// by each way that comes where some wait.
func measureStages(b *measure.Run) (all []measure.Figure, err error) {
	err = withTier(b, "python3", hello, func(t *process.Tier, _ func(int) error) error {
		for _, c := range []struct{ what, code string }{{"cold python", hello}, {"a violation", forbidden}} {
			s := newSplit()
			for i := range b.Rounds(200) {
				if _, err := runInto(b, s, t, newSpec(b, i, "python3", c.code)); err != nil {
					return err
				}
			}
			all = append(all, s.figures(c.what)...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ready, err := withWarm(b, func(w *warmBench) ([]measure.Figure, error) {
		w.clocked = true
		if err := w.hit(b.Rounds(100), func() error { return nil }); err != nil {
			return nil, err
		}
		list := w.way(posture.PathParked).figures("parked python")
		if err := w.deplete(b.Rounds(25)); err != nil {
			return nil, err
		}
		return append(list, w.way(posture.PathForked).figures("forked python, none waiting")...), nil
	})
	return append(all, ready...), err
}

// figures are the parts of runs whose programs said when they began; none if
// there was none.
func (y *way) figures(what string) []measure.Figure {
	if len(y.split.whole) == 0 {
		return nil
	}
	all, p50 := y.split.figures(what), measure.Millis(measure.Percentile(y.split.whole, 50))
	for _, f := range []measure.Figure{
		{Name: "  from the go to the program's first line", Measured: measure.Millis(measure.Percentile(y.line, 50))},
		{Name: "  from there to its end", Measured: measure.Millis(measure.Percentile(y.tail, 50))},
	} {
		f.Unit = "ms"
		all = append(all, f.RatioTo(p50, "the whole run"))
	}
	return all
}

// runInto runs spec and takes it into s.
func runInto(b *measure.Run, s *split, t runner, spec sandbox.Spec) (*posture.Result, error) {
	from := time.Now()
	res, err := t.Run(b.Ctx, spec)
	if err == nil {
		s.add(res, from, time.Since(from))
	}
	return res, err
}

// runner runs code.
type runner interface {
	Run(context.Context, sandbox.Spec) (*posture.Result, error)
}
