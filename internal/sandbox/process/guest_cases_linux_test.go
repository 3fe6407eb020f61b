package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// guestTries are the attempts on what groups hold, and what has to hold of every
// run, but for those that want more memory than the guest has, or most of a
// minute where each instruction is emulated.
const guestTries = "^(memory_in_files_of_the_scratch|a_list|threads|processor_time|figures_are_measured|no_descriptor_leaks)$"

// Programs in the guest, besides sandboxtest.GuestSelf: what the attempts start, and the
// tests of package cgroup.
const (
	guestTricks = "/guest/tricks"
	guestGroups = "/guest/groups"
)

// guests are the machines that are booted.
func guests() []string { return []string{"services", "scopes", "hybrid"} }

// scenesOf are the ways in which groups are kept in one guest.
func scenesOf(guest string) []scene {
	every := stand{groups: "v2", up: []string{"memory", "cpu", "pids"}}
	const shared = "other processes live in the same control group"
	list := map[string][]scene{
		"services": {
			{name: "groups of a service", place: placed("system.slice/groups.service", 0), groups: true,
				tests: groupTests()},
			{name: "a service", place: placed("system.slice/holdfast.service", 0), want: every,
				tests: []string{"TestScene", "TestTrialsAgreeWithPosture", "TestTraceSees", "TestNothingOutlivesItsSupervisor", "TestEscapeSuite/^(limit|property)$/" + guestTries}},
			{name: "beside a child", place: placed("system.slice/child.service", 0), enter: "child", want: every},
			{name: "groups in the first group of all", place: placed("", 0), groups: true,
				tests: []string{"TestSweepTakesADeadSupervisorsGroups"}},
			{name: "the first group of all", place: placed("", 0), tests: []string{"TestScene"}, want: every},
		},
		"scopes": {
			{name: "groups of a user's scope", place: placed("user.slice/user-1000.slice/groups.scope", guestUser),
				user: guestUser, groups: true, tests: []string{"TestProcessIsBornInto"}},
			{name: "a user's scope", place: placed("user.slice/user-1000.slice/holdfast.scope", guestUser), user: guestUser, want: every,
				tests: []string{"TestScene", "TestTraceSees", "TestEscapeSuite/^limit$/" + guestTries}},
			{name: "below a command", place: placed("user.slice/user-1000.slice/command.scope", guestUser), user: guestUser, enter: "command", want: every},
			{name: "not delegated", place: placed("user.slice/session.scope", 0), user: guestUser, want: stand{groups: "none", why: "where control groups are delegated"}},
			{name: "a container", place: placed("system.slice/container", 0), enter: "namespace", want: every},
			{name: "beside a stranger", place: beside("system.slice/shared.scope"), want: stand{groups: "none", why: shared}},
		},
		"hybrid": {
			{name: "groups with memory in version 1", place: hybrid, groups: true,
				tests: []string{"TestPidsLimitStopsForks", "TestTwoRunsOfOneName", "TestProcessIsBornInto"}},
			{name: "memory in version 1", place: hybrid, tests: []string{"TestScene"}, want: stand{groups: "v1", up: every.up}},
			{name: "nothing mounted", place: hybrid, enter: "no mount", want: stand{groups: "none", why: "mount /sys/fs/cgroup"}},
		},
	}[guest]
	for i := range list {
		if list[i].brief = list[i].tests == nil; list[i].brief {
			list[i].tests = []string{"TestScene"}
		}
	}
	return list
}

// groupTests are tests of package cgroup.
func groupTests() []string {
	return []string{
		"TestLimitThatCannotBeSetIsACgroupError", "TestLimitThatTheKernelRefusesIsACgroupError", "TestNamesAndSharesThatCannotBe",
		"TestMemoryLimitKills", "TestCPUQuotaThrottles", "TestPidsLimitStopsForks", "TestUsageAgreesWithRusage",
		"TestTwoRunsOfOneName", "TestRemoveRefusesWhatIsBusy", "TestProcessIsBornInto",
		"TestAdmittedLauncherMayStartInGroups",
	}
}

// TestScene is what has to hold in every scene of a guest; elsewhere it is no
// test.
func TestScene(t *testing.T) {
	name := os.Getenv(sceneEnv)
	if name == "" {
		return
	}
	var all []scene
	for _, guest := range guests() {
		all = append(all, scenesOf(guest)...)
	}
	i := slices.IndexFunc(all, func(s scene) bool { return s.name == name })
	if i < 0 {
		t.Fatalf("there is no scene %q", name)
	}
	before := groupsOfTheGuest(t)
	b, err := Open(t.Context(), Config{Dir: rootsFor(t), Secret: func(string) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("posture", func(t *testing.T) { sceneStands(t, b, all[i].want) })
	if len(all[i].want.up) > 0 {
		t.Run("walls", func(t *testing.T) { sceneHolds(t, b, all[i].brief) })
	} else {
		t.Run("refusal", func(t *testing.T) { sceneRefuses(t, b) })
	}
	if !all[i].brief && os.Geteuid() != 0 { // root's shows the tree by an ID-mapped mount, which this kernel's tmpfs has not
		t.Run("workspace", sceneWorks)
	}
	t.Run("words", func(t *testing.T) { sceneTells(t, b) })
	t.Run("nothing left", func(t *testing.T) { sceneLeaves(t, b) })
	b.Close()
	if after := groupsOfTheGuest(t); !slices.Equal(after, before) {
		t.Errorf("groups when it was closed: %q, before it was opened: %q", after, before)
	}
}

// sceneStands: what the posture says.
func sceneStands(t *testing.T, b *Tier, want stand) {
	p := b.Posture()
	if p.Groups != want.groups {
		t.Errorf("groups are kept by %s, want %s", p.Groups, want.groups)
	}
	for _, w := range []posture.Wall{posture.WallMemory, posture.WallCPU, posture.WallPids} {
		if up := slices.Contains(p.Up, w); up != slices.Contains(want.up, string(w)) {
			t.Errorf("%s stands: %v (%s)", w, up, p.Down[w])
		} else if !up && !strings.Contains(p.Down[w], want.why) {
			t.Errorf("%s: %q does not say %q", w, p.Down[w], want.why)
		}
	}
	if mode := map[bool]string{true: "root", false: "rootless"}[os.Geteuid() == 0]; p.Mode != mode {
		t.Errorf("mode %s, want %s", p.Mode, mode)
	}
	// Landlock is in Debian's kernels since version 1 of it, Linux 5.13.
	if b.abi < 1 || !slices.Contains(p.Up, posture.WallLandlock) {
		t.Errorf("Landlock %d; %v", b.abi, p.Down)
	}
	t.Logf("Landlock %d, %+v", b.abi, p)
}

// sceneRun runs Python behind every wall that stands.
func sceneRun(t *testing.T, b *Tier, code string, change func(*sandbox.Spec)) *posture.Result {
	t.Helper()
	spec := sandbox.Spec{ID: "scene", Language: "python3", Code: []byte(code), Timeout: sandbox.MaxTimeout, Need: b.Posture().Up}
	if change != nil {
		change(&spec)
	}
	res, err := b.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// sceneHolds: each share is held, by the group and not by anything else, and
// what was used is told from it.
func sceneHolds(t *testing.T, b *Tier, brief bool) {
	const eat = "b = bytearray(%d << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint('ate')"
	little := func(s *sandbox.Spec) { s.MemoryMB = 48 }
	if res := sceneRun(t, b, fmt.Sprintf(eat, 96), little); res.State != posture.OOM || res.ExitCode != posture.ExitLimit || res.Reason != posture.ReasonOOM || res.MemoryPeak < 40<<20 || res.MemoryPeak > 56<<20 {
		t.Errorf("96 MB of 48: %s %d %q, peak %d", res.State, res.ExitCode, res.Reason, res.MemoryPeak)
	}
	if brief {
		return
	}
	if res := sceneRun(t, b, fmt.Sprintf(eat, 24), little); res.State != posture.Completed || string(res.Stdout) != "ate\n" || res.MemoryPeak < 24<<20 {
		t.Errorf("24 MB of 48: %s %q %q, peak %d", res.State, res.Stdout, res.Stderr, res.MemoryPeak)
	}
	// Files of the scratch are the group's memory, and not the process's.
	if res := sceneRun(t, b, "open('f', 'wb').write(bytes(1 << 20) * 30)", nil); res.State != posture.Completed || res.MemoryPeak < 60<<20 {
		t.Errorf("30 MB of memory and 30 of files: %s %q, peak %d", res.State, res.Stderr, res.MemoryPeak)
	}
	res := sceneRun(t, b, "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass", func(s *sandbox.Spec) {
		s.CPUPeriod, s.CPUQuota = 100*time.Millisecond, 20*time.Millisecond
	})
	if used := res.UserTime + res.SystemTime; res.State != posture.Completed || used < 100*time.Millisecond || used > res.WallTime/5+200*time.Millisecond {
		t.Errorf("a fifth of a processor: %s, used %v in %v", res.State, used, res.WallTime)
	}
	const threads = "import threading, os\nstop = threading.Event(); n = 0\ntry:\n    for n in range(200): threading.Thread(target=stop.wait, daemon=True).start()\nexcept RuntimeError: pass\nprint(n < %d, flush=True); os._exit(0)"
	if res := sceneRun(t, b, fmt.Sprintf(threads, maxPids), nil); string(res.Stdout) != "True\n" {
		t.Errorf("threads: %s %q %q", res.State, res.Stdout, res.Stderr)
	}
}

// sceneWorks: a program on a work tree is held to its share too.
func sceneWorks(t *testing.T) {
	change := func(code string) func(*sandbox.Workspace) {
		return func(w *sandbox.Workspace) {
			w.Argv, w.MemoryMB = []string{"/usr/bin/python3", "-c", code}, 64
		}
	}
	if got := workIn(t, t.TempDir(), "", "", change("print('works')")); got.out != "works\n" || got.ExitCode != 0 || got.MemoryPeak == 0 {
		t.Errorf("%s %d %q %q %q, peak %d", got.State, got.ExitCode, got.out, got.errs, got.Stderr, got.MemoryPeak)
	}
	if got := workIn(t, t.TempDir(), "", "", change("b = bytes(1) * (128 << 20)")); got.State != posture.OOM || got.ExitCode != posture.ExitLimit {
		t.Errorf("128 MB of 64: %s %d %q %q, peak %d", got.State, got.ExitCode, got.errs, got.Stderr, got.MemoryPeak)
	}
}

// sceneRefuses: where no group holds a share nothing runs, unless the request
// takes that.
func sceneRefuses(t *testing.T, b *Tier) {
	spec := sandbox.Spec{ID: "refused", Language: "python3", Code: []byte("print('ran')")}
	res, err := b.Run(t.Context(), spec)
	if res == nil || res.State != posture.SpawnError || len(res.Stdout) > 0 {
		t.Errorf("%+v", res)
	}
	if e := (*holdfast.Error)(nil); !errors.As(err, &e) || e.Kind != holdfast.KindCgroup || !strings.Contains(e.Why, "missing walls here: memory, cpu, pids") {
		t.Errorf("%v", err)
	}
}

// sceneTells: how runs end is told in the same words whatever keeps the groups.
// The programs are small: a guest is slow.
func sceneTells(t *testing.T, b *Tier) {
	if res := sceneRun(t, b, "print('hello')", nil); string(res.Stdout) != "hello\n" || res.State != posture.Completed || res.ExitCode != 0 {
		t.Errorf("hello: %s %d %q %q", res.State, res.ExitCode, res.Stdout, res.Stderr)
	}
	program := func(a ask) func(*sandbox.Spec) {
		return func(s *sandbox.Spec) { s.Language, s.Code, s.Timeout = sandbox.Static, probe(a), time.Second }
	}
	waits := asking(unix.SYS_PPOLL, 0, 0, 0, 0)
	if res := sceneRun(t, b, "", program(waits)); res.State != posture.Timeout || res.ExitCode != posture.ExitLimit || res.Reason != posture.ReasonWall {
		t.Errorf("a program that waits for ever: %s %d %q", res.State, res.ExitCode, res.Reason)
	}
	for nr, want := range map[int]posture.Reason{unix.SYS_SYSLOG: posture.ReasonSyscall, unix.SYS_CHROOT: posture.ReasonEscape} {
		res := sceneRun(t, b, "", program(asking(nr, 0, 0)))
		if res.State != posture.SyscallBlocked || res.ExitCode != posture.ExitSyscall || res.Reason != want || res.Call == nil || res.Call.Nr != nr || res.Call.Name == "" {
			t.Errorf("call %d: %s %d %q %v", nr, res.State, res.ExitCode, res.Reason, res.Call)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	res, err := b.Run(ctx, sandbox.Spec{ID: "halt", Language: sandbox.Static, Code: probe(waits), Timeout: sandbox.MaxTimeout, Need: b.Posture().Up})
	if err != nil || res.Reason != posture.ReasonHalt || res.WallTime > 10*time.Second {
		t.Errorf("a halt: %v %v", res, err)
	}
}

// sceneLeaves: after many runs there is what there was after a few.
func sceneLeaves(t *testing.T, b *Tier) {
	spec := sandbox.Spec{ID: "many", Language: sandbox.Static, Code: probe(), Need: b.Posture().Up}
	repeat := func(n int) {
		for range n {
			if res, err := b.Run(t.Context(), spec); err != nil || res.ExitCode != 0 {
				t.Fatal(err, res)
			}
		}
		b.Settle(t.Context())
	}
	repeat(5)
	before := b.Trace()
	repeat(20)
	leftAsBefore(t, b, before)
}

// groupsOfTheGuest are all groups that there are.
func groupsOfTheGuest(t *testing.T) []string {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	list := []string{string(own)}
	for line := range strings.Lines(string(mounts)) {
		before, kind, _ := strings.Cut(line, " - ") // ID parent device root point options fields - type ...
		if strings.HasPrefix(kind, "cgroup") {
			list = append(list, groupsBelow(t, strings.Fields(before)[4])...)
		}
	}
	return list
}

func groupsBelow(t *testing.T, dir string) []string {
	t.Helper()
	list := []string{dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, groupsBelow(t, dir+"/"+e.Name())...)
		}
	}
	return list
}
