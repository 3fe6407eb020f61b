package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/bystander"
)

// launcherUser is who launchers are in these tests where they run as root.
const launcherUser = 2_013_265_920

// groupsHere are the machine's, or the test is skipped where a wall that it
// needs is down.
func groupsHere(t testing.TB, need ...posture.Wall) *Groups {
	t.Helper()
	c := Find("/proc", launcherUser)
	t.Cleanup(func() { c.Close() })
	up, down := c.Walls()
	for _, w := range need {
		if !slices.Contains(up, w) {
			t.Skipf("%s: %s", w, down[w])
		}
	}
	return c
}

func usual() sandbox.Share {
	return sandbox.Share{Memory: 64 << 20, Period: 100 * time.Millisecond, Quota: 100 * time.Millisecond, Pids: 32}
}

// TestGroupChild is no test: it is the process that the tests here put into
// groups. It waits for a line before it does what HOLDFAST_GROUP_CHILD says.
func TestGroupChild(t *testing.T) {
	what := os.Getenv("HOLDFAST_GROUP_CHILD")
	if what == "" {
		return
	}
	in := bufio.NewReader(os.Stdin)
	in.ReadString('\n')
	switch what {
	case "eat":
		var kept [][]byte
		for range 256 {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			kept = append(kept, b)
		}
		fmt.Println("ate", len(kept))
	case "burn":
		for end := time.Now().Add(time.Second); time.Now().Before(end); {
		}
	case "breed":
		started := 0
		for range 64 {
			if exec.Command("sleep", "20").Start() != nil {
				break
			}
			started++
		}
		fmt.Println("bred", started)
	case "supervise":
		c := Find("/proc", launcherUser)
		g, err := c.Create("orphan", usual())
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		orphan := exec.Command("sleep", "60")
		orphan.Start()
		fmt.Println(g.place(orphan.Process.Pid), orphan.Process.Pid)
		in.ReadString('\n')
	case "rest":
		in.ReadString('\n')
	}
	os.Exit(0)
}

type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(t testing.TB, what string, attr *syscall.SysProcAttr) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestGroupChild$")
	cmd.Env = append(os.Environ(), "HOLDFAST_GROUP_CHILD="+what)
	cmd.SysProcAttr = attr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return &child{cmd, in, bufio.NewReader(out)}
}

// place moves the process pid, with all its threads, into the group, as
// nothing but a test does: runs are born in theirs, or enter by themselves.
func (g *Group) place(pid int) error {
	for _, at := range g.at {
		if err := at.d.write("cgroup.procs", strconv.Itoa(pid)); err != nil {
			return cgroupError(err, "the process could not be put into its control group: %v", err)
		}
	}
	return nil
}

func (c *child) tell() { io.WriteString(c.in, "\n") }

// runIn runs a child in a group with the share, and returns what it used, what
// it said and how it ended.
func runIn(t *testing.T, c *Groups, what string, s sandbox.Share) (Usage, string, error) {
	t.Helper()
	g, err := c.Create(what, s)
	if err != nil {
		t.Fatal(err)
	}
	p := startChild(t, what, nil)
	if err := g.place(p.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	p.tell()
	said, _ := io.ReadAll(p.out)
	ended := p.cmd.Wait()
	u, err := g.ReadUsage()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Kill(), g.Remove()); err != nil {
		t.Fatal(err)
	}
	return u, string(said), ended
}

// forced is what the kernel may charge beyond a limit while it kills: pages that
// it cannot refuse.
const forced = 256 << 10

func TestMemoryLimitKills(t *testing.T) {
	c := groupsHere(t, posture.WallMemory)
	s := usual()
	u, said, ended := runIn(t, c, "eat", s)
	var exit *exec.ExitError
	if !errors.As(ended, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the child ended by %v and said %q, want a SIGKILL", ended, said)
	}
	if u.OOMKills < 1 || u.Peak > s.Memory+forced || u.Peak != 0 && u.Peak < s.Memory/2 {
		t.Errorf("usage %+v, want a kill and a peak just below %d", u, s.Memory)
	}
	// The twin: with room enough the same program ends by itself.
	s.Memory = 4 << 30 // the race detector keeps several bytes of its own for each
	u, said, ended = runIn(t, c, "eat", s)
	if ended != nil || said != "ate 256\n" || u.OOMKills != 0 || u.Peak != 0 && (u.Peak < 256<<20 || u.Peak > s.Memory) {
		t.Errorf("with 4 GB: %v %q %+v", ended, said, u)
	}
}

func TestCPUQuotaThrottles(t *testing.T) {
	t.Parallel()
	c := groupsHere(t, posture.WallCPU)
	s := usual()
	s.Period, s.Quota = 50*time.Millisecond, 2*time.Millisecond
	began := time.Now()
	u, _, ended := runIn(t, c, "burn", s)
	took := time.Since(began)
	if ended != nil {
		t.Fatal(ended)
	}
	// Beyond its share, the start before it was placed and some periods of slack
	// are allowed for.
	if used := u.User + u.System; used < 5*time.Millisecond || used > took*2/50+200*time.Millisecond || u.Throttled == 0 {
		t.Errorf("used %v and was throttled for %v", used, u.Throttled)
	}
	if u, _, _ = runIn(t, c, "burn", sandbox.Share{Memory: s.Memory, Pids: s.Pids, Period: s.Period, Quota: 2 * s.Period}); u.Throttled > 200*time.Millisecond {
		t.Errorf("with two cores it was throttled for %v", u.Throttled)
	}
}

func TestPidsLimitStopsForks(t *testing.T) {
	c := groupsHere(t, posture.WallPids)
	var bred int
	_, said, _ := runIn(t, c, "breed", usual())
	if fmt.Sscanf(said, "bred %d", &bred); bred < 1 || bred > 32 {
		t.Errorf("of 64 processes %d were started (%q), want at most 32", bred, said)
	}
}

func TestUsageAgreesWithRusage(t *testing.T) {
	t.Parallel()
	c := groupsHere(t, posture.WallCPU)
	g, err := c.Create("agree", sandbox.Share{Memory: 64 << 20, Pids: 32, Period: 100 * time.Millisecond, Quota: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	p := startChild(t, "burn", nil)
	if err := g.place(p.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	p.tell()
	p.cmd.Wait()
	u, err := g.ReadUsage()
	if err := errors.Join(err, g.Remove()); err != nil {
		t.Fatal(err)
	}
	group, self := u.User+u.System, p.cmd.ProcessState.UserTime()+p.cmd.ProcessState.SystemTime()
	if d := (group - self).Abs(); d > 150*time.Millisecond {
		t.Errorf("the group counts %v, the process %v", group, self)
	}
}

func TestProcessEntersByItself(t *testing.T) {
	c := groupsHere(t, posture.WallPids)
	g, err := c.Create("enter", usual())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	}()
	if len(g.Entrances()) == 0 {
		t.Skip("no controller here is in version 1")
	}
	p, err := bystander.Start(-1, g.Entrances())
	if err != nil {
		t.Fatal(err)
	}
	defer p.End()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.PID))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range g.at {
		if at.b.v2 {
			continue
		}
		m, _ := memberOf(parseMemberships(string(text)), at.b.controllers[0])
		if !strings.HasSuffix(m.path, "/"+at.b.name+"/"+strings.TrimSuffix(at.d.sub, "/")) {
			t.Errorf("for %v it is in %s", at.b.controllers, m.path)
		}
	}
}

func TestNothingIsLeftOfGroups(t *testing.T) {
	c := groupsHere(t, posture.WallPids)
	for i := range testrepeat.Times(500, 51) {
		g, err := c.Create("same-name", usual())
		if err != nil {
			t.Fatal(err)
		}
		p, err := bystander.Start(-1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if i%50 == 0 {
			if err := g.place(p.PID); err != nil {
				t.Fatal(err)
			}
			go func() { time.Sleep(5 * time.Millisecond); p.End() }() // remove has to wait for it
		} else {
			p.End()
		}
		if err := g.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if left := groupsLeft(t, c); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	var fds int
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		fds = len(open)
	}
	if fds > 100 {
		t.Errorf("%d descriptors are open", fds)
	}
}

func groupsLeft(t *testing.T, c *Groups) (left []string) {
	t.Helper()
	for _, b := range c.branches {
		entries, err := os.ReadDir(b.base + "/" + b.name)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() && e.Name() != selfLeaf && e.Name() != launcherLeaf {
				left = append(left, e.Name())
			}
		}
	}
	return left
}

func TestTwoRunsOfOneName(t *testing.T) {
	a, b := groupsHere(t, posture.WallPids), groupsHere(t, posture.WallPids)
	var groups []*Group
	for _, c := range []*Groups{a, b, a, b} {
		g, err := c.Create("tasks", usual())
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, g)
	}
	for _, g := range groups {
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	}
}

func TestRemoveRefusesWhatIsBusy(t *testing.T) {
	t.Parallel()
	c := groupsHere(t, posture.WallPids)
	g, err := c.Create("busy", usual())
	if err != nil {
		t.Fatal(err)
	}
	p, err := bystander.Start(-1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.place(p.PID); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := g.Remove(); holdfast.KindOf(err) != holdfast.KindCgroup || time.Since(start) > 2*removeWithin {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	if err := g.Kill(); err != nil {
		t.Error(err)
	}
	p.End()
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}

func TestSweepTakesADeadSupervisorsGroups(t *testing.T) {
	c := groupsHere(t, posture.WallPids)
	super := startChild(t, "supervise", nil)
	super.tell()
	line, _ := super.out.ReadString('\n')
	if c.Mode() == "v2" && strings.Contains(line, "not available") {
		t.Skip("the other supervisor would share this one's group")
	}
	var orphan int
	if n, _ := fmt.Sscanf(line, "<nil> %d", &orphan); n != 1 {
		t.Fatalf("the supervisor said %q", line)
	}
	// Others that were killed may have left groups here, and may at any moment.
	groups := func() (left []string) {
		for _, b := range c.branches {
			here, _ := filepath.Glob(fmt.Sprintf("%s/%s%d-*", b.base, namePrefix, super.cmd.Process.Pid))
			left = append(left, here...)
		}
		return left
	}
	before := groups()
	c.Sweep()
	if after := groups(); len(before) == 0 || !slices.Equal(before, after) {
		t.Errorf("of one that lives: %q, and once swept %q", before, after)
	}
	if syscall.Kill(orphan, 0) != nil {
		t.Fatal("the orphan died early")
	}
	super.cmd.Process.Kill()
	super.cmd.Wait()
	// The lock may be held for a moment by what the supervisor has just forked.
	for deadline := time.Now().Add(time.Minute); len(groups()) > 0 && time.Now().Before(deadline); {
		c.Sweep()
	}
	if left := groups(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", orphan)); err == nil && !strings.Contains(string(text), ") Z ") {
		t.Errorf("the orphan lives: %s", text)
	}
}

func TestGroupsSurviveTheirDirectoryBeingTakenAway(t *testing.T) {
	c := groupsHere(t, posture.WallPids)
	for _, b := range c.branches {
		if b.v2 {
			t.Skip("this process is in the directory")
		}
		if err := unix.Rmdir(b.base + "/" + b.name); err != nil {
			t.Fatal(err)
		}
	}
	g, err := c.Create("again", usual())
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}

func BenchmarkGroup(b *testing.B) {
	for _, way := range []string{"none", "place", "entrances"} {
		for _, pause := range []time.Duration{0, 50 * time.Millisecond} {
			b.Run(fmt.Sprintf("%s/pause=%v", way, pause), func(b *testing.B) { benchmarkGroup(b, way, pause) })
		}
	}
}

// benchmarkGroup measures everything that a run needs of its group, and a fork;
// "none" leaves the process outside.
func benchmarkGroup(b *testing.B, way string, pause time.Duration) {
	c := groupsHere(b, posture.WallMemory, posture.WallCPU, posture.WallPids)
	var took []time.Duration
	for b.Loop() {
		time.Sleep(pause)
		took = append(took, oneGroup(b, c, way))
	}
	slices.Sort(took)
	for _, p := range []int{50, 95, 99} {
		b.ReportMetric(float64(took[len(took)*p/100].Microseconds()), fmt.Sprintf("p%d-us", p))
	}
}

func oneGroup(b *testing.B, c *Groups, way string) time.Duration {
	began := time.Now()
	g, err := c.Create("bench", usual())
	if err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	dir, doors := -1, []int(nil)
	if way == "entrances" {
		dir, doors = g.dir, g.doors
	}
	began = time.Now()
	p, err := bystander.Start(dir, doors)
	if err != nil {
		b.Fatal(err)
	}
	took += time.Since(began)
	if way == "place" {
		began = time.Now()
		if err := g.place(p.PID); err != nil {
			b.Fatal(err)
		}
		took += time.Since(began)
	}
	p.End()
	began = time.Now()
	if _, err := g.ReadUsage(); err != nil {
		b.Fatal(err)
	}
	if err := g.Remove(); err != nil {
		b.Fatal(err)
	}
	return took + time.Since(began)
}

// TestProcessIsBornInto also runs on a hierarchy without controllers: the
// branch is made by hand where version 2 holds no wall here.
func TestProcessIsBornInto(t *testing.T) {
	b := version2Here(t)
	c := &Groups{branches: []*branch{b}}
	t.Cleanup(c.Close)
	g, err := c.Create("born", usual())
	if err != nil {
		t.Fatal(err)
	}
	dir, ok := g.Dir()
	if !ok || len(g.Entrances()) != 0 {
		t.Fatalf("dir %v, doors %v", ok, g.Entrances())
	}
	p, err := bystander.Start(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !isIn("/proc", p.PID, b, g.at[0].d) {
		t.Error("it is not in its group")
	}
	if err := g.Kill(); err != nil {
		t.Error(err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(p.PID, &status, 0, nil); err != nil || status.Signal() != unix.SIGKILL {
		t.Errorf("%v, status %x", err, status)
	}
	p.End()
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}

// version2Here is a branch of version 2, with what controllers there are.
func version2Here(t *testing.T) *branch {
	t.Helper()
	c := groupsHere(t)
	for _, b := range c.branches {
		if b.v2 {
			return &branch{v2: true, base: b.base, name: b.name, controllers: b.controllers, launcher: launcherUser, fd: openBranch(t, b)}
		}
	}
	members, err1 := os.ReadFile("/proc/self/cgroup")
	mounts, err2 := os.ReadFile("/proc/self/mountinfo")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	m, ok := memberOf(parseMemberships(string(members)), "")
	for _, mount := range parseGroupMounts(string(mounts)) {
		dir, under := mount.under(m.path)
		if !ok || !mount.v2 || !under {
			continue
		}
		b := &branch{v2: true, base: dir, name: supervisorNameHere(t), launcher: launcherUser, fd: -1}
		if err := b.open(); err != nil {
			t.Skip(err)
		}
		return b
	}
	t.Skip("version 2 is not mounted")
	return nil
}

func openBranch(t *testing.T, b *branch) int {
	t.Helper()
	fd, err := unix.Openat(b.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func supervisorNameHere(t *testing.T) string {
	t.Helper()
	name, err := supervisorName("/proc")
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// A launcher is another user where Holdfast is root; it may start processes in
// groups once it is admitted, and not before.
func TestAdmittedLauncherMayStartInGroups(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a launcher of the same user needs no admission")
	}
	b := version2Here(t)
	c := &Groups{branches: []*branch{b}}
	t.Cleanup(c.Close)
	g, err := c.Create("launched", usual())
	if err != nil {
		t.Fatal(err)
	}
	tryAs := func() (err error) {
		onThread(func() {
			if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, launcherUser, launcherUser, launcherUser); e != 0 {
				t.Error(e)
			}
			var p *bystander.Process
			if p, err = bystander.Start(g.dir, nil); err == nil {
				p.End()
			}
		})
		return err
	}
	if err := tryAs(); !errors.Is(err, unix.EACCES) {
		t.Errorf("before: %v, want EACCES", err)
	}
	back, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Admit(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if err := tryAs(); err != nil {
		t.Errorf("after: %v", err)
	}
	home := b.base
	if m, _ := memberOf(parseMemberships(string(back)), ""); strings.HasSuffix(m.path, selfLeaf) {
		home += "/" + b.name + "/" + selfLeaf
	}
	if err := os.WriteFile(home+"/cgroup.procs", []byte(fmt.Sprint(os.Getpid())), 0); err != nil {
		t.Error(err)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}
