package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// sandboxMeasurements are what is measured of the sandbox; runs is how many the
// soak has, 0 for its own number, and guests are made of what c names.
func sandboxMeasurements(runs *int, c daemon.SandboxConfig) []measurement {
	return []measurement{
		{"cold", (*bench).coldRuns},
		{"warm", (*bench).warmRuns},
		{"stages", (*bench).stagesOf},
		{"violation", (*bench).violations},
		{"grpc", (*bench).overGRPC},
		{"soak", func(b *bench) ([]figure, error) { return b.soak(*runs) }},
		{"launcher", (*bench).launcherMemory},
		{"workspace", (*bench).workspaceStarts},
		{"container", (*bench).containerRuns},
		{"vm", func(b *bench) ([]figure, error) { return b.guestRestores(c.VM) }},
	}
}

func benchSandbox(a *app, args []string) error {
	fs := a.flags("bench sandbox")
	runs := fs.Int("runs", 0, "")
	c := daemon.SandboxConfig{}
	if _, l, err := a.loads(); err == nil {
		c = l.Config.Sandbox
	}
	return a.measure(fs, args, sandboxMeasurements(runs, c), func() (bool, error) {
		if *runs < 0 {
			return true, usage("leave it out for 10000", "--runs %d is none", *runs)
		}
		return false, nil
	})
}

// hello is what every sandbox runs.
const hello = "print(6 * 7)\n"

// withTier calls do with a tier of its own that has everything warm.
func (b *bench) withTier(lang, code string, do func(*process.Tier, func(int) error) error) (err error) {
	t, err := process.Open(b.ctx, process.Config{Dir: filepath.Join(b.dir, "sandbox"), Secret: func(string) bool { return false }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	run := func(i int) error {
		res, err := t.Run(b.ctx, b.sandboxed(i, lang, code))
		if err == nil && res.ExitCode != 0 {
			err = fmt.Errorf("a run ended as %s, exit code %d: %s", res.State, res.ExitCode, clean(string(res.Stderr)))
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

// sandboxed is a request; it needs only what stands without a right to control
// groups, so that the figures are had without one too.
func (b *bench) sandboxed(i int, lang, code string) sandbox.Spec {
	return sandbox.Spec{ID: fmt.Sprintf("bench-%d", i), Language: lang, Code: []byte(code), Timeout: sandbox.MaxTimeout,
		CPUPeriod: sandbox.DefaultPeriod, CPUQuota: 2 * sandbox.DefaultPeriod,
		Need: []sandbox.Wall{sandbox.WallPID, sandbox.WallNet, sandbox.WallMount, sandbox.WallSeccomp}}
}

// contender is one way to run the program.
type contender struct {
	name string
	run  func(int) error
	took []time.Duration
	why  string // it is not measured
}

// coldRuns measures a Python program from request to result, in turns with the
// very same interpreter alone and in other sandboxes.
func (b *bench) coldRuns() (all []figure, err error) {
	err = b.withTier("python3", hello, func(t *process.Tier, run func(int) error) error {
		list, err := b.contenders(t)
		if err != nil {
			return err
		}
		s := newSplit()
		ours := &contender{name: "sandbox", run: func(i int) error {
			res, err := b.runInto(s, t, b.sandboxed(i, "python3", hello))
			if err == nil && string(res.Stdout) != "42\n" {
				err = fmt.Errorf("a run ended as %s: %s", res.State, clean(string(res.Stderr)))
			}
			return err
		}}
		list = append([]*contender{ours}, list...)
		if err := b.inTurns(list, b.rounds(200)); err != nil {
			return err
		}
		all = coldFigures(list)
		all[0].Limits = s.parts()
		two, err := b.together(run, 2, b.rounds(200))
		if err != nil {
			return err
		}
		alone := figure{Name: "cold python, runs per second, one at a time", Measured: runsPerSecond(list[0].took), Unit: "/s"}
		all = append(all, alone.ratioTo(runsPerSecond(list[1].took), list[1].name), figure{Name: "cold python, runs per second, two at once", Measured: two, Unit: "/s"}.ratioTo(alone.Measured, "one at a time"))
		return nil
	})
	return all, err
}

// inTurns runs each contender once in each round. One that fails is left out,
// and why is said; the first two must not.
func (b *bench) inTurns(list []*contender, rounds int) error {
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
				c.why = clean(err.Error())
			case i > 0: // the first warms caches
				c.took = append(c.took, took)
			}
		}
	}
	return nil
}

func coldFigures(list []*contender) []figure {
	ours, bare := list[0], list[1]
	p50 := millis(at(bare.took, 50))
	f := figure{Name: "cold python, p50", Measured: millis(at(ours.took, 50)), Unit: "ms", Target: "<= 1.3 x"}.ratioTo(p50, bare.name)
	f.Met = f.Ratio <= 1.3
	all := []figure{f}
	for _, p := range []int{95, 99} {
		all = append(all, figure{Name: fmt.Sprintf("cold python, p%d", p), Measured: millis(at(ours.took, p)), Unit: "ms"}.ratioTo(millis(at(bare.took, p)), bare.name))
	}
	for _, c := range list[2:] {
		f := figure{Name: c.name + ", p50", Unit: "ms"}
		if c.why != "" || len(c.took) == 0 {
			f.Name, f.Unit, f.Note = c.name, "", c.why
			all = append(all, f)
			continue
		}
		f.Measured = millis(at(c.took, 50))
		f.Note = fmt.Sprintf("p95 %s ms, p99 %s ms, %s runs per second", number(millis(at(c.took, 95))), number(millis(at(c.took, 99))), number(runsPerSecond(c.took)))
		all = append(all, f.ratioTo(p50, bare.name))
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

// together is how many runs per second n callers get at once.
func (b *bench) together(run func(int) error, n, rounds int) (float64, error) {
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
func (b *bench) contenders(t *process.Tier) ([]*contender, error) {
	with, err := t.Beside(b.ctx, "python3")
	if err != nil {
		return nil, err
	}
	script := filepath.Join(b.dir, "code", "main.py") // in a folder that others bind
	if err := os.Mkdir(filepath.Dir(script), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(script, []byte(hello), 0o644); err != nil {
		return nil, err
	}
	bare := &contender{name: "bare " + filepath.Base(with.Program), run: func(int) error {
		return b.timedOut(with.Env, with.Program, append(append([]string{}, with.Flags...), script)...)
	}}
	list := []*contender{bare, b.bubblewrap(with, script)}
	// They write to their root, and the sandbox's must stay as it is.
	root := filepath.Join(b.dir, "root")
	if out, err := exec.CommandContext(b.ctx, "cp", "-a", with.Root, root).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("copy the root: %w: %s", err, clean(string(out)))
	}
	with.Root = root
	for _, name := range []string{"runc", "crun", "runsc"} {
		list = append(list, b.bundled(name, with, script))
	}
	return append(list, b.docker(with, script)), nil
}

// timedOut runs a program with what it says thrown away, unless it fails.
func (b *bench) timedOut(env []string, program string, args ...string) error {
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	cmd.Dir = b.dir
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
