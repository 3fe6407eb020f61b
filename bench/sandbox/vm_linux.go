package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/bench/internal/fixture"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/vm"
)

// measureVM measures a guest from nothing to its first reply, in turns with
// QEMU alone on the same template, a Python program in one from request to result,
// and what memory ten of them take. Where no guest runs it says why. What is inside of
// a run is measured by the benchmarks of package internal/sandbox/vm, with the kernel
// of its tests.
func measureVM(b *measure.Run) ([]measure.Figure, error) {
	whole, what, err := measureGuestRuns(b)
	if err != nil {
		return nil, err
	}
	if what == "" {
		return []measure.Figure{whole}, nil
	}
	const pkg = "./internal/sandbox/vm"
	restores, err := programs.RunGoBenchmark(b, pkg, "BenchmarkRestore", b.Rounds(40))
	if err != nil {
		return []measure.Figure{{Name: "guest, restored to its first reply", Note: excerpt.Printable(err.Error())}, whole}, nil
	}
	first := measure.Figure{Name: "guest, restored to its first reply, p50", Measured: restores["walls-ms"], Unit: "ms", Target: "<= 150 ms, 1.2 x", Note: what}.RatioTo(restores["bare-ms"], "QEMU alone")
	first.Met = first.Measured <= 150 && first.Ratio <= 1.2
	slow := measure.Figure{Name: "guest, restored to its first reply, p95", Measured: restores["walls-p95-ms"], Unit: "ms"}.RatioTo(restores["bare-p95-ms"], "QEMU alone")
	if whole.Unit != "" {
		whole = whole.RatioTo(first.Measured, "restored")
	}
	memory, err := programs.RunGoBenchmark(b, pkg, "BenchmarkTogether", 1)
	if err != nil {
		return nil, err
	}
	together := measure.Figure{Name: "ten guests, memory (Pss)", Measured: memory["pss-MB"], Unit: "MB"}.RatioTo(memory["rss-MB"], "added up (Rss)")
	return []measure.Figure{first, slow, whole, together}, nil
}

// measureGuestRuns measures a Python program in a guest. what is by what guests run, ""
// where none does.
func measureGuestRuns(b *measure.Run) (whole measure.Figure, what string, err error) {
	c := fixture.LoadSandboxConfig(b.Config).VM
	err = withTier(b, "python3", hello, func(t *process.Tier, _ func(int) error) (err error) {
		python, err := t.Beside(b.Ctx, "python3")
		if err != nil {
			return err
		}
		tier, err := vm.Open(vm.Config{Dir: filepath.Join(b.Dir, "vm"), Kernel: c.Kernel, QEMU: c.QEMU, MemoryMB: c.Memory, Secret: func(string) bool { return false }, Note: func(line string) { b.Say("%s", line) },
			Groups: t, Roots: func(context.Context) ([]string, error) { return []string{python.Root}, nil }})
		if err == nil {
			defer func() { err = errors.Join(err, tier.Close()) }()
			_, err = tier.Prepare(b.Ctx, newGuestSpec(0)) // which starts the template
		}
		if err != nil {
			whole = measure.Figure{Name: "guest", Note: excerpt.Printable(err.Error())}
			return nil
		}
		what = tier.Posture().Runtime
		whole, err = timeGuestRuns(b, tier)
		return err
	})
	return whole, what, err
}

// newGuestSpec is a request for a guest.
func newGuestSpec(i int) sandbox.Spec {
	return sandbox.Spec{ID: fmt.Sprintf("bench-%d", i), Language: "python3", Code: []byte(hello)}
}

func timeGuestRuns(b *measure.Run, t *vm.Tier) (measure.Figure, error) {
	run := &contender{name: "guest, python", run: func(i int) error {
		res, err := t.Run(b.Ctx, newGuestSpec(i))
		if err == nil && string(res.Stdout) != "42\n" {
			err = fmt.Errorf("a run ended as %s: %s", res.State, excerpt.Printable(string(res.Stderr)))
		}
		return err
	}}
	if err := inTurns(b, []*contender{run}, b.Rounds(40)); err != nil {
		return measure.Figure{}, err
	}
	return measure.Figure{Name: run.name + ", request to result, p50", Measured: measure.Millis(measure.Percentile(run.took, 50)), Unit: "ms"}, nil
}
