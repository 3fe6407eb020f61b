package hostlimit

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestShortages: an error of the host leads to what is short, with the limit's
// value where one may be the reason.
func TestShortages(t *testing.T) {
	for err, want := range map[error][2]string{
		unix.EMFILE: {"RLIMIT_NOFILE (open files) is 77 for Holdfast (`ulimit -n`)", "run less at once"},
		unix.EAGAIN: {"no room for another process: RLIMIT_NPROC (processes and threads of its user) is 77", "no room for another process: look at pids.max"},
		unix.ENOMEM: {"no memory left: RLIMIT_AS (bytes of address space) is 0 KB", "no memory left: look at the memory limit"},
		unix.EFBIG:  {"RLIMIT_FSIZE", "send less"},
		unix.ENFILE: {"fs.file-max", "fs.file-max"},
		unix.ENOSPC: {"user.max_user_namespaces", "the disk of the state directory"},
		unix.EDQUOT: {"quota", "quota"},
	} {
		wrapped := fmt.Errorf("clone: %w", err)
		bounded := findShortage(wrapped, func(int) uint64 { return 77 })
		free := findShortage(wrapped, func(int) uint64 { return unix.RLIM_INFINITY })
		if !strings.Contains(bounded, want[0]) || !strings.Contains(free, want[1]) || strings.Contains(free, "RLIMIT_") {
			t.Errorf("%v: %q and %q", err, bounded, free)
		}
	}
	if got := FindShortage(unix.EINVAL); got != "" {
		t.Errorf("EINVAL is short of %q", got)
	}
}
