package language

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestStaticRefuses what would not start, with a reason, and does not trip over
// files cut anywhere.
func TestStaticRefuses(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	foreign := slices.Clone(self)
	foreign[18], foreign[19] = 0xf3, 0 // RISC-V
	dynamic, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{"nothing": nil, "text": []byte("print('hello')"), "a script": []byte("#!/bin/sh\n"), "another machine's": foreign, "a dynamic one": dynamic, "a header alone": self[:64]} {
		if err := checkStatic(b); err == nil {
			t.Errorf("%s was taken for a static program", what)
		} else {
			t.Log(err)
		}
	}
	for n := range 300 {
		cut := slices.Clone(dynamic[:min(len(dynamic), n*7)])
		if err := checkStatic(cut); err == nil {
			t.Errorf("a program cut at %d bytes was taken", len(cut))
		}
	}
}

func TestLanguagesAreExact(t *testing.T) {
	list, _ := Find(context.Background()).List()
	seen := map[string]bool{}
	for _, l := range list {
		for _, n := range append([]string{l.Exact}, l.loose...) {
			if seen[n] {
				t.Errorf("%s means two languages", n)
			}
			seen[n] = true
			if !l.matches(n) {
				t.Errorf("%s does not answer to %s", l.Exact, n)
			}
		}
		for _, n := range []string{"", "python", "python3.1", "python3.111", "node2", "/usr/bin/python3", "PYTHON3", "perl"} {
			if l.matches(n) && !slices.Contains(l.loose, n) {
				t.Errorf("%s answers to %q", l.Exact, n)
			}
		}
	}
	if !seen["static"] {
		t.Error("static is always there")
	}
	t.Setenv("PATH", "relative:"+t.TempDir())
	_, missing := Find(context.Background()).List()
	if _, err := os.Stat("/usr/bin/node"); err != nil && missing["node"] == "" {
		t.Error("no reason is given for a language that is not there")
	}
}

// TestShimStandsForNothing: a script that starts an interpreter is asked, and
// the interpreter answers.
func TestShimStandsForNothing(t *testing.T) {
	l := installed(t, "python3")
	real, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("the system has no python3")
	}
	dir := t.TempDir()
	shim, silent := filepath.Join(dir, "python3"), filepath.Join(dir, "python3.99")
	for path, text := range map[string]string{shim: "#!/bin/sh\nexec " + real + " \"$@\"\n", silent: "#!/bin/sh\nexit 127\n"} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	py, err := askPython(context.Background(), shim)
	if err != nil || py.Exe == shim || py.language().Exact != l.Exact {
		t.Errorf("%+v, %v", py, err)
	}
	if _, err := askPython(context.Background(), silent); err == nil {
		t.Error("a shim that starts nothing was believed")
	}
}

// TestScriptsAreAskedLast: what takes its time is not run before a language is
// wanted that is not there otherwise, and then once.
func TestScriptsAreAskedLast(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	runs := func() int {
		b, _ := os.ReadFile(filepath.Join(dir, "runs"))
		return len(b)
	}
	shim := "#!/bin/sh\nprintf x >>" + dir + "/runs\n" + `echo '{"exe":"/opt/py/bin/python3.77","version":[3,77,1],"kind":"cpython","prefix":"/opt/py","path":[]}'` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "python3.77"), []byte(shim), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	known := Find(ctx)
	known.Find(ctx, "node")
	known.Find(ctx, "perl")
	known.Find(ctx, sandbox.Static)
	if n := runs(); n != 0 {
		t.Errorf("the script was run %d times before it was needed", n)
	}
	cut, cancel := context.WithCancel(ctx)
	cancel()
	if _, ok := known.Find(cut, "python3.77"); ok {
		t.Error("a script answered a caller who had gone")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if l, ok := known.Find(ctx, "python3.77"); !ok || l.version != "3.77.1" {
				t.Errorf("%v %+v", ok, l)
			}
		})
	}
	wg.Wait()
	known.Find(ctx, "python3.99")
	if n := runs(); n != 1 {
		t.Errorf("the script was run %d times", n)
	}
}

// TestNoFileOfTheHostIsShared: a root is a copy, so that nothing that is done to
// its pages is done to the host's.
func TestNoFileOfTheHostIsShared(t *testing.T) {
	t.Parallel()
	l := installed(t, "python3")
	r, err := l.Root(context.Background(), t.TempDir(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	m := &manifest{files: map[string]source{}, loader: newLoader()}
	if err := l.parts(m); err != nil {
		t.Fatal(err)
	}
	for dst, s := range m.files {
		var a, b unix.Stat_t
		if err := unix.Lstat(filepath.Join(r.Path, dst), &a); err != nil {
			t.Fatal(err)
		}
		if err := unix.Stat(s.path, &b); err != nil {
			t.Fatal(err)
		}
		switch {
		case a.Ino == b.Ino && a.Dev == b.Dev || a.Nlink != 1 || a.Mode&unix.S_IFMT != unix.S_IFREG:
			t.Errorf("%s is no copy of its own", dst)
		case a.Mtim != b.Mtim || a.Size != b.Size:
			t.Errorf("%s has another time or size than %s", dst, s.path)
		case a.Mode&0o444 != 0o444 || a.Mode&0o022 != 0 || a.Mode&0o7000 != 0:
			t.Errorf("%s has mode %o", dst, a.Mode)
		}
	}
	for _, p := range []string{"etc", "proc", "sys", "root", "home", "dev/null/x"} {
		if _, err := os.Lstat(filepath.Join(r.Path, p)); err == nil {
			t.Errorf("/%s is there", p)
		}
	}
}

// TestEachLanguageIsClassified: the tests of package seccomp look at every language's profile.
func TestEachLanguageIsClassified(t *testing.T) {
	for _, f := range families() {
		if !slices.Contains([]string{"python3", "node", sandbox.Static}, f.name) {
			t.Errorf("add the profile of %s to the tests of package seccomp", f.name)
		}
	}
}

// installed returns the language of a name on this machine; the test is skipped if it is
// missing.
func installed(t *testing.T, name string) Language {
	t.Helper()
	l, ok := Find(t.Context()).Find(t.Context(), name)
	if !ok {
		t.Skip(name + " is not installed")
	}
	return l
}
