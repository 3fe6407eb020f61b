package snapshot

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// TestD40_TreeWithinHoldfastsOwn: a folder of Holdfast's own state is no work tree,
// under whatever name, and neither is one within it.
func TestD40_TreeWithinHoldfastsOwn(t *testing.T) {
	var own string
	s := newSite(t, func(o *Options) { o.Own = func() []string { return []string{own} } })
	base := filepath.Dir(s.tree.Path)
	if err := os.Symlink(s.tree.Path, filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	s.write("sub/a", "1")
	for _, own = range []string{s.tree.Path, filepath.Join(base, "link")} {
		for _, path := range []string{s.tree.Path, s.path("sub")} {
			if _, err := s.k.Take(t.Context(), []Tree{{Path: path, Kind: "code"}}, Manifest{}); holdfast.KindOf(err) != holdfast.KindUsage {
				t.Errorf("%s within %s: %v", path, own, err)
			}
		}
	}
	own = s.path("su") // which is another name
	s.take()
}

// TestD40_WhatHasBecomeHoldfastsOwn: a version from before the state or the
// configuration came to lie in the tree is refused, and nothing changes: it would
// write the latch, or rules.
func TestD40_WhatHasBecomeHoldfastsOwn(t *testing.T) {
	var own []string
	s := newSite(t, func(o *Options) { o.Own = func() []string { return own } })
	s.write("state/halt", "of another")
	s.write("holdfast.yaml", "version: 1\n")
	s.write("a", "1")
	m := s.take()
	s.remove("state/halt")
	s.write("holdfast.yaml", "version: 1 # in force\n")
	s.write("a", "2")
	for _, name := range []string{"state", "holdfast.yaml"} {
		own = []string{s.path(name)}
		_, err := s.k.Rollback(t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}, "test")
		if holdfast.KindOf(err) != holdfast.KindConflict {
			t.Fatalf("%s: %v", name, err)
		}
		if b, _ := os.ReadFile(s.path("a")); string(b) != "2" {
			t.Errorf("%q", b)
		}
		if _, err := os.Lstat(s.path("state/halt")); err == nil {
			t.Error("the latch was put back")
		}
	}
}
