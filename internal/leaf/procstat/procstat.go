// Package procstat reads /proc/PID/stat, in which Linux describes a process.
package procstat

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ReadFields returns the fields after the name of a process: index 0 is its state, field 3
// in proc_pid_stat(5). proc is the directory of procfs, and pid may be "self".
func ReadFields(proc, pid string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(proc, pid, "stat"))
	if err != nil {
		return nil, err
	}
	// The name, in parentheses, can contain spaces and parentheses.
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])), nil
}

// FindParent returns the parent of a process, or 0 if it is unknown.
func FindParent(pid int) int {
	f, err := ReadFields("/proc", strconv.Itoa(pid))
	if err != nil || len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}
