package container

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// between is how long the memory of an ordinary user's run is not looked at.
const between = 10 * time.Millisecond

// weigh ends a run whose memory is above its limit, where no control group does.
// The program has one process, since it can make no second.
func (r *run) weigh(pid int) {
	status := "/proc/" + strconv.Itoa(pid) + "/status"
	for wait := time.Millisecond; ; wait = min(2*wait, between) {
		select {
		case <-r.ended:
			return
		case <-time.After(wait):
		}
		b, err := os.ReadFile(status)
		if err != nil {
			return // it has ended
		}
		held := kilobytes(b, "VmRSS", "VmSwap", "VmPTE") << 10
		r.peak.Store(max(r.peak.Load(), kilobytes(b, "VmHWM")<<10))
		if held > r.spec.MemoryMB<<20 {
			r.stop(posture.ReasonOOM)
			return
		}
	}
}

// kilobytes adds rows of /proc/PID/status.
func kilobytes(status []byte, rows ...string) (sum int64) {
	for line := range bytes.Lines(status) {
		name, rest, _ := strings.Cut(string(line), ":")
		for _, row := range rows {
			if name == row {
				n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
				sum += n
			}
		}
	}
	return sum
}

// discard removes a run's folder, in which nothing runs any more: directories too
// that its program let nobody read or write.
func discard(home string) error {
	err := os.RemoveAll(home)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	fd, err := unix.Open(home, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(loosen(fd), os.RemoveAll(home))
}

// loosen lets this user into every directory below an open one, which it closes.
func loosen(fd int) error {
	dir := os.NewFile(uintptr(fd), ".")
	defer dir.Close()
	list, err := dir.ReadDir(-1)
	for _, e := range list {
		if !e.IsDir() || err != nil {
			continue
		}
		err = unix.Fchmodat(fd, e.Name(), 0o700, 0)
		below, opened := unix.Openat(fd, e.Name(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err = errors.Join(err, opened); err == nil {
			err = loosen(below)
		}
	}
	return err
}
