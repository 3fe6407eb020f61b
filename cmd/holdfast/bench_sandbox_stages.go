package main

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// ahead are the stages that stand before a request is there.
var ahead = []string{"identity", "scratch"}

// stagesOf shows where the time of a run goes: of a Python program, and of one
// that makes a forbidden call.
func (b *bench) stagesOf() (all []figure, err error) {
	err = b.withTier("python3", hello, func(t *process.Tier, _ func(int) error) error {
		for _, c := range []struct{ what, code string }{{"cold python", hello}, {"a violation", forbidden}} {
			list, err := b.stageFigures(t, c.what, c.code)
			if err != nil {
				return err
			}
			all = append(all, list...)
		}
		return nil
	})
	return all, err
}

func (b *bench) stageFigures(t runner, what, code string) ([]figure, error) {
	took, order := map[string][]time.Duration{}, []string{}
	var whole, rest []time.Duration
	for i := range b.rounds(200) {
		res, err := t.Run(b.ctx, b.sandboxed(i, "python3", code))
		if err != nil {
			return nil, err
		}
		other := res.WallTime
		for _, s := range res.Stages {
			if took[s.Name] == nil {
				order = append(order, s.Name)
			}
			took[s.Name] = append(took[s.Name], s.Took)
			if !slices.Contains(ahead, s.Name) {
				other -= s.Took
			}
		}
		whole, rest = append(whole, res.WallTime), append(rest, other)
	}
	p50 := millis(at(whole, 50))
	all := []figure{{Name: what + ", the whole run", Measured: p50, Unit: "ms"}}
	add := func(name string, list []time.Duration) {
		all = append(all, figure{Name: "  " + name, Measured: millis(at(list, 50)), Unit: "ms"}.ratioTo(p50, "the whole run"))
	}
	for _, name := range order {
		if slices.Contains(ahead, name) {
			add(name+" (ahead of it)", took[name])
		} else {
			add(name, took[name])
		}
	}
	add("frames and waiting", rest)
	return all, nil
}

// runner runs code.
type runner interface {
	Run(context.Context, sandbox.Spec) (*sandbox.Result, error)
}
