//go:build linux && amd64

package process

import (
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestZygote_lateKillsNoRun: where a zygote takes longer for a fork than a request
// waits, as on a machine that has much to do, the runs that are its children end
// as they would; it is asked no more, what it makes after all ends by itself, and
// it goes with the last of them.
func TestZygote_lateKillsNoRun(t *testing.T) {
	for name, goesOn := range map[string]bool{"and stays so": false, "and goes on": true} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir()) // whose names are counted
			b := warmed(t, "python3", 2)
			n := b.only(t).pool.nursery
			n.mu.Lock()
			late := n.now
			n.mu.Unlock()
			stopped := b.only(t).zygotes()[1:]
			for _, pid := range stopped {
				unix.Kill(pid, unix.SIGSTOP)
			}
			done := make(chan struct{})
			go func() { // the run asks for another fork, in its background
				defer close(done)
				res, err := b.Run(t.Context(), sandbox.Spec{ID: "z", Language: "python3", Code: []byte(waitsForSignal),
					Timeout: sandbox.MaxTimeout, Need: anyWalls})
				if err != nil || string(res.Stdout) != "waited\n" || res.Path != posture.PathParked {
					t.Errorf("the run ended as %+v (%v)", res, err)
				}
			}()
			for !late.late.Load() && late.alive() {
				time.Sleep(10 * time.Millisecond)
			}
			if goesOn {
				for _, pid := range stopped {
					unix.Kill(pid, unix.SIGCONT)
				}
			}
			signalWaiting(t, done)
			n.mu.Lock()
			if n.promote(); late.forks == 0 || n.now == late {
				t.Errorf("after %d forks the late one is still asked", late.forks)
			}
			n.mu.Unlock()
			served(t, b) // the other one that waited
			b.Settle(t.Context())
			vanishes(t, stopped...)
			before := steady(t, b)
			served(t, b)
			leftAsBefore(t, b, before)
			if _, path := served(t, b); path != posture.PathParked {
				t.Errorf("after that it came by %s", path)
			}
		})
	}
}

// waitsForSignal is a program that ends at a signal.
const waitsForSignal = `import ctypes, signal, time
told = []
signal.signal(signal.SIGUSR1, lambda *a: told.append(1))
ctypes.CDLL(None).prctl(15, b'waits')
while not told: time.sleep(.01)
print('waited')`

// signalWaiting tells a program that waitsForSignal to end, and returns when done is closed.
func signalWaiting(t *testing.T, done <-chan struct{}) {
	t.Helper()
	for {
		for _, pid := range descendants(os.Getpid()) {
			if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(name) == "waits\n" {
				unix.Kill(pid, unix.SIGUSR1)
			}
		}
		select {
		case <-done:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// steady is what the tier holds once nothing of what ended goes any more.
func steady(t *testing.T, b *Tier) Trace {
	t.Helper()
	b.Settle(t.Context())
	before := b.Trace()
	for range 100 {
		time.Sleep(100 * time.Millisecond)
		now := b.Trace()
		if now == before {
			return now
		}
		before = now
	}
	t.Fatalf("what it holds changes all the time: %+v", before)
	return before
}
