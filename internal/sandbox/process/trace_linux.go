package process

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/procstat"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Trace counts what the tier holds. Seats in the making are counted as far as
// they are; Settle waits for them.
func (t *Tier) Trace() Trace {
	temporary, _ := os.ReadDir(os.TempDir()) // none there is nothing left
	tr := Trace{Files: entries(t.cfg.Dir) + len(temporary)}
	spaces, mounts := map[string]bool{}, map[string]int{}
	for _, pid := range append(descendants(os.Getpid()), os.Getpid()) {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		if pid != os.Getpid() {
			tr.Processes++
		}
		fds, _ := os.ReadDir(filepath.Join(dir, "fd")) // not ours to see, or gone
		tr.Descriptors += len(fds)
		for _, kind := range []string{"pid", "net", "mnt", "uts", "ipc", "user", "cgroup"} {
			if id, err := os.Readlink(filepath.Join(dir, "ns", kind)); err == nil {
				spaces[id] = true
				if kind == "mnt" {
					b, _ := os.ReadFile(filepath.Join(dir, "mountinfo"))
					mounts[id] = bytes.Count(b, []byte("\n"))
					if pid == os.Getpid() {
						mounts[id] = sandbox.Mounts(string(b), t.cfg.Dir, os.TempDir())
					}
				}
			}
		}
	}
	for _, n := range mounts {
		tr.Mounts += n
	}
	tr.Namespaces = len(spaces)
	for _, home := range t.groups.Homes() {
		tr.Groups += folders(home)
	}
	return tr
}

// Settle waits, ten seconds at most, until the background work of earlier runs
// is done: each launcher that runs has its seats, and a zygote that will be
// needed stands.
func (t *Tier) Settle(ctx context.Context) {
	for range 1000 {
		if t.settled() || ctx.Err() != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Last says that one more request comes, and no other: beside it nothing is made
// ready any more, which would take its processors for nobody.
func (t *Tier) Last() { t.last.Store(true) }

func (t *Tier) settled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, z := range t.launchers {
		if !z.alive() && !z.filling.Load() && !z.pool.filling.Load() {
			continue
		}
		if z.pool.filling.Load() || z.pool.short() {
			t.park(z)
			return false
		}
		if z.filling.Load() || len(z.seats) < cap(z.seats) {
			t.refill(z)
			return false
		}
		if !z.pool.nursery.settled() {
			return false
		}
	}
	return len(t.leaving) == 0
}

// descendants are all processes below pid.
func descendants(pid int) []int {
	all, _ := os.ReadDir("/proc")
	children := map[int][]int{}
	for _, e := range all {
		if id, err := strconv.Atoi(e.Name()); err == nil {
			above := procstat.FindParent(id) // once: a process that ends in between has another answer
			children[above] = append(children[above], id)
		}
	}
	return underneath(pid, children)
}

// underneath are all that children leads to from pid, each once: while the processes
// are read one by one a number can pass to another, and so a process seem to be
// its own descendant.
func underneath(pid int, children map[int][]int) []int {
	var list []int
	seen := map[int]bool{pid: true}
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, child := range children[queue[0]] {
			if !seen[child] {
				seen[child] = true
				queue, list = append(queue, child), append(list, child)
			}
		}
	}
	return list
}

func entries(dir string) int {
	n := 0
	filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { n++; return nil })
	return n
}

func folders(dir string) int {
	n := 0
	filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			n++
		}
		return nil
	})
	return n
}
