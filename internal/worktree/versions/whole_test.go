package versions

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
)

// version takes a snapshot of the tree, and says how to go back to it.
func (s *trackedSite) version() goBack {
	s.t.Helper()
	m, err := s.d.snapshots.take(s.t.Context(), snapshot.Manifest{Who: "me", Reason: "asked for"})
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := s.d.snapshots.resolve(s.t.Context(), Subject{ID: m.ID}, "")
	if err != nil || len(list) != 1 {
		s.t.Fatalf("%v, %v", list, err)
	}
	return list[0]
}

// TestD40_HaltInTheMiddleOfARollback: who halts everything while a tree is put back,
// or hangs up, leaves no tree that is half put back. The crossing is cut, what it was
// for is not, and the ledger has both.
func TestD40_HaltInTheMiddleOfARollback(t *testing.T) {
	s := openTracked(t, "")
	for i := range 50 {
		s.write(fmt.Sprint("f", i), "good")
	}
	to := s.version()
	for _, name := range []string{"hang up", "halt"} {
		for i := range 50 {
			s.write(fmt.Sprint("f", i), "bad")
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began, cutOff, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- s.d.snapshots.keep(ctx, ownAct{boundary: snapshotRollback,
				event: eventRolled, who: "me", whole: true, payload: map[string]any{"n": name},
				do: func(ctx context.Context) (string, map[string]any, error) {
					close(began)
					<-cutOff
					k, err := s.d.snapshots.hand()
					if err != nil {
						return name, nil, err
					}
					out, err := k.Rollback(ctx, to.tree, to.to, "me")
					return name, rolledData(out, map[string]any{}, err), err
				}})
		}()
		<-began
		if name == "hang up" {
			cancel()
		} else {
			if _, err := s.d.Kernel.Halt("me", "in the middle"); err != nil {
				t.Fatal(err)
			}
		}
		close(cutOff)
		if err := <-ended; err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s.holds("f0", "good")
		s.holds("f49", "good")
		if list := s.events(name, eventRolled); len(list) != 1 || list[0]["done"] != true || list[0]["crossing"] == nil {
			t.Errorf("%s: %v", name, list)
		}
	}
}

// TestRollbackEndsWithTheDaemon: what is being put back when the daemon ends is given
// up there, and carried to its end at the next start.
func TestRollbackEndsWithTheDaemon(t *testing.T) {
	s := openTracked(t, "")
	s.write("a", "good")
	to := s.version()
	s.write("a", "bad")
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- s.d.snapshots.keep(t.Context(),
			ownAct{boundary: snapshotRollback, event: eventRolled, who: "me", whole: true, payload: map[string]any{},
				do: func(ctx context.Context) (string, map[string]any, error) {
					close(began)
					<-ctx.Done()
					k, err := s.d.snapshots.hand()
					if err == nil {
						_, err = k.Rollback(ctx, to.tree, to.to, "me")
					}
					return "", nil, err
				}})
	}()
	<-began
	s.d.snapshots.ending.stop()
	if err := <-ended; err == nil {
		t.Error("it went on")
	}
	err := s.d.snapshots.keep(t.Context(), ownAct{boundary: snapshotRollback, whole: true,
		do: func(context.Context) (string, map[string]any, error) { return "", nil, errors.New("it began") }})
	if holdfast.KindOf(err) != holdfast.KindCanceled {
		t.Errorf("%v", err)
	}
	s.holds("a", "bad")
}

// TestKeeperIsPaused: nobody keeps a person from going back by pausing Holdfast's own
// agent, or one that has its name.
func TestKeeperIsPaused(t *testing.T) {
	s := openTracked(t, "")
	s.write("a", "good")
	to := s.version()
	s.write("a", "bad")
	if _, err := s.act(keeperAgent, "test/act", func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.d.Kernel.Pause(holdfast.Local, keeperAgent, "eve", "so that nothing is put back"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.d.snapshots.back(t.Context(), to, "me", "", nil); err != nil {
		t.Fatal(err)
	}
	s.holds("a", "good")
	if _, err := s.d.snapshots.take(t.Context(), snapshot.Manifest{Who: "me", Reason: "asked for"}); err != nil {
		t.Error(err)
	}
}

// TestBeforeIsNothingThatACrossingChanged: a version that was being kept while a
// crossing began, or was kept by a rollback after it, is none from before it.
func TestBeforeIsNothingThatACrossingChanged(t *testing.T) {
	s := openTracked(t, "")
	s.write("a", "none yet")
	first, err := s.act("coder", "test/act", func() error { s.write("a", "bad"); return nil })
	if err != nil {
		t.Fatal(err)
	}
	to := s.version()
	s.write("a", "worse")
	if _, err := s.d.snapshots.back(t.Context(), to, "me", "", nil); err != nil { // which keeps what is worse
		t.Fatal(err)
	}
	if list, err := s.d.snapshots.before(t.Context(), first.Crossing, ""); holdfast.KindOf(err) != holdfast.KindNotFound {
		t.Errorf("%+v, %v", list, err)
	}
	// One that was begun before a crossing and was whole only behind it.
	to = s.version()
	began, err := s.d.snapshots.position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.act("coder", "test/act", func() error { s.write("a", "worst"); return nil })
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.d.snapshots.keeper.Take(t.Context(), []snapshot.Tree{to.tree}, snapshot.Manifest{Reason: "asked for", Ledger: began})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.d.snapshots.recordBefore(m); err != nil {
		t.Fatal(err)
	}
	list, err := s.d.snapshots.before(t.Context(), second.Crossing, "")
	if err != nil || len(list) != 1 || list[0].to.From != to.to.From {
		t.Errorf("%+v, %v; it wants %+v", list, err, to)
	}
}
