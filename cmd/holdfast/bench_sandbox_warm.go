package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// parkedHere is how many interpreters wait while the warm path is measured.
const parkedHere = 8

// warmRuns measures a Python program that runs in an interpreter that waited, in
// turns with the very same interpreter alone and in bubblewrap; and what runs
// cost when more come than wait.
func (b *bench) warmRuns() (all []figure, err error) {
	t, err := process.Open(b.ctx, process.Config{Dir: filepath.Join(b.dir, "sandbox"), Secret: func(string) bool { return false }, Parked: parkedHere})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	w := &warmBench{bench: b, t: t, paths: map[sandbox.Path][]time.Duration{}}
	for i := range 5 {
		if err := w.run(i); err != nil {
			return nil, err
		}
	}
	for _, measure := range []func() ([]figure, error){w.hits, w.exhausted, w.sustained, w.memory} {
		list, err := measure()
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

type warmBench struct {
	*bench
	t *process.Tier

	mu    sync.Mutex
	paths map[sandbox.Path][]time.Duration // how long runs took that came by each
}

func (w *warmBench) run(i int) error {
	from := time.Now()
	res, err := w.t.Run(w.ctx, sandbox.Spec{ID: fmt.Sprintf("bench-%d", i), Language: "python3", Code: []byte(hello), Need: w.sandboxed(i, "python3", hello).Need})
	took := time.Since(from)
	if err == nil && (res.ExitCode != 0 || string(res.Stdout) != "42\n") {
		err = fmt.Errorf("a run ended as %s, exit code %d: %s", res.State, res.ExitCode, clean(string(res.Stderr)))
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paths[res.Path] = append(w.paths[res.Path], took)
	return nil
}

// hits are runs that find an interpreter that waits.
func (w *warmBench) hits() ([]figure, error) {
	with, err := w.t.Beside(w.ctx, "python3")
	if err != nil {
		return nil, err
	}
	script := filepath.Join(w.dir, "warm", "main.py") // in a folder that bubblewrap binds
	if err := errors.Join(os.MkdirAll(filepath.Dir(script), 0o755), os.WriteFile(script, []byte(hello), 0o644)); err != nil {
		return nil, err
	}
	bare := &contender{name: "bare " + filepath.Base(with.Program), run: func(int) error {
		return w.timedOut(with.Env, with.Program, append(append([]string{}, with.Flags...), script)...)
	}}
	wrap := w.bubblewrap(with, script)
	clear(w.paths)
	for i := range w.rounds(200) {
		w.t.Settle(w.ctx)
		if err := w.run(i); err != nil {
			return nil, err
		}
		w.t.Settle(w.ctx)
		if err := w.inTurn(i, bare, wrap); err != nil {
			return nil, err
		}
	}
	took := w.paths[sandbox.PathParked]
	p50 := millis(at(took, 50))
	f := figure{Name: "parked python, p50", Measured: p50, Unit: "ms", Target: "<= 1 ms, <= 0.1 x", Note: fmt.Sprintf("p95 %s ms, p99 %s ms; %d of %d runs found one that waited", number(millis(at(took, 95))), number(millis(at(took, 99))), len(took), len(took)+len(w.paths[sandbox.PathCold]))}.ratioTo(millis(at(bare.took, 50)), bare.name)
	f.Met = p50 <= 1 && f.Ratio <= 0.1
	all := []figure{f}
	beside := figure{Name: "parked python beside bubblewrap, p50", Measured: p50, Unit: "ms", Target: "<= 1/30 x"}
	if wrap.why != "" {
		beside = figure{Name: "bubblewrap", Note: wrap.why}
	} else {
		beside = beside.ratioTo(millis(at(wrap.took, 50)), wrap.name)
		beside.Met = beside.Ratio <= 1.0/30
	}
	return append(all, beside), nil
}

// inTurn runs each once; only the first must not fail.
func (w *warmBench) inTurn(i int, list ...*contender) error {
	for n, c := range list {
		if c.why != "" {
			continue
		}
		from := time.Now()
		err := c.run(i)
		took := time.Since(from)
		switch {
		case err != nil && n == 0:
			return fmt.Errorf("%s: %w", c.name, err)
		case err != nil:
			c.why = clean(err.Error())
		default:
			c.took = append(c.took, took)
		}
	}
	return nil
}

// exhausted are runs that come when nothing waits any more, while the pool is
// filled again beside them.
func (w *warmBench) exhausted() ([]figure, error) {
	clear(w.paths)
	w.t.Settle(w.ctx)
	for i := range w.rounds(200) {
		if err := w.run(i); err != nil {
			return nil, err
		}
	}
	cold := w.paths[sandbox.PathCold]
	f := figure{Name: "python when none waits, one after the other, p50", Unit: "ms", Note: w.told()}
	if len(cold) > 0 {
		f.Measured = millis(at(cold, 50))
		f.Note += fmt.Sprintf("; p95 %s ms, p99 %s ms of those that were cold", number(millis(at(cold, 95))), number(millis(at(cold, 99))))
	}
	return []figure{f}, nil
}

func (w *warmBench) told() string {
	var words []string
	for _, p := range []sandbox.Path{sandbox.PathParked, sandbox.PathCold} {
		words = append(words, fmt.Sprintf("%d %s", len(w.paths[p]), p))
	}
	return strings.Join(words, ", ")
}

// sustained is how many full runs there are in a second and what they leave.
func (w *warmBench) sustained() ([]figure, error) {
	clear(w.paths)
	w.t.Settle(w.ctx)
	before := thingsOf(w.t.Trace())
	n := w.rounds(2000)
	each, err := w.together(w.run, 4, n)
	if err != nil {
		return nil, err
	}
	path := w.told()
	w.t.Settle(w.ctx)
	after := thingsOf(w.t.Trace())
	left := figure{Name: fmt.Sprintf("left behind by %d runs", n), Unit: "things", Target: "0"}
	var words []string
	for i, name := range counts {
		left.Measured += max(0, float64(after[i]-before[i]))
		words = append(words, fmt.Sprintf("%s %d before, %d after", name, before[i], after[i]))
	}
	left.Met, left.Note = left.Measured == 0, strings.Join(words, "; ")
	rate := figure{Name: "python, full runs per second and core, four at once", Measured: each / float64(runtime.NumCPU()), Unit: "/s", Target: ">= 150", Note: path}
	rate.Met = rate.Measured >= 150
	return []figure{rate, left}, nil
}

// memory is what one that waits has of its own: its init's and its workload's.
func (w *warmBench) memory() ([]figure, error) {
	w.t.Settle(w.ctx)
	launchers := children(os.Getpid())
	if len(launchers) != 1 {
		return nil, fmt.Errorf("there are %d launchers", len(launchers))
	}
	own, n := 0.0, 0
	for _, init := range children(launchers[0]) {
		for _, workload := range children(init) {
			n++
			for _, pid := range []int{init, workload} {
				b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
				if err != nil {
					return []figure{{Name: "memory of one that waits", Note: clean(err.Error())}}, nil
				}
				own += field(string(b), "Private_Dirty:") + field(string(b), "Private_Clean:")
			}
		}
	}
	if n == 0 {
		return nil, errors.New("none waits")
	}
	f := figure{Name: "memory of its own, of one that waits", Measured: own / float64(n), Unit: "MB", Target: "<= 3 MB", Note: fmt.Sprintf("private pages of init and interpreter, mean of %d", n)}
	f.Met = f.Measured <= 3
	return []figure{f}, nil
}
