package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// parkedHere is how many interpreters wait while the warm path is measured.
const parkedHere = 8

// paths are the ways of a run, the quickest first.
func paths() []posture.Path {
	return []posture.Path{posture.PathParked, posture.PathForked, posture.PathCold}
}

// measureWarm measures a Python program that runs in an interpreter that waited, in
// turns with the very same interpreter alone and in bubblewrap; what runs cost
// when more come than wait; how many there are in a second; and what one that
// waits has of its own.
func measureWarm(b *measure.Run) ([]measure.Figure, error) {
	return withWarm(b, func(w *warmBench) (all []measure.Figure, err error) {
		for _, measure := range []func() ([]measure.Figure, error){w.hits, w.depleted, w.sustained, w.memory} {
			list, err := measure()
			if err != nil {
				return nil, err
			}
			all = append(all, list...)
		}
		return all, nil
	})
}

type warmBench struct {
	*measure.Run
	t *process.Tier
	// clocked lets the programs print the time at their first line.
	clocked bool

	mu   sync.Mutex
	ways map[posture.Path]*way
	used time.Duration // processor time of the runs, by their results: of their users
	sys  time.Duration // and of the kernel for them
}

// way is what runs came to that were served by one path.
type way struct {
	took  []time.Duration
	split *split
	// line is how long it took from the go to the program's first line, and tail
	// from there to its end, where programs say so.
	line, tail []time.Duration
}

// clock is a program that says when it began.
const clock = "import time\nprint(time.monotonic_ns())\n"

// withWarm calls do with a tier in which interpreters wait.
func withWarm(b *measure.Run, do func(*warmBench) ([]measure.Figure, error)) (_ []measure.Figure, err error) {
	t, err := process.Open(b.Ctx, process.Config{Dir: filepath.Join(b.Dir, "sandbox"), Secret: func(string) bool { return false }, Parked: parkedHere})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	w := &warmBench{Run: b, t: t}
	w.forget()
	for i := range 5 {
		if err := w.run(i); err != nil {
			return nil, err
		}
	}
	return do(w)
}

// forget begins anew.
func (w *warmBench) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ways, w.used, w.sys = map[posture.Path]*way{}, 0, 0
}

// way is what was seen of a path, which may be nothing.
func (w *warmBench) way(p posture.Path) *way {
	if w.ways[p] == nil {
		w.ways[p] = &way{split: newSplit()}
	}
	return w.ways[p]
}

func (w *warmBench) run(i int) error { return w.runWith(i, nil) }

func (w *warmBench) runWith(i int, env map[string]string) error {
	code := hello
	if w.clocked {
		code = clock
	}
	from := time.Now()
	res, err := w.t.Run(w.Ctx, sandbox.Spec{ID: fmt.Sprintf("bench-%d", i), Language: "python3", Code: []byte(code), Environment: env, Need: newSpec(w.Run, i, "python3", code).Need})
	took := time.Since(from)
	if err == nil && (res.ExitCode != 0 || !w.clocked && string(res.Stdout) != "42\n") {
		err = fmt.Errorf("a run ended as %s, exit code %d: %s", res.State, res.ExitCode, excerpt.Printable(string(res.Stderr)))
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	y := w.way(res.Path)
	y.took = append(y.took, took)
	y.split.add(res, from, took)
	w.used, w.sys = w.used+res.UserTime, w.sys+res.SystemTime
	if w.clocked {
		return y.said(res)
	}
	return nil
}

// said takes in what a program says of when it began.
func (y *way) said(res *posture.Result) error {
	ns, err := strconv.ParseInt(strings.TrimSpace(string(res.Stdout)), 10, 64)
	if err != nil {
		return fmt.Errorf("a run did not say when it began: %q", excerpt.Printable(string(res.Stdout)))
	}
	began, ended := reached(res.States, posture.Executing), reached(res.States, res.State)
	if !began.IsZero() && !ended.IsZero() {
		y.line = append(y.line, time.Duration(ns-monotonic(began)))
		y.tail = append(y.tail, time.Duration(monotonic(ended)-ns))
	}
	return nil
}

// hit runs so often, each time when all wait who should, and does something else
// behind it, when they do again.
func (w *warmBench) hit(rounds int, between func() error) error {
	w.forget()
	for i := range rounds {
		w.t.Settle(w.Ctx)
		if err := w.run(i); err != nil {
			return err
		}
		w.t.Settle(w.Ctx)
		if err := between(); err != nil {
			return err
		}
	}
	return nil
}

// deplete runs one after the other without a pause, in so many rounds of three
// times as many as wait, while the pool is filled again beside them.
func (w *warmBench) deplete(rounds int) error {
	w.forget()
	for range rounds {
		w.t.Settle(w.Ctx)
		for i := range 3 * parkedHere {
			if err := w.run(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// startsEarly is read by an interpreter only as it starts: a request that sets it
// is cold.
const startsEarly = "TZ"

// hits are runs that find an interpreter that waits, and beside them one that
// cannot have one.
func (w *warmBench) hits() ([]measure.Figure, error) {
	with, err := w.t.Beside(w.Ctx, "python3")
	if err != nil {
		return nil, err
	}
	script := filepath.Join(w.Dir, "warm", "main.py") // in a folder that bubblewrap binds
	if err := errors.Join(os.MkdirAll(filepath.Dir(script), 0o755), os.WriteFile(script, []byte(hello), 0o644)); err != nil {
		return nil, err
	}
	bare := &contender{name: "bare " + filepath.Base(with.Program), run: func(int) error {
		return timedOut(w.Run, with.Env, with.Program, append(append([]string{}, with.Flags...), script)...)
	}}
	cold := &contender{name: "cold", run: func(i int) error { return w.runWith(i, map[string]string{startsEarly: "UTC0"}) }}
	wrap := newBubblewrap(w.Run, with, script)
	i := 0
	err = w.hit(w.Rounds(200), func() error { i++; return w.inTurn(i, bare, wrap, cold) })
	if err != nil {
		return nil, err
	}
	return w.hitFigures(bare, wrap), nil
}

func (w *warmBench) hitFigures(bare, wrap *contender) []measure.Figure {
	parked, cold := w.way(posture.PathParked), w.way(posture.PathCold)
	p50, least := measure.Millis(measure.Percentile(parked.took, 50)), measure.Millis(measure.Percentile(bare.took, 50))
	f := measure.Figure{Name: "parked python, p50", Measured: p50, Unit: "ms", Target: "<= 1 ms, <= 0.1 x", Limits: parked.split.parts(), Paths: w.counted(),
		Note: fmt.Sprintf("%s; %d of %d runs found one that waited", tails(parked.took), len(parked.took), len(bare.took))}.RatioTo(least, bare.name)
	f.Met = p50 <= 1 && f.Ratio <= 0.1 && len(parked.took) > 0
	beside := measure.Figure{Name: "parked python beside bubblewrap, p50", Measured: p50, Unit: "ms", Target: "<= 1/30 x"}
	if wrap.why != "" {
		beside = measure.Figure{Name: "bubblewrap", Note: wrap.why}
	} else {
		beside = beside.RatioTo(measure.Millis(measure.Percentile(wrap.took, 50)), wrap.name)
		beside.Met = beside.Ratio <= 1.0/30 && len(parked.took) > 0
		beside.Limits = parked.split.parts()
	}
	started := measure.Figure{Name: "python that cannot be had parked, cold, p50", Measured: measure.Millis(measure.Percentile(cold.took, 50)), Unit: "ms",
		Limits: cold.split.parts(), Note: tails(cold.took)}.RatioTo(least, bare.name)
	if len(cold.took) == 0 {
		started = measure.Figure{Name: "cold python", Note: "there was none: " + w.told()}
	}
	return []measure.Figure{f, beside, started}
}

// tails are the slower of some.
func tails(took []time.Duration) string {
	return fmt.Sprintf("p95 %s ms, p99 %s ms", measure.Number(measure.Millis(measure.Percentile(took, 95))), measure.Number(measure.Millis(measure.Percentile(took, 99))))
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
			c.why = excerpt.Printable(err.Error())
		default:
			c.took = append(c.took, took)
		}
	}
	return nil
}

// depleted are runs that come when nothing waits any more, while the pool is
// filled again beside them: by each way that they came.
func (w *warmBench) depleted() ([]measure.Figure, error) {
	if err := w.deplete(w.Rounds(10)); err != nil {
		return nil, err
	}
	var all []measure.Figure
	for _, p := range paths() {
		if y := w.way(p); p != posture.PathParked && len(y.took) > 0 {
			all = append(all, measure.Figure{Name: "python when none waits, one after the other, " + string(p) + ", p50", Measured: measure.Millis(measure.Percentile(y.took, 50)), Unit: "ms",
				Limits: y.split.parts(), Paths: w.counted(), Note: tails(y.took) + "; " + w.told()})
		}
	}
	if len(all) == 0 {
		all = []measure.Figure{{Name: "python when none waits", Note: "there was always one: " + w.told()}}
	}
	return all, nil
}

// counted is how many runs came by each path.
func (w *warmBench) counted() map[string]int {
	n := map[string]int{}
	for p, y := range w.ways {
		if len(y.took) > 0 {
			n[string(p)] = len(y.took)
		}
	}
	return n
}

// told says how many runs came by each path.
func (w *warmBench) told() string {
	var words []string
	for _, p := range paths() {
		words = append(words, fmt.Sprintf("%d %s", len(w.way(p).took), p))
	}
	return strings.Join(words, ", ")
}
