package process

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// guestWithin is how long one guest may take: several times what it does.
const guestWithin = 8 * time.Minute

// TestInGuests boots Debian's kernel in machines of its own, whose control
// groups are kept in ways in which this machine's are not, and runs the tier's
// tests there: see scenesOf. The machines have no network and no disk.
func TestInGuests(t *testing.T) {
	onlyHere(t)
	kernel := guestKernel(t)
	dir := t.TempDir()
	self, tricks, image := filepath.Join(dir, "self"), filepath.Join(dir, "tricks"), filepath.Join(dir, "image")
	build := exec.Command("go", "test", "-c", "-trimpath", "-ldflags=-s -w", "-o", self, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(tricks, sandboxtest.Tricks(t), 0o755); err != nil {
		t.Fatal(err)
	}
	packGuest(t, image, self, tricks)
	for _, name := range guests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bootGuest(t, kernel, image, name)
		})
	}
}

// guestKernel returns the kernel that guests boot. Where it, or what runs it, is
// missing the test is skipped, and under CI fails.
func guestKernel(t *testing.T) string {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("CI") != "" {
		missing = t.Fatalf
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		missing("there is no qemu-system-x86_64; `make deps` installs Debian's qemu-system-x86")
	}
	found, _ := filepath.Glob("../../../bin/guest/vmlinuz")
	installed, _ := filepath.Glob("/boot/vmlinuz-*-cloud-amd64")
	if found = append(found, installed...); len(found) == 0 {
		missing("there is no kernel to boot; `make deps` gets Debian's linux-image-cloud-amd64 and puts it into bin/guest")
	}
	return found[0]
}

// bootGuest runs one machine to its end and judges what it says.
func bootGuest(t *testing.T, kernel, image, name string) {
	ctx, cancel := context.WithTimeout(t.Context(), guestWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
		"-machine", "pc,accel=tcg,usb=off", "-cpu", "max", "-smp", "1", "-m", "1536M", "-nic", "none", "-serial", "stdio",
		"-icount", "shift=2,sleep=off", // its time goes by what it does, four nanoseconds an instruction: not by how busy we are
		"-kernel", kernel, "-initrd", image,
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr rdinit="+guestSelf+" "+guestEnv+"="+name)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	told := listen(t, out, start)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the machine ended after %v: %v %s", time.Since(start), err, errs.String())
	}
	told.judge(t, scenesOf(name))
}

// testimony is what a guest said, scene by scene.
type testimony struct {
	scenes map[string]*heard
	loose  []string // outside of scenes
	done   bool
}

type heard struct {
	lines  []string
	passed int
	status string
}

// listen reads the console to its end.
func listen(t *testing.T, console io.Reader, start time.Time) *testimony {
	s := &testimony{scenes: map[string]*heard{}}
	var now *heard
	lines := bufio.NewScanner(console)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r")
		at := time.Since(start).Round(10 * time.Millisecond)
		if name, ok := strings.CutPrefix(line, saysScene); ok {
			now = &heard{}
			s.scenes[name] = now
			t.Logf("%v: %s begins", at, name)
			continue
		}
		if words, ok := strings.CutPrefix(line, saysEnded); ok && now != nil {
			now.status, _, _ = strings.Cut(words, " ")
			t.Logf("%v: %s; %d tests passed", at, words, now.passed)
			now = nil
			continue
		}
		if strings.HasPrefix(line, saysDone) {
			s.done = true
		}
		if now == nil {
			s.loose = append(s.loose, line)
			continue
		}
		now.lines = append(now.lines, line)
		if strings.HasPrefix(strings.TrimSpace(line), "--- PASS: ") {
			now.passed++
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	return s
}

// judge fails the test unless every scene was played, and every test in it
// passed.
func (s *testimony) judge(t *testing.T, scenes []scene) {
	t.Helper()
	for _, want := range scenes {
		h := s.scenes[want.name]
		if h == nil {
			t.Errorf("the scene %q was not reached", want.name)
			continue
		}
		bad := slices.ContainsFunc(h.lines, func(line string) bool {
			line = strings.TrimSpace(line)
			return strings.HasPrefix(line, "--- FAIL: ") || strings.HasPrefix(line, "--- SKIP: ")
		})
		if bad || h.status != "0" || h.passed < len(want.tests) {
			t.Errorf("%s: status %q, %d tests passed:\n%s", want.name, h.status, h.passed, strings.Join(h.lines, "\n"))
		}
	}
	if !s.done || t.Failed() {
		t.Errorf("the guest said beside that:\n%s", strings.Join(s.loose, "\n"))
	}
}
