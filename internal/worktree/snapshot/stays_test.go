package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFolderThatStays: a folder that came since and holds what no version holds cannot
// be taken away, and keeps nothing else from going back.
func TestFolderThatStays(t *testing.T) {
	for name, leave := range map[string]func(*site) error{
		"a pipe":        func(s *site) error { return syscall.Mkfifo(s.path("new/sub/x"), 0o600) },
		"a repository":  func(s *site) error { return os.Mkdir(s.path("new/sub/.git"), 0o700) },
		"what is large": func(s *site) error { s.write("new/sub/x", string(make([]byte, 2000))); return nil },
		"what is ignored": func(s *site) error {
			s.write(".gitignore", "*.log\n")
			s.write("new/sub/x.log", "ignored")
			return nil
		},
	} {
		s := newSite(t, func(o *Options) { o.Limits.File = 1000 })
		s.write(".gitignore", "*.log\n")
		s.write("a", "good")
		m := s.take()
		s.write("a", "bad")
		s.write("new/file", "bad")
		if err := errors.Join(os.MkdirAll(s.path("new/sub/sub"), 0o700), leave(s)); err != nil {
			t.Fatal(err)
		}
		r, err := s.k.Rollback(t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}, "test")
		if err != nil || r.Stays.Names != 1 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if b, err := os.ReadFile(s.path("a")); string(b) != "good" {
			t.Errorf("%s: a holds %q, %v", name, b, err)
		}
		for _, gone := range []string{"new/file", "new/sub/sub"} {
			if _, err := os.Lstat(s.path(gone)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %s is there, %v", name, gone, err)
			}
		}
		if _, err := os.Lstat(s.path("new/sub")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatIsInTheWay: what no version holds and stands where a version has a file or a
// folder keeps nothing from going back: it is moved aside, and nothing of it is lost.
func TestWhatIsInTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		at, within string // what stands in the way, and what must be there still
		put        func(s *site) error
	}{
		"a pipe for a file":        {at: "a", put: func(s *site) error { return syscall.Mkfifo(s.path("a"), 0o600) }},
		"a pipe for a folder":      {at: "d", put: func(s *site) error { return syscall.Mkfifo(s.path("d"), 0o600) }},
		"a large file":             {at: "d", put: func(s *site) error { s.write("d", string(make([]byte, 2000))); return nil }},
		"a folder with a pipe":     {at: "a", within: "sub/x", put: func(s *site) error { return mkpipe(s.path("a/sub/x")) }},
		"a repository":             {at: "a", within: ".git/config", put: func(s *site) error { s.write("a/.git/config", "x"); return nil }},
		"a folder that is ignored": {at: "a", put: func(s *site) error { s.write("a/x.log", "x"); return nil }},
	} {
		s := newSite(t, func(o *Options) { o.Limits.File = 1000 })
		s.write(".gitignore", "*.log\n")
		s.write("a", "good")
		s.write("d/f", "good")
		s.write("z", "good")
		m := s.take()
		s.write("z", "bad")
		s.remove(c.at)
		if err := c.put(s); err != nil {
			t.Fatal(err)
		}
		r, err := s.k.Rollback(t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}, "test")
		if err != nil || len(r.Aside) != 1 || !strings.HasPrefix(r.Aside[0], c.at+" is now .holdfast-aside-") {
			t.Errorf("%s: %+v, %v", name, r, err)
			continue
		}
		for _, back := range []string{"a", "d/f", "z"} {
			if b, err := os.ReadFile(s.path(back)); string(b) != "good" {
				t.Errorf("%s: %s holds %q, %v", name, back, b, err)
			}
		}
		_, now, _ := strings.Cut(r.Aside[0], " is now ")
		if _, err := os.Lstat(filepath.Join(s.path(now), c.within)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func mkpipe(path string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), syscall.Mkfifo(path, 0o600))
}

// TestD40_OwnInTheWay: what is Holdfast's own by whatever name is not moved aside.
func TestD40_OwnInTheWay(t *testing.T) {
	own := filepath.Join(t.TempDir(), "holdfast.yaml")
	s := newSite(t, func(o *Options) { o.Own = func() []string { return []string{own} } })
	s.write("a", "version: 1\n")
	m := s.take()
	s.remove("a")
	if err := errors.Join(os.WriteFile(own, []byte("version: 1 # in force\n"), 0o600), os.Link(own, s.path("a"))); err != nil {
		t.Fatal(err)
	}
	_, err := s.k.Rollback(t.Context(), s.tree, Target{Commit: m.Trees[0].Commit, Content: m.Trees[0].Content}, "test")
	if err == nil || !strings.Contains(err.Error(), "Holdfast's own") {
		t.Error(err)
	}
	if b, err := os.ReadFile(s.path("a")); string(b) != "version: 1 # in force\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestWrittenWhileItIsPutBack: what somebody writes to a file while its older content is
// being copied is found before it takes that place.
func TestWrittenWhileItIsPutBack(t *testing.T) {
	s := newSite(t)
	s.write("a", "now")
	root, err := openTree(s.tree.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	st, err := statAt(root, "a")
	if err != nil {
		t.Fatal(err)
	}
	w := &writing{dirs: folders{root: root}, uid: os.Geteuid(), gid: os.Getegid(), staged: t.TempDir(),
		was: map[string]*entry{"a": {path: "a", kind: file, size: st.Size, seen: stampOf(&st)}}}
	old := entry{path: "a", kind: file, perm: 0o644, blob: blobOf([]byte("old"))}
	from := filepath.Join(w.staged, hexOf(old.blob))
	if err := mkpipe(from); err != nil {
		t.Fatal(err)
	}
	go func() { // once it is being read
		f, err := os.OpenFile(from, os.O_WRONLY, 0)
		if err != nil {
			return
		}
		defer f.Close()
		_ = os.WriteFile(s.path("a"), []byte("a person's"), 0o644)
		_, _ = f.WriteString("old")
	}()
	if err := w.write(old); !errors.Is(err, errChanged) {
		t.Error(err)
	}
	if b, err := os.ReadFile(s.path("a")); string(b) != "a person's" {
		t.Errorf("it holds %q, %v", b, err)
	}
	if list, err := os.ReadDir(s.tree.Path); len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}
