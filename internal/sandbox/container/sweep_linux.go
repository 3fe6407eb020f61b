package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/leaf/procstat"
)

// startTime is when a process started, in the kernel's ticks since it booted.
func startTime(pid int) (string, error) {
	fields, err := procstat.ReadFields("/proc", strconv.Itoa(pid))
	if err != nil {
		return "", err
	}
	if len(fields) < 20 {
		return "", errors.New("/proc says no start time")
	}
	return fields[19], nil // field 22 of proc_pid_stat(5)
}

// alive says whether whoever made a name (number, start, ...) is a process here.
// A name that is none of ours is left alone.
func alive(name string) bool {
	parts := strings.SplitN(name, "-", 3)
	if len(parts) < 3 {
		return true
	}
	pid, err := strconv.Atoi(parts[0])
	if _, bad := strconv.ParseUint(parts[1], 10, 64); err != nil || bad != nil || pid <= 0 {
		return true
	}
	start, err := startTime(pid)
	return err == nil && start == parts[1]
}

// runName is a run's name: none begins another one.
func runName(tier string, n uint64) string { return fmt.Sprintf("%s-%012d", tier, n) }

// dead says that nobody alive made a name.
func dead(name string) bool { return !alive(name) }

// of says of names whether they are of the tier that is called so, or of its runs.
func of(tier string) func(name string) bool {
	return func(name string) bool { return name == tier || strings.HasPrefix(name, tier+"-") }
}

// estate is what a tier leaves behind where its Holdfast is killed.
type estate struct {
	dir     string // the tier's
	runtime runtime
	groups  groups
}

// sweep takes away what those left whose names are theirs: containers with what
// still runs in them, control groups, folders. It says whether there was any.
func (e estate) sweep(theirs func(name string) bool) (found bool, err error) {
	runs := filepath.Join(e.dir, "runs")
	entries, err := os.ReadDir(runs)
	errs := []error{err}
	groups := e.groups.siblings(theirs)
	for _, d := range groups {
		killBelow(d)
	}
	for _, run := range entries {
		if name := run.Name(); theirs(name) {
			found = true
			errs = append(errs, e.runtime.remove(name), e.runtime.forget(name), discard(filepath.Join(runs, name)))
		}
	}
	for _, d := range groups {
		errs = append(errs, removeGroup(d, soon()))
	}
	return found || len(groups) > 0, errors.Join(errs...)
}
