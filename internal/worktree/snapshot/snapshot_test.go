package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// place is a keeper and a tree for one test.
type site struct {
	t    *testing.T
	k    *Keeper
	tree Tree
	dir  string // of the keeper
}

func newSite(t *testing.T, with ...func(*Options)) *site {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: filepath.Join(base, "kept"), tree: Tree{Path: filepath.Join(base, "tree"), Kind: "code"}}
	if err := os.Mkdir(s.tree.Path, 0o755); err != nil {
		t.Fatal(err)
	}
	s.open(with...)
	return s
}

func (s *site) open(with ...func(*Options)) {
	s.t.Helper()
	opt := Options{Dir: s.dir}
	for _, w := range with {
		w(&opt)
	}
	k, err := Open(opt)
	if err != nil {
		s.t.Fatal(err)
	}
	s.k = k
}

func (s *site) path(name string) string { return filepath.Join(s.tree.Path, name) }

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) remove(name string) {
	s.t.Helper()
	if err := os.RemoveAll(s.path(name)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) take() *Manifest {
	s.t.Helper()
	m, err := s.k.Take(s.t.Context(), []Tree{s.tree}, Manifest{Who: "test", Reason: "asked for"})
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

func (s *site) back(m *Manifest) *Rolled {
	s.t.Helper()
	out, err := s.k.Rollback(s.t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}, "test")
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *site) verified(m *Manifest) {
	s.t.Helper()
	read, err := s.k.Read(m.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	if read.Sum != m.Sum || m.Sum == "" {
		s.t.Fatalf("the manifest's sum is %q, and was %q", read.Sum, m.Sum)
	}
	out, err := s.k.Verify(s.t.Context(), read)
	if err != nil || len(out) != len(m.Trees) {
		s.t.Fatalf("%v, %v", out, err)
	}
	for _, v := range out {
		if !v.OK {
			s.t.Fatalf("%s: %s", v.Path, v.Why)
		}
	}
}

// picture is everything in the tree but git's own, one line each.
func (s *site) picture() []string {
	s.t.Helper()
	var out []string
	err := filepath.WalkDir(s.tree.Path, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(s.tree.Path, path)
		if rel == "." {
			return nil
		}
		if d.Name() == ".git" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			text, err = os.Readlink(path)
			info = nil
		case info.Mode().IsRegular():
			var b []byte
			b, err = os.ReadFile(path)
			text = string(b)
		}
		mode := "link"
		if info != nil {
			mode = info.Mode().String()
		}
		out = append(out, fmt.Sprintf("%s %q %.60q %d", mode, rel, text, len(text)))
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func (s *site) is(want []string) {
	s.t.Helper()
	if got := s.picture(); !slices.Equal(got, want) {
		s.t.Fatalf("the tree is\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (s *site) git(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgSign=false"}, args...)...)
	cmd.Dir = s.tree.Path
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	b, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, b)
	}
	return string(b)
}

func left(p Part, path string) string {
	for _, l := range append(slices.Clone(p.LeftOut.First), p.Torn...) {
		if l.Path == path {
			return l.Why
		}
	}
	return ""
}

// Test001_Layer3_Rollback is the document's integration test "Rollback Test": make a
// bad change, verify that rollback works.
func Test001_Layer3_Rollback(t *testing.T) {
	s := newSite(t)
	s.write("main.go", "package main\n")
	s.write("docs/a b.md", "text")
	s.write("a-b", "sorts before a/")
	s.write("a/x", "1")
	s.write("odd\nname \"quoted\" \\ back", "newline")
	s.write("not utf-8 \xff\xfe", "bytes")
	s.write("empty file", "")
	for _, err := range []error{os.Mkdir(s.path("empty"), 0o700), os.Symlink("../../etc/passwd", s.path("link")), os.Symlink("docs", s.path("to docs")),
		os.Chmod(s.path("main.go"), 0o600), os.WriteFile(s.path("run.sh"), []byte("#!/bin/sh\n"), 0o755), os.Mkdir(s.path("empty/within"), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	good := s.picture()
	m := s.take()
	s.verified(m)
	if p := m.Trees[0]; p.Files != 8 || p.Links != 2 || p.LeftOut.Names != 0 {
		t.Fatalf("%+v", p)
	}
	// The bad change: edits, deletions, a file in place of a folder and the other
	// way round, new files, another mode, a link elsewhere.
	s.write("main.go", "package bad\n")
	s.remove("docs")
	s.write("docs", "a file now")
	s.remove("a-b")
	s.write("a-b/deep/er", "a folder now")
	s.write("new/new", "x")
	s.remove("empty")
	s.remove("link")
	for _, err := range []error{os.Symlink("elsewhere", s.path("link")), os.Chmod(s.path("run.sh"), 0o644), os.Chmod(s.path("a"), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	bad := s.picture()
	to := Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content, From: m.ID}
	look, err := s.k.Look(t.Context(), s.tree, to)
	if err != nil || look.Removed == 0 || look.Written == 0 || look.To != to {
		t.Fatalf("%+v, %v", look, err)
	}
	s.is(bad)
	out := s.back(m)
	s.is(good)
	if out.Removed != look.Removed || out.Written != look.Written {
		t.Fatalf("%+v, and not %+v", out, look)
	}
	// Nothing is lost: the rollback is rolled back.
	s.verified(out.Before)
	again := s.back(out.Before)
	s.is(bad)
	s.verified(again.Before)
	s.back(m)
	s.is(good)
	s.verified(m)
}

func TestTargetIsNamed(t *testing.T) {
	const crossing = "01a1fc69-1fbb-7039-a12e-df85ea412eec"
	for from, want := range map[string]string{
		"":                       "the version c0ffee",
		"20261123-091500-4f2a1c": "the snapshot 20261123-091500-4f2a1c",
		crossing:                 "what the crossing " + crossing + " left",
		BeforeIt + crossing:      "what was there before the crossing " + crossing,
	} {
		if got := (Target{Commit: "c0ffee", From: from}).Name(); got != want {
			t.Errorf("%q is %q, not %q", from, got, want)
		}
	}
}

func TestUnchangedAndChanged(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	s.write("b/c", "2")
	first := s.take()
	second := s.take()
	if a, b := first.Trees[0], second.Trees[0]; a.Tree != b.Tree || a.Content != b.Content || b.Changed != 0 || a.Changed != 2 {
		t.Fatalf("%+v\n%+v", a, b)
	}
	s.write("b/c", "3") // the same size, at once
	third := s.take()
	if p := third.Trees[0]; p.Changed != 1 || p.Content == first.Trees[0].Content {
		t.Fatalf("%+v", p)
	}
	// A file whose time is set back is read all the same.
	old := time.Now().Add(-time.Hour)
	s.write("a", "9")
	if err := os.Chtimes(s.path("a"), old, old); err != nil {
		t.Fatal(err)
	}
	if p := s.take().Trees[0]; p.Changed != 1 {
		t.Fatalf("%+v", p)
	}
	s.back(first)
	if b, _ := os.ReadFile(s.path("b/c")); string(b) != "2" {
		t.Fatalf("%q", b)
	}
	s.remove("a")
	s.remove("b")
	empty := s.take()
	if empty.Trees[0].Tree != emptyTree {
		t.Fatalf("%+v", empty.Trees[0])
	}
	s.verified(empty)
	s.back(first)
	s.back(empty)
	s.is(nil)
	list, err := s.k.List()
	if err != nil || list[len(list)-1].ID != first.ID || list[0].Seq <= list[1].Seq {
		t.Fatalf("%+v, %v", list, err)
	}
}

// TestWithoutAnIndex shows that a lost or damaged index costs time and nothing else.
func TestWithoutAnIndex(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	m := s.take()
	file := filepath.Join(s.dir, "trees", repoName(s.tree.Path), "index")
	for _, text := range []string{"", "nonsense", indexMagic + strings.Repeat("x", 100)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n := s.take(); n.Trees[0].Content != m.Trees[0].Content {
			t.Fatal(n)
		}
	}
	// The index names what the repository has not.
	if err := os.RemoveAll(filepath.Join(filepath.Dir(file), "git")); err != nil {
		t.Fatal(err)
	}
	s.open()
	n := s.take()
	s.verified(n)
	if out, err := s.k.Verify(t.Context(), m); err != nil || out[0].OK {
		t.Fatalf("%+v, %v", out, err)
	}
}

// TestIndexThatStays shows that an index is not written anew where nothing changed, and
// that what changes behind one that stayed is seen as ever.
func TestIndexThatStays(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	s.write("b/c", "2")
	if err := os.Mkdir(s.path("empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	time.Sleep(settled + 100*time.Millisecond)
	s.take()
	file := filepath.Join(s.dir, "trees", repoName(s.tree.Path), "index")
	written := func() (changed bool) {
		t.Helper()
		before, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		s.verified(s.take())
		after, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return !os.SameFile(before, after)
	}
	for range 2 {
		if written() {
			t.Error("the index of a tree that is as it was is written")
		}
	}
	for name, change := range map[string]func() error{
		"content":           func() error { return os.WriteFile(s.path("a"), []byte("3"), 0o644) },
		"mode":              func() error { return os.Chmod(s.path("a"), 0o600) },
		"a folder's mode":   func() error { return os.Chmod(s.path("b"), 0o700) },
		"an empty folder":   func() error { return os.Rename(s.path("empty"), s.path("void")) },
		"a file for a link": func() error { return errors.Join(os.Remove(s.path("b/c")), os.Symlink("../a", s.path("b/c"))) },
	} {
		m := s.take()
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if !written() {
			t.Errorf("%s: the index stayed", name)
		}
		if list, err := s.k.List(); err != nil || list[0].Trees[0].Content == m.Trees[0].Content {
			t.Errorf("%s: the version is as the one before, %v", name, err)
		}
	}
}

// TestHostileTree_is_kept_and_nothing_of_it_runs: filters, hooks, fsmonitor, includes
// and attributes of the tree's repository are an agent's.
func TestHostileTree_is_kept_and_nothing_of_it_runs(t *testing.T) {
	s := newSite(t)
	s.write("sub/a.txt", "one\r\ntwo\n")
	s.git("init", "-q")
	ran := filepath.Join(filepath.Dir(s.tree.Path), "ran")
	evil := filepath.Join(filepath.Dir(s.tree.Path), "evil.sh")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\ntouch "+ran+"\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(".gitattributes", "* filter=evil diff=evil text=auto eol=lf ident working-tree-encoding=UTF-16 export-ignore\n")
	for _, kv := range [][2]string{{"filter.evil.clean", evil}, {"filter.evil.smudge", evil}, {"filter.evil.process", evil}, {"filter.evil.required", "true"}, {"diff.evil.textconv", evil},
		{"diff.external", evil}, {"core.fsmonitor", evil}, {"core.hooksPath", filepath.Dir(evil)}, {"core.pager", evil}, {"core.sshCommand", evil}, {"core.editor", evil},
		{"gpg.program", evil}, {"commit.gpgSign", "true"}, {"core.worktree", "/"}, {"core.alternateRefsCommand", evil}, {"credential.helper", evil}, {"include.path", evil}} {
		s.git("config", "-f", ".git/config", kv[0], kv[1])
	}
	for _, hook := range []string{"pre-commit", "post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc", "fsmonitor-watchman", "post-rewrite"} {
		if err := os.WriteFile(s.path(".git/hooks/"+hook), []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := s.picture()
	m := s.take()
	s.verified(m)
	s.write("sub/a.txt", "bad")
	s.back(m)
	s.is(want)
	if _, err := os.Lstat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("something of the tree's was run: %v", err)
	}
}

// TestWhatIsLeftOutIsNamed: pipes, sockets, repositories within, Holdfast's own,
// large and unreadable files, and what is ignored.
func TestWhatIsLeftOutIsNamed(t *testing.T) {
	own := ""
	s := newSite(t, func(o *Options) { o.Own, o.Limits.File = func() []string { return []string{own} }, 1000 })
	own = s.path("state")
	s.write("state/HALT", "halted")
	s.write("kept", "x")
	s.write("large", strings.Repeat("x", 1001))
	s.write("fits", strings.Repeat("x", 1000))
	s.write("within/.git/config", "x")
	s.write("within/file", "kept")
	s.write("CASE/.GIT/config", "x")
	s.write(".gitignore", "*.log\nbuild/\n!keep.log\n")
	s.write("a.log", "ignored")
	s.write("keep.log", "kept")
	s.write("build/1", "ignored")
	s.write("build/sub/2", "ignored")
	s.write(metaName, "mine")
	for _, err := range []error{syscall.Mkfifo(s.path("pipe"), 0o644), os.Link(s.path("kept"), s.path("second")), os.Chmod(s.path("kept"), 0o4755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	m := s.take()
	s.verified(m)
	p := m.Trees[0]
	for path, why := range map[string]string{"pipe": "a pipe", "state": "Holdfast's own", "large": "1001 bytes", "within/.git": "git's own", "CASE/.GIT": "git's own",
		"a.log": "ignored", "build": "ignored", metaName: "snapshots use"} {
		if !strings.Contains(left(p, path), why) {
			t.Errorf("%s is left out for %q", path, left(p, path))
		}
	}
	if p.LeftOut.Names != 8 || p.HardLinks != 2 || p.LeftOut.Bytes < 14 {
		t.Errorf("%+v", p.LeftOut)
	}
	// What is left out stays as it is; Holdfast's own above all (D40, finding 5.2.15).
	s.write("state/HALT", "halted again")
	s.write("a.log", "ignored 2")
	s.write("kept", "changed")
	out := s.back(m)
	for name, text := range map[string]string{"state/HALT": "halted again", "a.log": "ignored 2", "kept": "x", "build/sub/2": "ignored", "within/.git/config": "x"} {
		if b, err := os.ReadFile(s.path(name)); string(b) != text {
			t.Errorf("%s holds %q, %v", name, b, err)
		}
	}
	if info, err := os.Lstat(s.path("kept")); err != nil || info.Mode() != 0o755 {
		t.Errorf("what was set-user-ID is %v", info.Mode())
	}
	if out.Stays.Names == 0 {
		t.Errorf("%+v", out)
	}
}

// TestIgnoreHidesNothingThatIsKept: an agent that writes a .gitignore for what a
// version holds neither hides its change nor makes a rollback lose anything.
func TestIgnoreHidesNothingThatIsKept(t *testing.T) {
	s := newSite(t)
	s.write("code", "good")
	s.write("other", "good")
	m := s.take()
	s.write(".gitignore", "*\n")
	s.write("code", "bad")
	s.write("hidden", "new")
	n := s.take()
	if p := n.Trees[0]; p.Changed != 1 || left(p, "hidden") == "" || left(p, ".gitignore") == "" {
		t.Fatalf("%+v", p)
	}
	out := s.back(m)
	if b, _ := os.ReadFile(s.path("code")); string(b) != "good" {
		t.Fatalf("%q", b)
	}
	if b, _ := os.ReadFile(s.path("hidden")); string(b) != "new" {
		t.Fatalf("what no snapshot holds was taken away: %+v", out)
	}
	s.tree.KeepIgnored = true
	all := s.take()
	if p := all.Trees[0]; p.Files != 4 || p.LeftOut.Names != 0 {
		t.Fatalf("%+v", p)
	}
	s.back(m)
	if _, err := os.Lstat(s.path("hidden")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// TestTrackedThoughIgnored: what the tree's own repository tracks is no ignored file.
func TestTrackedThoughIgnored(t *testing.T) {
	s := newSite(t)
	s.write(".gitignore", "*.gen\n")
	s.write("a.gen", "tracked")
	s.write("b.gen", "not tracked")
	s.git("init", "-q")
	s.git("add", "-f", "a.gen")
	m := s.take()
	if p := m.Trees[0]; left(p, "a.gen") != "" || left(p, "b.gen") == "" {
		t.Fatalf("%+v", p)
	}
	// An index that git cannot read is no reason to keep nothing.
	if err := os.WriteFile(s.path(".git/index"), []byte("nonsense"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.verified(s.take())
}

// TestD40_MidMerge: a repository in the middle of a merge can be kept, and is not
// rolled back.
func TestD40_MidMerge(t *testing.T) {
	for file, what := range map[string]string{"MERGE_HEAD": "merge", "rebase-merge": "rebase", "CHERRY_PICK_HEAD": "cherry-pick", "BISECT_LOG": "bisect"} {
		t.Run(what, func(t *testing.T) {
			s := newSite(t)
			s.write("a", "1")
			s.git("init", "-q")
			first := s.take()
			s.write("a", "2")
			s.write(".git/"+file, "x")
			m := s.take()
			if m.Trees[0].Middle != what || !strings.HasPrefix(m.Trees[0].Head, "ref: refs/heads/") {
				t.Fatalf("%+v", m.Trees[0])
			}
			s.verified(m)
			_, err := s.k.Rollback(t.Context(), s.tree, Target{Commit: first.Trees[0].Commit, Content: first.Trees[0].Content}, "test")
			var e *holdfast.Error
			if !errors.As(err, &e) || e.Kind != holdfast.KindConflict || !strings.Contains(e.Why, what) || e.Hint == "" {
				t.Fatalf("%v", err)
			}
			if b, _ := os.ReadFile(s.path("a")); string(b) != "2" {
				t.Fatalf("%q", b)
			}
			s.midMerge(first, what, ".git/"+file)
		})
	}
}

// midMerge goes back though the repository is in the middle of something, because a
// person said so, and once more as if Holdfast had been killed in it: files alone, what
// git was in the middle of stays, and it is said.
func (s *site) midMerge(m *Manifest, what, file string) {
	s.t.Helper()
	to := Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content, MidMerge: true}
	went := func(r *Rolled, err error) {
		s.t.Helper()
		if err != nil || r.Middle != what || r.Written != 1 {
			s.t.Fatalf("%+v, %v", r, err)
		}
		if b, _ := os.ReadFile(s.path(file)); string(b) != "x" {
			s.t.Fatalf("%s holds %q", file, b)
		}
	}
	is := func(text string) {
		s.t.Helper()
		if b, _ := os.ReadFile(s.path("a")); string(b) != text {
			s.t.Fatalf("%q, not %q", b, text)
		}
	}
	went(s.k.Look(s.t.Context(), s.tree, to))
	is("2")
	went(s.k.Rollback(s.t.Context(), s.tree, to, "test"))
	is("1")
	s.write("a", "3")
	if err := s.k.begin(&Begun{Tree: s.tree, To: to, Who: "test"}, "x"); err != nil {
		s.t.Fatal(err)
	}
	went(s.k.Finish(s.t.Context(), s.begun()[0]))
	is("1")
}

// TestFinding5_2_15_no_history_is_rewritten: a rollback touches neither the commits,
// nor the index, nor what is checked out.
func TestFinding5_2_15_no_history_is_rewritten(t *testing.T) {
	s := newSite(t)
	s.write("a", "1")
	s.git("init", "-q")
	s.git("add", ".")
	s.git("commit", "-qm", "one")
	m := s.take()
	s.write("a", "2")
	s.git("commit", "-qam", "two")
	before := s.git("rev-list", "--all") + s.git("symbolic-ref", "HEAD") + s.git("ls-files", "-s")
	s.back(m)
	if after := s.git("rev-list", "--all") + s.git("symbolic-ref", "HEAD") + s.git("ls-files", "-s"); after != before {
		t.Fatalf("%s\n%s", before, after)
	}
	if b, _ := os.ReadFile(s.path("a")); string(b) != "1" {
		t.Fatalf("%q", b)
	}
	s.git("fsck", "--strict")
}

// Test001_Layer3_MessageForms has the document's two message forms, and the agent's own line.
func Test001_Layer3_MessageForms(t *testing.T) {
	s := newSite(t)
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	m := Message{Agent: "night/ly \x1b[0m", Action: "mcp/filesystem/write_file\nx", Crossing: "0123", Session: "s1", At: at}
	if c, err := s.k.Commit(t.Context(), s.tree, m); err != nil || c == nil {
		t.Fatal(err)
	}
	s.write("a", "1")
	c, err := s.k.Commit(t.Context(), s.tree, m)
	if err != nil || c == nil || c.Changed != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	if again, err := s.k.Commit(t.Context(), s.tree, m); err != nil || again != nil {
		t.Fatalf("%+v, %v", again, err)
	}
	s.write("b", "2")
	s.tree.Kind = "state"
	d, err := s.k.Commit(t.Context(), s.tree, m)
	if err != nil || d.Changed != 1 {
		t.Fatal(err)
	}
	r := s.k.repos[s.tree.Path]
	b, err := r.git.run(context.Background(), nil, 1<<16, "log", "--format=%H %P%n%B", d.Commit)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{d.Commit + " " + c.Commit, "feat: 0123 mcp/filesystem/write_file?x\n", "state: night/ly ?[0m mcp/filesystem/write_file?x 2026-01-05T10:00:00Z\n",
		"Holdfast-Crossing: 0123\n", "Holdfast-Session: s1\n"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %q in\n%s", want, b)
		}
	}
	if out, err := s.k.Rollback(t.Context(), s.tree, Target{Commit: c.Commit, Content: c.Content}, "test"); err != nil || out.Removed != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
}
