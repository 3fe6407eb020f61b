package versions

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/report"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/ledger"
)

// TestSeveralTreesGoBack: of several trees each goes back for itself, and the answer
// says which did not and why.
func TestSeveralTreesGoBack(t *testing.T) {
	s := openTracked(t, "    - {path: other, kind: code}\n")
	other := filepath.Join(filepath.Dir(s.tree), "other")
	if err := errors.Join(os.Mkdir(other, 0o755), os.WriteFile(filepath.Join(other, "a"), []byte("good"), 0o644)); err != nil {
		t.Fatal(err)
	}
	s.write("a", "good")
	m, err := s.d.snapshots.take(t.Context(), snapshot.Manifest{Who: "me", Reason: "asked for"})
	if err != nil {
		t.Fatal(err)
	}
	s.write("a", "bad")
	err = errors.Join(os.WriteFile(filepath.Join(other, "a"), []byte("bad"), 0o644), os.Mkdir(filepath.Join(other, ".git"), 0o755),
		os.WriteFile(filepath.Join(other, ".git", "MERGE_HEAD"), nil, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	for _, tree := range []string{"", other} {
		list, err := s.d.snapshots.resolve(t.Context(), Subject{ID: m.ID}, tree)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.d.snapshots.allBack(t.Context(), list, "me")
		if tree != "" {
			if holdfast.KindOf(err) != holdfast.KindConflict {
				t.Errorf("%s, %v", b, err)
			}
			continue
		}
		var out []snapshot.Rolled
		if err := errors.Join(err, json.Unmarshal(b, &out)); err != nil {
			t.Fatal(err)
		}
		if len(out) != 2 || out[0].Tree != s.tree || out[0].Failed != "" || out[1].Tree != other || !strings.Contains(out[1].Failed, "middle of a merge") || out[1].Hint == "" {
			t.Errorf("%s", b)
		}
		s.holds("a", "good")
	}
	if b, err := s.d.snapshots.Find(t.Context(), m.ID, ""); err != nil || strings.Count(string(b), `"commit"`) != 2 {
		t.Errorf("%s, %v", b, err)
	}
	if _, err := s.d.snapshots.Find(t.Context(), Subject{ID: "nonsense", Before: true}.String(), ""); holdfast.KindOf(err) != holdfast.KindNotFound {
		t.Errorf("%v", err)
	}
}

// TestOnErrorSeveralTrees: where one tree cannot go back after an act failed, the
// others do, and the error says it of each.
func TestOnErrorSeveralTrees(t *testing.T) {
	s := openTracked(t, "    - {path: other, kind: code, agents: [coder]}\n")
	other := filepath.Join(filepath.Dir(s.tree), "other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("a", "good")
	back, err := s.d.snapshots.Before(t.Context(), kernel.Acting{Tenant: holdfast.Local, Agent: "coder", Boundary: "test/careful", Crossing: "c"})
	if err != nil {
		t.Fatal(err)
	}
	s.write("a", "bad")
	if err := errors.Join(os.Mkdir(filepath.Join(other, ".git"), 0o755), os.WriteFile(filepath.Join(other, ".git", "MERGE_HEAD"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	_, err = back(t.Context(), true)
	if err == nil || !strings.Contains(err.Error(), other+" did not go back: ") || !strings.Contains(err.Error(), "these went back: "+s.tree) {
		t.Errorf("%v", err)
	}
	s.holds("a", "good")
}

// TestPersonsWordOutlastsAFailedAct: what a person had put back while an act ran is
// not undone when that act fails, which its agent can do whenever it likes; what the
// act did after that goes away all the same. An act that begins behind the word goes
// back to before itself.
func TestPersonsWordOutlastsAFailedAct(t *testing.T) {
	t.Parallel()
	s := openTracked(t, "")
	before := func(crossing string) func() {
		back, err := s.d.snapshots.Before(t.Context(), kernel.Acting{Tenant: holdfast.Local, Agent: "coder", Boundary: "test/careful", Crossing: crossing})
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			if said, err := back(t.Context(), true); err != nil || strings.Contains(said, "since") != (crossing == "c1") {
				t.Errorf("%s: %q, %v", crossing, said, err)
			}
		}
	}
	s.write("a", "good")
	good := s.version()
	s.write("a", "bad")
	fails := before("c1")
	if _, err := s.d.snapshots.allBack(t.Context(), []goBack{good}, "me"); err != nil {
		t.Fatal(err)
	}
	s.holds("a", "good")
	s.write("a", "worse")
	fails()
	s.holds("a", "good")
	if list := s.events("c1", eventRolled); len(list) != 1 || list[0]["to"] != good.to.From || list[0]["commit"] != good.to.Commit {
		t.Errorf("%v", list)
	}
	s.write("a", "newer")
	fails = before("c2")
	s.write("a", "bad")
	fails()
	s.holds("a", "newer")
}

// TestActsAtOnceOnOneTree: what was put back because an act failed is not brought back
// by one that began behind that act and fails later; one that began before it goes back
// to before itself.
func TestActsAtOnceOnOneTree(t *testing.T) {
	t.Parallel()
	s := openTracked(t, "")
	begins := func(crossing string) func(failed bool) string {
		after, err := s.d.snapshots.Before(t.Context(), kernel.Acting{Tenant: holdfast.Local, Agent: "coder", Boundary: "test/careful", Crossing: crossing})
		if err != nil {
			t.Fatal(err)
		}
		return func(failed bool) string {
			said, err := after(t.Context(), failed)
			if err != nil {
				t.Errorf("%s: %v", crossing, err)
			}
			return said
		}
	}
	s.write("a", "good")
	first := begins("c1")
	s.write("a", "bad")
	second, third := begins("c2"), begins("c3")
	s.write("a", "worse")
	first(true)
	s.holds("a", "good")
	s.write("a", "worse")
	if said := second(true); !strings.Contains(said, "or to what was put back since") {
		t.Error(said)
	}
	s.holds("a", "good")
	s.write("a", "finished")
	if said := third(false); said != "" {
		t.Error(said)
	}
	s.holds("a", "finished")

	first = begins("c4")
	s.write("a", "of c4")
	second = begins("c5")
	s.write("a", "of c5")
	second(true)
	s.holds("a", "of c4")
	first(true)
	s.holds("a", "finished")
	if list := s.events("c4", eventRolled); len(list) != 1 || list[0]["to"] != "before c4" {
		t.Errorf("%v", list)
	}
}

// begun leaves the tree as a rollback does that the daemon was killed in, and starts the
// daemon anew.
func (s *trackedSite) begun() {
	s.t.Helper()
	s.write("a", "good")
	m := s.snapshot()
	file := s.recordOf(s.tree, ".begun")
	s.restarted(func() {
		s.write("a", "half way")
		b, err := json.Marshal(snapshot.Begun{Tree: snapshot.Tree{Path: s.tree, Kind: "state"}, Who: "me", Before: "the one before", Word: true,
			To: snapshot.Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content, From: m.ID}})
		if err := errors.Join(err, os.WriteFile(file, b, 0o600)); err != nil {
			s.t.Fatal(err)
		}
	})
}

// stopped is begun where it cannot be carried to its end.
func (s *trackedSite) stopped() {
	s.t.Helper()
	merge := filepath.Join(s.tree, ".git", "MERGE_HEAD")
	if err := errors.Join(os.Mkdir(filepath.Dir(merge), 0o755), os.WriteFile(merge, nil, 0o644)); err != nil {
		s.t.Fatal(err)
	}
	s.begun()
	s.holds("a", "half way")
	if err := os.Remove(merge); err != nil {
		s.t.Fatal(err)
	}
	s.tellsStopped("the start")
}

func (s *trackedSite) snapshot() *snapshot.Manifest {
	s.t.Helper()
	m, err := s.d.snapshots.take(s.t.Context(), snapshot.Manifest{Who: "me", Reason: "asked for"})
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// recordOf is the file of a tree's rollback that ends so.
func (s *trackedSite) recordOf(tree, end string) string {
	s.t.Helper()
	return strings.TrimSuffix(snapshot.StoppedFile(s.d.snapshots.Dir, tree), ".stopped") + end
}

// tellsStopped wants everything there that a person needs.
func (s *trackedSite) tellsStopped(after string) {
	s.t.Helper()
	p := s.d.snapshots.Problems()
	if len(p) != 1 || !strings.HasPrefix(p[0], ofRollbackIn(s.tree).String()+": at 20") {
		s.t.Fatalf("after %s: %q", after, p)
	}
	for _, word := range []string{"middle of a merge", "the snapshot the one before", "`holdfast rollback 20", "--tree " + s.tree, s.recordOf(s.tree, ".stopped")} {
		if !strings.Contains(p[0], word) {
			s.t.Errorf("after %s: it does not say %q: %q", after, word, p[0])
		}
	}
	if _, err := os.Lstat(s.recordOf(s.tree, ".stopped")); err != nil {
		s.t.Fatalf("after %s: %v", after, err)
	}
}

// restarted starts the daemon anew, with what was done meanwhile.
func (s *trackedSite) restarted(meanwhile func()) {
	s.t.Helper()
	d := s.d
	s.d = nil
	if err := d.Close(); err != nil {
		s.t.Fatal(err)
	}
	meanwhile()
	s.open()
}

// goes puts the tree back to a version.
func (s *trackedSite) goes(to snapshot.Target) error {
	s.t.Helper()
	_, err := s.d.snapshots.back(s.t.Context(), goBack{tree: snapshot.Tree{Path: s.tree, Kind: "state"}, to: to}, "me", "", nil)
	return err
}

// TestRollbackThatWasCutOff is carried to its end at the next start, and recorded.
func TestRollbackThatWasCutOff(t *testing.T) {
	s := openTracked(t, "")
	s.begun()
	s.holds("a", "good")
	if e := s.d.eventsNamed(t, eventRolled,
		1); len(e) != 1 || e[0]["resumed"] != true || e[0]["done"] != true || e[0]["before"] == "" {
		t.Errorf("%v", e)
	}
	if p := s.d.snapshots.Problems(); len(p) != 0 {
		t.Errorf("%v", p)
	}
}

// TestStoppedRollbackWaits: one that could not be carried to its end is told at each
// start and left to a person, for the tree may have been worked on since. No act of an
// agent's and no rollback that fails ends that.
func TestStoppedRollbackWaits(t *testing.T) {
	s := openTracked(t, "")
	s.stopped()
	if _, err := s.act("coder", "test/careful", func() error { s.write("b", "junk"); return errors.New("it failed") }); err == nil {
		t.Fatal("it did not fail")
	}
	s.holds("a", "half way")
	s.tellsStopped("an act that failed")
	s.restarted(func() { s.write("a", "a person's work") })
	s.holds("a", "a person's work")
	s.tellsStopped("another start")
	to := s.goingTo()
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-ended:
				return
			case <-time.After(200 * time.Microsecond):
				_ = os.WriteFile(filepath.Join(s.tree, "a"), fmt.Append(nil, "now ", i), 0o644)
			}
		}
	}()
	err := s.goes(to)
	close(ended)
	if <-done; holdfast.KindOf(err) != holdfast.KindConflict {
		t.Fatalf("under a tree that does not hold still: %v", err)
	}
	s.tellsStopped("a rollback that failed")
	if err := s.goes(to); err != nil {
		t.Fatal(err)
	}
	s.holds("a", "good")
	for range 2 {
		if p := s.d.snapshots.Problems(); len(p) != 0 {
			t.Errorf("it is told still: %v", p)
		}
		s.restarted(func() {})
	}
}

// TestStoppedRollbackIsToldAtEachStart: people are told that a tree is half way though
// the same condition was over just before.
func TestStoppedRollbackIsToldAtEachStart(t *testing.T) {
	s := openTracked(t, "")
	s.stopped()
	stopped, away := s.recordOf(s.tree, ".stopped"), s.recordOf(s.tree, ".away")
	s.restarted(func() {
		if err := os.Rename(stopped, away); err != nil {
			t.Fatal(err)
		}
	})
	for _, cleared := range []bool{false, true} { // as the watch says it a minute later
		f := watch.Finding{Condition: watch.SnapshotMissing, Severity: watch.Medium, Response: watch.Alert, Tenant: holdfast.Local, At: time.Now(), Why: "something else"}
		if f.Cleared = cleared; cleared {
			f.Response = watch.Record
		}
		s.d.watching.Take([]watch.Finding{f})
		s.d.eventsNamed(t, map[bool]string{false: "anomaly_found", true: "anomaly_cleared"}[cleared], 1)
	}
	s.restarted(func() {
		if err := os.Rename(away, stopped); err != nil {
			t.Fatal(err)
		}
	})
	if !slices.ContainsFunc(s.d.watching.Watch.Hold(),
		func(h watch.State) bool { return h.Condition == watch.SnapshotMissing }) {
		t.Error("no alarm holds")
	}
}

// TestRecordThatCannotBeRead is named, with what to do.
func TestRecordThatCannotBeRead(t *testing.T) {
	s := openTracked(t, "")
	s.snapshot()
	file := s.recordOf(s.tree, ".begun")
	s.restarted(func() {
		if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if p := s.d.snapshots.Problems(); len(p) != 1 || !strings.Contains(p[0], file) ||
		!strings.Contains(p[0], "remove it") {
		t.Errorf("%q", p)
	}
}

// TestBeforeIsNotWhatWasUndone: what a rollback made of a tree is the newest version
// before what comes after it, and not what it undid.
func TestBeforeIsNotWhatWasUndone(t *testing.T) {
	t.Parallel()
	s := openTracked(t, "")
	s.write("a", "good")
	m := s.snapshot()
	s.write("a", "HARM")
	if err := s.goes(snapshot.Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content, From: m.ID}); err != nil {
		t.Fatal(err)
	}
	s.holds("a", "good")
	out, err := s.act("coder", "test/act", func() error { s.write("b", "more"); return nil })
	if err != nil {
		t.Fatal(err)
	}
	s.write("a", "worse")
	list, err := s.d.snapshots.resolve(t.Context(), Subject{ID: out.Crossing, Before: true}, "")
	if err != nil || len(list) != 1 || list[0].to.From != m.ID {
		t.Fatal(list, err)
	}
	if err := s.goes(list[0].to); err != nil {
		t.Fatal(err)
	}
	s.holds("a", "good")
	if _, err := os.Lstat(filepath.Join(s.tree, "b")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the act made is there: %v", err)
	}
	// Whatever is dropped later.
	k, err := s.d.snapshots.hand()
	if err != nil {
		t.Fatal(err)
	}
	all, err := k.List()
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if err := k.Drop(t.Context(), all[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again, err := s.d.snapshots.resolve(t.Context(), Subject{ID: out.Crossing, Before: true}, ""); err != nil || len(again) != 1 || again[0].to != list[0].to {
		t.Fatalf("%v, not %v: %v", again, list, err)
	}
	s.write("a", "worse")
	if err := s.goes(list[0].to); err != nil {
		t.Fatal(err)
	}
	s.holds("a", "good")
}

// TestSnapshotAroundARollback: a snapshot of several trees that looked at one before a
// rollback of it, and ended after it, holds what was undone, and is not the newest.
func TestSnapshotAroundARollback(t *testing.T) {
	s := openTracked(t, "")
	s.write("a", "good")
	m := s.snapshot()
	s.write("a", "HARM")
	k, err := s.d.snapshots.hand()
	if err != nil {
		t.Fatal(err)
	}
	long, err := k.Take(t.Context(), s.d.snapshots.current().ListTrees(), snapshot.Manifest{Who: "me", Reason: "daily"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.goes(snapshot.Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content, From: m.ID}); err != nil {
		t.Fatal(err)
	}
	at, err := s.d.snapshots.position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.d.Kernel.Record(kernel.Event{Tenant: holdfast.Local, Crossing: long.ID, Name: eventTaken, Who: "me", Subject: snapshotTake, Data: takenData(long, at)}); err != nil {
		t.Fatal(err)
	}
	out, err := s.act("coder", "test/act", func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.d.snapshots.resolve(t.Context(), Subject{ID: out.Crossing, Before: true}, "")
	if err != nil || len(list) != 1 || list[0].to.From != m.ID {
		t.Fatal(list, err)
	}
}

// TestBeforeKnowsWhereTheLedgerStood, as every snapshot does.
func TestBeforeKnowsWhereTheLedgerStood(t *testing.T) {
	s := openTracked(t, "")
	s.write("a", "good")
	m := s.snapshot()
	s.write("a", "bad")
	r, err := s.d.snapshots.back(t.Context(), goBack{tree: snapshot.Tree{Path: s.tree, Kind: "state"}, to: snapshot.Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content, From: m.ID}}, "me", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Before.Ledger.Size <= m.Ledger.Size || r.Before.Note != "to the snapshot "+m.ID {
		t.Errorf("%+v", r.Before)
	}
}

// TestWhatIsDoneWhileHaltedIsNoDeniedCrossing: the event alone tells of it.
func TestWhatIsDoneWhileHaltedIsNoDeniedCrossing(t *testing.T) {
	t.Parallel()
	for name, halt := range map[string]func(s *trackedSite){
		"latch": func(s *trackedSite) {
			if _, err := s.d.Kernel.Halt("me", "look"); err != nil {
				t.Fatal(err)
			}
		},
		"environment": func(s *trackedSite) {
			s.opt.Enabled, s.opt.EnabledSet = "no", true
			s.restarted(func() {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openTracked(t, "")
			s.write("a", "good")
			m := s.snapshot()
			s.write("a", "bad")
			halt(s)
			if err := s.goes(snapshot.Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content, From: m.ID}); err != nil {
				t.Fatal(err)
			}
			s.holds("a", "good")
			if e := s.d.eventsNamed(t, eventRolled, 1); len(e) != 1 || e[0]["done"] != true {
				t.Errorf("%v", e)
			}
			err := s.d.store.View(t.Context(), func(tx kernel.Tx) error {
				return tx.Leaves(holdfast.Local, 0, 1<<40, func(l ledger.Stored) error {
					if l.Kind == ledger.KindEntry && strings.Contains(string(l.Record), snapshotRollback) {
						t.Errorf("%s", l.Record)
					}
					return nil
				})
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestRollbackThatWasNotDoneIsNotCounted in a day's report.
func TestRollbackThatWasNotDoneIsNotCounted(t *testing.T) {
	s := openTracked(t, "")
	s.opt.Enabled, s.opt.EnabledSet = "no", true // so that the event alone tells of it
	s.stopped()
	if err := s.goes(s.goingTo()); err != nil {
		t.Fatal(err)
	}
	counted := map[any]string{}
	err := s.d.store.View(t.Context(), func(tx kernel.Tx) error {
		return tx.Leaves(holdfast.Local, 0, 1<<40, func(l ledger.Stored) error {
			if l.Kind != ledger.KindEvent || !strings.Contains(string(l.Record), eventRolled) {
				return nil
			}
			e, err := report.EventOf(&l)
			counted[strings.Contains(string(l.Record), `"done":true`)] = e.Did
			return err
		})
	})
	if err != nil || len(counted) != 2 || counted[true] != snapshotRollback || counted[false] != "" {
		t.Errorf("%v, %v", counted, err)
	}
}

// goingTo is where the rollback was going that was stopped.
func (s *trackedSite) goingTo() snapshot.Target {
	s.t.Helper()
	list, err := snapshot.StoppedIn(s.d.snapshots.Dir)
	if err != nil || len(list) != 1 {
		s.t.Fatal(list, err)
	}
	return list[0].To
}
