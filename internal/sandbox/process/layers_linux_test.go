package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/cgroup"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// layer is a wall that the system will not let be built, and what has to be said.
type layer struct {
	fault sandboxtest.Fault
	kind  holdfast.Kind
	trace []string
}

func says(nr int, errno unix.Errno) sandboxtest.Fault {
	return sandboxtest.Fault{Nr: nr, Arg: -1, Errno: errno}
}

func saysOf(nr, arg int, value uint32, errno unix.Errno) sandboxtest.Fault {
	return sandboxtest.Fault{Nr: nr, Arg: arg, Value: value, Errno: errno}
}

// ofMount is a fault of mount(2) with these flags, which tell the mounts of the
// plan apart.
func ofMount(flags uint32, errno unix.Errno) sandboxtest.Fault {
	return saysOf(unix.SYS_MOUNT, 3, flags, errno)
}

func layers() map[string]layer {
	spawn := posture.TraceSpawn
	ns, sec := []string{posture.TraceNamespace, spawn}, []string{posture.TraceSeccomp, spawn}
	root, tmp := []string{posture.TraceMount, spawn}, []string{posture.TraceTmpfs, spawn}
	const locked = unix.MS_NOSUID | unix.MS_NODEV
	return map[string]layer{
		// 2.1 FP6, 2.2 FP1 to 3: what a container's filter says of namespaces.
		"no namespaces":       {says(unix.SYS_CLONE3, unix.EPERM), holdfast.KindNamespace, ns},
		"clone3 is not there": {says(unix.SYS_CLONE3, unix.ENOSYS), holdfast.KindNamespace, ns},
		"no name of its own":  {says(unix.SYS_SETHOSTNAME, unix.EPERM), holdfast.KindNamespace, ns},
		// 2.1 FP7, 2.2 FP5.
		"no filter":        {says(unix.SYS_SECCOMP, unix.EPERM), holdfast.KindSeccomp, sec},
		"an older kernel":  {says(unix.SYS_SECCOMP, unix.EINVAL), holdfast.KindSeccomp, sec},
		"somebody listens": {sandboxtest.Fault{Watched: true}, holdfast.KindSeccomp, sec},
		// 2.2 FP9.
		"mounts stay shared":   {ofMount(unix.MS_REC|unix.MS_PRIVATE, unix.EPERM), holdfast.KindMount, root},
		"no root":              {ofMount(unix.MS_BIND, unix.EPERM), holdfast.KindMount, root},
		"a root to be written": {ofMount(unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|locked, unix.EPERM), holdfast.KindMount, root},
		"no way into the root": {says(unix.SYS_PIVOT_ROOT, unix.EINVAL), holdfast.KindMount, root},
		"the old root stays":   {says(unix.SYS_UMOUNT2, unix.EBUSY), holdfast.KindMount, root},
		// 2.2 FP10.
		"no scratch":            {ofMount(locked|unix.MS_NOEXEC, unix.ENOMEM), holdfast.KindMount, tmp},
		"no place for its code": {ofMount(locked, unix.ENOSPC), holdfast.KindMount, tmp},
		"its code stays open":   {ofMount(unix.MS_REMOUNT|unix.MS_RDONLY|locked, unix.EPERM), holdfast.KindMount, tmp},
		// 2.1 FP5: what is no layer of 2.2's own.
		"no limits":   {says(unix.SYS_PRLIMIT64, unix.EPERM), holdfast.KindSpawn, []string{spawn}},
		"rights stay": {saysOf(unix.SYS_PRCTL, 0, unix.PR_SET_NO_NEW_PRIVS, unix.EINVAL), holdfast.KindSpawn, []string{spawn}},
	}
}

// TestLayerThatFails_003_2: each layer is made to fail by the kernel's own answer.
// Nothing runs, the error is the document's, the result says so with exit code 1,
// nothing is left behind, and the next run is a good one.
func TestLayerThatFails_003_2(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b := tier(t)
	good := func(t *testing.T) {
		t.Helper()
		res, err := b.Run(t.Context(), layered())
		if err != nil || res.State != posture.Completed || res.ExitCode != 0 {
			t.Fatalf("a good run: %+v, %v", res, err)
		}
	}
	good(t)
	b.Settle(t.Context())
	before := b.Trace()
	list := layers()
	if b.groups.Mode() == "v1" { // 2.1 FP8: the byte by which the init enters its groups
		list["no way into its groups"] = layer{saysOf(unix.SYS_WRITE, 2, 1, unix.EINVAL), holdfast.KindCgroup, []string{posture.TraceCgroup, posture.TraceSpawn}}
	}
	for name, l := range list {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			fell(t, b)
			l.fault.Set(t, b.cfg.Dir)
			res, err := b.Run(t.Context(), layered())
			sandboxtest.Mend(t, b.cfg.Dir)
			fell(t, b)
			refusedRun(t, l, res, err)
			good(t)
			leftAsBefore(t, b, before)
		})
	}
}

// layered is a program that needs every layer: its own executable scratch too.
func layered() sandbox.Spec {
	return sandbox.Spec{ID: "layered", Language: sandbox.Static, Code: probe(), Need: anyWalls}
}

func refusedRun(t *testing.T, l layer, res *posture.Result, err error) {
	t.Helper()
	var letter *holdfast.Error
	if !errors.As(err, &letter) || letter.Kind != l.kind || letter.Hint == "" || !l.fault.FellsRun(err.Error()) {
		t.Errorf("%v, want a %s of its cause with a hint", err, l.kind)
	}
	if got := traces(posture.Refused(err)); !slices.Equal(got, l.trace) {
		t.Errorf("it is told as %v, want %v", got, l.trace)
	}
	spawnErrorResult(t, res, letter)
}

// spawnErrorResult: 2.2 AC9, and the row "Container creation failed" of 2.1.
func spawnErrorResult(t *testing.T, res *posture.Result, letter *holdfast.Error) {
	t.Helper()
	if res == nil || letter == nil {
		t.Fatal("there is no result")
	}
	if want := "Spawn failed: " + letter.Why; res.ID != "layered" || res.State != posture.SpawnError || res.ExitCode != posture.ExitSpawn || res.Err != want || string(res.Stderr) != want+"\n" || len(res.Stdout) != 0 {
		t.Errorf("%s %d %q %q %q, want SPAWN_ERROR 1 %q", res.State, res.ExitCode, res.Err, res.Stderr, res.Stdout, want)
	}
	if len(res.Posture.Up) != 0 {
		t.Errorf("nothing ran, and these walls stood around it: %v", res.Posture.Up)
	}
	if got, want := visited(res.States), "IDLE RECEIVING REQUEST_PARSED SPAWNING SPAWN_ERROR FAULTED IDLE"; got != want {
		t.Errorf("the executor went %s, want %s", got, want)
	}
	if got, want := visited(res.Around), "INITIALIZING INIT_ERROR FAULTED TEARDOWN DESTROYED"; got != want {
		t.Errorf("the boundary went %s, want %s", got, want)
	}
}

func traces(rows []posture.Signal) []string {
	var list []string
	for _, r := range rows {
		list = append(list, r.Event)
	}
	return list
}

func visited(steps []posture.Step) string {
	var list []string
	for i, s := range steps {
		if s.At.IsZero() || i > 0 && s.At.Before(steps[i-1].At) {
			list = append(list, "(out of time)")
		}
		list = append(list, string(s.State))
	}
	return strings.Join(list, " ")
}

// fell ends the tier's launchers, and waits until that is known.
func fell(t *testing.T, b *Tier) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, z := range b.launchers {
		z.cmd.Process.Kill()
		select {
		case <-z.done:
		case <-time.After(10 * time.Second):
			t.Fatal("a launcher that was killed lives")
		}
	}
}

// leftAsBefore checks that the tier holds again what it held before. What is below a
// process that was killed goes when the kernel gets to it. A failure names every open
// descriptor.
func leftAsBefore(t *testing.T, b *Tier, before Trace) {
	t.Helper()
	var after Trace
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		b.Settle(t.Context())
		if after = b.Trace(); after == before {
			return
		}
	}
	t.Errorf("%+v is left, before it was %+v", after, before)
	for _, pid := range append(descendants(os.Getpid()), os.Getpid()) {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, link := range links {
			target, _ := os.Readlink(link)
			t.Log(link, target)
		}
	}
}

// TestSpawnFails_FP5_theInterpreter: everything stands, and then the interpreter
// does not start.
func TestSpawnFails_FP5_theInterpreter(t *testing.T) {
	b := tier(t)
	for name, fault := range map[string]sandboxtest.Fault{"refused": says(unix.SYS_EXECVE, unix.EACCES), "no memory": says(unix.SYS_EXECVE, unix.ENOMEM)} {
		fell(t, b)
		fault.Set(t, b.cfg.Dir)
		res, err := b.Run(t.Context(), layered())
		sandboxtest.Mend(t, b.cfg.Dir)
		fell(t, b)
		if e := (*holdfast.Error)(nil); errors.As(err, &e) { // it was heard of before the walls were said to stand
			refusedRun(t, layer{fault, holdfast.KindSpawn, []string{posture.TraceSpawn}}, res, err)
			continue
		}
		if err != nil || res.State != posture.SpawnError || res.ExitCode != posture.ExitSpawn || !fault.FellsRun(res.Err) || string(res.Stderr) != res.Err+"\n" || !strings.HasPrefix(res.Err, "Spawn failed: ") {
			t.Errorf("%s: %+v, %v", name, res, err)
			continue
		}
		if got := traces(res.Signals()); !slices.Equal(got, []string{posture.TraceSpawn}) {
			t.Errorf("%s: it is told as %v", name, got)
		}
		if got, want := visited(res.States), "IDLE RECEIVING REQUEST_PARSED SPAWNING SPAWN_ERROR FAULTED IDLE"; got != want {
			t.Errorf("%s: the executor went %s", name, got)
		}
		if got, want := visited(res.Around), "INITIALIZING READY TEARDOWN DESTROYED"; got != want {
			t.Errorf("%s: the boundary went %s", name, got)
		}
		if res, err := b.Run(t.Context(), layered()); err != nil || res.ExitCode != 0 {
			t.Errorf("the next run: %+v, %v", res, err)
		}
	}
}

// TestSeccompProfileInvalid_2_2_FP4: a filter that the kernel does not take.
func TestSeccompProfileInvalid_2_2_FP4(t *testing.T) {
	b := tier(t)
	for name, filter := range map[string][]unix.SockFilter{
		"empty":                {},
		"no end":               {{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}},
		"a jump out of it":     {{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 9, Jf: 9}, {Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}},
		"an unknown operation": {{Code: 0xffff}, {Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}},
		"beyond the data":      {{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 4096}, {Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}},
		"too long":             slices.Repeat([]unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}, unix.BPF_MAXINSNS+1),
	} {
		res, err := planned(t, b, func(o *order) { o.filter = filter })
		if res != nil || holdfast.KindOf(err) != holdfast.KindSeccomp || !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		if got := traces(posture.Refused(err)); !slices.Equal(got, []string{posture.TraceSeccomp, posture.TraceSpawn}) {
			t.Errorf("%s: it is told as %v", name, got)
		}
	}
	if res, err := planned(t, b, func(*order) {}); err != nil || res.ExitCode != 0 {
		t.Errorf("the next run: %+v, %v", res, err)
	}
}

// planned runs a plan that was changed after the tier had made it.
func planned(t *testing.T, b *Tier, change func(*order)) (*posture.Result, error) {
	t.Helper()
	spec, err := b.Prepare(t.Context(), layered())
	if err != nil {
		t.Fatal(err)
	}
	l, err := b.language(t.Context(), spec.Language)
	if err != nil {
		t.Fatal(err)
	}
	z, err := b.launcher(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.order(l, spec)
	if err != nil {
		t.Fatal(err)
	}
	change(o)
	now := time.Now()
	return b.execute(t.Context(), z, o, spec, posture.Instants{Received: now, Parsed: now})
}

// TestRootThatVanished_2_2_FP9: the root's directory went away behind the tier.
func TestRootThatVanished_2_2_FP9(t *testing.T) {
	b := tier(t)
	gone := t.TempDir()
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	z, err := startLauncher(gone, &pool{})
	if err != nil {
		t.Fatal(err)
	}
	defer z.close()
	s, err := b.take(z)
	if s != nil || holdfast.KindOf(err) != holdfast.KindMount || !strings.Contains(err.Error(), "bind the runtime's root: no such file") {
		t.Errorf("%v, %v", s, err)
	}
}

// TestGroupsThatAreNotThere_2_2_FP6 to 8: a run that needs the walls of control
// groups on a system without them, and on one whose groups take no limit.
func TestGroupsThatFailARun_2_2_FP6_FP7_FP8(t *testing.T) {
	b := tier(t)
	real := b.groups
	want := func(name, word string, need []posture.Wall) {
		t.Helper()
		spec := layered()
		spec.Need = need
		res, err := b.Run(t.Context(), spec)
		var letter *holdfast.Error
		if !errors.As(err, &letter) || letter.Kind != holdfast.KindCgroup || letter.Hint == "" || !strings.Contains(letter.Why, word) {
			t.Errorf("%s: %v", name, err)
		}
		if got := traces(posture.Refused(err)); !slices.Equal(got, []string{posture.TraceCgroup, posture.TraceSpawn}) {
			t.Errorf("%s: it is told as %v", name, got)
		}
		spawnErrorResult(t, res, letter)
	}
	if res, err := b.Run(t.Context(), layered()); err != nil || res.ExitCode != 0 {
		t.Fatal(res, err)
	}
	b.Settle(t.Context())
	drain(b) // those that wait were made with the system's groups
	b.groups = cgroup.Find(t.TempDir(), hostUser)
	want("FP6: none are there", "missing walls here: memory", nil)
	want("FP6: one is needed", "missing a wall here: pids", []posture.Wall{posture.WallPID, posture.WallPids})
	for ctl, file := range map[string]string{"memory": "memory.max", "cpu": "cpu.max", "pids": "pids.max"} {
		groups, err := cgroup.NewUntried(t.TempDir(), ctl)
		if err != nil {
			t.Fatal(err)
		}
		b.groups = groups // no run has come so far as to let seats be made: nobody else looks
		want("FP7, FP8: "+file, file, anyWalls)
		b.groups.Close()
		if left, _ := os.ReadDir(b.groups.Homes()[0]); len(left) > 0 {
			t.Errorf("%s: left %v", file, left)
		}
	}
	b.groups = real
	if res, err := b.Run(t.Context(), layered()); err != nil || res.ExitCode != 0 {
		t.Errorf("the next run: %+v, %v", res, err)
	}
}
