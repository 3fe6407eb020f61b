package sandboxtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/procstat"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Held is what a process holds of the machine: what a run must give back.
type Held struct {
	Processes   int // below it, of every generation, the dead that nobody has reaped among them
	Zombies     int // of those
	Namespaces  int // of all of them
	Mounts      int // in each mount namespace of theirs; of the caller's own see sandbox.Mounts
	Groups      int // control groups of its name
	Descriptors int // of the process itself; the ledger's, of which it keeps more the more read at once, are none
	Files       int // in the directories that were asked for
}

// HeldBy counts what the process pid holds, and what lies in dirs. What the
// caller may not see counts as nothing.
func HeldBy(pid int, dirs ...string) Held {
	var h Held
	shared, _ := os.Readlink("/proc/self/ns/mnt") // by other tests that run beside
	spaces, mounts := map[string]bool{}, map[string]int{}
	for _, p := range append(Below(pid), pid) {
		dir := fmt.Sprintf("/proc/%d", p)
		if p != pid {
			h.Processes++
			if state, _ := stat(dir); state == "Z" {
				h.Zombies++
			}
		}
		for _, kind := range []string{"pid", "net", "mnt", "uts", "ipc", "user", "cgroup"} {
			id, err := os.Readlink(filepath.Join(dir, "ns", kind))
			if err != nil {
				continue
			}
			if spaces[id] = true; kind == "mnt" {
				b, _ := os.ReadFile(filepath.Join(dir, "mountinfo"))
				if mounts[id] = bytes.Count(b, []byte("\n")); id == shared {
					mounts[id] = sandbox.Mounts(string(b), dirs...)
				}
			}
		}
	}
	h.Namespaces = len(spaces)
	for _, n := range mounts {
		h.Mounts += n
	}
	h.Descriptors = len(openIn(pid))
	h.Groups = names("/sys/fs/cgroup", func(e fs.DirEntry) bool {
		return e.IsDir() && strings.HasPrefix(e.Name(), fmt.Sprintf("holdfast-%d-", pid))
	})
	for _, dir := range dirs {
		h.Files += names(dir, func(fs.DirEntry) bool { return true })
	}
	return h
}

// names counts those below dir that are meant, and all below a control group
// that is.
func names(dir string, meant func(fs.DirEntry) bool) (n int) {
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !meant(e) {
			return nil
		}
		if n++; dir == "/sys/fs/cgroup" {
			n += names(path, fs.DirEntry.IsDir) - 1 // itself
			return fs.SkipDir
		}
		return nil
	})
	return n
}

// within bounds how long a process may take to come to rest, however slow the
// machine is.
const within = time.Minute

// AtRest waits until the process holds the same for a second, which it is, in which
// nothing below it has anything to do, a minute at most: what waits for runs is
// there, and not on its way for want of a processor.
func AtRest(t testing.TB, pid int, dirs ...string) Held {
	t.Helper()
	last, since := HeldBy(pid, dirs...), time.Now()
	for start := since; time.Since(since) < time.Second; time.Sleep(50 * time.Millisecond) {
		if now := HeldBy(pid, dirs...); now != last || slices.ContainsFunc(Below(pid), works) {
			last, since = now, time.Now()
		}
		if time.Since(start) > within {
			t.Errorf("process %d does not come to rest: %+v", pid, last)
			break
		}
	}
	return last
}

// works says that a process would go on had it a processor, or a disk.
func works(pid int) bool {
	state, _ := stat(fmt.Sprintf("/proc/%d", pid))
	return state == "R" || state == "D"
}

// NothingLeft fails unless the process comes to hold no more than before, in a
// minute.
func NothingLeft(t testing.TB, pid int, before Held, dirs ...string) {
	t.Helper()
	var now Held
	for start := time.Now(); time.Since(start) < within; time.Sleep(50 * time.Millisecond) {
		if now = HeldBy(pid, dirs...); now.within(before) {
			return
		}
	}
	t.Errorf("process %d holds %+v, and held %+v", pid, now, before)
	for _, p := range Below(pid) {
		state, _ := stat(fmt.Sprintf("/proc/%d", p))
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p))
		t.Logf("process %d %s %.80q", p, state, b)
	}
	t.Logf("descriptors: %v", openIn(pid))
}

// openIn is what the descriptors of a process lead to.
func openIn(pid int) (list []string) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, _ := os.ReadDir(dir)
	for _, fd := range fds {
		to, err := os.Readlink(filepath.Join(dir, fd.Name()))
		if err == nil && !strings.Contains(to, "/holdfast.db") {
			list = append(list, to)
		}
	}
	return list
}

func (h Held) within(b Held) bool {
	return h.Processes <= b.Processes && h.Zombies <= b.Zombies && h.Namespaces <= b.Namespaces && h.Mounts <= b.Mounts &&
		h.Groups <= b.Groups && h.Descriptors <= b.Descriptors && h.Files <= b.Files
}

// Below are the processes below pid, of every generation.
func Below(pid int) []int {
	entries, _ := os.ReadDir("/proc")
	children := map[int][]int{}
	for _, e := range entries {
		if p, err := strconv.Atoi(e.Name()); err == nil {
			if _, parent := stat("/proc/" + e.Name()); parent > 0 {
				children[parent] = append(children[parent], p)
			}
		}
	}
	list := children[pid]
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list
}

// stat is the state of a process, and its parent; 0 where it has gone.
func stat(dir string) (state string, parent int) {
	f, err := procstat.ReadFields(dir, "")
	if err != nil || len(f) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(f[1])
	return f[0], parent
}
