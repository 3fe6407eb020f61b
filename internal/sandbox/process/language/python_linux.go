package language

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/sandbox/process/seccomp"
)

// pythonAsk makes an interpreter tell what it is: so a shim that starts another
// one never stands for it.
const pythonAsk = `import sys,json,os
print(json.dumps({"exe":os.path.realpath(sys.executable),"version":list(sys.version_info[:3]),"kind":sys.implementation.name,"prefix":sys.base_prefix,"path":sys.path}))`

// python is an interpreter by its own account.
type python struct {
	Exe     string
	Version [3]int
	Kind    string
	Prefix  string
	Path    []string
}

var pythonName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^python3(\.[0-9]+)?$`)
})

// learnPython is the row of the CPython (from 3.9 on) at path. "python3" and
// "python" mean the system's.
func learnPython(ctx context.Context, path string) (Language, error) {
	py, err := askPython(ctx, path)
	if err != nil {
		return Language{}, err
	}
	return py.language(), nil
}

func askPython(ctx context.Context, path string) (python, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-I", "-S", "-c", pythonAsk)
	cmd.Dir = "/"
	out, err := cmd.Output()
	var py python
	if err == nil {
		err = json.Unmarshal(out, &py)
	}
	switch {
	case err != nil:
		return py, fmt.Errorf("it does not say what it is: %w", err)
	case py.Kind != "cpython" || py.Version[0] != 3 || py.Version[1] < 9:
		return py, fmt.Errorf("it is %s %d.%d, not CPython 3.9 or later", py.Kind, py.Version[0], py.Version[1])
	case !filepath.IsAbs(py.Exe) || !strings.HasPrefix(py.Exe, py.Prefix+"/"):
		return py, fmt.Errorf("its program %q does not stand under its prefix %q", py.Exe, py.Prefix)
	}
	return py, nil
}

// language: the program runs as it would beside the files that come with it, so
// modules among them are found. Nothing writes .pyc files (-B), and there is
// nothing of a user's to look for (-s). The module site stays, without which
// exit() and quit() are not there and ordinary programs fail.
func (py python) language() Language {
	exact := fmt.Sprintf("python3.%d", py.Version[1])
	return Language{
		Name: "python3", Exact: exact, version: fmt.Sprintf("%d.%d.%d", py.Version[0], py.Version[1], py.Version[2]),
		loose:   []string{"python3", "python"},
		Program: "/usr/bin/" + exact, Host: py.Exe, Flags: []string{"-B", "-s"}, CodeName: "main.py",
		Asks:   `import sys;sys.implementation.name=='cpython' and print('python%d.%d'%sys.version_info[:2])`,
		env:    append(slices.Clone(common), "PYTHONPATH=/tmp"),
		parts:  py.parts,
		finish: py.compile,
		Allows: seccomp.PythonProfile(),
	}
}

// pythonLeft are folders of the standard library that a program without a
// screen, a package installer or a test of Python itself does not need.
var pythonLeft = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|/)(site-packages|dist-packages|test|tests|idlelib|tkinter|ensurepip|turtledemo|config-3[^/]*|idle_test)$|\.opt-[12]\.pyc$|(^|/)lib-dynload/(_test|_tkinter|_ctypes_test|xxlimited)[^/]*\.so$|\.a$`)
})

// parts: the program, the library, and time zones. What stands under the
// interpreter's prefix comes to stand under /usr, where it finds itself as
// well: the root tells nothing of who installed it.
func (py python) parts(m *manifest) error {
	if err := m.program(py.Exe, "/usr/bin/"+fmt.Sprintf("python3.%d", py.Version[1])); err != nil {
		return err
	}
	found := false
	for _, dir := range py.Path {
		rel, err := filepath.Rel(py.Prefix, dir)
		if err != nil || strings.HasPrefix(rel, "..") || !isDir(dir) || m.has("/usr/"+rel) {
			continue
		}
		found = true
		if err := m.tree(dir, "/usr/"+rel, pythonLeft().MatchString); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("no standard library of python3.%d stands under %s", py.Version[1], py.Prefix)
	}
	const zones = "/usr/share/zoneinfo"
	if !isDir(zones) {
		return nil
	}
	return m.tree(zones, zones, zonesLeft().MatchString)
}

// zonesLeft are second copies of all zones, and the host's own.
var zonesLeft = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(posix|right|localtime|posixrules)$`)
})

// compile makes the .pyc files that the host's copy does not have, so that no
// run compiles the library again. Those that were copied stay valid, because
// the copies keep their sources' times.
func (py python) compile(ctx context.Context, root string) error {
	for _, dir := range py.Path {
		rel, err := filepath.Rel(py.Prefix, dir)
		if err != nil || strings.HasPrefix(rel, "..") || !isDir(filepath.Join(root, "usr", rel)) {
			continue
		}
		cmd := exec.CommandContext(ctx, py.Exe, "-I", "-S", "-m", "compileall", "-q", "-s", root, "-p", "/", filepath.Join(root, "usr", rel))
		cmd.Dir = "/"
		out, err := cmd.CombinedOutput()
		var bad *exec.ExitError
		if err != nil && !errors.As(err, &bad) { // a file that is no Python is no reason to stop
			return fmt.Errorf("compile the library: %w: %.200s", err, out)
		}
		return ctx.Err()
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
