package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/vm"
)

// guestRestores measures a guest from nothing to its first reply, in turns with
// QEMU alone on the same template, a Python program in one from request to result,
// and what memory ten of them take. Where no guest runs it says why.
func (b *bench) guestRestores(c daemon.VMConfig) (all []figure, err error) {
	err = b.withTier("python3", hello, func(t *process.Tier, _ func(int) error) (err error) {
		python, err := t.Beside(b.ctx, "python3")
		if err != nil {
			return err
		}
		tier, err := vm.Open(vm.Config{Dir: filepath.Join(b.dir, "vm"), Kernel: c.Kernel, QEMU: c.QEMU, MemoryMB: c.Memory, Secret: func(string) bool { return false }, Note: func(line string) { b.say("%s", line) },
			Groups: t, Roots: func(context.Context) ([]string, error) { return []string{python.Root}, nil }})
		if err == nil {
			defer func() { err = errors.Join(err, tier.Close()) }()
			_, err = tier.Prepare(b.ctx, b.guested(0)) // which starts the template
		}
		if err != nil {
			all = []figure{{Name: "guest", Note: clean(err.Error())}}
			return nil
		}
		if all, err = b.besideQEMU(tier); err != nil {
			return err
		}
		together, err := b.tenGuests(tier)
		all = append(all, together)
		return err
	})
	return all, err
}

// guested is a request for a guest.
func (b *bench) guested(i int) sandbox.Spec {
	return sandbox.Spec{ID: fmt.Sprintf("bench-%d", i), Language: "python3", Code: []byte(hello)}
}

func (b *bench) besideQEMU(t *vm.Tier) ([]figure, error) {
	var walls, alone []time.Duration
	restore := func(bare bool, took *[]time.Duration) func(int) error {
		return func(i int) error {
			g, err := t.Try(b.ctx, bare)
			if err != nil {
				return err
			}
			g.Close()
			if i > 0 {
				*took = append(*took, g.Took) // not its end
			}
			return nil
		}
	}
	run := &contender{name: "guest, python", run: func(i int) error {
		res, err := t.Run(b.ctx, b.guested(i))
		if err == nil && string(res.Stdout) != "42\n" {
			err = fmt.Errorf("a run ended as %s: %s", res.State, clean(string(res.Stderr)))
		}
		return err
	}}
	if err := b.inTurns([]*contender{{name: "guest", run: restore(false, &walls)}, {name: "QEMU alone", run: restore(true, &alone)}, run}, b.rounds(40)); err != nil {
		return nil, err
	}
	what := t.Posture().Runtime
	first := figure{Name: "guest, restored to its first reply, p50", Measured: millis(at(walls, 50)), Unit: "ms", Target: "<= 150 ms, 1.2 x", Note: what}.ratioTo(millis(at(alone, 50)), "QEMU alone")
	first.Met = first.Measured <= 150 && first.Ratio <= 1.2
	slow := figure{Name: "guest, restored to its first reply, p95", Measured: millis(at(walls, 95)), Unit: "ms"}.ratioTo(millis(at(alone, 95)), "QEMU alone")
	whole := figure{Name: run.name, Note: run.why}
	if run.why == "" {
		whole = figure{Name: run.name + ", request to result, p50", Measured: millis(at(run.took, 50)), Unit: "ms"}.ratioTo(first.Measured, "restored")
	}
	return []figure{first, slow, whole}, nil
}

// tenGuests is what ten that work at once have of memory, each page counted once,
// beside what each has, added up.
func (b *bench) tenGuests(t *vm.Tier) (figure, error) {
	const guests = 10
	var all, share int64
	var list []*vm.Trial
	for range guests {
		g, err := t.Try(b.ctx, false)
		if err != nil {
			return figure{}, err
		}
		defer g.Close()
		list = append(list, g)
	}
	for _, g := range list {
		each, own, err := g.Memory()
		if err != nil {
			return figure{}, err
		}
		all, share = all+each, share+own
	}
	return figure{Name: "ten guests, memory (Pss)", Measured: float64(share) / (1 << 20), Unit: "MB"}.ratioTo(float64(all)/(1<<20), "added up (Rss)"), nil
}
