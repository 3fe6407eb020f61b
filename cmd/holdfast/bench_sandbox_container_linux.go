package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// containerRuns measures a Python program in a container, from request to result,
// in turns with the runtime alone on the same bundle: of the first runtime that
// works, and of gVisor's. Where no container runs it says why.
func (b *bench) containerRuns() (all []figure, err error) {
	err = b.withTier("python3", hello, func(t *process.Tier, _ func(int) error) error {
		for _, c := range []struct {
			name, runtime string
			rounds        int
		}{{"container", "", 100}, {"gvisor", "runsc", 20}} {
			list, err := b.contained(t, c.name, c.runtime, c.rounds)
			if err != nil {
				return err
			}
			all = append(all, list...)
		}
		return nil
	})
	return all, err
}

// contained measures one runtime.
func (b *bench) contained(t *process.Tier, name, runtime string, rounds int) (all []figure, err error) {
	c, err := container.Open(b.ctx, container.Config{Dir: filepath.Join(b.dir, name), Runtime: runtime, Programs: t, Secret: func(string) bool { return false }})
	if err != nil {
		return []figure{{Name: name + ", python", Note: clean(err.Error())}}, nil
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return b.besideRuntime(c, name, b.rounds(rounds))
}

func (b *bench) besideRuntime(c *container.Tier, name string, rounds int) ([]figure, error) {
	spec := func(i int) sandbox.Spec {
		return sandbox.Spec{ID: fmt.Sprintf("bench-%d", i), Language: "python3", Code: []byte(hello), Need: c.Posture().Up}
	}
	var alone []time.Duration
	ours := &contender{name: name, run: func(i int) error {
		res, err := c.Run(b.ctx, spec(i))
		if err == nil && string(res.Stdout) != "42\n" {
			err = fmt.Errorf("a run ended as %s: %s", res.State, clean(string(res.Stderr)))
		}
		return err
	}}
	bare := &contender{name: c.Runtime() + " alone", run: func(i int) error {
		took, err := c.Bare(b.ctx, spec(i))
		if i > 0 {
			alone = append(alone, took) // not what Holdfast does for it
		}
		return err
	}}
	if err := b.inTurns([]*contender{ours, bare}, rounds); err != nil {
		return nil, err
	}
	f := figure{Name: name + ", python, p50", Measured: millis(at(ours.took, 50)), Unit: "ms", Target: "<= 1.2 x"}.ratioTo(millis(at(alone, 50)), bare.name)
	f.Met = f.Ratio <= 1.2
	slow := figure{Name: name + ", python, p95", Measured: millis(at(ours.took, 95)), Unit: "ms"}.ratioTo(millis(at(alone, 95)), bare.name)
	return []figure{f, slow}, nil
}
