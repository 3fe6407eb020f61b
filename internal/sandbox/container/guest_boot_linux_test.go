//go:build linux && endure

package container_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// TestInGuest boots Debian's kernel in a machine of its own, whose control groups
// are kept by version 2, and runs containers of runc there: what they are held
// to, and what is left of one whose Holdfast is killed. Its kernel trusts no clock
// that can be read without a call, so that runc calls for the time.
func TestInGuest(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skipf("the guest's kernel is amd64's, and this is %s", runtime.GOARCH)
	}
	if testing.Short() {
		t.Skip("a guest takes half a minute")
	}
	kernel := sandboxtest.GuestKernel(t)
	dir := t.TempDir()
	self, image := filepath.Join(dir, "self"), filepath.Join(dir, "image")
	build := exec.Command("go", "test", "-c", "-tags", "endure", "-ldflags=-s -w", "-o", self, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	packGuest(t, image, self)
	sandboxtest.BootGuest(t, kernel, image, "v2", sandboxtest.ByTheWall()).Judge(t, sandboxtest.Scene{Name: guestScene, Tests: 8})
}

// packGuest writes the guest's file system to the file out: the test's program
// self, runc with its libraries, and Python with its own.
func packGuest(t *testing.T, out, self string) {
	t.Helper()
	p, err := programs(t).Program(t.Context(), "python3", nil)
	if err != nil {
		t.Fatal(err)
	}
	a := sandboxtest.NewArchive(t, out, self)
	put := map[string]bool{}
	err = filepath.WalkDir(p.Root, func(path string, e fs.DirEntry, err error) error {
		dst, _ := filepath.Rel(p.Root, path)
		dst = "/" + dst
		if err != nil || sandboxtest.GuestLeft.MatchString(dst) {
			return err
		}
		info, err := e.Info()
		switch {
		case err != nil:
			return err
		case e.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			a.Link(dst, to)
			put[dst] = true
			return err
		case e.Type().IsRegular():
			a.File(dst, path, info.Mode()&0o111 != 0, info.ModTime())
			put[dst] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		t.Fatal(err)
	}
	a.File("/usr/sbin/runc", runc, true, time.Time{})
	for _, lib := range libraries(t, runc) {
		if !put[lib] {
			a.File(lib, lib, true, time.Time{})
		}
	}
	if !put["/usr/bin/python3"] {
		a.Link("/usr/bin/python3", p.Exact)
	}
	a.Close(t)
}

var library = regexp.MustCompile(`(?m)(/\S+) \(0x`)

// libraries are those that a program is linked to, as its loader finds them.
func libraries(t *testing.T, program string) (list []string) {
	t.Helper()
	out, err := exec.Command("ldd", program).CombinedOutput()
	if err != nil && !bytes.Contains(out, []byte("not a dynamic executable")) {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, m := range library.FindAllSubmatch(out, -1) {
		list = append(list, string(m[1]))
	}
	return list
}
