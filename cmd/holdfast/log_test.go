package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestLogIsAPlainFile(t *testing.T) {
	for name, c := range map[string]struct {
		put  func(path string) error
		want string
	}{
		"nothing": {func(string) error { return nil }, ""},
		"a file":  {func(p string) error { return os.WriteFile(p, []byte("before\n"), 0o600) }, ""},
		"a link": {func(p string) error {
			return os.Symlink(filepath.Join(filepath.Dir(p), "elsewhere"), p)
		}, "is a symbolic link"},
		"a pipe":      {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "is not a regular file"},
		"a directory": {func(p string) error { return os.Mkdir(p, 0o700) }, "is not a regular file"},
	} {
		path := filepath.Join(t.TempDir(), "holdfast.log")
		if err := c.put(path); err != nil {
			t.Fatal(err)
		}
		f, err := ownLog(path)
		if c.want == "" {
			if err != nil {
				t.Error(name, err)
				continue
			}
			f.Close()
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Error(name, err)
		}
		if _, err := os.Lstat(filepath.Join(filepath.Dir(path), "elsewhere")); err == nil {
			t.Error(name, "made what the link leads to")
		}
	}
}
