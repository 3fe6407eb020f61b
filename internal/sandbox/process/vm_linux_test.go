//go:build linux && endure

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// TestInGuests boots Debian's kernel in machines of its own, whose control
// groups are kept in ways in which this machine's are not, and runs the tier's
// tests there: see scenesOf. The machines have no network and no disk.
func TestInGuests(t *testing.T) {
	onlyHere(t)
	t.Parallel()
	kernel := sandboxtest.GuestKernel(t)
	dir := t.TempDir()
	self, groups := filepath.Join(dir, "self"), filepath.Join(dir, "groups")
	tricks, image := filepath.Join(dir, "tricks"), filepath.Join(dir, "image")
	unwatched(t, self, ".")
	unwatched(t, groups, "./cgroup")
	if err := os.WriteFile(tricks, sandboxtest.Tricks(t), 0o755); err != nil {
		t.Fatal(err)
	}
	packGuest(t, image, self, groups, tricks)
	for _, name := range guests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sandboxtest.BootGuest(t, kernel, image, name, sandboxtest.ByWork()).Judge(t, scenesToPlay(name)...)
		})
	}
}

// unwatched builds the tests of a package without the race detector, linked statically.
func unwatched(t *testing.T, out, pkg string) {
	t.Helper()
	build := exec.Command("go", "test", "-c", "-tags", "endure", "-ldflags=-s -w", "-o", out, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
}

// scenesToPlay are a guest's, each with how many tests it has at least.
func scenesToPlay(guest string) (list []sandboxtest.Scene) {
	for _, s := range scenesOf(guest) {
		list = append(list, sandboxtest.Scene{Name: s.name, Tests: len(s.tests)})
	}
	return list
}
