package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/holdfast-dev/holdfast/daemon"
)

func TestMain(m *testing.M) {
	daemon.RunHelperRole()
	testscript.Main(m, map[string]func(){"bench": main})
}

// TestScripts runs each benchmark for a short time: they count what they can, and clean
// up. The program that they measure is built once.
func TestScripts(t *testing.T) {
	dir := t.TempDir()
	holdfast := filepath.Join(dir, "holdfast")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "..", "-o", holdfast, "./cmd/holdfast")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build holdfast: %v: %s", err, out)
	}
	// Sockets have short paths.
	root, err := os.MkdirTemp("/tmp", "hfb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	path := os.Getenv("PATH")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// What builds has the caches of this test.
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS").Output()
	if err != nil {
		t.Fatal(err)
	}
	goEnv := strings.Split(string(caches), "\n")
	testscript.Run(t, testscript.Params{
		Dir:         "testdata",
		WorkdirRoot: root,
		Setup: func(e *testscript.Env) error {
			for name, value := range map[string]string{
				"BENCH": here, "HOLDFAST": holdfast, "PATH": path, "LANG": "C.UTF-8", "USER": "ann",
				"XDG_CONFIG_HOME": filepath.Join(e.WorkDir, "x"),
			} {
				e.Setenv(name, value)
			}
			for i, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS"} {
				e.Setenv(name, goEnv[i])
			}
			return nil
		},
	})
}
