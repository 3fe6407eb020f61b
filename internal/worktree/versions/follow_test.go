package versions

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// cannotKeep says whether status names a tree in which a change could not be kept.
func (s *trackedSite) cannotKeep(tree string) bool {
	return slices.ContainsFunc(s.d.snapshots.Problems(), func(p string) bool {
		return strings.HasPrefix(p, "an action's change could not be kept in "+tree+": ")
	})
}

// changes is an act of the coder's that writes a file.
func (s *trackedSite) changes(text string) (crossing string) {
	s.t.Helper()
	out, err := s.act("coder", "test/act", func() error { s.write("state.md", text); return nil })
	if err != nil {
		s.t.Fatal(err)
	}
	return out.Crossing
}

// reload puts another configuration in force.
func (s *trackedSite) reload(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.opt.Config, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	l, err := config.Load(s.opt.Config)
	if err == nil {
		err = s.d.apply(l)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestTroubleIsOfATree: that one tree could be kept says nothing of another; the
// trouble is over when that tree is kept, or tracked no more.
func TestTroubleIsOfATree(t *testing.T) {
	t.Parallel()
	s := openTracked(t, "    - {path: other, kind: state, agents: [coder]}\n")
	other := filepath.Join(filepath.Dir(s.tree), "other")
	s.changes("one")
	s.d.snapshots.lookAfter(t.Context()) // the second tree is not there
	if !s.cannotKeep(other) || s.cannotKeep(s.tree) {
		t.Fatalf("%v", s.d.snapshots.Problems())
	}
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	s.changes("two")
	if err := os.Rename(s.tree, s.tree+".away"); err != nil {
		t.Fatal(err)
	}
	s.d.snapshots.lookAfter(t.Context()) // and now the first, after which the second is well
	if s.cannotKeep(other) || !s.cannotKeep(s.tree) {
		t.Fatalf("%v", s.d.snapshots.Problems())
	}
	was, err := os.ReadFile(s.opt.Config)
	if err != nil {
		t.Fatal(err)
	}
	s.reload(strings.Replace(string(was), "    - {path: "+s.tree+", kind: state, agents: [coder]}\n", "", 1))
	if len(s.d.snapshots.Problems()) != 0 {
		t.Errorf("of a tree that is tracked no more: %v", s.d.snapshots.Problems())
	}
	s.reload(string(was))
	if err := os.Rename(s.tree+".away", s.tree); err != nil {
		t.Fatal(err)
	}
	crossing := s.changes("three")
	s.d.snapshots.lookAfter(t.Context())
	if len(s.d.snapshots.Problems()) != 0 || len(s.events(crossing, eventKept)) != 1 {
		t.Errorf("%v", s.d.snapshots.Problems())
	}
}

// TestWhatTheEndCutsIsKept: an act whose looking after was cut waits on, and is kept
// before the state is given back; it is no trouble, and none that is newer gives way
// to it.
func TestWhatTheEndCutsIsKept(t *testing.T) {
	s := openTracked(t, "")
	crossing := s.changes("one")
	over, end := context.WithCancel(t.Context())
	end()
	s.d.snapshots.lookAfter(over)
	if n := len(s.events(crossing, eventKept)); n != 0 || len(s.d.snapshots.Problems()) != 0 {
		t.Fatalf("%d commits under a context that had ended, %v", n, s.d.snapshots.Problems())
	}
	newer := kernel.Acting{Agent: "coder", Crossing: "newer"}
	f := following{waiting: map[string]kernel.Acting{"coder": newer}}
	f.putBack(map[string]kernel.Acting{"coder": {Agent: "coder", Crossing: "older"}, "ann": {Agent: "ann"}})
	if got := f.take(); len(got) != 2 || got["coder"] != newer {
		t.Errorf("%+v", got)
	}
	if err := s.d.Close(); err != nil {
		t.Fatal(err)
	}
	s.open()
	if n := len(s.events(crossing, eventKept)); n != 1 {
		t.Errorf("%d commits after the end", n)
	}
}
