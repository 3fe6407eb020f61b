package process

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/procstat"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/seccomp"
)

// TestAttack_killedAtAnyMoment: runs of hostile programs, many at once, whose
// callers go away and whose processes somebody kills at any moment. Each comes
// back, none as a success that it was not, and nothing is left.
func TestAttack_killedAtAnyMoment(t *testing.T) {
	onlyHere(t)
	t.Setenv("TMPDIR", t.TempDir())
	_, b := prepared(t, "python3")
	hostile := []string{
		"while True: pass",
		"import threading, time\nfor _ in range(40): threading.Thread(target=time.sleep, args=(9,)).start()",
		"import os\nwhile True: os.write(1, b'x' * 60000)",
		"import ctypes\nL = ctypes.CDLL(None); b = ctypes.create_string_buffer(200)\nwhile True: L.sysinfo(b); L.unshare(0) if b.raw[7] else 0",
		"import socket\nwhile True:\n    try: socket.socket()\n    except OSError: pass",
		"import os\nfor i in range(9000): open('f%d' % i, 'w').close()\nwhile True: pass",
		"import ctypes, threading\nL = ctypes.CDLL(None); w = ctypes.c_int()\nfor _ in range(30): threading.Thread(target=lambda: L.syscall(202, ctypes.byref(w), 0, 0, None)).start()",
		"b = []\nwhile True: b.append(bytearray(1 << 20))",
	}
	attack(t, b, "pass")
	b.Settle(t.Context())
	before := b.Trace()
	stop := make(chan struct{})
	var killer, runs sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(rand.IntN(25)) * time.Millisecond):
				killBelow(b)
			}
		}
	})
	for worker := range 6 {
		runs.Go(func() {
			for i := range testrepeat.Times(12, 3) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(250))*time.Millisecond)
				res, err := b.Run(ctx, sandbox.Spec{ID: fmt.Sprintf("chaos-%d-%d", worker, i), Language: "python3", Code: []byte(hostile[rand.IntN(len(hostile))]), Timeout: 5 * time.Second, Need: anyWalls})
				cancel()
				var own *holdfast.Error
				switch {
				case err != nil && (!errors.As(err, &own) || own.Kind == "" || res != nil && res.State != posture.SpawnError):
					t.Errorf("it failed as %v", err)
				case err == nil && (res.ExitCode == 0 || res.WallTime > 8*time.Second):
					t.Errorf("it came back as %s %d %q after %v: %q", res.State, res.ExitCode, res.Reason, res.WallTime, res.Stderr)
				}
			}
		})
	}
	runs.Wait()
	close(stop)
	killer.Wait()
	// A killed launcher may not have been heard of, and seats that were killed
	// while they waited are found out when their turn comes.
	for start, ran := time.Now(), 0; ran < 2*seatsReady; time.Sleep(20 * time.Millisecond) {
		if res, err := b.Run(t.Context(), sandbox.Spec{ID: "after", Language: "python3", Code: []byte("print(1)"), Need: anyWalls}); err == nil && string(res.Stdout) == "1\n" {
			ran++
		}
		if time.Since(start) > 20*time.Second {
			t.Fatal("nothing runs any more")
		}
	}
	leftAsBefore(t, b, before)
}

// killBelow kills a process below this one: a workload, an init or a seat that
// waits, and now and then the launcher.
func killBelow(b *Tier) {
	b.mu.Lock()
	var launchers []int
	for _, z := range b.launchers {
		launchers = append(launchers, z.cmd.Process.Pid)
	}
	b.mu.Unlock()
	if len(launchers) == 0 {
		return
	}
	ours := func(pid int) bool { return procstat.FindParent(pid) == os.Getpid() }
	list, still := descendants(launchers[0]), func(pid int) bool { return ours(launchers[0]) && slices.Contains(descendants(launchers[0]), pid) }
	if rand.IntN(60) == 0 {
		list, still = launchers, ours
	}
	if len(list) == 0 {
		return
	}
	victim := list[rand.IntN(len(list))]
	fd, err := unix.PidfdOpen(victim, 0)
	if err != nil {
		return // it has gone
	}
	defer unix.Close(fd)
	if still(victim) { // else its number was used again, and is another's
		kill(fd)
	}
}

// TestAttack_programsThatAreNone: a compiled program whose headers or code were
// changed anywhere is refused or ends; it does not hang, and the next one runs.
func TestAttack_programsThatAreNone(t *testing.T) {
	t.Parallel()
	_, b := prepared(t, "static")
	whole := probe(asking(unix.SYS_GETPID))
	run := func(code []byte) (*posture.Result, error) {
		return b.Run(t.Context(), sandbox.Spec{ID: "elf", Language: sandbox.Static, Code: code, Timeout: time.Second, Need: anyWalls})
	}
	random := rand.New(rand.NewPCG(1, 2))
	ends := map[string]int{}
	for range testrepeat.Times(200, 40) {
		code := slices.Clone(whole)
		for range 1 + random.IntN(3) {
			code[random.IntN(min(len(code), 240))] = []byte{0, 1, 0x7f, 0x80, 0xff, byte(random.Uint32())}[random.IntN(6)]
		}
		if random.IntN(6) == 0 {
			code = code[:random.IntN(len(code))]
		}
		res, err := run(code)
		var own *holdfast.Error
		switch {
		case err != nil && (!errors.As(err, &own) || own.Hint == ""):
			t.Errorf("%x: %v", code[:min(len(code), 240)], err)
		case err != nil:
			ends[string(own.Kind)]++
		default:
			ends[string(res.State)]++
			if res.WallTime > 5*time.Second {
				t.Errorf("%x: %s after %v", code[:min(len(code), 240)], res.State, res.WallTime)
			}
		}
	}
	t.Log(ends)
	if res, err := run(whole); err != nil || res.ExitCode != 0 || answers(res.Stdout, 1)[0] != seccomp.WorkloadPID {
		t.Errorf("after that: %v %+v", err, res)
	}
}

// TestAttack_firstThreadGone: a program whose first thread has ended is watched
// and ended as any other, and its status is the last one's.
func TestAttack_firstThreadGone(t *testing.T) {
	onlyHere(t)
	t.Parallel()
	_, b := prepared(t, "python3")
	const head = `
import ctypes, threading, time, os
L = ctypes.CDLL(None)
def go(f):
    def g(): time.sleep(.1); f()
    threading.Thread(target=g).start(); L.syscall(60, 0)
`
	var together sync.WaitGroup
	together.Go(func() {
		if res := attack(t, b, head+"def f():\n    while True: pass\ngo(f)"); res.State != posture.Timeout {
			t.Errorf("a loop: %s %d %s", res.State, res.ExitCode, res.Stderr)
		}
	})
	if res := attack(t, b, head+"go(lambda: L.unshare(0x10000000))"); res.ExitCode != posture.ExitSyscall || res.Call == nil || res.Call.Name != "unshare" {
		t.Errorf("an escape: %s %d %v %s", res.State, res.ExitCode, res.Call, res.Stderr)
	}
	if res := attack(t, b, head+"go(lambda: os._exit(5))"); res.ExitCode != 5 || res.State != posture.Completed {
		t.Errorf("an end: %s %d %s", res.State, res.ExitCode, res.Stderr)
	}
	together.Wait()
}

// TestAttack_outputInPackets: a program that changes how its pipes work changes
// nothing of what is kept of its output.
func TestAttack_outputInPackets(t *testing.T) {
	t.Parallel()
	_, b := prepared(t, "python3")
	res := attack(t, b, `
import fcntl, os
for fd in (1, 2): fcntl.fcntl(fd, fcntl.F_SETFL, os.O_DIRECT | os.O_ASYNC | os.O_APPEND)
for i in range(300): os.write(1, b'%04d' % i * 700)
fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK)
`)
	var want strings.Builder
	for i := range 300 {
		want.WriteString(strings.Repeat(fmt.Sprintf("%04d", i), 700))
	}
	if string(res.Stdout) != want.String() || res.ExitCode != 0 {
		t.Errorf("%d bytes of %d, exit %d, %s", len(res.Stdout), want.Len(), res.ExitCode, res.Stderr)
	}
}

// TestAttack_answersIntoMovingMemory: where Holdfast writes an answer, other
// threads take the memory away, protect it, or have no room for it.
func TestAttack_answersIntoMovingMemory(t *testing.T) {
	onlyHere(t)
	span := ".4" // seconds
	if testrepeat.Enduring {
		span = "1"
	}
	_, b := prepared(t, "python3")
	for name, code := range map[string]string{
		"taken away": `
import ctypes, threading, time
L = ctypes.CDLL(None); L.mmap.restype = ctypes.c_void_p
end = time.time() + ` + span + `
at = L.mmap(None, 8192, 3, 0x22, -1, 0)
def move():
    while time.time() < end:
        L.munmap(ctypes.c_void_p(at), 4096); L.mmap(ctypes.c_void_p(at), 4096, 3, 0x32, -1, 0)
def guard():
    while time.time() < end: L.mprotect(ctypes.c_void_p(at), 4096, 0); L.mprotect(ctypes.c_void_p(at), 4096, 1); L.mprotect(ctypes.c_void_p(at), 4096, 3)
for f in (move, guard): threading.Thread(target=f).start()
while time.time() < end: L.syscall(99, ctypes.c_void_p(at + 4096 - 56)); L.fstatfs(0, ctypes.c_void_p(at + 4000))
print('done')`,
		"the kernel's own pages, and a library's": `
import ctypes, os, _ctypes, errno
L = ctypes.CDLL(None, use_errno=True); L.mmap.restype = ctypes.c_void_p
n = os.open(_ctypes.__file__, 0); was = os.pread(n, 4096, 0)
for flags in (1, 2): # MAP_SHARED, MAP_PRIVATE
    L.syscall(99, ctypes.c_void_p(L.mmap(None, 4096, 1, flags, n, 0)))
L.syscall(99, ctypes.c_void_p(0xffffffffff600000)); L.syscall(99, ctypes.c_void_p(0xffff888000000000))
print('done' if os.pread(n, 4096, 0) == was else 'A LIBRARY WAS WRITTEN')`,
	} {
		if res := attack(t, b, code); string(res.Stdout) != "done\n" || res.ExitCode != 0 {
			t.Errorf("%s: %s %d %q %s", name, res.State, res.ExitCode, res.Stdout, res.Stderr)
		}
	}
	start := time.Now()
	res, err := b.Run(t.Context(), sandbox.Spec{ID: "full", Language: "python3", MemoryMB: 32, Timeout: 5 * time.Second, Need: anyWalls, Code: []byte(`
import ctypes
L = ctypes.CDLL(None); L.mmap.restype = ctypes.c_void_p
at = L.mmap(None, 256 << 20, 3, 0x22, -1, 0)
for p in range(0, 64 << 20, 4096): L.syscall(99, ctypes.c_void_p(at + p))
print('done')`)})
	if err != nil || res.State != posture.OOM && string(res.Stdout) != "done\n" || time.Since(start) > 7*time.Second {
		t.Errorf("memory that is full: %v %+v", err, res)
	}
}

// TestAttack_whatTheMachineHasFew: huge pages are the whole machine's, and no
// share of the run's counts them.
func TestAttack_whatTheMachineHasFew(t *testing.T) {
	t.Parallel()
	_, b := prepared(t, "python3")
	res := attack(t, b, `
import mmap, ctypes
for flags in (0x40022, 0x40022 | 21 << 26):
    try: mmap.mmap(-1, 2 << 20, flags=flags); print('has')
    except OSError as e: print(e.errno)
`)
	if string(res.Stdout) != "12\n12\n" || !slices.ContainsFunc(res.Refused, func(r posture.Refusal) bool { return r.Name == "mmap" && r.Count == 2 }) {
		t.Errorf("%s %s %v", res.Stdout, res.Stderr, res.Refused)
	}
}

// TestAttack_coreFiles: the memory of a program that dies is not handed to the
// host's handler of core files, which Linux does with a limit of 0, and does not
// with 1; and no program can change that.
func TestAttack_coreFiles(t *testing.T) {
	onlyHere(t)
	t.Parallel()
	_, b := prepared(t, "python3")
	res := attack(t, b, `
import resource as r, ctypes
L = ctypes.CDLL(None); own = (ctypes.c_ulong * 2)()
print(r.getrlimit(r.RLIMIT_CORE), r.prlimit(0, r.RLIMIT_CORE, (0, 0)))
for pair in ((0, 1), (1, 1), (0, -1)):
    try: r.setrlimit(r.RLIMIT_CORE, pair); print('set')
    except (OSError, ValueError): pass
L.syscall(97, 4, own); print(*own)
print(L.syscall(302, 0, 4 | 1 << 31, own, None), L.syscall(302, ctypes.c_long(1 << 32), 4, None, ctypes.c_void_p(8)), L.syscall(160, 4, own))
L.syscall(97, 4, own); print(*own, flush=True)
ctypes.string_at(1)
`)
	if string(res.Stdout) != "(0, 0) (0, 0)\n1 1\n-1 -1 -1\n1 1\n" || res.Signal != int(unix.SIGSEGV) || len(res.OutputFiles) > 0 {
		t.Errorf("%s %s %d %v", res.Stdout, res.Stderr, res.Signal, keys(res.OutputFiles))
	}
}

// TestAttack_coreFilesOfAWorkspace: nor of a program on a work tree, and of none
// that it starts.
func TestAttack_coreFilesOfAWorkspace(t *testing.T) {
	got := workIn(t, t.TempDir(), `grep '^Max core' /proc/self/limits; ulimit -c 0 2>/dev/null || echo kept; ulimit -n 100 && echo lowered; bash -c "grep '^Max core' /proc/self/limits"`, "")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	if len(lines) != 4 || strings.Join(strings.Fields(lines[0]), " ") != "Max core file size 1 1 bytes" || lines[1] != "kept" || lines[2] != "lowered" || strings.Join(strings.Fields(lines[3]), " ") != "Max core file size 1 1 bytes" {
		t.Errorf("%q %q", got.out, got.errs)
	}
}
