package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/holdfast-dev/holdfast/daemon"
)

func TestMain(m *testing.M) {
	daemon.RunHelperRole()
	testscript.Main(m, map[string]func(){"bench": main})
}

// TestEachSubjectIsRun compares the list of subjects with the scripts and with the loop of
// `make bench`.
func TestEachSubjectIsRun(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join("..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	loop := regexp.MustCompile(`for name in ([a-z ]+); do \$\(GO\) run -C bench`).FindSubmatch(makefile)
	if loop == nil {
		t.Fatal("make bench has no loop over names")
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var scripts strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		scripts.Write(text)
	}
	var names []string
	for _, s := range listSubjects() {
		names = append(names, s.Name)
		if !regexp.MustCompile(`(?m)^exec bench ` + s.Name + `\b`).MatchString(scripts.String()) {
			t.Errorf("no script in testdata runs bench %s", s.Name)
		}
	}
	slices.Sort(names)
	if made := slices.Sorted(slices.Values(strings.Fields(string(loop[1])))); !slices.Equal(names, made) {
		t.Errorf("make bench runs %q, the command has %q", made, names)
	}
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
