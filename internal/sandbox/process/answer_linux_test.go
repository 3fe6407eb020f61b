package process

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestAnswers: what Holdfast says in the kernel's place is of the run's own room
// and says nothing of the machine, whatever is asked, and with pointers that lead
// nowhere.
func TestAnswers(t *testing.T) {
	onlyHere(t)
	_, b := prepared(t, "python3")
	res := attack(t, b, `
import os, ctypes, errno, struct, time
L = ctypes.CDLL(None, use_errno=True); L.syscall.restype = ctypes.c_long
def call(nr, *a):
    ctypes.set_errno(0)
    r = L.syscall(ctypes.c_long(nr), *[ctypes.c_long(v) if isinstance(v, int) else v for v in a])
    return errno.errorcode[ctypes.get_errno()] if r == -1 else r
b = ctypes.create_string_buffer(112)
print('sysinfo', call(99, b))
up, l1, l2, l3, total, free, _, _, _, _, procs = struct.unpack('10qH', b.raw[:82])
print(abs(up - time.clock_gettime(time.CLOCK_BOOTTIME)) < 2, l1, l2, l3, total >> 30, free >> 30, procs)
print('bad', [call(99, p) for p in (0, 8, 1 << 47, 1 << 62, -1, -8)])
tmp = os.statvfs('/tmp')
print('room', tmp.f_blocks * tmp.f_frsize >> 20, [os.statvfs(p)[:8] == tmp[:8] for p in ('/', '/usr', '/dev/null', '/code', '/gone')], os.fstatvfs(0)[:8] == tmp[:8])
print('bad', [call(137, b, p) for p in (0, -1)], [call(138, 0, p) for p in (0, 1 << 63 - 1)])
word = ctypes.c_uint32(7); w = ctypes.addressof(word)
half = (ctypes.c_int64 * 2)(0, 50_000_000); odd = (ctypes.c_int64 * 2)(0, 10**9); past = (ctypes.c_int64 * 2)(1, 0)
start = time.monotonic()
print('wait', call(202, w, 0, 8, 0), call(202, w, 0, 7, half), call(202, w, 0, 7, odd), call(202, w, 9, 7, past, 0, 0xffffffff), call(202, w, 9 | 256, 7, past, 0, 0xffffffff), call(202, 8, 0, 7, 0), call(202, w, 0, 7, 8))
print(0.05 <= time.monotonic() - start < 1)
print('feigned', call(74, 999), call(75, 999), call(72, 999, 6, 0), call(72, 999, 7, 0), call(72, 999, 5, b))
print('barrier', [call(324, c, 0) for c in (1, 2, 4)], call(324, 16, 0), call(324, 8, 0))
print('vector', call(449, 0, 0, 0, 0, 0), call(455, w, 7, 1, 2, 0, 0))
`)
	const want = `sysinfo 0
True 0 0 0 4 4 2
bad ['EFAULT', 'EFAULT', 'EFAULT', 'EFAULT', 'EFAULT', 'EFAULT']
room 100 [True, True, True, True, True] True
bad ['EFAULT', 'EFAULT'] ['EFAULT', 'EFAULT']
wait EAGAIN ETIMEDOUT EINVAL ETIMEDOUT ETIMEDOUT EFAULT EFAULT
True
feigned 0 0 0 0 EBADF
barrier ['EINVAL', 'EINVAL', 'EINVAL'] 0 0
vector ENOSYS EINVAL
`
	if string(res.Stdout) != want {
		t.Errorf("%s\n%s\nwant\n%s", res.Stdout, res.Stderr, want)
	}
}

// TestAnswersToJoins: who joins a thread goes on soon after it has ended, gives
// up when its time is up, and does not outlive the run.
func TestAnswersToJoins(t *testing.T) {
	_, b := prepared(t, "python3")
	const head = `
import ctypes, time, os, threading
L = ctypes.CDLL(None)
nap = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda n: time.sleep(n / 1000))
def start(ms):
    t = ctypes.c_ulong(); assert L.pthread_create(ctypes.byref(t), None, nap, ctypes.c_void_p(ms)) == 0; return t
`
	var together sync.WaitGroup
	together.Go(func() {
		start := time.Now()
		res := attack(t, b, head+`
held = start(60_000)
for _ in range(40): threading.Thread(target=lambda: L.pthread_join(held, None), daemon=True).start()
L.pthread_join(held, None)
`)
		if res.State != posture.Timeout || time.Since(start) > 4*time.Second {
			t.Errorf("%s after %v: %s", res.State, time.Since(start), res.Stderr)
		}
	})
	res, err := b.Run(t.Context(), sandbox.Spec{ID: "joins", Language: "python3", Timeout: 25 * time.Second,
		Need: anyWalls, Code: []byte(head + `
t = start(200); s = time.monotonic(); print(L.pthread_join(t, None), 0.15 < time.monotonic() - s < 3)
t = start(3000); s = time.monotonic()
until = (ctypes.c_long * 2)(int(time.time()), int(time.time() % 1 * 1e9) + 100_000_000)
if until[1] >= 10**9: until[0] += 1; until[1] -= 10**9
print(L.pthread_timedjoin_np(t, None, until), 0.09 < time.monotonic() - s < 3); L.pthread_join(t, None)
s = time.monotonic()
for _ in range(50): L.pthread_join(start(1), None)
print(time.monotonic() - s < 4)
`)})
	if err != nil {
		t.Fatal(err)
	}
	if string(res.Stdout) != "0 True\n110 True\nTrue\n" {
		t.Errorf("%s %s", res.Stdout, res.Stderr)
	}
	together.Wait()
}

// TestAnswersAreBounded: a flood of questions ends a run, a question that the
// request took away is none, and a program whose first thread has gone is
// answered too, or told that there is no answer.
func TestAnswersAreBounded(t *testing.T) {
	onlyHere(t)
	_, b := prepared(t, "python3")
	const head = "import ctypes, os, threading, time\nL = ctypes.CDLL(None); b = ctypes.create_string_buffer(256)\n"
	floodWithQuestions(t, head)
	res, err := b.Run(t.Context(), sandbox.Spec{ID: "narrow", Language: "python3", Narrow: []string{"statfs"}, Need: anyWalls, Code: []byte("import os; print(1, flush=True); os.statvfs('/')")})
	if err != nil || res.Call == nil || res.Call.Name != "statfs" || string(res.Stdout) != "1\n" {
		t.Errorf("narrowed: %v %+v", err, res)
	}
	res = attack(t, b, head+`
def f():
    time.sleep(.2); r = L.syscall(99, b); os.write(1, b'yes' if r == 0 and b.raw[32:40] == (4 << 30).to_bytes(8, 'little') else b'none'); os._exit(0)
threading.Thread(target=f).start()
L.syscall(60, 0)
`)
	if out := string(res.Stdout); out != "yes" && out != "none" {
		t.Errorf("behind a first thread that ended: %q %q %s", out, res.Stderr, res.State)
	}
	if out := string(attack(t, b, head+"b[0]=1\nhits=set()\nfor _ in range(300):\n    L.sysinfo(b); hits.add(b.raw[32:])\nprint(len(hits))").Stdout); !strings.HasPrefix(out, "1") {
		t.Errorf("it changes: %s", out)
	}
}

// floodWithQuestions runs a program that asks without end, and checks that refusedFlood
// questions end it. Without the tag endure it asks the last thousand, and the others are
// counted as asked.
func floodWithQuestions(t *testing.T, head string) {
	t.Helper()
	left := testrepeat.Times(refusedFlood, 1000)
	code := fmt.Sprintf(head+"for _ in range(%d): L.sysinfo(b)\nprint('half', flush=True)\n"+
		"while True: L.sysinfo(b)", left/2)
	b := warmed(t, "python3", 2)
	spec, err := b.Prepare(t.Context(), sandbox.Spec{ID: "flood", Language: "python3", Code: []byte(code),
		Timeout: sandbox.MaxTimeout, Need: anyWalls})
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.order(installed(t, "python3"), spec)
	if err != nil {
		t.Fatal(err)
	}
	r := b.takeParked(b.only(t), spec)
	if r == nil {
		t.Fatal("no workload is parked")
	}
	defer r.free()
	r.asked += refusedFlood - left
	if err := b.release(r, o, spec, posture.Instants{}); err != nil {
		t.Fatal(err)
	}
	res, err := r.outcome(t.Context(), spec.Timeout)
	if err != nil || res.Reason != posture.ReasonRefused || res.ExitCode != posture.ExitLimit ||
		string(res.Stdout) != "half\n" {
		t.Errorf("%v %+v", err, res)
	}
}
