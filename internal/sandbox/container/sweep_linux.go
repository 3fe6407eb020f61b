package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// startTime is when a process started, in the kernel's ticks since it booted.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The name in parentheses may hold anything; the 22nd field is the 20th
	// behind it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return "", errors.New("/proc says no start time")
	}
	return fields[19], nil
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

// sweep takes away what the runs of dead Holdfasts left: containers with what
// still runs in them, control groups, folders.
func (t *Tier) sweep() {
	runs := filepath.Join(t.cfg.Dir, "runs")
	entries, err := os.ReadDir(runs)
	t.trouble(err)
	for _, e := range entries {
		if alive(e.Name()) {
			continue
		}
		t.trouble(t.runtime.remove(e.Name()))
		t.trouble(t.runtime.forget(e.Name()))
		os.RemoveAll(filepath.Join(runs, e.Name()))
	}
	for _, d := range t.groups.siblings() {
		if name := strings.TrimPrefix(filepath.Base(d), groupPrefix); !alive(name) {
			killBelow(d)
			t.trouble(removeGroup(d, soon()))
		}
	}
}
