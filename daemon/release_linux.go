package daemon

import (
	"bufio"
	"context"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// releaseEvery is the interval at which the daemon looks whether it is idle.
	releaseEvery = 15 * time.Second
	// idleWork is the processor time within releaseEvery below which it is.
	idleWork = 150 * time.Millisecond
)

// releaseMemory gives memory back to the system when the daemon is idle: garbage, and
// the pages of the program that only its start or a burst of work needed. Linux maps
// 16 pages of a program around each one that is used, and keeps them.
func (d *Daemon) releaseMemory(ctx context.Context) {
	before, released := processorTime(), -idleWork
	every(ctx, releaseEvery, func() {
		now := processorTime()
		idle := now-before < idleWork
		before = now
		if !idle || now-released < idleWork {
			return // busy, or nothing was done since
		}
		debug.FreeOSMemory()
		if err := releaseProgram(); err != nil {
			d.log.Warn("program pages not released", "err", err)
		}
		before = processorTime()
		released = before
	})
}

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// releaseProgram unmaps the pages of the program that are only read. The system maps a
// page again when it is used, from its cache or from the file. A mapping that has a page of
// this process (relocated data of a position-independent program, a debugger's breakpoint)
// is kept.
func releaseProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer smaps.Close()
	mappings, err := readCleanMappings(smaps, program)
	if err != nil {
		return err
	}
	for _, m := range mappings {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED); errno != 0 {
			return errno
		}
	}
	return nil
}

// memoryRange is a range of addresses.
type memoryRange struct{ from, to uintptr }

// readCleanMappings reads /proc/self/smaps and returns the mappings of a file that cannot
// be written to and whose pages are all those of the file.
func readCleanMappings(smaps io.Reader, file string) (clean []memoryRange, err error) {
	var last memoryRange
	ours := false // last is a mapping of the file that cannot be written to
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		line := lines.Text()
		if name, value, is := strings.Cut(line, ":"); is && !strings.Contains(name, " ") {
			if name == "Anonymous" && ours && strings.TrimSpace(value) == "0 kB" {
				clean = append(clean, last)
			}
			continue
		}
		last, ours = parseReadOnlyMapping(line, file)
	}
	return clean, lines.Err()
}

// parseReadOnlyMapping returns the addresses of a line that begins a mapping, if that is
// one of the file which cannot be written to.
func parseReadOnlyMapping(line, file string) (m memoryRange, ok bool) {
	f := strings.SplitN(line, " ", 6)
	if len(f) < 6 || strings.TrimLeft(f[5], " ") != file || f[1] != "r--p" && f[1] != "r-xp" {
		return memoryRange{}, false
	}
	start, end, _ := strings.Cut(f[0], "-")
	first, err := strconv.ParseUint(start, 16, 64)
	if err != nil {
		return memoryRange{}, false
	}
	last, err := strconv.ParseUint(end, 16, 64)
	return memoryRange{uintptr(first), uintptr(last)}, err == nil && first < last
}
