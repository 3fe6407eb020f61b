package snapshot

import (
	"errors"
	"os"
	"syscall"
	"testing"
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
