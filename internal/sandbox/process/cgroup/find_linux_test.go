package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// Recorded from running systems; TOP stands for the directory that the test
// makes in place of /sys/fs/cgroup.
const (
	hybridCgroup = `9:name=systemd:/
8:pids:/
7:blkio:/
4:memory:/service/one
2:cpuacct:/
1:cpu:/
0::/
`
	hybridMounts = `31 23 0:28 / TOP rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / TOP/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / TOP/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
35 31 0:32 / TOP/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / TOP/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / TOP/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / TOP/unified rw,relatime - cgroup2 cgroup2 rw
`
	unifiedCgroup = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-r5.scope\n"
	unifiedMounts = `35 24 0:30 / TOP rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
`
	dockerV1Cgroup = `11:memory:/docker/0123
10:pids:/docker/0123
4:cpu,cpuacct:/docker/0123
1:name=systemd:/docker/0123
0::/docker/0123
`
	dockerV1Mounts = `884 879 0:100 / TOP rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,mode=755
889 884 0:33 /docker/0123 TOP/cpu,cpuacct ro,nosuid,nodev,noexec,relatime master:16 - cgroup cgroup rw,cpu,cpuacct
890 884 0:35 /docker/0123 TOP/memory ro,nosuid,nodev,noexec,relatime master:18 - cgroup cgroup rw,memory
891 884 0:37 /docker/0123 TOP/pids ro,nosuid,nodev,noexec,relatime master:20 - cgroup cgroup rw,pids
`
)

func TestEachControllerIsFoundWhereItIs(t *testing.T) {
	const scope = "user.slice/user-1000.slice/user@1000.service/app.slice/run-r5.scope"
	for _, c := range []struct {
		name, cgroup, mounts string
		offered              map[string]string // cgroup.controllers of version 2 groups
		want                 string            // controller=version:directory, sorted as locate looks
		down                 map[posture.Wall]string
	}{
		{"hybrid", hybridCgroup, hybridMounts, nil, "memory=v1:memory/service/one cpu=v1:cpu cpuacct=v1:cpuacct pids=v1:pids", nil},
		{"unified", unifiedCgroup, unifiedMounts, map[string]string{scope: "cpu io memory pids\n"}, "memory=v2:" + scope + " cpu=v2:" + scope + " pids=v2:" + scope, nil},
		{"unified, partly delegated", unifiedCgroup, unifiedMounts, map[string]string{scope: "memory pids\n"}, "memory=v2:" + scope + " pids=v2:" + scope,
			map[posture.Wall]string{posture.WallCPU: "systemd-run --user --scope"}},
		{"docker with version 1", dockerV1Cgroup, dockerV1Mounts, nil, "memory=v1:memory cpu=v1:cpu,cpuacct cpuacct=v1:cpu,cpuacct pids=v1:pids", nil},
		{"namespace of its own", "0::/\n", unifiedMounts, map[string]string{"": "cpu memory pids"}, "memory=v2: cpu=v2: pids=v2:", nil},
		{"in its own leaf", "0::/a/holdfast-7-9/supervisor\n", unifiedMounts, map[string]string{"a": "cpu memory pids"}, "memory=v2:a cpu=v2:a pids=v2:a", nil},
		{"in another's leaf", "0::/a/holdfast-8-9/supervisor\n", unifiedMounts, map[string]string{"a/holdfast-8-9/supervisor": "cpu memory pids"},
			"memory=v2:a/holdfast-8-9/supervisor cpu=v2:a/holdfast-8-9/supervisor pids=v2:a/holdfast-8-9/supervisor", nil},
		{"controllers of both versions", "4:memory:/m\n0::/u\n", hybridMounts, map[string]string{"unified/u": "cpu pids"}, "memory=v1:memory/m cpu=v2:unified/u pids=v2:unified/u", nil},
		{"outside of the namespace", "0::/../other\n", unifiedMounts, nil, "", map[posture.Wall]string{posture.WallMemory: "not in any mount here", posture.WallCPU: "not in any mount here", posture.WallPids: "not in any mount here"}},
		{"mounted from outside", "0::/\n", strings.Replace(unifiedMounts, " / ", " /.. ", 1), nil, "", map[posture.Wall]string{posture.WallMemory: "not in any mount"}},
		{"another group mounted", "0::/docker/01234\n", strings.Replace(unifiedMounts, " / ", " /docker/0123 ", 1), nil, "", map[posture.Wall]string{posture.WallMemory: "not in any mount"}},
		{"none", "", "", nil, "", map[posture.Wall]string{posture.WallMemory: "cgroup_disable", posture.WallCPU: "cgroup_disable", posture.WallPids: "cgroup_disable"}},
		{"nonsense", "x\n:::\n1:\n\x00\n", "1 2 3\n - cgroup2 a b\n", nil, "", map[posture.Wall]string{posture.WallMemory: "cgroup_disable"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := t.TempDir()
			for dir, text := range c.offered {
				write(t, filepath.Join(top, dir, "cgroup.controllers"), text)
			}
			proc := procWith(t, c.cgroup, strings.ReplaceAll(c.mounts, "TOP", top))
			groups := &Groups{down: map[posture.Wall]Lack{}}
			var got []string
			for _, b := range groups.locate(proc, "holdfast-7-9") {
				for _, ctl := range b.controllers {
					version := "v1"
					if b.v2 {
						version = "v2"
					}
					got = append(got, fmt.Sprintf("%s=%s:%s", ctl, version, strings.TrimPrefix(strings.TrimPrefix(b.base, top), "/")))
				}
			}
			slices.SortStableFunc(got, func(a, b string) int { return order4(a) - order4(b) })
			if strings.Join(got, " ") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, " "), c.want)
			}
			for w, want := range c.down {
				if !strings.Contains(groups.down[w].Error(), want) {
					t.Errorf("%s: %q does not say %q", w, groups.down[w], want)
				}
			}
			if c.down == nil && len(groups.down) > 0 {
				t.Errorf("down: %v", groups.down)
			}
		})
	}
}

func order4(s string) int {
	ctl, _, _ := strings.Cut(s, "=")
	return slices.Index([]string{ctlMemory, ctlCPU, ctlAcct, ctlPids}, ctl)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// procWith is a /proc that holds what Find looks at.
func procWith(t *testing.T, cgroup, mounts string) string {
	t.Helper()
	proc := t.TempDir()
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	write(t, proc+"/self/stat", string(stat))
	write(t, proc+"/self/cgroup", cgroup)
	write(t, proc+"/self/mountinfo", mounts)
	return proc
}

func TestMountPointsAreUnescaped(t *testing.T) {
	m := parseGroupMounts(`35 24 0:30 / /a\040b\134c rw shared:9 master:2 - cgroup2 none rw` + "\n")
	if len(m) != 1 || m[0].point != `/a b\c` || !m[0].v2 {
		t.Errorf("%+v", m)
	}
}

func TestStartTimeWithANastyName(t *testing.T) {
	proc := t.TempDir()
	write(t, proc+"/9/stat", "9 (a) S) 1 2) S 1 9 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0 0\n")
	if got, err := startTime(proc, "9"); got != "4711" || err != nil {
		t.Error(got, err)
	}
	write(t, proc+"/8/stat", "8 (a")
	if got, err := startTime(proc, "8"); err == nil {
		t.Error(got)
	}
}

func TestNamesThatAreNotOursAreLeftAlone(t *testing.T) {
	for _, name := range []string{"holdfast-", "holdfast-1", "holdfast-x-1", "holdfast-1-x", "holdfast--1-2", "holdfast-99999999999-1"} {
		if !alive(name) {
			t.Errorf("%q would be swept", name)
		}
	}
	if alive("holdfast-1-18446744073709551615") {
		t.Error("a number used again is taken for the supervisor")
	}
}

// Failure predicate 003 2.1 (8) and 2.2: no control groups at all.
func TestNoGroupsIsACgroupError(t *testing.T) {
	for name, c := range map[string]*Groups{
		"no hierarchy":     Find(procWith(t, "", ""), launcherUser),
		"no /proc":         Find(t.TempDir(), launcherUser),
		"not really there": Find(procWith(t, hybridCgroup, strings.ReplaceAll(hybridMounts, "TOP", t.TempDir())), launcherUser),
	} {
		up, down := c.Walls()
		if c.Mode() != "none" || len(up) != 0 || len(down) != 3 {
			t.Errorf("%s: %s %v %v", name, c.Mode(), up, down)
		}
		g, err := c.Create("run", usual())
		var letter *holdfast.Error
		if g != nil || !errors.As(err, &letter) || letter.Kind != holdfast.KindCgroup || letter.Hint == "" || !strings.Contains(letter.Why, "not available") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Failure predicate 003 2.1 (8) and 2.2: one limit cannot be set. The
// directories are plain ones, in which no control file appears.
func TestLimitThatCannotBeSetIsACgroupError(t *testing.T) {
	for ctl, file := range map[string]string{ctlMemory: "memory.max", ctlCPU: "cpu.max", ctlPids: "pids.max"} {
		c, err := NewUntried(t.TempDir(), ctl)
		if err != nil {
			t.Fatal(err)
		}
		g, err := c.Create("run", usual())
		if g != nil || holdfast.KindOf(err) != holdfast.KindCgroup || !strings.Contains(err.Error(), file) || !errors.Is(err, unix.ENOENT) {
			t.Errorf("%s: %v", ctl, err)
		}
		if left, _ := os.ReadDir(c.Homes()[0]); len(left) > 0 {
			t.Errorf("%s: left %v", ctl, left)
		}
		c.Close()
	}
}

// The same, of the kernel's own refusal.
func TestLimitThatTheKernelRefusesIsACgroupError(t *testing.T) {
	for w, s := range map[posture.Wall]sandbox.Share{
		posture.WallCPU:  {Memory: 64 << 20, Pids: 4, Period: 100 * time.Millisecond, Quota: 10 * time.Microsecond},
		posture.WallPids: {Memory: 64 << 20, Pids: 1 << 40, Period: 100 * time.Millisecond, Quota: 100 * time.Millisecond},
	} {
		c := groupsHere(t, w)
		g, err := c.Create("run", s)
		if g != nil || holdfast.KindOf(err) != holdfast.KindCgroup || !strings.Contains(err.Error(), string(w)+".") || !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %v", w, err)
		}
		if left := groupsLeft(t, c); len(left) > 0 {
			t.Errorf("%s: left %q", w, left)
		}
	}
}

func TestNamesAndSharesThatCannotBe(t *testing.T) {
	c := groupsHere(t, posture.WallPids)
	for _, id := range []string{"", "..", "a/b", "a\nb", strings.Repeat("a", maxGroupID+1)} {
		if _, err := c.Create(id, usual()); holdfast.KindOf(err) != holdfast.KindCgroup {
			t.Errorf("%.20q: %v", id, err)
		}
	}
	if _, err := c.Create("zero", sandbox.Share{}); holdfast.KindOf(err) != holdfast.KindCgroup {
		t.Errorf("an empty share: %v", err)
	}
	if left := groupsLeft(t, c); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// onThread runs f on a thread of its own, which ends with it.
func onThread(f func()) {
	done := make(chan bool)
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		f()
	}()
	<-done
}

func TestReadOnlyHierarchyIsToldOf(t *testing.T) {
	c := groupsHere(t, posture.WallMemory, posture.WallCPU)
	base := c.branches[0].base
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(parseGroupMounts(string(mounts)), func(m groupMount) bool {
		return base == m.point || strings.HasPrefix(base, m.point+"/")
	})
	if i < 0 {
		t.Fatal(base)
	}
	point := parseGroupMounts(string(mounts))[i].point
	onThread(func() {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			t.Skip(err)
		}
		err1 := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		err2 := unix.Mount("", point, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
		if err := errors.Join(err1, err2); err != nil {
			t.Error(err)
			return
		}
		ro := Find("/proc", launcherUser)
		defer ro.Close()
		_, down := ro.Walls()
		if why := down[posture.WallMemory].Error(); !strings.Contains(why, "read-only") || !strings.Contains(why, "mount /sys/fs/cgroup for writing") {
			t.Errorf("memory: %q", why)
		}
		if c.Mode() == "v1" && len(down) != 1 {
			t.Errorf("others are down with it: %v", down)
		}
	})
}

func TestWithoutRightsTheReasonIsTold(t *testing.T) {
	c := groupsHere(t, posture.WallMemory)
	if os.Geteuid() != 0 || c.Mode() != "v1" {
		t.Skip("needs root to give it up, and version 1")
	}
	onThread(func() {
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); e != 0 {
			t.Error(e)
			return
		}
		up, down := Find("/proc", launcherUser).Walls()
		if len(up) != 0 {
			t.Errorf("up: %v", up)
		}
		for w, why := range down {
			if !strings.Contains(why.Why, "permission denied") || !strings.Contains(why.Error(), "root") {
				t.Errorf("%s: %q", w, why)
			}
		}
	})
}

func TestVersion2FilesAreWrittenAndRead(t *testing.T) {
	dir := t.TempDir()
	d := ctlDir{fd: unix.AT_FDCWD, sub: dir + "/", path: dir}
	for _, f := range []string{"memory.max", "cpu.max", "pids.max", "memory.swap.max"} { // and no memory.oom.group
		write(t, dir+"/"+f, "")
	}
	s := sandbox.Share{Memory: 256 << 20, Period: 100 * time.Millisecond, Quota: 150 * time.Millisecond, Pids: 3}
	for _, ctl := range []string{ctlMemory, ctlCPU, ctlPids} {
		if err := setV2(d, ctl, s); err != nil {
			t.Error(err)
		}
	}
	for file, want := range map[string]string{"memory.max": "268435456", "memory.swap.max": "0", "cpu.max": "150000 100000", "pids.max": "3"} {
		if got, _ := d.read(file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	write(t, dir+"/memory.peak", "12345678\n")
	write(t, dir+"/memory.events", "low 0\nhigh 0\nmax 31\noom 2\noom_kill 1\noom_group_kill 1\n")
	write(t, dir+"/memory.stat", "anon 4096\npgfault 99\npgmajfault 7\n")
	write(t, dir+"/cpu.stat", "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnr_periods 4\nnr_throttled 2\nthrottled_usec 250\n")
	var u Usage
	if err := errors.Join(readV2(d, ctlMemory, &u), readV2(d, ctlCPU, &u), readV2(d, ctlPids, &u)); err != nil {
		t.Fatal(err)
	}
	want := Usage{Peak: 12345678, User: time.Millisecond, System: 500 * time.Microsecond, OOMKills: 1, MajorFaults: 7, Throttled: 250 * time.Microsecond}
	if u != want {
		t.Errorf("%+v, want %+v", u, want)
	}
}

func TestSharedVersion2GroupIsLeftAsItIs(t *testing.T) {
	base := t.TempDir()
	for file, text := range map[string]string{"cgroup.subtree_control": "", "cgroup.events": "populated 1\n", "cgroup.procs": fmt.Sprintf("%d\n1\n", os.Getpid())} {
		write(t, base+"/"+file, text)
	}
	b := &branch{v2: true, base: base, name: "holdfast-7-9", controllers: []string{ctlMemory, ctlPids}, fd: -1}
	if err := b.open(); err != nil {
		t.Fatal(err)
	}
	defer b.close()
	failed := b.handDown()
	if len(failed) != 2 || !errors.Is(failed[ctlMemory], errShared) || !strings.Contains(b.lackFor(failed[ctlMemory]).Advice, "Delegate=yes") {
		t.Errorf("%v", failed)
	}
	if left, _ := os.ReadDir(base + "/" + b.name); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
