package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// forbidden says what time it is and makes a call that ends it.
const forbidden = "import os, time\nprint(time.monotonic_ns(), flush=True)\nos.execv('/usr/bin/x', ['x'])\n"

// measureViolations measures from the forbidden call to the death of all of the run,
// and whether each is named.
func measureViolations(b *measure.Run) (all []measure.Figure, err error) {
	err = withTier(b, "python3", hello, func(t *process.Tier, _ func(int) error) error {
		n, named := 1000, 0
		if b.Short {
			n = 100
		}
		var died, ends []time.Duration
		for i := range n {
			res, err := t.Run(b.Ctx, newSpec(b, i, "python3", forbidden))
			if err != nil {
				return err
			}
			if res.State == posture.SyscallBlocked && res.Call != nil && res.Call.Name == "execve" {
				named++
			}
			at, err := strconv.ParseInt(strings.TrimSpace(string(res.Stdout)), 10, 64)
			if err != nil {
				return fmt.Errorf("a run did not say when it made the call: %q", excerpt.Printable(string(res.Stdout)))
			}
			died, ends = append(died, time.Duration(monotonic(res.Gone)-at)), append(ends, stageOf(res, "end"))
		}
		f := measure.Figure{Name: "violation to death, p50", Measured: measure.Millis(measure.Percentile(died, 50)), Unit: "ms", Target: "<= 1 ms",
			Note: fmt.Sprintf("an upper bound: from before the program prints the time until its whole namespace is gone; p95 %s ms, p99 %s ms", measure.Number(measure.Millis(measure.Percentile(died, 95))), measure.Number(measure.Millis(measure.Percentile(died, 99))))}
		f.Met = f.Measured <= 1
		end := measure.Millis(measure.Percentile(ends, 50))
		f.Limits = measure.PartsOf("ms", map[string]float64{"the end of its namespace": end, "the call's way to Holdfast, and the death's": f.Measured - end})
		all = append(all, f, measure.Figure{Name: fmt.Sprintf("violations named, of %d", n), Measured: float64(named), Unit: "named", Target: strconv.Itoa(n), Met: named == n})
		return nil
	})
	return all, err
}

// stageOf is how long a stage of a run took, 0 if it had none.
func stageOf(res *posture.Result, name string) time.Duration {
	for _, s := range res.Stages {
		if s.Name == name {
			return s.Took
		}
	}
	return 0
}

// counts names what thingsOf returns.
var counts = [...]string{"processes", "descriptors", "mounts", "control groups", "namespaces", "files"}

func thingsOf(t process.Trace) [len(counts)]int {
	return [...]int{t.Processes, t.Descriptors, t.Mounts, t.Groups, t.Namespaces, t.Files}
}

// measureLauncher is what a launcher, and each that waits for a request, has in
// memory of its own.
func measureLauncher(b *measure.Run) (all []measure.Figure, err error) {
	err = withTier(b, "python3", hello, func(t *process.Tier, _ func(int) error) error {
		t.Settle(b.Ctx)
		launchers := children(os.Getpid())
		if len(launchers) != 1 {
			return fmt.Errorf("there are %d launchers", len(launchers))
		}
		f, err := memoryOf("launcher", launchers)
		if err != nil {
			return err
		}
		seats, err := memoryOf("a run's first process, waiting", children(launchers[0]))
		if err != nil {
			seats.Unit, seats.Note = "", err.Error()
		}
		all = append(all, f, seats)
		return nil
	})
	return all, err
}

// memoryOf is the mean proportional share of memory of some processes.
func memoryOf(name string, pids []int) (measure.Figure, error) {
	f := measure.Figure{Name: name, Unit: "MB shared out"}
	if len(pids) == 0 {
		return f, errors.New("there is none")
	}
	own := 0.0
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return f, err
		}
		f.Measured += field(string(b), "Pss:") / float64(len(pids))
		own += field(string(b), "Private_Dirty:") / float64(len(pids))
	}
	f.Note = fmt.Sprintf("%s MB are its own and no other's", measure.Number(own))
	return f, nil
}

// field is a line of kilobytes, in MB of a million bytes.
func field(text, name string) float64 {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			kb, _ := strconv.ParseFloat(f[1], 64) // the kernel writes numbers
			return kb * 1024 / 1e6
		}
	}
	return 0
}

// children are the processes that a process started.
func children(pid int) []int {
	var list []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		b, _ := os.ReadFile(task) // it may have ended
		for _, f := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				list = append(list, n)
			}
		}
	}
	slices.Sort(list)
	return list
}
