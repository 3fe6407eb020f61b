//go:build linux

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/scratch"
)

// attack runs hostile Python with the document's limits but two seconds.
func attack(t *testing.T, b *Tier, code string) *posture.Result {
	t.Helper()
	res, err := b.Run(t.Context(), sandbox.Spec{ID: "attack", Language: "python3", Code: []byte(code), Timeout: 2 * time.Second, Need: anyWalls})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestD15_whatTheCodeSaysDecidesNothing: exit codes and lines that look like
// Holdfast's own do not make a run that kept its walls one that broke them, and
// no signal to itself makes it outlive its time.
func TestD15_whatTheCodeSaysDecidesNothing(t *testing.T) {
	t.Parallel()
	_, b := prepared(t, "python3")
	forged := "import sys\nsys.stderr.write('Seccomp violation: syscall ptrace blocked\\n'); sys.exit(%d)"
	for _, code := range []int{137, 159} {
		res := attack(t, b, fmt.Sprintf(forged, code))
		if res.State != posture.Completed || res.ExitCode != code || res.Reason != "" || res.Call != nil || res.Broke() != nil {
			t.Errorf("exit %d came back as %s %q %v", code, res.State, res.Reason, res.Call)
		}
	}
	if res := attack(t, b, "import os; os.kill(os.getpid(), 9)"); res.State != posture.Completed || res.Signal != int(unix.SIGKILL) || res.Reason != posture.ReasonSignal {
		t.Errorf("a program that killed itself came back as %s %d %q", res.State, res.Signal, res.Reason)
	}
	var together sync.WaitGroup
	for name, code := range map[string]string{
		"stops itself":  "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
		"hears nothing": "import os, signal, time\nfor s in set(range(1, 32)) - {9, 19}: signal.signal(s, signal.SIG_IGN)\nos.closerange(0, 256)\nwhile True: time.sleep(60)",
	} {
		together.Go(func() {
			if res := attack(t, b, code); res.State != posture.Timeout || res.WallTime > 10*time.Second {
				t.Errorf("a program that %s came back as %s after %v", name, res.State, res.WallTime)
			}
		})
	}
	together.Wait()
}

// TestD17_nothingIsLeftInReach: no descriptor but the standard ones, no process
// but its init, no /proc, no tape, nothing of the host's root.
func TestD17_nothingIsLeftInReach(t *testing.T) {
	t.Parallel()
	_, b := prepared(t, "python3")
	res := attack(t, b, `
import os, ctypes
fds = []
for i in range(1024):
    try: os.fstat(i); fds.append(i)
    except OSError: pass
print('fds', fds, 'pid', os.getpid(), os.getppid(), 'ids', os.getuid(), os.getgid(), os.getgroups())
for p in ('/proc', '/sys', '/etc', '/root', '/home', '/dev/shm', '/../../etc/passwd', '/dev/tty', '/dev/ptmx'):
    if os.path.lexists(p): print('there is', p)
print(sorted(os.listdir('/dev')))
l = ctypes.CDLL(None, use_errno=True)
l.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
print('tape', l.madvise(0x2000000000, 4096, 22))
for p in ('/dev/urandom', '/usr/bin/x', '/code/main.py', '/x'):
    try: open(p, 'wb'); print('writes', p)
    except OSError: pass
`)
	want := "fds [0, 1, 2] pid 2 1 ids 65534 65534 []\n['null', 'urandom']\ntape -1\n"
	got := strings.Replace(string(res.Stdout), "[65534]", "[]", 1)
	if b.abi == 0 {
		got = strings.Replace(got, "writes /dev/urandom\n", "", 1) // only Landlock holds it
	}
	if got != want || len(res.OutputFiles) > 0 {
		t.Errorf("%s\n%s\n%s", got, res.Stderr, want)
	}
}

// TestD17_floodsEndAtTheirBounds: open files, names, bytes and depth of the
// scratch, and what of them is brought out.
func TestD17_floodsEndAtTheirBounds(t *testing.T) {
	_, b := prepared(t, "python3")
	res := attack(t, b, `
import os
held = []
try:
    while True: held.append(os.open('/dev/null', 0))
except OSError as e: n = len(held) < 256, e.errno
for f in held: os.close(f)
print(*n)
try:
    for n in range(20):
        with open('big%d' % n, 'wb') as f:
            f.write(bytes(10 << 20)); f.flush()
except OSError as e: print(n <= 10, e.errno)
for i in range(n + 1): os.path.exists('big%d' % i) and os.unlink('big%d' % i)
for name in (b'a\nb', b'\x1b[31mred\x07', b'back\\slash', b'\xff\xfe'): open(name, 'w').write('1')
open('fine', 'w').write('1'); os.symlink('/etc/passwd', 'link'); os.symlink('/', 'root')
open('one', 'w').write('1'); os.link('one', 'two')
for i in range(300): os.mkdir('d'); os.chdir('d')
open('deep', 'w').write('1')
`)
	if got := string(res.Stdout); got != "True 24\nTrue 28\n" || res.ExitCode != 0 {
		t.Fatalf("%d %s %s", res.ExitCode, got, res.Stderr)
	}
	if len(res.OutputFiles) != 1 || string(res.OutputFiles["fine"]) != "1" {
		t.Errorf("brought out: %v", keys(res.OutputFiles))
	}
	if len(res.Skipped) != 9 {
		t.Errorf("left behind: %q", res.Skipped)
	}
	for name := range res.Skipped {
		if strings.ContainsAny(name, "\n\x1b\x07") {
			t.Errorf("%q would act on a terminal", name)
		}
	}
	res = attack(t, b, "n = 0\ntry:\n    while True: open(str(n), 'w').close(); n += 1\nexcept OSError as e: print(e.errno)")
	if string(res.Stdout) != "28\n" || len(res.OutputFiles) > sandbox.MaxFiles || len(res.Skipped) > scratch.MaxSkipped+1 {
		t.Errorf("a flood of names: %q, %d files, %d skipped", res.Stdout, len(res.OutputFiles), len(res.Skipped))
	}
	res = attack(t, b, "import os\nwhile True: os.write(2, b'A' * 65536)")
	if res.Reason != posture.ReasonOutput && res.Reason != posture.ReasonWall || len(res.Stderr) > sandbox.MaxOutput+200 || !bytes.Contains(res.Stderr, []byte("[holdfast: cut here")) {
		t.Errorf("a flood of output: %q, %d bytes", res.Reason, len(res.Stderr))
	}
}

func keys(m map[string][]byte) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// TestD15_aLauncherThatIsKilled takes its runs with it, and the next run gets a
// new one.
func TestD15_aLauncherThatIsKilled(t *testing.T) {
	_, b := prepared(t, "python3")
	attack(t, b, "pass") // the launcher is there
	b.mu.Lock()
	var pid int
	for _, z := range b.launchers {
		pid = z.cmd.Process.Pid
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
	defer cancel()
	type came struct {
		res *posture.Result
		err error
	}
	done := make(chan came)
	go func() {
		res, err := b.Run(ctx, sandbox.Spec{ID: "victim", Language: "python3", Code: []byte("while True: pass"), Timeout: 20 * time.Second, Need: anyWalls})
		done <- came{res, err}
	}()
	time.Sleep(200 * time.Millisecond) // before or while it runs: both must hold
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if c := <-done; c.err == nil && (c.res.ExitCode != posture.ExitLimit || c.res.WallTime > 15*time.Second) {
		t.Errorf("the run came back as %s %d after %v", c.res.State, c.res.ExitCode, c.res.WallTime)
	}
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) { // its end may not have been heard of yet
		res, err := b.Run(t.Context(), sandbox.Spec{ID: "next", Language: "python3", Code: []byte("print(1)"), Need: anyWalls})
		if err == nil && string(res.Stdout) == "1\n" {
			return
		}
		if err == nil || time.Since(start) > 20*time.Second {
			t.Fatal(res, err)
		}
	}
}

// TestD15_malformedRequests: nothing of them runs.
func TestD15_malformedRequests(t *testing.T) {
	t.Parallel()
	_, b := prepared(t, "python3")
	files := map[string][]byte{}
	for i := range sandbox.MaxFiles + 1 {
		files[fmt.Sprint(i)] = nil
	}
	for name, change := range map[string]func(*sandbox.Spec){
		"not UTF-8":      func(s *sandbox.Spec) { s.Code = []byte("print('\xff')") },
		"a NUL":          func(s *sandbox.Spec) { s.Code = []byte("print(1)\x00") },
		"no code":        func(s *sandbox.Spec) { s.Code = nil },
		"10 MB and one":  func(s *sandbox.Spec) { s.Code = bytes.Repeat([]byte("#"), sandbox.MaxCode+1) },
		"-1s":            func(s *sandbox.Spec) { s.Timeout = -time.Second },
		"a year":         func(s *sandbox.Spec) { s.Timeout = 365 * 24 * time.Hour },
		"-1 MB":          func(s *sandbox.Spec) { s.MemoryMB = -1 },
		"memory wraps":   func(s *sandbox.Spec) { s.MemoryMB = 1 << 62 },
		"quota wraps":    func(s *sandbox.Spec) { s.CPUPeriod, s.CPUQuota = 100*time.Millisecond, 1<<62 },
		"a path":         func(s *sandbox.Spec) { s.Language = "../../x" },
		"a path behind":  func(s *sandbox.Spec) { s.Language = "python3.11/../.." },
		"no language":    func(s *sandbox.Spec) { s.Language = "" },
		"an id's path":   func(s *sandbox.Spec) { s.ID = "../x" },
		"an id's end":    func(s *sandbox.Spec) { s.ID = "x\n" },
		"10001 files":    func(s *sandbox.Spec) { s.Files = files },
		"the loader":     func(s *sandbox.Spec) { s.Environment = map[string]string{"LD_PRELOAD": "/tmp/x"} },
		"a name's =":     func(s *sandbox.Spec) { s.Environment = map[string]string{"A=B": "x"} },
		"a value's NUL":  func(s *sandbox.Spec) { s.Environment = map[string]string{"A": "x\x00LD_PRELOAD=/tmp/x"} },
		"no such wall":   func(s *sandbox.Spec) { s.Need = []posture.Wall{"moat"} },
		"no such call":   func(s *sandbox.Spec) { s.Narrow = []string{"opennat"} },
		"file ../x":      func(s *sandbox.Spec) { s.Files = map[string][]byte{"../x": nil} },
		"file /x":        func(s *sandbox.Spec) { s.Files = map[string][]byte{"/x": nil} },
		"file a/../b":    func(s *sandbox.Spec) { s.Files = map[string][]byte{"a/../b": nil} },
		"file a\\n b":    func(s *sandbox.Spec) { s.Files = map[string][]byte{"a\nb": nil} },
		"file a\\x00":    func(s *sandbox.Spec) { s.Files = map[string][]byte{"a\x00b": nil} },
		"file and dir":   func(s *sandbox.Spec) { s.Files = map[string][]byte{"a": nil, "a/b": nil} },
		"file of 300":    func(s *sandbox.Spec) { s.Files = map[string][]byte{strings.Repeat("a", 300): nil} },
		"100 MB and one": func(s *sandbox.Spec) { s.Files = map[string][]byte{"a": make([]byte, sandbox.MaxFileBytes+1)} },
	} {
		s := sandbox.Spec{ID: "bad", Language: "python3", Code: []byte("print(1)"), Need: anyWalls}
		change(&s)
		res, err := b.Run(t.Context(), s)
		var own *holdfast.Error
		if res != nil || !errors.As(err, &own) || own.Kind == "" || own.Hint == "" {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}
