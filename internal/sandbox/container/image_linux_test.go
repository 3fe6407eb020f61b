//go:build linux

package container_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
	"github.com/holdfast-dev/holdfast/internal/sandbox/copies/image"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// pythonRoot is a folder that is a root with Python, and more.
func pythonRoot(t *testing.T, from container.Programs, more map[string]string) string {
	t.Helper()
	p, err := from.Program(context.Background(), "python3", nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "debian")
	sandboxtest.CopySlimRoot(t, dir, p.Root)
	for name, text := range more {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestImage: code runs in the root that the operator named, by its interpreter;
// what the image has not is refused by name.
func TestImage(t *testing.T) {
	from := programs(t)
	root := pythonRoot(t, from, map[string]string{"etc/mark": "of the image", "usr/bin/helper": "x", "tmp/old": "x"})
	if err := errors.Join(os.Symlink("/etc/mark", filepath.Join(root, "etc/same")), os.Chmod(filepath.Join(root, "usr/bin/helper"), 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	c, dir := open(t, func(cfg *container.Config) {
		cfg.Programs, cfg.Image = from, image.Source{Name: "tools", Path: root}
	})
	run := func(language, code string) (*posture.Result, error) {
		return c.Run(t.Context(), sandbox.Spec{ID: "image", Language: language, Code: []byte(code), Need: need(c)})
	}
	for range 2 { // the second finds the interpreter asked
		res, err := run("python3", `
import os
print(open('/etc/same').read(), oct(os.stat('/usr/bin/helper').st_mode), os.listdir('/tmp'))
for path in '/etc/mark', '/usr/new':
    try: open(path, 'w')
    except OSError as e: print(e.strerror)
`)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(res.Stdout); got != "of the image 0o100755 []\nRead-only file system\nRead-only file system\n" {
			t.Errorf("%q %q", got, res.Stderr)
		}
		if p := res.Posture; !strings.HasPrefix(p.Image, "tools sha256:") || len(p.Image) != len("tools sha256:")+64 || !strings.Contains(strings.Join(p.Notes, "\n"), `lost a set-user-ID or set-group-ID bit, "usr/bin/helper" first`) {
			t.Errorf("%q %q", p.Image, p.Notes)
		}
	}
	if _, err := run("node", "1"); holdfast.KindOf(err) != holdfast.KindLanguage || !strings.Contains(err.Error(), "the image tools cannot run node") {
		t.Errorf("%v", err)
	}
	if list, absent := c.Languages(); len(list) != 2 || !strings.HasPrefix(list[0], "python3.") || list[1] != sandbox.Static || len(absent) == 0 {
		t.Errorf("%v, %v", list, absent)
	}
	if err := c.Close(); err != nil || len(c.Troubles()) > 0 {
		t.Error(err, c.Troubles())
	}
	nothingLeft(t, dir)
}

// TestImageWithALiar: what has an interpreter's name and is none, or another, is
// found out before code is given to it.
func TestImageWithALiar(t *testing.T) {
	from := programs(t)
	p, err := from.Program(t.Context(), "python3", nil)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(p.Argv[0])
	for what, tc := range map[string]struct {
		change func(root string) error
		want   string
	}{
		"a script":  {func(root string) error { return os.WriteFile(root, []byte("#!/usr/bin/none\n"), 0o755) }, "does not run: it ended with 1"},
		"nobody's":  {func(root string) error { return os.Chmod(root, 0o700) }, "may not be executed by everybody"},
		"out of it": {func(root string) error { return errors.Join(os.Remove(root), os.Symlink("/bin/true", root)) }, "is not there"},
	} {
		t.Run(strings.ReplaceAll(what, " ", "_"), func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "root")
			at := filepath.Join(root, "usr/bin", name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, nil, 0o755), tc.change(at)); err != nil {
				t.Fatal(err)
			}
			lies(t, from, root, tc.want)
		})
	}
	t.Run("another_Python", func(t *testing.T) {
		lies(t, from, pythonRoot(t, from, map[string]string{"usr/lib/" + name + "/sitecustomize.py": "import sys; sys.version_info = (3, 1, 0)"}), `says that it is "python3.1" and not "`+name)
	})
}

// lies: nothing of a request runs in the image, for the reason.
func lies(t *testing.T, from container.Programs, root, want string) {
	c, dir := open(t, func(cfg *container.Config) {
		cfg.Programs, cfg.Image = from, image.Source{Name: "tools", Path: root}
	})
	res, err := c.Run(t.Context(), sandbox.Spec{ID: "liar", Language: "python3", Code: []byte("print(1)"), Need: need(c)})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v %+v, want %q", err, res, want)
	}
	c.Close()
	nothingLeft(t, dir)
}

// TestBadImage: a tier with an image that cannot be used is not opened, and leaves
// nothing behind; what is wrong with images internal/sandbox/copies/image tries.
func TestBadImage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "oci")
	root := t.TempDir()
	if err := os.Symlink("../../etc", filepath.Join(root, "etc")); err != nil {
		t.Fatal(err)
	}
	c, err := container.Open(t.Context(), container.Config{Dir: dir, Runtime: "runc", Image: image.Source{Name: "tools", Path: root}, Programs: programs(t)})
	if err == nil {
		c.Close()
		t.Fatal("it is taken")
	}
	if holdfast.KindOf(err) != holdfast.KindMount || !strings.Contains(err.Error(), `the image "tools" (`+root+`) cannot be used: the link "etc" climbs out of it`) {
		t.Error(err)
	}
	nothingLeft(t, dir)
	if list, _ := filepath.Glob(filepath.Join(dir, "images", "[^k]*")); len(list) > 0 {
		t.Errorf("%v are left", list)
	}
}
