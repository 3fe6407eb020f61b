package container

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// groups are the hierarchies of control groups in which a runtime makes a
// container's; Holdfast makes one above it, which still has the figures when the
// runtime has taken its own away.
type groups struct {
	v2     string            // the mount of version 2, where memory is in it
	v1     map[string]string // mount by controller
	all    []string          // every mount: a runtime makes a group in each
	parent string            // this process's own, by its path in each
}

var controllers = []string{"memory", "cpu", "cpuacct", "pids"}

// findGroups reads where they are mounted. None is no error: an ordinary user's
// runtime makes none.
func findGroups(parent string) groups {
	g := groups{v1: map[string]string{}, parent: parent}
	b, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(b)) {
		before, after, _ := strings.Cut(line, " - ")
		head, tail := strings.Fields(before), strings.Fields(after)
		if len(head) < 5 || len(tail) < 3 {
			continue
		}
		if strings.HasPrefix(tail[0], "cgroup") {
			g.all = append(g.all, head[4])
		}
		switch tail[0] {
		case "cgroup":
			for _, c := range strings.Split(tail[2], ",") {
				if slices.Contains(controllers, c) && g.v1[c] == "" {
					g.v1[c] = head[4]
				}
			}
		case "cgroup2":
			if have, _ := os.ReadFile(filepath.Join(head[4], "cgroup.controllers")); strings.Contains(string(have), "memory") {
				g.v2 = head[4]
			}
		}
	}
	return g
}

func (g groups) mode() string {
	switch {
	case len(g.v1) > 0:
		return "v1"
	case g.v2 != "":
		return "v2"
	}
	return "none"
}

// dirs are a run's folders, one for each hierarchy.
func (g groups) dirs(run string) []string {
	var list []string
	for _, m := range g.all {
		if d := filepath.Join(m, g.parent, run); !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	return list
}

// make makes a run's folders where figures are read.
func (g groups) make(run string) error {
	for _, m := range append(slices.Collect(maps.Values(g.v1)), g.v2) {
		d := filepath.Join(m, g.parent, run)
		if m == "" || m == g.v2 && len(g.v1) > 0 {
			continue
		}
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// kill kills whatever is still in a run's group or below.
func (g groups) kill(run string) {
	for _, d := range g.dirs(run) {
		killBelow(d)
	}
}

func killBelow(dir string) {
	filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return nil
		}
		b, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for _, word := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 1 && pid != os.Getpid() {
				unix.Kill(pid, unix.SIGKILL)
			}
		}
		return nil
	})
}

// siblings are the folders of those Holdfasts whose names are theirs.
func (g groups) siblings(theirs func(name string) bool) []string {
	var list []string
	for _, m := range g.all {
		found, _ := filepath.Glob(filepath.Join(m, groupPrefix+"*"))
		for _, d := range found {
			if theirs(strings.TrimPrefix(filepath.Base(d), groupPrefix)) {
				list = append(list, d)
			}
		}
	}
	return list
}

// groupPrefix begins the name of a Holdfast's folder; its number and start follow.
const groupPrefix = "holdfast-oci-"

// soon is how long a group may stay busy after its last process died.
func soon() time.Time { return time.Now().Add(2 * time.Second) }

// remove takes a run's folders away, and tries for two seconds: the last process
// leaves a group a moment after it was reaped.
func (g groups) remove(run string) error {
	var errs []error
	for _, d := range g.dirs(run) {
		errs = append(errs, removeGroup(d, soon()))
	}
	return errors.Join(errs...)
}

func removeGroup(dir string, until time.Time) error {
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.IsDir() {
				if err := removeGroup(filepath.Join(dir, e.Name()), until); err != nil {
					return err
				}
			}
		}
		err := unix.Rmdir(dir)
		switch {
		case err == nil || err == unix.ENOENT:
			return nil
		case time.Now().After(until):
			return &os.PathError{Op: "rmdir", Path: dir, Err: err}
		}
		time.Sleep(wait)
	}
}

// close takes this process's own folders away.
func (g groups) close() {
	for _, d := range g.dirs("") {
		unix.Rmdir(d)
	}
}

// figures are what a run used; 0 is not known.
type figures struct {
	peak, faults, oom int64
	full              int64 // how often the limit was met
	user, system      time.Duration
}

// read reads a run's figures.
func (g groups) read(run string) figures {
	var f figures
	if len(g.v1) == 0 {
		d := filepath.Join(g.v2, g.parent, run)
		f.peak = number(filepath.Join(d, "memory.peak"))
		f.oom = field(filepath.Join(d, "memory.events"), "oom_kill")
		f.full = field(filepath.Join(d, "memory.events"), "max")
		f.faults = field(filepath.Join(d, "memory.stat"), "pgmajfault")
		f.user = time.Duration(field(filepath.Join(d, "cpu.stat"), "user_usec")) * time.Microsecond
		f.system = time.Duration(field(filepath.Join(d, "cpu.stat"), "system_usec")) * time.Microsecond
		return f
	}
	d := filepath.Join(g.v1["memory"], g.parent, run)
	f.peak = number(filepath.Join(d, "memory.max_usage_in_bytes"))
	f.faults = field(filepath.Join(d, "memory.stat"), "total_pgmajfault")
	d = filepath.Join(g.v1["cpuacct"], g.parent, run)
	f.user = time.Duration(number(filepath.Join(d, "cpuacct.usage_user")))
	f.system = time.Duration(number(filepath.Join(d, "cpuacct.usage_sys")))
	return f
}

func number(path string) int64 {
	b, _ := os.ReadFile(path)
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}

func field(path, name string) int64 {
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && key == name {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}

// held says which limits of the bundle's a process is not under, by what the
// kernel's files of its own group say, and why.
func (g groups) held(pid int, b bundle) map[string]string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return g.short(b, func(c string) string { return memberPath(string(text), c, g.v1[c] == "") })
}

// heldIn is held of whoever is in the bundle's group.
func (g groups) heldIn(b bundle) map[string]string {
	return g.short(b, func(c string) string {
		mount := g.v1[c]
		if mount == "" {
			mount = g.v2
		}
		if procs, _ := os.ReadFile(filepath.Join(mount, b.group, "cgroup.procs")); len(procs) == 0 {
			return "nobody in " + b.group
		}
		return b.group
	})
}

func (g groups) short(b bundle, place func(controller string) string) map[string]string {
	why := map[string]string{}
	for c, files := range map[string][2]string{"memory": {"memory.limit_in_bytes", "memory.max"}, "cpu": {"cpu.cfs_quota_us", "cpu.max"}, "pids": {"pids.max", "pids.max"}} {
		want := map[string]string{"memory": strconv.FormatInt(b.memory, 10), "cpu": strconv.FormatInt(b.quota.Microseconds(), 10), "pids": strconv.Itoa(maxPids)}[c]
		mount, file := g.v1[c], files[0]
		if mount == "" {
			mount, file = g.v2, files[1]
		}
		path := place(c)
		got, err := os.ReadFile(filepath.Join(mount, path, file))
		word, _, _ := strings.Cut(strings.TrimSpace(string(got)), " ")
		if err != nil || word != want || !strings.HasPrefix(path, b.group) {
			why[c] = fmt.Sprintf("the runtime put the container into %q, where %s is %q and not %s", path, file, word, want)
		}
	}
	return why
}

// memberPath is a process's group for a controller, from /proc/PID/cgroup.
func memberPath(text, controller string, v2 bool) string {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && (v2 && parts[0] == "0" || !v2 && slices.Contains(strings.Split(parts[1], ","), controller)) {
			return parts[2]
		}
	}
	return ""
}
