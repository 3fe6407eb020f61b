// Package sandbox measures untrusted code, beside other sandboxes.
package sandbox

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// Subject returns what the benchmark of that name measures.
func Subject() *measure.Subject {
	runs := new(int)
	list := []measure.Measurement{
		{Name: "cold", Do: measureCold},
		{Name: "warm", Do: measureWarm},
		{Name: "stages", Do: measureStages},
		{Name: "violation", Do: measureViolations},
		{Name: "grpc", Do: measureGRPC},
		{Name: "soak", Do: func(b *measure.Run) ([]measure.Figure, error) { return measureSoak(b, *runs) }},
		{Name: "launcher", Do: measureLauncher},
		{Name: "workspace", Do: measureWorkspace},
		{Name: "container", Do: measureContainer},
		{Name: "vm", Do: measureVM},
	}
	return &measure.Subject{Name: "sandbox", About: "untrusted code, beside other sandboxes", Measurements: list, Help: `
Measure a Python program in the sandbox, from its request to its result, in turns
with the very same interpreter alone and, where they are installed, bubblewrap,
runc, crun, runsc and docker; the same where an interpreter waits for it, through
the Go API and as a crossing over gRPC; what becomes of more requests than there
is room for; how many runs there are in a second; how soon a forbidden call ends a
program, and whether it is named; what is left behind by 10 000 runs; what memory
waits; what ` + "`holdfast run`" + ` adds to a program's start, beside bubblewrap; a container
beside its runtime alone, gVisor's too; and a guest's restore beside QEMU's own,
with the memory that ten of them share (their kernel is the one of your
configuration, sandbox: vm, or Debian's in /boot).
Under the table stands what each figure is limited by, as it was measured. It
takes about three minutes, uses a directory of its own that it takes away again,
and never touches your state.

    go run -C bench . sandbox [flags]

    --only NAME     ` + measure.ListNames(list) + `
    --runs N        how many runs soak has; 10000 if absent
    --dir DIR       where its files stand
    --short         a fifth of the rounds or less, for a first look

A figure that misses its target is shown as such, and the exit code stays 0, but
that of soak: where runs have left anything behind it is 1.

    $ go run -C bench . sandbox --only soak --runs 100000
    $ go run -C bench . sandbox --only cold
`, AddFlags: func(fs *flag.FlagSet) { fs.IntVar(runs, "runs", 0, "") }, CheckFlags: func() error {
		if *runs < 0 {
			return measure.NewUsageError("leave it out for 10000", "--runs %d is none", *runs)
		}
		return nil
	}}
}

// hello is what every sandbox runs.
const hello = "print(6 * 7)\n"

// withTier calls do with a tier of its own that has everything warm.
func withTier(b *measure.Run, lang, code string, do func(*process.Tier, func(int) error) error) (err error) {
	t, err := process.Open(b.Ctx, process.Config{Dir: filepath.Join(b.Dir, "sandbox"), Secret: func(string) bool { return false }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	run := func(i int) error {
		res, err := t.Run(b.Ctx, newSpec(b, i, lang, code))
		if err == nil && res.ExitCode != 0 {
			err = fmt.Errorf("a run ended as %s, exit code %d: %s", res.State, res.ExitCode, excerpt.Printable(string(res.Stderr)))
		}
		return err
	}
	for i := range 5 {
		if err := run(i); err != nil {
			return err
		}
	}
	return do(t, run)
}

// newSpec is a request; it needs only what stands without a right to control
// groups, so that the figures are had without one too.
func newSpec(b *measure.Run, i int, lang, code string) sandbox.Spec {
	return sandbox.Spec{ID: fmt.Sprintf("bench-%d", i), Language: lang, Code: []byte(code), Timeout: sandbox.MaxTimeout,
		CPUPeriod: sandbox.DefaultPeriod, CPUQuota: 2 * sandbox.DefaultPeriod,
		Need: []posture.Wall{posture.WallPID, posture.WallNet, posture.WallMount, posture.WallSeccomp}}
}

// contender is one way to run the program.
type contender struct {
	name string
	run  func(int) error
	took []time.Duration
	why  string // it is not measured
}

// measureCold measures a Python program from request to result, in turns with the
// very same interpreter alone and in other sandboxes.
func measureCold(b *measure.Run) (all []measure.Figure, err error) {
	err = withTier(b, "python3", hello, func(t *process.Tier, run func(int) error) error {
		list, err := contenders(b, t)
		if err != nil {
			return err
		}
		s := newSplit()
		ours := &contender{name: "sandbox", run: func(i int) error {
			res, err := runInto(b, s, t, newSpec(b, i, "python3", hello))
			if err == nil && string(res.Stdout) != "42\n" {
				err = fmt.Errorf("a run ended as %s: %s", res.State, excerpt.Printable(string(res.Stderr)))
			}
			return err
		}}
		list = append([]*contender{ours}, list...)
		if err := inTurns(b, list, b.Rounds(200)); err != nil {
			return err
		}
		all = coldFigures(list)
		all[0].Limits = s.parts()
		two, err := runTogether(b, run, 2, b.Rounds(200))
		if err != nil {
			return err
		}
		alone := measure.Figure{Name: "cold python, runs per second, one at a time", Measured: runsPerSecond(list[0].took), Unit: "/s"}
		all = append(all, alone.RatioTo(runsPerSecond(list[1].took), list[1].name), measure.Figure{Name: "cold python, runs per second, two at once", Measured: two, Unit: "/s"}.RatioTo(alone.Measured, "one at a time"))
		return nil
	})
	return all, err
}

// inTurns runs each contender once in each round. One that fails is left out,
// and why is said; the first two must not.
func inTurns(b *measure.Run, list []*contender, rounds int) error {
	for i := range rounds + 1 {
		for n, c := range list {
			if c.why != "" {
				continue
			}
			from := time.Now()
			err := c.run(i)
			took := time.Since(from)
			switch {
			case err != nil && n < 2:
				return fmt.Errorf("%s: %w", c.name, err)
			case err != nil:
				c.why = excerpt.Printable(err.Error())
			case i > 0: // the first warms caches
				c.took = append(c.took, took)
			}
		}
	}
	return nil
}

func coldFigures(list []*contender) []measure.Figure {
	ours, bare := list[0], list[1]
	p50 := measure.Millis(measure.Percentile(bare.took, 50))
	f := measure.Figure{Name: "cold python, p50", Measured: measure.Millis(measure.Percentile(ours.took, 50)), Unit: "ms", Target: "<= 1.3 x"}.RatioTo(p50, bare.name)
	f.Met = f.Ratio <= 1.3
	all := []measure.Figure{f}
	for _, p := range []int{95, 99} {
		all = append(all, measure.Figure{Name: fmt.Sprintf("cold python, p%d", p), Measured: measure.Millis(measure.Percentile(ours.took, p)), Unit: "ms"}.RatioTo(measure.Millis(measure.Percentile(bare.took, p)), bare.name))
	}
	for _, c := range list[2:] {
		f := measure.Figure{Name: c.name + ", p50", Unit: "ms"}
		if c.why != "" || len(c.took) == 0 {
			f.Name, f.Unit, f.Note = c.name, "", c.why
			all = append(all, f)
			continue
		}
		f.Measured = measure.Millis(measure.Percentile(c.took, 50))
		f.Note = fmt.Sprintf("p95 %s ms, p99 %s ms, %s runs per second", measure.Number(measure.Millis(measure.Percentile(c.took, 95))), measure.Number(measure.Millis(measure.Percentile(c.took, 99))), measure.Number(runsPerSecond(c.took)))
		all = append(all, f.RatioTo(p50, bare.name))
	}
	return all
}

func runsPerSecond(took []time.Duration) float64 {
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	if sum == 0 {
		return 0
	}
	return float64(len(took)) / sum.Seconds()
}

// runTogether is how many runs per second n callers get at once.
func runTogether(b *measure.Run, run func(int) error, n, rounds int) (float64, error) {
	var wg sync.WaitGroup
	errs := make([]error, n)
	from := time.Now()
	for w := range n {
		wg.Go(func() {
			for i := range rounds / n {
				if errs[w] = run(i); errs[w] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(rounds/n*n) / time.Since(from).Seconds(), errors.Join(errs...)
}

// contenders are the same program by other means, the interpreter alone first.
func contenders(b *measure.Run, t *process.Tier) ([]*contender, error) {
	with, err := t.Beside(b.Ctx, "python3")
	if err != nil {
		return nil, err
	}
	script := filepath.Join(b.Dir, "code", "main.py") // in a folder that others bind
	if err := os.Mkdir(filepath.Dir(script), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(script, []byte(hello), 0o644); err != nil {
		return nil, err
	}
	bare := &contender{name: "bare " + filepath.Base(with.Program), run: func(int) error {
		return timedOut(b, with.Env, with.Program, append(append([]string{}, with.Flags...), script)...)
	}}
	list := []*contender{bare, newBubblewrap(b, with, script)}
	// They write to their root, and the sandbox's must stay as it is.
	root := filepath.Join(b.Dir, "root")
	if out, err := exec.CommandContext(b.Ctx, "cp", "-a", with.Root, root).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("copy the root: %w: %s", err, excerpt.Printable(string(out)))
	}
	with.Root = root
	for _, name := range []string{"runc", "crun", "runsc"} {
		list = append(list, newBundled(b, name, with, script, nil))
	}
	return append(list, newDocker(b, with, script)), nil
}

// timedOut runs a program with what it says thrown away, unless it fails.
func timedOut(b *measure.Run, env []string, program string, args ...string) error {
	ctx, cancel := context.WithTimeout(b.Ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	cmd.Dir = b.Dir
	// A pipe, and not the machine's /dev/null, which container runtimes (runsc) give
	// to their program's user with all that they are started with.
	cmd.Stdin = strings.NewReader("")
	out, err := cmd.CombinedOutput()
	if err == nil && string(out) != "42\n" {
		err = errors.New("it said something else")
	}
	if err != nil {
		return fmt.Errorf("%w: %.300s", err, out)
	}
	return nil
}
