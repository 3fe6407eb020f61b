package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPythonRunsBroadly(t *testing.T) {
	t.Parallel()
	l, z := prepared(t, "python3")
	code, err := os.ReadFile("testdata/broad.py")
	if err != nil {
		t.Fatal(err)
	}
	r := try(t, z, l, string(code))
	if r.killed != "" || r.status.ExitStatus() != 7 {
		t.Errorf("killed by %q, status %d", r.killed, r.status.ExitStatus())
	}
	for _, want := range []string{"json (", "sqlite [(1,)]", "thread [0, 1, 4, 9, 16]", "asyncio 6", "tempfile ([", "mmap b'abc'", "signal [1, 1, 1]", "ctypes 2\n", "locale ('", "misc ('a', (256, 256)", "ssl True",
		"fds (b'a', False, 1, 4, 4)", "doctest True", "helper 3", "pyc []", "zone True", "exit True",
		"asyncsub -> PermissionError", "mp -> PermissionError", "subprocess -> PermissionError", "fork -> PermissionError", "socket -> PermissionError [Errno 13]", "dns -> gaierror", "urllib -> URLError",
		"etcpasswd -> FileNotFoundError", "write -> OSError [Errno 30]"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, call := range []string{"socket", "vfork", "clone3", "sendfile"} {
		if !slices.Contains(r.refused, call) {
			t.Errorf("%s is not among what was refused: %v", call, r.refused)
		}
	}
	if t.Failed() {
		t.Log(r.out, r.err)
	}
}

// A thread that works on while the program ends is ended by the C library, which
// loads what it needs for that only then.
func TestPythonEndsItsThreads(t *testing.T) {
	t.Parallel()
	l, z := prepared(t, "python3")
	r := try(t, z, l, `
import ctypes, threading, time
def work():
    while True: time.sleep(.001)
for _ in range(4): threading.Thread(target=work, daemon=True).start()
def leave():
    ctypes.CDLL(None).pthread_exit(None)
t = threading.Thread(target=leave, daemon=True)
t.start()
time.sleep(.05)
print('ended')
`)
	if r.killed != "" || r.status.ExitStatus() != 0 || r.out != "ended\n" {
		t.Errorf("killed by %q, status %d, %q, %q", r.killed, r.status, r.out, r.err)
	}
}

func TestNodeRunsBroadly(t *testing.T) {
	t.Parallel()
	l, z := prepared(t, "node")
	code, err := os.ReadFile("testdata/broad.js")
	if err != nil {
		t.Fatal(err)
	}
	r := try(t, z, l, string(code))
	if r.killed != "" || r.status.ExitStatus() != 0 {
		t.Errorf("killed by %q, status %d", r.killed, r.status.ExitStatus())
	}
	for _, want := range []string{"2d711642 4 23", "worker 1", "p hi", "scrypt 16", "t\n", "cp EACCES", "http EACCES", "dns EAI_AGAIN", "bye"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q", want)
		}
	}
	if t.Failed() {
		t.Log(r.out, r.err)
	}
	if m := try(t, z, l, "import fs from 'fs'; await null; console.log(typeof fs.readFile)"); slices.Contains(l.Flags, "--experimental-detect-module") && m.out != "function\n" {
		t.Errorf("a module: %q %q", m.out, m.err)
	}
}

// TestStaticRuns: a Go program, whose runtime starts threads and sends itself
// signals.
func TestStaticRuns(t *testing.T) {
	t.Parallel()
	l, z := prepared(t, "static")
	code := buildGo(t, `package main
import ("fmt";"os";"runtime";"sync";"time")
func main() {
	runtime.GOMAXPROCS(4)
	var wg sync.WaitGroup; n := 0; var mu sync.Mutex
	for range 12 { wg.Go(func() { for s := time.Now(); time.Since(s) < 20*time.Millisecond; {}; mu.Lock(); n++; mu.Unlock() }) }
	wg.Wait()
	err := os.WriteFile("/tmp/a", []byte("x"), 0o600)
	_, gone := os.Stat("/etc/passwd")
	fmt.Println(n, err, os.IsNotExist(gone), os.Getpid())
}`)
	if err := l.Check([]byte(code)); err != nil {
		t.Fatal(err)
	}
	if r := try(t, z, l, code); r.out != "12 <nil> true 2\n" {
		t.Errorf("%q %q, killed by %q, status %v", r.out, r.err, r.killed, r.status)
	}
}

func buildGo(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "main.go"), filepath.Join(dir, "main")
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", bin, src)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
