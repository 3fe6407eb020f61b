package process

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// launched is the launcher that runs of static programs have now.
func launched(t *testing.T, b *Tier) *launcherConn {
	t.Helper()
	l, err := b.language(t.Context(), sandbox.Static)
	if err != nil {
		t.Fatal(err)
	}
	z, err := b.launcher(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestARunSurvivesItsLaunchersDeath: a launcher that is killed before a run, or
// while its walls are raised, costs the run nothing.
func TestARunSurvivesItsLaunchersDeath(t *testing.T) {
	b := tier(t)
	spec := sandbox.Spec{ID: "again", Language: sandbox.Static, Code: probe(), Need: anyWalls}
	ran := func(how string) {
		t.Helper()
		if res, err := b.Run(t.Context(), spec); err != nil || res.State != posture.Completed || res.ExitCode != 0 {
			t.Errorf("%s: %v %+v", how, err, res)
		}
	}
	ran("at first")
	for range testrepeat.Times(10, 3) {
		z := launched(t, b)
		z.cmd.Process.Kill()
		<-z.done // a run may begin and end between a signal and a death
		ran("after its launcher was killed")
	}
	for range testrepeat.Times(10, 3) {
		z := launched(t, b)
		ran("before the launcher is killed")
		b.Settle(t.Context())
		for range len(z.seats) { // whichever the run takes does not answer
			s := <-z.seats
			pid, err := s.pid()
			if err != nil {
				t.Fatal(err)
			}
			n, _ := strconv.Atoi(pid)
			if err := syscall.Kill(n, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			z.seats <- s
		}
		time.AfterFunc(20*time.Millisecond, func() { z.cmd.Process.Kill() })
		ran("while its walls were raised")
	}
	ended, times := 0, testrepeat.Times(60, 12)
	for i := range times {
		after := time.Duration(i) * 6 * time.Millisecond / time.Duration(times)
		z := launched(t, b)
		timer := time.AfterFunc(after, func() { z.cmd.Process.Kill() })
		res, err := b.Run(t.Context(), spec)
		timer.Stop()
		switch {
		case err != nil:
			t.Errorf("killed %v after its beginning: %v", after, err)
		case res.ExitCode == posture.ExitLimit && res.Reason == posture.ReasonSignal:
			ended++ // it had begun
		case res.ExitCode != 0 || res.State != posture.Completed:
			t.Errorf("%+v", res)
		}
	}
	t.Logf("%d of %d had begun and were ended", ended, times)
}

// TestCodeIsNotRunTwice: a program that had begun when its launcher was killed
// is ended with it.
func TestCodeIsNotRunTwice(t *testing.T) {
	b := tier(t)
	l, err := b.language(t.Context(), "python3")
	if err != nil {
		t.Fatal(err)
	}
	z, err := b.launcher(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	began := make(chan bool)
	go func() {
		for range 2000 {
			if busy(descendants(z.cmd.Process.Pid)) {
				time.Sleep(500 * time.Millisecond) // long enough to have said so
				z.cmd.Process.Kill()
				began <- true
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		began <- false
	}()
	start := time.Now()
	res, err := b.Run(t.Context(), sandbox.Spec{ID: "once", Language: "python3", Code: []byte("import time\nprint('began', flush=True)\ntime.sleep(20)"), Timeout: sandbox.MaxTimeout, Need: anyWalls})
	if !<-began || err != nil {
		t.Fatal(err)
	}
	if string(res.Stdout) != "began\n" || res.ExitCode != posture.ExitLimit || res.Reason != posture.ReasonSignal || time.Since(start) > 15*time.Second {
		t.Errorf("after %v: %+v", time.Since(start), res)
	}
}
