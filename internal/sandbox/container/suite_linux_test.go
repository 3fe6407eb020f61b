//go:build linux

package container_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// TestEscapeSuite makes attempts of the suite in containers of runc: each with the tag
// endure, otherwise a few on each wall.
func TestEscapeSuite(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skipf("the suite's calls are numbered for amd64, and this is %s", runtime.GOARCH)
	}
	if testing.Short() {
		t.Skip("the suite takes half a minute")
	}
	runner := func(t *testing.T) sandboxtest.Runner {
		c, _ := open(t, nil)
		return small{c}
	}
	if os.Geteuid() == 0 {
		sandboxtest.Container(t, sandboxtest.ChoosePart("", testrepeat.Enduring, sandboxtest.EachWall()), runner)
		return
	}
	few := fewAttempts().And("network/tcp", "limit/a list", "property/no descriptor leaks")
	sandboxtest.Rootless(t, sandboxtest.ChoosePart(rootlessEnv, testrepeat.Enduring, few), runner)
}

// rootlessEnv holds a number n: one of n attempts of each family is made as an ordinary
// user.
const rootlessEnv = "HOLDFAST_TEST_ROOTLESS_EVERY"

// fewAttempts are attempts on the walls that another way to start a container could lack.
func fewAttempts() sandboxtest.Part {
	return sandboxtest.Named("namespace/unshare mount", "identity/capabilities",
		"files/read /etc/passwd", "files/write a file of the runtime",
		"limit/threads", "property/a name of its own", "property/nothing but itself is seen")
}

// TestRootless runs programs and a few attempts of the escape suite, with the tag endure
// images and all attempts, again as an ordinary user who owns nothing, if the tests run
// as root: the posture says what such a user cannot have.
func TestRootless(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite takes half a minute")
	}
	if os.Geteuid() != 0 {
		t.Log("the tests run as an ordinary user: the others are this one")
		return
	}
	const nobody = 65534
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	self, tricks, tmp := filepath.Join(dir, "self"), filepath.Join(dir, "tricks"), filepath.Join(dir, "tmp")
	if err := errors.Join(os.WriteFile(self, b, 0o755), os.WriteFile(tricks, sandboxtest.Tricks(t), 0o755), os.Mkdir(tmp, 0o700), os.Chown(tmp, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	names := []string{"TestEscapeSuite", "TestRootlessPosture", "TestRunWhoeverStartsIt"}
	if testrepeat.Enduring {
		names = append(names, "TestRun", "TestImage", "TestKilledHoldfast")
	}
	cmd := exec.Command(self, "-test.run=^("+strings.Join(names, "|")+")$", "-test.v")
	cmd.Dir = tmp
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"), "HOME=" + tmp, "TMPDIR=" + tmp, sandboxtest.TricksEnv + "=" + tricks, rootlessEnv + "=" + os.Getenv(rootlessEnv)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, unpassed(out))
	}
	for _, name := range names {
		if !bytes.Contains(out, []byte("\n--- PASS: "+name+" (")) {
			t.Errorf("%s did not pass as an ordinary user", name)
		}
	}
	t.Logf("%s", out[max(0, len(out)-3000):])
}

// unpassed is what a run of tests says, but for what passed.
func unpassed(out []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(out) {
		word := bytes.TrimSpace(line)
		if !bytes.HasPrefix(word, []byte("--- PASS")) && !bytes.HasPrefix(word, []byte("=== ")) {
			b.Write(line)
		}
	}
	return b.Bytes()
}

// TestRootlessPosture: of an ordinary user's containers each wall that does not
// stand is told, with what is there instead; what asks for one is refused, and
// root has them all.
func TestRootlessPosture(t *testing.T) {
	c, _ := open(t, nil)
	p := c.Posture()
	root := os.Geteuid() == 0
	if root != (p.Mode == "root") || root != up(c, posture.WallNet) || root != up(c, posture.WallScratch) {
		t.Errorf("%+v", p)
	}
	if root {
		return
	}
	for _, w := range []posture.Wall{posture.WallMemory, posture.WallCPU, posture.WallPids, posture.WallNet, posture.WallScratch} {
		if p.Down[w] == "" || p.Instead[w] == "" || up(c, w) {
			t.Errorf("of %s it says %q and %q", w, p.Down[w], p.Instead[w])
		}
		spec := sandbox.Spec{ID: "need", Language: "python3", Code: []byte("print(1)"), Need: []posture.Wall{w}}
		if res, err := c.Run(t.Context(), spec); holdfast.KindOf(err) != holdfast.KindSpawn || !strings.Contains(err.Error(), "is missing "+string(w)) || res == nil || res.State != posture.SpawnError {
			t.Errorf("%s: %v %+v", w, err, res)
		}
	}
	for _, w := range []posture.Wall{posture.WallPID, posture.WallMount, posture.WallUTS, posture.WallIPC, posture.WallUser, posture.WallSeccomp, posture.WallRights} {
		if !up(c, w) {
			t.Errorf("%s does not stand: %s", w, p.Down[w])
		}
	}
	if p.Groups != "none" || !p.Names {
		t.Errorf("%+v", p)
	}
}

// small is the tier with the process tier's limits for what asks for none: to
// fill 4 GB, or to wait for five minutes, shows no more.
type small struct{ *container.Tier }

// Run implements sandboxtest.Runner.
func (s small) Run(ctx context.Context, spec sandbox.Spec) (*posture.Result, error) {
	if os.Geteuid() != 0 { // whose containers lack walls that every attempt asks for
		spec.Need = slices.DeleteFunc(slices.Clone(spec.Need), func(w posture.Wall) bool { return !up(s.Tier, w) })
	}
	return s.Tier.Run(ctx, modest(spec))
}

// modest asks for the process tier's limits where spec asks for none.
func modest(spec sandbox.Spec) sandbox.Spec {
	limits := sandbox.LimitsOf(posture.TierProcess)
	if spec.Timeout == 0 {
		spec.Timeout = limits.Timeout
	}
	if spec.MemoryMB == 0 {
		spec.MemoryMB = limits.MemoryMB
	}
	if spec.CPUQuota == 0 && spec.CPUPeriod == 0 {
		spec.CPUPeriod, spec.CPUQuota = sandbox.DefaultPeriod, sandbox.DefaultPeriod
	}
	return spec
}
