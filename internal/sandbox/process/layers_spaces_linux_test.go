package process

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// outerEnv makes the test's program one that is in a user namespace whose limits
// of namespaces are its own to set.
const outerEnv = "HOLDFAST_TEST_OUTER"

// TestNamespaceThatFails_FP1_FP2_FP3: the kernel makes no namespace of one kind,
// neither for a launcher (003 2.2: PID, NET, MNT; 2.1 FP6) nor, where it made the
// launcher's, for a run. Each is a NamespaceError with its result, leaves nothing,
// and the next run is a good one.
func TestNamespaceThatFails_FP1_FP2_FP3(t *testing.T) {
	if os.Getenv(outerEnv) != "" {
		for _, kind := range []string{"pid", "net", "mnt", "user", "uts", "ipc", "cgroup"} {
			refuseSpace(t, kind)
		}
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestNamespaceThatFails_FP1_FP2_FP3$", "-test.v")
	cmd.Env = append(os.Environ(), outerEnv+"=yes")
	const inside = 1000 // no root: a root of its own namespace cannot be handed on
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE},
		UidMappings: []syscall.SysProcIDMap{{ContainerID: inside, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: inside, HostID: os.Getegid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if n := strings.Count(string(out), "refused for a "); n != 13 {
		t.Errorf("%d of 13 refusals were seen\n%s", n, out)
	}
}

// refuseSpace takes a kind of namespace away from launchers, then from runs. (A
// launcher has no control group namespace.)
func refuseSpace(t *testing.T, kind string) {
	t.Setenv("TMPDIR", t.TempDir())
	b := tier(t)
	good := func() {
		t.Helper()
		if res, err := b.Run(t.Context(), layered()); err != nil || res.ExitCode != 0 {
			t.Fatalf("%s: a good run: %+v, %v", kind, res, err)
		}
	}
	good()
	b.Settle(t.Context())
	before := b.Trace()
	file := fmt.Sprintf("/proc/sys/user/max_%s_namespaces", kind)
	set := func(value string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	nospace := layer{sandboxtest.Fault{Errno: unix.ENOSPC}, holdfast.KindNamespace, []string{posture.TraceNamespace, posture.TraceSpawn}}
	refused := func(whom string) {
		t.Helper()
		res, err := b.Run(t.Context(), layered())
		set(strings.TrimSpace(string(was)))
		refusedRun(t, nospace, res, err)
		t.Logf("%s: refused for a %s: %v", kind, whom, err)
		fell(t, b)
		good()
		leftAsBefore(t, b, before)
	}
	if kind != "cgroup" {
		fell(t, b)
		set("0")
		refused("launcher")
	}
	drain(b)
	set("0")
	refused("run")
}

// drain frees what waits for requests behind launchers that run.
func drain(b *Tier) {
	for _, z := range b.launchers {
		for len(z.seats) > 0 {
			(<-z.seats).free()
		}
	}
}
