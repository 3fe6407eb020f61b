package vm

import (
	"context"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

func openInside(ctx context.Context, dir string) (Inside, error) {
	parked := 1 // a guest does one order
	if testrepeat.Enduring {
		parked = 2 // as the daemon's
	}
	return process.Open(ctx, process.Config{Dir: dir, Secret: func(string) bool { return false }, Parked: parked})
}

func TestMain(m *testing.M) {
	sandboxtest.Faulty()
	process.Launcher()
	Launcher()
	Guest(openInside)
	code := sandboxtest.NullKept(m.Run)
	if shared.close != nil {
		shared.close()
	}
	os.Exit(code)
}

// shared is the tier that all tests use which are not about how one is made.
var shared struct {
	once  sync.Once
	boot  sync.Once
	tier  *Tier
	host  *process.Tier
	cfg   Config
	err   error
	close func()
}

// parts is a configuration for guests with this test's own program.
func parts(t testing.TB) Config {
	t.Helper()
	boots := kernel(t)
	shared.once.Do(func() { shared.err = assemble(t, boots) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cfg
}

func assemble(t testing.TB, boots string) error {
	dir, err := os.MkdirTemp("", "vm")
	if err != nil {
		return err
	}
	shared.close = func() {
		if shared.tier != nil {
			shared.tier.Close()
		}
		if shared.host != nil {
			shared.host.Close()
		}
		os.RemoveAll(dir)
	}
	self := filepath.Join(dir, "self")
	if err := makeProgram(t, self); err != nil {
		return err
	}
	host, err := process.Open(context.Background(), process.Config{Dir: filepath.Join(dir, "roots"), Secret: func(string) bool { return false }})
	if err != nil {
		return err
	}
	shared.host = host
	var roots []string
	for _, l := range languages() {
		beside, err := host.Beside(context.Background(), l)
		if err != nil {
			return err
		}
		root := beside.Root
		if !testrepeat.Enduring { // a guest copies it, and each instruction is emulated
			sandboxtest.CopySlimRoot(t, filepath.Join(dir, "slim"), root)
			root = filepath.Join(dir, "slim")
		}
		roots = append(roots, root)
	}
	shared.cfg = Config{Dir: filepath.Join(dir, "vm"), Kernel: boots, Program: self, MemoryMB: 1024, NoKVM: true, Secret: func(string) bool { return false },
		Groups: host, Roots: func(context.Context) ([]string, error) { return roots, nil }}
	shared.tier, err = Open(shared.cfg)
	return err
}

// languages are those of the guests. To boot one with Node.js takes an emulated machine
// several times as long.
func languages() []string {
	if testrepeat.Enduring {
		return []string{"python3", "node"}
	}
	return []string{"python3"}
}

// makeProgram makes the guests' first program: a copy of this one, which it builds again
// if this one needs libraries, as with the race detector.
func makeProgram(t testing.TB, path string) error {
	const own = "/proc/self/exe"
	f, err := elf.Open(own)
	if err != nil {
		return err
	}
	defer f.Close()
	if libraries, err := f.ImportedLibraries(); err == nil && len(libraries) == 0 {
		b, err := os.ReadFile(own)
		return errors.Join(err, os.WriteFile(path, b, 0o755))
	}
	args := []string{"test", "-c", "-ldflags=-s -w", "-o", path, "."}
	if testrepeat.Enduring {
		args = slices.Insert(args, 2, "-tags", "endure")
	}
	build := exec.Command("go", args...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		t.Logf("%s", out)
	}
	return err
}

// kernel is what guests boot. Where it, or QEMU, is missing the test is skipped,
// and under CI fails.
func kernel(t testing.TB) string {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("CI") != "" {
		missing = t.Fatalf
	}
	if testing.Short() {
		t.Skip("guests are emulated")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		missing("there is no qemu-system-x86_64; `make deps` installs Debian's qemu-system-x86")
	}
	found, _ := filepath.Glob("../../../bin/guest/vmlinuz")
	installed, _ := filepath.Glob("/boot/vmlinuz-*-cloud-amd64")
	if found = append(found, installed...); len(found) == 0 {
		missing("there is no kernel to boot; `make deps` gets Debian's linux-image-cloud-amd64 and puts it into bin/guest")
	}
	path, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func tier(t testing.TB) *Tier {
	t.Helper()
	parts(t)
	shared.boot.Do(func() { shared.err = bootShared(t) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.tier
}

// bootShared boots the machine that all others are restored from. On a busy machine an
// emulated guest can take longer than its languages are given to answer: then it is booted
// again.
func bootShared(t testing.TB) (err error) {
	for range 3 {
		if _, err = shared.tier.template(t.Context()); err == nil {
			return nil
		}
		t.Log(err)
	}
	return err
}

func python(t testing.TB, b *Tier, code string, change ...func(*sandbox.Spec)) *posture.Result {
	t.Helper()
	spec := sandbox.Spec{ID: "try", Language: "python3", Code: []byte(code), Timeout: 20 * time.Second}
	for _, c := range change {
		c(&spec)
	}
	res, err := b.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestRunInGuest: a request goes into a machine and its result comes out, and
// nothing of it is there in the next.
func TestRunInGuest(t *testing.T) {
	b := tier(t)
	res := python(t, b, "import os\nprint(open('in/f').read(), os.listdir('/tmp'))\nopen('out.txt','w').write('left')", func(s *sandbox.Spec) {
		s.Files = map[string][]byte{"in/f": []byte("given")}
	})
	t.Logf("%s %d %q %q %v %v %+v", res.State, res.ExitCode, res.Stdout, res.Stderr, res.WallTime, res.Stages, res.Posture)
	if res.State != posture.Completed || res.ExitCode != 0 || string(res.Stdout) != "given ['in']\n" || string(res.OutputFiles["out.txt"]) != "left" {
		t.Errorf("%s %d %q %q %v", res.State, res.ExitCode, res.Stdout, res.Stderr, res.OutputFiles)
	}
	if res.Posture.Tier != posture.TierVM {
		t.Errorf("the posture is of %v", res.Posture.Tier)
	}
	res = python(t, b, "import os\nprint(os.listdir('/tmp'))")
	t.Logf("%v %v %s", res.WallTime, res.Stages, res.Path)
	if string(res.Stdout) != "[]\n" {
		t.Errorf("the next found %q", res.Stdout)
	}
}
