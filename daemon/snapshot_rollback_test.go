package daemon

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/snapshot"
	"github.com/holdfast-dev/holdfast/kernel"
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
	m, err := s.d.snapshots.take(t.Context(), snapshot.Manifest{Who: "me", Why: "asked for"})
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
		list, err := s.d.snapshots.resolve(t.Context(), m.ID, tree)
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
	if _, err := s.d.snapshots.Find(t.Context(), kernel.RollbackBefore+"nonsense", ""); holdfast.KindOf(err) != holdfast.KindNotFound {
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

// begun leaves the tree as a rollback does that the daemon was killed in.
func (s *trackedSite) begun() {
	s.t.Helper()
	s.write("a", "good")
	m, err := s.d.snapshots.take(s.t.Context(), snapshot.Manifest{Who: "me", Why: "asked for"})
	if err != nil {
		s.t.Fatal(err)
	}
	dir := s.d.snapshotDir()
	s.restarted(func() {
		s.write("a", "half way")
		b, err := json.Marshal(snapshot.Begun{Tree: snapshot.Tree{Path: s.tree, Kind: "state"}, Who: "me",
			To: snapshot.Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content, From: m.ID}})
		if err := errors.Join(err, os.WriteFile(filepath.Join(dir, snapshot.BegunFile(s.tree)), b, 0o600)); err != nil {
			s.t.Fatal(err)
		}
	})
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

// TestRollbackThatWasCutOff is carried to its end at the next start, and recorded.
func TestRollbackThatWasCutOff(t *testing.T) {
	s := openTracked(t, "")
	s.begun()
	s.holds("a", "good")
	if e := recorded(t, s.d, eventRolled, 1); len(e) != 1 || e[0]["resumed"] != true || e[0]["done"] != true || e[0]["before"] == "" {
		t.Errorf("%v", e)
	}
	if p := s.d.snapshots.problems(); len(p) != 0 {
		t.Errorf("%v", p)
	}
}

// TestStoppedRollbackWaits: one that could not be carried to its end is told at each
// start and left to a person, for the tree may have been worked on since.
func TestStoppedRollbackWaits(t *testing.T) {
	s := openTracked(t, "")
	merge := filepath.Join(s.tree, ".git", "MERGE_HEAD")
	if err := errors.Join(os.Mkdir(filepath.Dir(merge), 0o755), os.WriteFile(merge, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	s.begun()
	told := func() bool {
		p := s.d.snapshots.problems()
		return len(p) == 1 && strings.HasPrefix(p[0], ofRollbackIn(s.tree)) && strings.Contains(p[0], "middle of a merge") && strings.Contains(p[0], snapshot.BegunFile(s.tree))
	}
	s.holds("a", "half way")
	if !told() {
		t.Fatalf("%v", s.d.snapshots.problems())
	}
	s.restarted(func() {
		s.write("a", "a person's work")
		if err := os.Remove(merge); err != nil {
			t.Fatal(err)
		}
	})
	s.holds("a", "a person's work")
	if !told() {
		t.Fatalf("%v", s.d.snapshots.problems())
	}
	k, err := s.d.snapshots.hand()
	if err != nil {
		t.Fatal(err)
	}
	b, err := k.Begun()
	if err != nil || len(b) != 1 {
		t.Fatal(b, err)
	}
	if _, err := s.d.snapshots.back(t.Context(), goBack{tree: b[0].Tree, to: b[0].To}, "me", "", nil); err != nil {
		t.Fatal(err)
	}
	s.holds("a", "good")
	if p := s.d.snapshots.problems(); len(p) != 0 {
		t.Errorf("it is told still: %v", p)
	}
	s.restarted(func() {})
	if p := s.d.snapshots.problems(); len(p) != 0 {
		t.Errorf("%v", p)
	}
}
