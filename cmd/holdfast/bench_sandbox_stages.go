package main

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// stagesOf shows where the time of a run goes: of a Python program whose
// interpreter is started for it, of one that makes a forbidden call, and of runs
// by each way that comes where some wait.
func (b *bench) stagesOf() (all []figure, err error) {
	err = b.withTier("python3", hello, func(t *process.Tier, _ func(int) error) error {
		for _, c := range []struct{ what, code string }{{"cold python", hello}, {"a violation", forbidden}} {
			s := newSplit()
			for i := range b.rounds(200) {
				if _, err := b.runInto(s, t, b.sandboxed(i, "python3", c.code)); err != nil {
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
	ready, err := b.withWarm(func(w *warmBench) ([]figure, error) {
		w.clocked = true
		if err := w.hit(b.rounds(100), func() error { return nil }); err != nil {
			return nil, err
		}
		list := w.way(sandbox.PathParked).figures("parked python")
		if err := w.deplete(b.rounds(25)); err != nil {
			return nil, err
		}
		return append(list, w.way(sandbox.PathForked).figures("forked python, none waiting")...), nil
	})
	return append(all, ready...), err
}

// figures are the parts of runs whose programs said when they began; none if
// there was none.
func (y *way) figures(what string) []figure {
	if len(y.split.whole) == 0 {
		return nil
	}
	all, p50 := y.split.figures(what), millis(at(y.split.whole, 50))
	for _, f := range []figure{
		{Name: "  from the go to the program's first line", Measured: millis(at(y.line, 50))},
		{Name: "  from there to its end", Measured: millis(at(y.tail, 50))},
	} {
		f.Unit = "ms"
		all = append(all, f.ratioTo(p50, "the whole run"))
	}
	return all
}

// runInto runs spec and takes it into s.
func (b *bench) runInto(s *split, t runner, spec sandbox.Spec) (*sandbox.Result, error) {
	from := time.Now()
	res, err := t.Run(b.ctx, spec)
	if err == nil {
		s.add(res, from, time.Since(from))
	}
	return res, err
}

// runner runs code.
type runner interface {
	Run(context.Context, sandbox.Spec) (*sandbox.Result, error)
}
