package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/cgroup"
)

// starveEnv makes the test's program one that runs out of something, and
// starveGroupEnv is the control group in which it does, with a slash at the end.
const (
	starveEnv      = "HOLDFAST_TEST_STARVE"
	starveGroupEnv = "HOLDFAST_TEST_OUTER"
)

// starving runs the test again by itself, as attr says, and fails where that
// did.
func starving(t *testing.T, attr *syscall.SysProcAttr, env ...string) {
	t.Helper()
	dir := t.TempDir()
	self := filepath.Join(dir, "self")
	copyTo(t, self, "/proc/self/exe")
	if attr.Credential != nil {
		for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	tmp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	cmd.Dir = tmp
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"), "HOME=" + tmp, "TMPDIR=" + tmp, starveEnv + "=yes"}, env...)
	attr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr = attr
	runtime.LockOSThread() // the kernel ends it with the thread that began it
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
		return
	}
	t.Logf("%s", out)
}

func starved() bool { return os.Getenv(starveEnv) != "" }

// nothing is a run of a static program.
func nothing(id string) sandbox.Spec {
	return sandbox.Spec{ID: id, Language: sandbox.Static, Code: probe(), Need: anyWalls}
}

// goesOn wants a run to work.
func goesOn(t *testing.T, b *Tier, spec sandbox.Spec) *posture.Result {
	t.Helper()
	res, err := b.Run(t.Context(), spec)
	if err != nil || res.State != posture.Completed || res.ExitCode != 0 {
		t.Fatalf("%v %+v", err, res)
	}
	return res
}

// isShort wants a run to be refused by kind, with a hint that has words.
func isShort(t *testing.T, b *Tier, spec sandbox.Spec, kind holdfast.Kind, words string) {
	t.Helper()
	res, err := b.Run(t.Context(), spec)
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Hint, words) {
		t.Fatalf("%v %+v, want %s with a hint of %q", err, res, kind, words)
	}
	t.Logf("%v | %s", err, e.Hint)
}

// TestRunWhileTheDiskIsFull: where a runtime has no room to be copied the run is
// refused with what to do and leaves no part of it; with room it works, and then
// needs none.
func TestRunWhileTheDiskIsFull(t *testing.T) {
	if !starved() {
		attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if os.Geteuid() != 0 {
			attr.Cloneflags |= syscall.CLONE_NEWUSER
			attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
			attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
		}
		starving(t, attr)
		return
	}
	python := installed(t, "python3").Exact
	dir := filepath.Join(t.TempDir(), "state")
	if err := errors.Join(os.Mkdir(dir, 0o700), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,nr_inodes=100k")); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	b, err := Open(t.Context(), Config{Dir: filepath.Join(dir, "sandbox"), Secret: func(string) bool { return false }, Note: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	spec := sandbox.Spec{ID: "full", Language: python, Code: []byte("print('ran')"), Need: anyWalls}
	before := b.Trace()
	resize := func(how string) {
		t.Helper()
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, how); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		isShort(t, b, spec, holdfast.KindMount, "free space on that disk")
		left, err := os.ReadDir(filepath.Join(dir, "sandbox"))
		if after := b.Trace(); len(left) != 0 || err != nil || after.Processes != before.Processes || after.Groups != before.Groups || after.Mounts != before.Mounts {
			t.Errorf("left: %v %v, %+v before %+v", left, err, after, before)
		}
	}
	resize("size=400m,nr_inodes=300") // names run out as bytes do
	isShort(t, b, spec, holdfast.KindMount, "free space on that disk")
	resize("size=400m,nr_inodes=100k")
	if res := goesOn(t, b, spec); string(res.Stdout) != "ran\n" {
		t.Errorf("%q", res.Stdout)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	fill, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		t.Fatal(err)
	}
	defer fill.Close()
	if err := unix.Fallocate(int(fill.Fd()), 0, 0, int64(st.Bavail)*st.Bsize); err != nil {
		t.Fatal(err)
	}
	spec.Code = []byte("open('out', 'w').write('x' * (1 << 20))")
	if res := goesOn(t, b, spec); len(res.OutputFiles["out"]) != 1<<20 {
		t.Error("its file did not come out")
	}
}

// ready has the threads that this program will need, so that only others are
// short of them.
func ready() {
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			unix.Nanosleep(&unix.Timespec{Nsec: 50_000_000}, nil)
		})
	}
	wg.Wait()
}

// TestRunWithoutALauncherToStart: where the user may have no further process the
// run is refused and the limit is named; when there is room again, it works.
func TestRunWithoutALauncherToStart(t *testing.T) {
	if !starved() {
		attr := &syscall.SysProcAttr{}
		if os.Geteuid() == 0 { // of whom the limit is not
			attr.Credential = &syscall.Credential{Uid: 54321, Gid: 54321}
		}
		starving(t, attr)
		return
	}
	b := tier(t)
	ready()
	before := b.Trace()
	var was unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NPROC, nil, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(0, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 1, Max: was.Max}, nil); err != nil {
		t.Fatal(err)
	}
	isShort(t, b, nothing("none"), holdfast.KindNamespace, "RLIMIT_NPROC (processes and threads of its user) is 1 ")
	if after := b.Trace(); after.Processes != before.Processes || after.Groups != before.Groups {
		t.Errorf("left: %+v before %+v", after, before)
	}
	if err := unix.Prlimit(0, unix.RLIMIT_NPROC, &was, nil); err != nil {
		t.Fatal(err)
	}
	goesOn(t, b, nothing("some"))
}

// outer runs the test again inside a control group with that share.
func outer(t *testing.T, wall posture.Wall, s sandbox.Share) {
	t.Helper()
	c := cgroup.Find("/proc", hostUser)
	t.Cleanup(c.Close)
	if up, down := c.Walls(); !slices.Contains(up, wall) {
		t.Skipf("%s: %s", wall, down[wall])
	}
	g, err := c.Create("outer", s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(g.Kill(), g.Remove()); err != nil {
			t.Error(err)
		}
	}()
	files := map[posture.Wall][]string{
		posture.WallMemory: {"memory.max", "memory.limit_in_bytes"}, posture.WallPids: {"pids.max"},
	}
	for _, home := range c.Homes() {
		for _, file := range files[wall] {
			if found, _ := filepath.Glob(home + "/*-outer/" + file); len(found) == 1 {
				starving(t, &syscall.SysProcAttr{}, starveGroupEnv+"="+filepath.Dir(found[0])+"/")
				return
			}
		}
	}
	t.Fatal("no hierarchy holds it")
}

// enterOuter moves this process there.
func enterOuter(t *testing.T) {
	t.Helper()
	writeOuter(t, "cgroup.procs", strconv.Itoa(os.Getpid()))
}

// writeOuter writes to a file of that control group.
func writeOuter(t *testing.T, file, value string) {
	t.Helper()
	if err := os.WriteFile(os.Getenv(starveGroupEnv)+file, []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

// TestRunWhileThereAreNoProcesses: where a group above Holdfast's has no process
// left, a run is refused with what to look at, what cannot be made ready is
// told, and with room again both are over.
func TestRunWhileThereAreNoProcesses(t *testing.T) {
	if !starved() {
		outer(t, posture.WallPids, sandbox.Share{Memory: 2 << 30, Period: 100 * time.Millisecond, Quota: 200 * time.Millisecond, Pids: 1000})
		return
	}
	enterOuter(t)
	b := tier(t)
	ready()
	for range 5 {
		goesOn(t, b, nothing("before"))
	}
	b.Settle(t.Context())
	before := b.Trace()
	writeOuter(t, "pids.max", "1") // fewer than there are: nobody gets another
	for range 3 {                  // the seats are there, what runs in them is not
		isShort(t, b, nothing("none"), holdfast.KindNamespace, "no room for another process")
	}
	writeOuter(t, "pids.max", "1000")
	for range 5 {
		goesOn(t, b, nothing("again"))
	}
	b.Settle(t.Context())
	if after := b.Trace(); after.Processes != before.Processes || after.Groups != before.Groups || after.Mounts != before.Mounts || after.Files != before.Files {
		t.Errorf("%+v, before %+v", after, before)
	}
	if got := b.Troubles(); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

// TestRunWhileMemoryIsShort: where a group above Holdfast's is nearly used up it
// is the run that ends, by name, and not Holdfast; with room again runs work.
func TestRunWhileMemoryIsShort(t *testing.T) {
	if !starved() {
		outer(t, posture.WallMemory, sandbox.Share{Memory: 300 << 20, Period: 100 * time.Millisecond, Quota: 200 * time.Millisecond, Pids: 1000})
		return
	}
	enterOuter(t)
	python := installed(t, "python3").Exact
	b := tier(t)
	goesOn(t, b, sandbox.Spec{ID: "before", Language: python, Code: []byte("print(1)"), Need: anyWalls})
	b.Settle(t.Context())
	before := b.Trace()
	hog, err := unix.Mmap(-1, 0, 180<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	for i := range testrepeat.Times(3, 1) {
		res, err := b.Run(t.Context(), sandbox.Spec{ID: fmt.Sprint("short-", i), Language: python, MemoryMB: 512, Code: []byte("x = bytearray(250 << 20)\nprint('held')"), Need: anyWalls})
		if err != nil {
			t.Fatal(err)
		}
		if res.State != posture.OOM || res.ExitCode != posture.ExitLimit || !strings.Contains(res.Err, "of the host: the run had ") || !strings.Contains(res.Err, " of its 512 MB") {
			t.Errorf("%+v", res)
		}
		t.Log(res.Err)
	}
	if err := unix.Munmap(hog); err != nil {
		t.Fatal(err)
	}
	goesOn(t, b, sandbox.Spec{ID: "after", Language: python, Code: []byte("x = bytearray(100 << 20)"), Need: anyWalls})
	b.Settle(t.Context())
	if after := b.Trace(); after.Processes != before.Processes || after.Groups != before.Groups || after.Mounts != before.Mounts {
		t.Errorf("%+v, before %+v", after, before)
	}
}
