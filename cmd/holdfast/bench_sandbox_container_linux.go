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
// in turns with the runtime alone on the same bundle. Where no container runs it
// says why.
func (b *bench) containerRuns() (all []figure, err error) {
	err = b.withTier("python3", hello, func(t *process.Tier, _ func(int) error) (err error) {
		c, err := container.Open(b.ctx, container.Config{Dir: filepath.Join(b.dir, "container"), Programs: t, Secret: func(string) bool { return false }})
		if err != nil {
			all = []figure{{Name: "container, python", Note: clean(err.Error())}}
			return nil
		}
		defer func() { err = errors.Join(err, c.Close()) }()
		all, err = b.besideRuntime(c)
		return err
	})
	return all, err
}

func (b *bench) besideRuntime(c *container.Tier) ([]figure, error) {
	spec := func(i int) sandbox.Spec {
		return sandbox.Spec{ID: fmt.Sprintf("bench-%d", i), Language: "python3", Code: []byte(hello), Need: c.Posture().Up}
	}
	var alone []time.Duration
	ours := &contender{name: "container", run: func(i int) error {
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
	if err := b.inTurns([]*contender{ours, bare}, b.rounds(100)); err != nil {
		return nil, err
	}
	f := figure{Name: "container, python, p50", Measured: millis(at(ours.took, 50)), Unit: "ms", Target: "<= 1.2 x"}.ratioTo(millis(at(alone, 50)), bare.name)
	f.Met = f.Ratio <= 1.2
	slow := figure{Name: "container, python, p95", Measured: millis(at(ours.took, 95)), Unit: "ms"}.ratioTo(millis(at(alone, 95)), bare.name)
	return []figure{f, slow}, nil
}
