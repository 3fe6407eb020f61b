package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
)

func TestD49_WhoCanWrite(t *testing.T) {
	const good = "version: 1\nrules: {files: [r/rules.yaml]}\n"
	at := func(dir string, names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	cases := map[string]struct {
		spoil func(dir string) error
		want  string
	}{
		"world-writable file":      {func(d string) error { return os.Chmod(at(d, "holdfast.yaml"), 0o646) }, "can be written by others"},
		"group-writable file":      {func(d string) error { return os.Chmod(at(d, "holdfast.yaml"), 0o664) }, "can be written by others"},
		"world-writable directory": {func(d string) error { return os.Chmod(d, 0o777) }, "can be written by others"},
		"writable rules":           {func(d string) error { return os.Chmod(at(d, "r", "rules.yaml"), 0o666) }, "can be written by others"},
		"writable rules directory": {func(d string) error { return os.Chmod(at(d, "r"), 0o775) }, "can be written by others"},
		"a link into a writable directory": {func(d string) error {
			return errors.Join(os.Mkdir(at(d, "w"), 0o700), os.Chmod(at(d, "w"), 0o777), os.Rename(at(d, "holdfast.yaml"), at(d, "w", "c.yaml")),
				os.Symlink("w/c.yaml", at(d, "holdfast.yaml")))
		}, "can be written by others"},
		"a link through a writable directory": {func(d string) error {
			return errors.Join(os.Mkdir(at(d, "w"), 0o700), os.Chmod(at(d, "w"), 0o777), os.Rename(at(d, "r"), at(d, "real")),
				os.Symlink("../real", at(d, "w", "hop")), os.Symlink("w/hop", at(d, "r")))
		}, "can be written by others"},
		"a directory": {func(d string) error {
			return errors.Join(os.Remove(at(d, "holdfast.yaml")), os.Mkdir(at(d, "holdfast.yaml"), 0o700))
		}, ""},
		"a pipe": {func(d string) error {
			return errors.Join(os.Remove(at(d, "holdfast.yaml")), syscall.Mkfifo(at(d, "holdfast.yaml"), 0o600))
		}, "not a regular file"},
		"a device": {func(d string) error {
			return errors.Join(os.Remove(at(d, "holdfast.yaml")), os.Symlink("/dev/zero", at(d, "holdfast.yaml")))
		}, ""},
		"a link to itself": {func(d string) error {
			return errors.Join(os.Remove(at(d, "holdfast.yaml")), os.Symlink("holdfast.yaml", at(d, "holdfast.yaml")))
		}, "symbolic links"},
		"rules that are gone": {func(d string) error { return os.Remove(at(d, "r", "rules.yaml")) }, "no such file"},
		"rules that are a directory": {func(d string) error {
			return errors.Join(os.Remove(at(d, "r", "rules.yaml")), os.Mkdir(at(d, "r", "rules.yaml"), 0o700))
		}, "not a regular file"},
		"rules that are a pipe": {func(d string) error {
			return errors.Join(os.Remove(at(d, "r", "rules.yaml")), syscall.Mkfifo(at(d, "r", "rules.yaml"), 0o600))
		}, "not a regular file"},
		"rules that are a device": {func(d string) error {
			return errors.Join(os.Remove(at(d, "r", "rules.yaml")), os.Symlink("/dev/zero", at(d, "r", "rules.yaml")))
		}, "not a regular file"},
		"rules that are a link to themselves": {func(d string) error {
			return errors.Join(os.Remove(at(d, "r", "rules.yaml")), os.Symlink("rules.yaml", at(d, "r", "rules.yaml")))
		}, "symbolic links"},
		"rules of a hundred megabytes": {func(d string) error { return os.Truncate(at(d, "r", "rules.yaml"), 100<<20) }, "more than 1048576 bytes"},
		"rules that are empty":         {func(d string) error { return os.Truncate(at(d, "r", "rules.yaml"), 0) }, "rules.yaml:1:1: the file is empty"},
		"rules that were cut short":    {func(d string) error { return os.Truncate(at(d, "r", "rules.yaml"), 25) }, "rules.yaml:"},
		"another user's file": {func(d string) error {
			if os.Geteuid() != 0 {
				return os.Chmod(at(d, "holdfast.yaml"), 0o666)
			}
			return os.Chown(at(d, "holdfast.yaml"), 12345, 0)
		}, ""},
		"another user's directory": {func(d string) error {
			if os.Geteuid() != 0 {
				return os.Chmod(d, 0o777)
			}
			return os.Chown(d, 12345, 0)
		}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := testfile.Write(t, map[string]string{"holdfast.yaml": good, "r/rules.yaml": rulesFile})
			path := at(dir, "holdfast.yaml")
			if _, err := Load(path); err != nil {
				t.Fatalf("before: %v", err)
			}
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestD49_NeverFromAWorkTree(t *testing.T) {
	dir := testfile.Write(t, map[string]string{"tree/sub/holdfast.yaml": "version: 1\n", "out/holdfast.yaml": "version: 1\n",
		"out/rules.yaml": "version: 1\nrules: {files: [../tree/sub/rules.yaml]}\n", "tree/sub/rules.yaml": rulesFile})
	tree := filepath.Join(dir, "tree")
	links := map[string]string{"link.yaml": "tree/sub/holdfast.yaml", "tree2": "tree", "out/dir": "../tree/sub", "tree/sub/away.yaml": "../../out/holdfast.yaml"}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"tree/sub/holdfast.yaml", "out/../tree/sub/holdfast.yaml", "link.yaml", "tree2/sub/holdfast.yaml",
		"out/dir/holdfast.yaml", "out/rules.yaml", "tree/sub/away.yaml", "out/dir/../sub/holdfast.yaml"} {
		for _, given := range []string{tree, filepath.Join(dir, "tree2"), filepath.Join(tree, ".")} {
			if _, err := Load(dir+"/"+name, given); err == nil || !strings.Contains(err.Error(), "work tree") {
				t.Errorf("%s in %s: %v", name, given, err)
			}
		}
		if _, err := Load(dir + "/" + name); err != nil {
			t.Errorf("%s outside any work tree: %v", name, err)
		}
	}
	if _, err := Load(filepath.Join(dir, "out/holdfast.yaml"), tree, filepath.Join(dir, "none")); err != nil {
		t.Errorf("beside the work tree: %v", err)
	}
	if _, err := Load(filepath.Join(dir, "out/holdfast.yaml"), "/a\x00b"); err == nil {
		t.Error("a work tree that cannot be looked at")
	}
}
