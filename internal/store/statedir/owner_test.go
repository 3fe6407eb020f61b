package statedir

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"golang.org/x/sys/unix"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// state returns the path of a state directory that does not exist yet.
func stateDir(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "s")
}

func hintOf(err error) string {
	var e *holdfast.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

func TestD48_OneOwner(t *testing.T) {
	dir := stateDir(t)
	o, err := AcquireOwner(dir, noon)
	if err != nil {
		t.Fatal(err)
	}
	_, err = AcquireOwner(dir, noon)
	if !errors.Is(err, ErrOwned) || holdfast.KindOf(err) != holdfast.KindConflict ||
		!strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) || hintOf(err) == "" {
		t.Fatalf("a second owner: %v", err)
	}
	if h := Process(o.Paths); h.PID != os.Getpid() || !h.Since.Equal(noon) {
		t.Fatalf("holder %v", h)
	}
	// Another name of the same directory is the same state.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := AcquireOwner(link, noon); !errors.Is(err, ErrOwned) {
		t.Fatalf("through a link: %v", err)
	}
	for range 2 {
		if err := o.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if h := Process(o.Paths); h != (Holder{}) {
		t.Fatalf("holder after release: %v", h)
	}
	o, err = AcquireOwner(dir, noon)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Release()
	if info, _ := os.Stat(o.Paths.Lock); info.Mode().Perm() != 0o600 {
		t.Fatalf("lock mode %v", info.Mode())
	}
}

func TestD48_OnlyOneWins(t *testing.T) {
	dir := stateDir(t)
	var won atomic.Int32
	var owners sync.Map // keeps the files open until all have tried
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			switch o, err := AcquireOwner(dir, noon); {
			case err == nil:
				won.Add(1)
				owners.Store(o, true)
			case !errors.Is(err, ErrOwned):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d owners", won.Load())
	}
	owners.Range(func(o, _ any) bool { _ = o.(*Owner).Release(); return true })
}

// An owner that is killed leaves its line in the lock, and the lock is free.
func TestD48_KilledOwnerLetsGo(t *testing.T) {
	const key = "HOLDFAST_TEST_OWN"
	if dir := os.Getenv(key); dir != "" {
		if _, err := AcquireOwner(dir, noon); err != nil {
			t.Fatal(err)
		}
		fmt.Println("owned")
		time.Sleep(time.Minute)
		return
	}
	dir := stateDir(t)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), key+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(out); s.Scan() && s.Text() != "owned"; {
	}
	if _, err := AcquireOwner(dir, noon); !errors.Is(err, ErrOwned) || !strings.Contains(err.Error(), fmt.Sprint(cmd.Process.Pid)) {
		t.Errorf("while it lives: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	o, err := AcquireOwner(dir, noon)
	if err != nil {
		t.Fatal(err)
	}
	_ = o.Release()
}

func TestLockMustBeAPlainPrivateFile(t *testing.T) {
	cases := map[string]func(lock string) error{
		"link": func(p string) error {
			if err := os.WriteFile(p+"2", nil, 0o600); err != nil {
				return err
			}
			return os.Symlink(p+"2", p)
		},
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"pipe":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"readable":  func(p string) error { return mode(p, 0o644) },
		"writable":  func(p string) error { return mode(p, 0o666) },
		"two names": func(p string) error { return errors.Join(mode(p, 0o600), os.Link(p, p+"2")) },
	}
	for name, put := range cases {
		t.Run(name, func(t *testing.T) {
			dir := stateDir(t)
			p, err := OpenState(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := put(p.Lock); err != nil {
				t.Fatal(err)
			}
			if _, err := AcquireOwner(dir, noon); err == nil || errors.Is(err, ErrOwned) {
				t.Fatalf("got %v", err)
			}
		})
	}
	for _, text := range []string{"", "{", "\x00\xff", `{"pid":"x"}`, `{"pid":-1}`, strings.Repeat("x", 1<<20)} {
		dir := stateDir(t)
		p, _ := OpenState(dir)
		if err := os.WriteFile(p.Lock, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if h := Process(p); h != (Holder{}) || h.String() != "another process" {
			t.Errorf("%.10q reads %v", text, h)
		}
		o, err := AcquireOwner(dir, noon)
		if err != nil {
			t.Errorf("a lock file holding %.10q: %v", text, err)
		}
		_ = o.Release()
	}
}

// mode makes a file with exactly those permissions.
func mode(path string, m os.FileMode) error {
	return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, m))
}

// TestReleaseUnlocksWhatAChildHasOpen: after a release the state can be owned, also while
// a child that was forked before has the descriptor.
func TestReleaseUnlocksWhatAChildHasOpen(t *testing.T) {
	dir := stateDir(t)
	o, err := AcquireOwner(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	copied, err := unix.FcntlInt(o.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(copied)
	if err := o.Release(); err != nil {
		t.Fatal(err)
	}
	next, err := AcquireOwner(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Release(); err != nil {
		t.Error(err)
	}
}
