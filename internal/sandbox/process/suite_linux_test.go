//go:build linux

package process

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// choosePart returns p, or every attempt with the tag endure. What an ordinary user's
// process does again is a few attempts on each wall.
func choosePart(p sandboxtest.Part) sandboxtest.Part {
	if os.Getenv(sandboxtest.TwinsEnv) != "" {
		p = sandboxtest.EachWall()
	}
	return sandboxtest.ChoosePart("", testrepeat.Enduring, p)
}

// TestEscapeSuite runs the suite as the user that the tests run as: root or not. Without
// the tag endure it makes a few attempts, with their twins; TestEscapeSuiteWarm makes each.
func TestEscapeSuite(t *testing.T) {
	onlyHere(t)
	t.Parallel()
	sandboxtest.Suite(t, choosePart(sandboxtest.EachWall()), func(t *testing.T) sandboxtest.Runner { return tier(t) })
}

// TestEscapeSuiteRootless runs them again as an ordinary user, if the tests run as root:
// all with the tag endure, otherwise TestEscapeSuite alone.
func TestEscapeSuiteRootless(t *testing.T) {
	onlyHere(t)
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("the tests run as an ordinary user: the other suites are this one")
		return
	}
	const nobody = 65534
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self := filepath.Join(dir, "self")
	copyTo(t, self, "/proc/self/exe")
	tricks, tmp := filepath.Join(dir, "tricks"), filepath.Join(dir, "tmp")
	if err := os.WriteFile(tricks, sandboxtest.Tricks(t), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(tmp, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	pattern := "^TestEscapeSuite$"
	if testrepeat.Enduring {
		pattern = "^TestEscapeSuite(Warm|Workspace)?$"
	}
	cmd := exec.Command(self, "-test.run="+pattern, "-test.v", "-test.parallel=1")
	cmd.Dir = tmp
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"), "HOME=" + tmp, "TMPDIR=" + tmp, sandboxtest.TricksEnv + "=" + tricks, sandboxtest.TwinsEnv + "=yes"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, unpassed(out))
		return
	}
	t.Logf("%s", out[max(0, len(out)-6000):])
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

// copyTo makes a program that can be started at once: while it is written nothing is
// forked, which would hold it open.
func copyTo(t *testing.T, dst, src string) {
	t.Helper()
	b, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(dst, b, 0o755); err != nil {
		t.Fatal(err)
	}
}

// onlyHere: the attempts are made by numbers of this architecture.
func onlyHere(t *testing.T) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skipf("the suite's calls are numbered for amd64, and this is %s", runtime.GOARCH)
	}
	if testing.Short() {
		t.Skip("the suite takes half a minute")
	}
}
