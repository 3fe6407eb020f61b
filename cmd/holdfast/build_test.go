package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// What several tests need is made once for all of them, below shared.
var (
	shared = sync.OnceValues(func() (string, error) { return os.MkdirTemp("/tmp", "hf") })
	ours   = sync.OnceValues(func() (string, error) { return goBuild("holdfast", ".") })
)

// tidied removes what is shared after all tests, and sees that they gave nothing of
// the machine's away.
type tidied struct{ m *testing.M }

func (t tidied) Run() int {
	if raceDetector {
		if err := unwatched(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	code := sandboxtest.NullKept(t.m.Run)
	if dir, err := shared(); err == nil {
		_ = os.RemoveAll(dir)
	}
	return code
}

func builtOnce(t *testing.T, what func() (string, error)) string {
	t.Helper()
	path, err := what()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// goBuild writes the program of a package into the directory shared. It is built
// without cgo, as the product is: the race detector's setting, inherited, would
// compile each dependency again. `go run` keeps what it linked in the build cache,
// which `go build` does not, and hands it to cp.
func goBuild(name, pkg string) (string, error) {
	dir, err := shared()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, name)
	cmd := exec.Command("go", "run", "-exec", "cp", pkg, bin)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go run -exec cp %s: %w\n%s", pkg, err, out)
	}
	return bin, nil
}

// buildCommand builds holdfast.
func buildCommand(t *testing.T) string {
	t.Helper()
	return builtOnce(t, ours)
}
