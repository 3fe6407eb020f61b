// Package programs builds, starts and ends the programs that benchmarks measure.
package programs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// RoleWord is the first argument of this program where a benchmark started it as one of
// its processes. The role's name and its arguments follow; main dispatches them.
const RoleWord = "role"

// RoleCommand returns the command line of this program in a role.
func RoleCommand(role string, args ...string) []string {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return append([]string{self, RoleWord, role}, args...)
}

// FindHoldfast returns the file of the command that is measured: what --holdfast names,
// or what is built from this repository, once in a run.
func FindHoldfast(b *measure.Run) (string, error) {
	if b.Holdfast != "" {
		return filepath.Abs(b.Holdfast)
	}
	file, err := buildOnce(b, "holdfast", ".", "./cmd/holdfast")
	if err != nil {
		return "", fmt.Errorf("cannot build holdfast: %w", err)
	}
	return file, nil
}

// BuildGoproxy builds the peer of the egress proxy.
func BuildGoproxy(b *measure.Run) (string, error) {
	return buildOnce(b, "goproxy", "bench", "./goproxy")
}

// buildOnce builds a package in a directory of this repository into the run's own,
// unless it is there.
func buildOnce(b *measure.Run, name, dir, pkg string) (string, error) {
	file := filepath.Join(b.Dir, name)
	if Exists(file) {
		return file, nil
	}
	root, err := findRepository()
	if err != nil {
		return "", err
	}
	b.Say("building %s", name)
	build := exec.CommandContext(b.Ctx, "go", "build", "-C", filepath.Join(root, dir), "-o", file, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New(excerpt.Printable(strings.TrimSpace(err.Error() + " " + string(out))))
	}
	return file, nil
}

// RunGoBenchmark runs one benchmark of a package of the product, so many rounds of it,
// and returns what it reports, by unit. It is an error where the benchmark was skipped.
func RunGoBenchmark(b *measure.Run, pkg, name string, rounds int) (map[string]float64, error) {
	root, err := findRepository()
	if err != nil {
		return nil, err
	}
	b.Say("running %s of %s", name, pkg)
	test := exec.CommandContext(b.Ctx, "go", "test", "-C", root, "-vet=off", "-run", "^$",
		"-bench", "^"+name+"$", "-benchtime", fmt.Sprintf("%dx", rounds), pkg)
	test.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := test.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("cannot run %s: %w: %s", name, err, excerpt.Printable(string(out)))
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) < 4 || !strings.HasPrefix(words[0], name) {
			continue
		}
		units := map[string]float64{}
		for i := 2; i+1 < len(words); i += 2 {
			if units[words[i+1]], err = strconv.ParseFloat(words[i], 64); err != nil {
				return nil, err
			}
		}
		return units, nil
	}
	return nil, fmt.Errorf("%s did not run here", name)
}

// findRepository looks from the working directory upwards.
func findRepository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for !Exists(filepath.Join(dir, "bench", "goproxy", "main.go")) {
		if dir == filepath.Dir(dir) {
			return "", errors.New("the repository is not above the working directory")
		}
		dir = filepath.Dir(dir)
	}
	return dir, nil
}

// Exists reports whether there is something at path.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// BuildEmpty builds a static program that does nothing.
func BuildEmpty(b *measure.Run) (string, error) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		return "", errors.New("there is no go command in PATH")
	}
	dir := filepath.Join(b.Dir, "empty")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	src, out := filepath.Join(dir, "main.go"), filepath.Join(dir, "empty")
	if err := os.WriteFile(src, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return "", err
	}
	build := exec.CommandContext(b.Ctx, goTool, "build", "-o", out, src)
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS=", "GOARCH=")
	if said, err := build.CombinedOutput(); err != nil {
		return "", errors.New(excerpt.Printable(string(said)))
	}
	return out, nil
}
