package process

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Where there is no control group, what stands instead is less: limits of the
// process, and a look at it now and then.
const (
	// stackBytes is what each thread's stack takes of RLIMIT_DATA, whether it
	// uses it or not; so a run has room for those of all its threads.
	stackBytes = 8 << 20
	// lookEvery is how often the resident memory of a run is looked at. In the
	// time between a program can take some tens of megabytes more.
	lookEvery = 10 * time.Millisecond
)

// instead says how what a wall would hold is bounded where it is down.
func instead(w posture.Wall) string {
	switch w {
	case posture.WallMemory:
		return "not by a control group: RLIMIT_DATA bounds private memory at the run's limit and 8 MB for each thread, and a run seen above its limit, every 10 ms, is ended; its files in /tmp come on top"
	case posture.WallPids:
		return "not by a control group: RLIMIT_NPROC in a user namespace of its own bounds threads at 66"
	case posture.WallCPU:
		return "not by a control group: a run may use every processor; RLIMIT_CPU ends it after twice its time limit and 2 s"
	}
	return ""
}

// lesser are the limits that stand for the walls that are down. Since Linux 5.14
// RLIMIT_NPROC counts in the run's own user namespace, and nothing runs on a
// kernel before 5.19; so the user's other processes do not count.
func lesser(up []posture.Wall, spec sandbox.Spec) []rlimit {
	var list []rlimit
	if !slices.Contains(up, posture.WallMemory) {
		data := uint64(spec.MemoryMB<<20 + maxPids*stackBytes)
		list = append(list, atMost(unix.RLIMIT_DATA, data), atMost(unix.RLIMIT_STACK, stackBytes))
	}
	if !slices.Contains(up, posture.WallPids) {
		list = append(list, atMost(unix.RLIMIT_NPROC, maxPids))
	}
	return list
}

// atMost is a limit that this process's own may keep lower: no process raises
// what it was given.
func atMost(resource int, value uint64) rlimit {
	var own unix.Rlimit
	if err := unix.Prlimit(0, resource, nil, &own); err == nil {
		value = min(value, own.Max)
	}
	return rlimit{resource, value}
}

// gauge tells how much memory a process has, again and again.
type gauge struct {
	dir    string
	status *os.File // of the thread that was looked at last
	buf    []byte
}

func newGauge(pid int) (*gauge, error) {
	g := &gauge{dir: "/proc/" + strconv.Itoa(pid), buf: make([]byte, 8<<10)}
	var err error
	g.status, err = os.Open(g.dir + "/status")
	return g, err
}

func (g *gauge) close() { g.status.Close() }

// bytes is 0 for a process that is gone. Its first thread may end before the
// others, and then tells nothing; they have the same memory, and are asked.
func (g *gauge) bytes() int64 {
	if total, ok := g.read(g.status); ok {
		return total
	}
	tasks, _ := os.ReadDir(g.dir + "/task")
	for _, task := range tasks {
		f, err := os.Open(g.dir + "/task/" + task.Name() + "/status")
		if err != nil {
			continue
		}
		if total, ok := g.read(f); ok {
			g.status.Close()
			g.status = f
			return total
		}
		f.Close()
	}
	return 0
}

func (g *gauge) read(f *os.File) (int64, bool) {
	n, _ := f.ReadAt(g.buf, 0) // to the end of the file, which is an error
	return resident(g.buf[:n])
}

// resident is the memory that is a process's own, by /proc/PID/status: private,
// shared with nobody else here, swapped out, and page tables. Pages of files
// that others use too are not its own. A thread that has ended has none.
func resident(status []byte) (total int64, ok bool) {
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch string(name) {
		case "RssAnon", "RssShmem", "VmSwap", "VmPTE":
			kb, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB")))), 10, 64)
			if err != nil {
				return 0, false
			}
			total, ok = total+kb<<10, true
		}
	}
	return total, ok
}

// overran says of a run that asks to end that it had more than its limit, too
// quickly to be seen with it. What it has of files by then is not counted.
func (r *run) overran(n notice) bool {
	if !r.gauged {
		return false
	}
	used, ok := lastUsage(n.pid, true)
	return ok && used.private<<10 > r.request().MemoryMB<<20
}

// watchMemory ends the run when it is seen with more than its limit, until the
// run is over.
func (r *run) watchMemory(g *gauge) {
	defer r.watch.Done()
	defer g.close()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.gone:
			return
		case <-tick.C:
		}
		if g.bytes() > r.request().MemoryMB<<20 {
			r.end(posture.ReasonOOM, nil)
			return
		}
	}
}
