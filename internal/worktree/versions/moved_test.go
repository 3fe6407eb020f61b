package versions

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// moves says whether status and the watch tell that the path of a tree leads elsewhere.
func (s *trackedSite) moves(path, to string) {
	s.t.Helper()
	is := func(p string) bool {
		return strings.Contains(p, trouble{troubleMoved, path}.String()) && strings.Contains(p, to)
	}
	if slices.ContainsFunc(s.d.snapshots.Problems(), is) != (to != "") || s.told(watch.SnapshotMissing) != (to != "") {
		s.t.Fatalf("%q, %v", s.d.snapshots.Problems(), s.told(watch.SnapshotMissing))
	}
}

// again opens the state once more, as after a restart.
func (s *trackedSite) again() {
	s.t.Helper()
	if err := s.d.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.d = nil
	s.open()
}

// TestTreeThatIsALinkAfterARestart: who may write to the folder above a tree puts a link
// to something else in its place. It is not followed at the next start either, nor at a
// reload: nothing of it is kept, no careful act begins, and people are told until the
// tree is there again.
func TestTreeThatIsALinkAfterARestart(t *testing.T) {
	s := openTracked(t, "")
	s.write("a", "good")
	m := s.taken()
	other := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(other, "secret"), []byte("x"), 0o600), os.Rename(s.tree, s.tree+".away"), os.Symlink(other, s.tree))
	if err != nil {
		t.Fatal(err)
	}
	refused := func() {
		t.Helper()
		s.moves(s.tree, "leads to "+other+" now")
		if _, err := s.d.snapshots.Take(t.Context(), "me", ""); holdfast.KindOf(err) != holdfast.KindNotFound || !strings.Contains(err.Error(), s.tree+" cannot be opened") {
			t.Fatalf("%v", err)
		}
		if _, err := s.act("coder", "test/careful", func() error { t.Error("it began"); return nil }); err == nil {
			t.Fatal("it did not fail")
		}
	}
	reload := func() {
		t.Helper()
		l, err := config.Load(s.opt.Config)
		if err := errors.Join(err, s.d.apply(l)); err != nil {
			t.Fatal(err)
		}
	}
	s.again()
	refused()
	reload()
	refused()
	if err := errors.Join(os.Remove(s.tree), os.Rename(s.tree+".away", s.tree)); err != nil {
		t.Fatal(err)
	}
	reload()
	s.moves(s.tree, "")
	if n := s.taken(); n.Trees[0].Content != m.Trees[0].Content {
		t.Fatalf("%+v", n)
	}
}

// TestLinkOfATreeThatIsChanged: of a tree that is named through a link the folder stays
// that it first led to, until the configuration names another.
func TestLinkOfATreeThatIsChanged(t *testing.T) {
	t.Parallel()
	s := openTracked(t, "")
	first, second := s.tree, s.tree+".2"
	link := filepath.Join(filepath.Dir(s.tree), "current")
	text, err := os.ReadFile(s.opt.Config)
	if err := errors.Join(err, os.Mkdir(second, 0o755), os.Symlink(first, link)); err != nil {
		t.Fatal(err)
	}
	named := func(path string) {
		t.Helper()
		b := strings.Replace(string(text), "path: "+s.tree+",", "path: "+path+",", 1)
		if err := os.WriteFile(s.opt.Config, []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
		s.again()
	}
	tracks := func(path string) {
		t.Helper()
		if m := s.taken(); m.Trees[0].Path != path {
			t.Fatalf("%s is tracked, not %s", m.Trees[0].Path, path)
		}
	}
	named(link)
	tracks(first)
	s.moves(link, "")
	for _, to := range []string{second, filepath.Join(second, "nowhere")} {
		if err := errors.Join(os.Remove(link), os.Symlink(to, link)); err != nil {
			t.Fatal(err)
		}
		s.again()
		tracks(first)
		s.moves(link, map[bool]string{true: "leads to " + second + " now", false: "leads to nothing that is there now"}[to == second])
	}
	// The folder that is meant is where the link was: its own path is there already.
	if err := errors.Join(os.Remove(link), os.Mkdir(link, 0o755)); err != nil {
		t.Fatal(err)
	}
	s.again()
	tracks(first)
	s.moves(link, "take the line of "+link+" out of "+s.d.snapshots.heldFile())
	b, err := os.ReadFile(s.d.snapshots.heldFile())
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(string(b), "\n"), func(l string) bool { return strings.Contains(l, link) })
	rest := strings.ReplaceAll(strings.Join(lines, "\n"), ",\n}", "\n}")
	if err := os.WriteFile(s.d.snapshots.heldFile(), []byte(rest), 0o600); err != nil {
		t.Fatal(err)
	}
	s.again()
	tracks(link)
	s.moves(link, "")
	named(second)
	tracks(second)
	s.moves(link, "")
	if err := os.WriteFile(s.d.snapshots.heldFile(), []byte("null"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.d.Close(); err != nil {
		t.Fatal(err)
	}
	s.d = nil
	var e *holdfast.Error
	if d, err := openDaemon(t.Context(),
		s.opt); !errors.As(err, &e) || e.Hint == "" || !strings.Contains(e.Why, "held.json") {
		t.Fatalf("%v", fmt.Sprint(d, err))
	}
}

// TestTreesThatWouldBeOne: a path that led to a folder when it was first tracked, and the
// path of that folder, are no two trees, wherever the first leads now.
func TestTreesThatWouldBeOne(t *testing.T) {
	s := openTracked(t, "")
	link, second := filepath.Join(filepath.Dir(s.tree), "current"), s.tree+".2"
	text, err := os.ReadFile(s.opt.Config)
	if err := errors.Join(err, os.Mkdir(second, 0o755), os.Symlink(s.tree, link)); err != nil {
		t.Fatal(err)
	}
	named := func(paths string) (*config.Loaded, error) {
		b := strings.Replace(string(text), "path: "+s.tree+",", "path: "+paths+",", 1)
		if err := os.WriteFile(s.opt.Config, []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.Load(s.opt.Config)
	}
	if _, err := named(link); err != nil {
		t.Fatal(err)
	}
	s.again()
	if err := errors.Join(os.Remove(link), os.Symlink(second, link)); err != nil {
		t.Fatal(err)
	}
	l, err := named(link + ", kind: code, agents: [coder]}\n    - {path: " + s.tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.d.apply(l); err == nil || !strings.Contains(err.Error(), "lie within each other") {
		t.Fatalf("%v", err)
	}
	if m := s.taken(); len(m.Trees) != 1 || m.Trees[0].Path != s.tree {
		t.Fatalf("%+v", m.Trees)
	}
}
