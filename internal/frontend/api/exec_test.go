package api

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// Ten run, a hundred wait for thirty seconds, one of the large ones at a time.
func TestExecutionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x executions
		var leave []func()
		for range DefaultRoom().Running {
			l, err := x.enter(t.Context(), Room{}, 1)
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, l)
		}
		waited := make(chan error, DefaultRoom().Waiting)
		for range DefaultRoom().Waiting {
			go func() {
				l, err := x.enter(context.Background(), Room{}, 1)
				if err == nil {
					l()
				}
				waited <- err
			}()
		}
		synctest.Wait()
		if _, err := x.enter(t.Context(), Room{}, 1); holdfast.KindOf(err) != holdfast.KindTimeout {
			t.Error("one too many waits:", err)
		}
		leave[0]()
		for range DefaultRoom().Waiting {
			if err := <-waited; err != nil {
				t.Error(err)
			}
		}
		start := time.Now()
		l, err := x.enter(t.Context(), Room{}, -1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.enter(t.Context(), Room{}, largeBody+1); holdfast.KindOf(err) != holdfast.KindTimeout || time.Since(start) != DefaultRoom().Wait {
			t.Error("two large ones at once:", err, time.Since(start))
		}
		l()
		for _, l := range leave[1:] {
			l()
		}
		if len(x.running)+len(x.large) != 0 || x.waiting.Load() != 0 {
			t.Error("somebody is counted who has left")
		}
	})
}

// What the kernel withholds is not shown past it; what it gives from before is;
// and of an attempt to get out nothing that the code wrote.
func TestOnlyWhatIsLetOutIsShown(t *testing.T) {
	run := &posture.Result{ID: "r", Stdout: []byte("said"), Stderr: []byte("cried"), OutputFiles: map[string][]byte{"f": nil}, Err: "why", ExitCode: 159, State: posture.SyscallBlocked}
	withheld := &holdfast.Error{Kind: holdfast.KindEvalFailure}
	if d, err := passed(&holdfast.Outcome{}, run, withheld); d != nil || err != withheld {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := passed(&holdfast.Outcome{}, run, nil); d != nil || err != nil {
		t.Errorf("%+v, %v", d, err)
	}
	escape := &holdfast.Error{Kind: holdfast.KindEscape}
	if d, err := passed(&holdfast.Outcome{}, run, escape); err != escape || d == nil || d.ExitCode != 159 || d.Stdout != "" || d.Stderr != "why\n" || len(d.OutputFiles) != 0 {
		t.Errorf("%+v, %v", d, err)
	}
	body, err := outputOf(run)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := passed(&holdfast.Outcome{Output: &body, Replayed: true}, nil, nil); err != nil || d.Stdout != "said" || d.ExitCode != 159 {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := passed(&holdfast.Outcome{Output: &holdfast.Output{Body: []byte("no")}}, nil, nil); err == nil {
		t.Error("a result that cannot be read passes")
	}
}
