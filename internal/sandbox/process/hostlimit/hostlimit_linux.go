package hostlimit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// hostLimit is a limit that Holdfast was itself started with.
type hostLimit struct {
	resource int
	name     string // as in RLIMIT_NAME
	of       string
	flag     string // of ulimit, which counts in units
	unit     uint64
	unitName string
	least    uint64 // below it no run is begun; 0 where none can be told ahead
}

// hostLimits are those that a run meets. A tape of fileBytes is a file in memory for
// FSIZE, and each seat that waits has one mapped for AS.
func hostLimits(memoryMB int64, fileBytes uint64, own func(resource int) uint64) []hostLimit {
	core := uint64(0)
	if own(unix.RLIMIT_CORE) == 0 && coresArePiped() { // asked for each run: the file is only read where it matters
		core = 1 // see coreLimit of package process
	}
	return []hostLimit{
		{unix.RLIMIT_CORE, "CORE", "bytes of a core file, which this machine hands to a program", "-c", 1, "", core},
		{unix.RLIMIT_NOFILE, "NOFILE", "open files", "-n", 1, "", sandbox.OpenFiles},
		{unix.RLIMIT_FSIZE, "FSIZE", "bytes in a file", "-f", 1 << 10, " KB", fileBytes},
		{unix.RLIMIT_AS, "AS", "bytes of address space", "-v", 1 << 10, " KB", 2 << 30},
		{unix.RLIMIT_DATA, "DATA", "bytes of private memory", "-d", 1 << 10, " KB", uint64(memoryMB) << 20},
		{unix.RLIMIT_NPROC, "NPROC", "processes and threads of its user", "-u", 1, "", 0},
	}
}

// coresArePiped says whether the memory of a program that dies goes to another
// program, and would whatever it may have as a file.
func coresArePiped() bool {
	b, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	return err != nil || bytes.HasPrefix(b, []byte("|"))
}

// ownLimit is a limit of this process: what it may use at most, for open files
// and core files what it may raise itself to.
func ownLimit(resource int) uint64 {
	var l unix.Rlimit
	switch err := unix.Prlimit(0, resource, nil, &l); {
	case err != nil, resource == unix.RLIMIT_NPROC && unix.Geteuid() == 0: // who is not held to it
		return unix.RLIM_INFINITY
	case resource == unix.RLIMIT_NOFILE || resource == unix.RLIMIT_CORE:
		return l.Max
	}
	return l.Cur
}

// CheckRoom refuses a run for which a limit of Holdfast's own leaves too little, and
// names the limit, its value and the value that is needed. fileBytes is the size of its tape.
func CheckRoom(memoryMB int64, fileBytes uint64) error {
	for _, l := range hostLimits(memoryMB, fileBytes, ownLimit) {
		if have := ownLimit(l.resource); have < l.least {
			return &holdfast.Error{Kind: holdfast.KindSpawn,
				Why:  fmt.Sprintf("Holdfast was started with RLIMIT_%s (%s) at %s, and a run needs %s", l.name, l.of, l.amount(have), l.amount(l.least)),
				Hint: fmt.Sprintf("start it where `ulimit %s` is at least %d, or in a systemd unit with Limit%s=%d", l.flag, l.least/l.unit, l.name, l.least)}
		}
	}
	return nil
}

func (l hostLimit) amount(n uint64) string {
	return strconv.FormatUint(n/l.unit, 10) + l.unitName
}

// FindShortage returns what the host has run out of, by the error of a call, and what
// to do; "" if the error says nothing of that. If a limit of Holdfast's own may have
// been reached, it is named with its value.
func FindShortage(err error) string { return findShortage(err, ownLimit) }

func findShortage(err error, own func(resource int) uint64) string {
	limit := func(resource int, otherwise string) string {
		for _, l := range hostLimits(0, 0, own) {
			if have := own(resource); l.resource == resource && have != unix.RLIM_INFINITY {
				return fmt.Sprintf("RLIMIT_%s (%s) is %s for Holdfast (`ulimit %s`): raise it, or %s", l.name, l.of, l.amount(have), l.flag, otherwise)
			}
		}
		return otherwise
	}
	switch {
	case errors.Is(err, unix.EMFILE):
		return limit(unix.RLIMIT_NOFILE, "run less at once")
	case errors.Is(err, unix.ENFILE):
		return "this machine has no open files left (sysctl fs.file-max)"
	case errors.Is(err, unix.EAGAIN):
		return "there is no room for another process: " + limit(unix.RLIMIT_NPROC, "look at pids.max of Holdfast's control group and those above it, and at sysctl kernel.pid_max")
	case errors.Is(err, unix.ENOMEM):
		return "there is no memory left: " + limit(unix.RLIMIT_AS, "look at the memory limit of Holdfast's control group, or end something else")
	case errors.Is(err, unix.EFBIG):
		return limit(unix.RLIMIT_FSIZE, "send less")
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		return "this machine has no room for another namespace, mount or file: look at sysctl user.max_user_namespaces and the other user.max_*, at fs.mount-max, and at the disk of the state directory"
	case errors.Is(err, unix.EDQUOT):
		return "the quota of the user who runs Holdfast is used up on the disk of the state directory"
	}
	return ""
}

// SeeDoctor is the cause of an error whose hint only names `holdfast doctor`, which is
// no advice there.
type SeeDoctor struct{ Cause error } // Cause may be nil

func (e SeeDoctor) Error() string {
	if e.Cause == nil {
		return "see `holdfast doctor`"
	}
	return e.Cause.Error()
}

func (e SeeDoctor) Unwrap() error { return e.Cause }
