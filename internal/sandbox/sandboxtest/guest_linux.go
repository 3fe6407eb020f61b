package sandboxtest

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
)

// GuestKernel returns the kernel that guests boot. Where it, or what runs it, is
// missing the test is skipped, and under CI fails.
func GuestKernel(t *testing.T) string {
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

// guestWithin is how long one guest may take: several times what it does.
const guestWithin = 8 * time.Minute

// Machine is how a guest is run.
type Machine struct {
	Flags []string // of QEMU
	Words string   // for the kernel
}

// ByWork is a machine of one processor whose time goes by what it does, four
// nanoseconds an instruction: not by how busy we are.
func ByWork() Machine {
	return Machine{Flags: []string{"-smp", "1", "-icount", "shift=2,sleep=off"}}
}

// ByTheWall is a machine of two processors whose time is ours, and whose kernel
// trusts no clock that programs can read without a call. It takes half as long.
func ByTheWall() Machine {
	return Machine{Flags: []string{"-smp", "2"}, Words: "tsc=unstable"}
}

// BootGuest runs one machine to its end, and returns what it said. It has no
// network and no disk, and is told which of the guests it is.
func BootGuest(t *testing.T, kernel, image, name string, how Machine) *Testimony {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), guestWithin)
	defer cancel()
	flags := []string{"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
		"-machine", "pc,accel=tcg,usb=off", "-cpu", "max", "-m", "1536M", "-nic", "none", "-serial", "stdio",
		"-kernel", kernel, "-initrd", image,
		"-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr " + how.Words + " rdinit=" + GuestSelf + " " + GuestEnv + "=" + name}
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", append(flags, how.Flags...)...)
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
	return told
}

// Testimony is what a guest said, scene by scene.
type Testimony struct {
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
func listen(t *testing.T, console io.Reader, start time.Time) *Testimony {
	s := &Testimony{scenes: map[string]*heard{}}
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

// Scene is how the tests of one scene are known to have passed.
type Scene struct {
	Name  string
	Tests int // at least so many passed
}

// Judge fails the test unless every scene was played, and every test in it
// passed.
func (s *Testimony) Judge(t *testing.T, scenes ...Scene) {
	t.Helper()
	for _, want := range scenes {
		h := s.scenes[want.Name]
		if h == nil {
			t.Errorf("the scene %q was not reached", want.Name)
			continue
		}
		bad := slices.ContainsFunc(h.lines, func(line string) bool {
			line = strings.TrimSpace(line)
			return strings.HasPrefix(line, "--- FAIL: ") || strings.HasPrefix(line, "--- SKIP: ")
		})
		if bad || h.status != "0" || h.passed < want.Tests {
			t.Errorf("%s: status %q, %d tests passed:\n%s", want.Name, h.status, h.passed, strings.Join(h.lines, "\n"))
		}
	}
	if !s.done || t.Failed() {
		t.Errorf("the guest said beside that:\n%s", strings.Join(s.loose, "\n"))
	}
}
