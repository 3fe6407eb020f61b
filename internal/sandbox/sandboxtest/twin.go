package sandboxtest

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// twin is how an attempt is made outside the walls.
type twin struct {
	// scratch makes it in namespaces of its own, as their root, where it harms
	// nobody.
	scratch bool
	// root: only the machine's root may do it.
	root bool
	// returns: to succeed would harm the machine, so that the arguments cannot
	// be right; outside the call comes back with the kernel's own answer.
	returns bool
	// code is another program, where what there is outside goes by other names.
	code, js string
	// says is what it prints when it got through; "reached" if empty.
	says string
	// ends is the signal or status in which getting through shows, where nothing
	// is printed.
	ends string
	// none says why there can be no twin: the attempt itself shows that what it
	// tries works.
	none string
}

var (
	here          = twin{}
	inScratch     = twin{scratch: true}
	byRoot        = twin{root: true}
	comesBack     = twin{returns: true}
	rootInScratch = twin{scratch: true, root: true}
)

// absent are errors that say that this machine has not what is tried.
var absent = []string{"ENOSYS", "ENOENT", "ENODEV", "ENXIO", "EOPNOTSUPP", "EAFNOSUPPORT", "ESOCKTNOSUPPORT", "EPROTONOSUPPORT", "ENOTTY"}

func (s *suite) compare(t *testing.T, a try) {
	t.Helper()
	w := a.twin
	if os.Getenv(TwinsEnv) != "" {
		return
	}
	if w.none != "" {
		s.count(t, w.none)
		return
	}
	if w.root && os.Geteuid() != 0 {
		s.count(t, "outside only root may do it")
		return
	}
	if s.no386 && a.enters386() {
		s.count(t, "this machine has no door of 32 bits")
		return
	}
	out, how := s.outside(t, a)
	wanted := w.says
	if wanted == "" {
		wanted = "reached"
	}
	switch {
	case w.ends != "" && how == w.ends, w.ends == "" && strings.Contains(out, wanted):
		s.tally(&s.twins)
		return
	case w.returns && strings.Contains(out, "refused "):
		s.tally(&s.twins)
		return
	}
	for _, e := range absent {
		if strings.Contains(out, "refused "+e+"\n") {
			s.count(t, "this machine has not what it tries ("+e+")")
			return
		}
	}
	if os.Geteuid() != 0 && (strings.Contains(out, "refused EPERM\n") || strings.Contains(out, "refused EACCES\n")) {
		s.count(t, "an ordinary user may not do it outside either")
		return
	}
	t.Errorf("the twin did not get through: %s, %.800q", how, out)
}

func (s *suite) count(t *testing.T, why string) {
	t.Log("no twin here: " + why)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.other = append(s.other, t.Name()+": "+why)
}

// outside makes the attempt without walls, and returns what it printed and how
// it ended.
func (s *suite) outside(t *testing.T, a try) (out, how string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, systemPython(), "-B", "-S", "-s", "main.py")
	if a.static != "" {
		cmd = exec.CommandContext(ctx, s.program)
	}
	if a.js != "" {
		cmd = exec.CommandContext(ctx, "node", "main.js")
		write(t, filepath.Join(dir, "main.js"), []byte(nodePrelude+cmp.Or(a.twin.js, a.js)), 0o600)
	}
	code := a.code
	if a.twin.code != "" {
		code = a.twin.code
	}
	write(t, filepath.Join(dir, "main.py"), []byte(prelude()+code), 0o600)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TRICK="+a.static, "TMPDIR="+dir)
	apart(cmd, a.twin.scratch, a.twin.root)
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	cmd.WaitDelay = time.Second
	runtime.LockOSThread() // the kernel ends it with the thread that began it
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if err == nil {
		return b.String(), "exit status 0"
	}
	return b.String(), err.Error()
}

// systemPython is the interpreter that tiers run, where it is: one that stands before it in
// the path may be a shell script that looks for another, which takes ten times as long.
func systemPython() string {
	const system = "/usr/bin/python3"
	if _, err := os.Stat(system); err != nil {
		return "python3"
	}
	return system
}

// Heed has what the test starts begin with a hangup and an interrupt as Linux has
// them, though whoever started the tests ignores them, as nohup does: what Go
// listens for it does not leave ignored in its children. It stays so until the
// process ends: other suites run beside this one.
func Heed(t testing.TB) {
	t.Helper()
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// startable writes a program while nothing is forked: what is open to be written,
// in whatever process, cannot be started.
func startable(t *testing.T, path string, b []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	write(t, path, b, 0o755)
}

func write(t *testing.T, path string, b []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, b, mode); err != nil {
		t.Fatal(err)
	}
}

//go:embed testdata/tricks
var sources embed.FS

// TricksEnv names a file with the compiled program, for a test that may not
// build one (as an unprivileged user with no place for a cache).
const TricksEnv = "HOLDFAST_SUITE_TRICKS"

// TwinsEnv, where it is set, says that the twins of this very run have been shown
// to get through already, by another user.
const TwinsEnv = "HOLDFAST_SUITE_TWINS_SEEN"

// tricks builds the compiled program.
func tricks(t *testing.T) []byte {
	t.Helper()
	if path := os.Getenv(TricksEnv); path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	return Tricks(t)
}

// built is the compiled program, once a test of this process has built it.
var built struct {
	sync.Mutex
	program []byte
}

// Tricks builds the compiled program of the suite, statically linked for this
// machine, and returns it.
func Tricks(t *testing.T) []byte {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.program == nil {
		built.program = buildTricks(t)
	}
	return built.program
}

func buildTricks(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	err := fs.WalkDir(sources, "testdata/tricks", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := sources.ReadFile(path)
		return errors.Join(err, os.WriteFile(filepath.Join(dir, strings.TrimSuffix(d.Name(), ".txt")), b, 0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", "tricks", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "tricks"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
