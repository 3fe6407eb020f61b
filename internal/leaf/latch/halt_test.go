package latch

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

func latch(t testing.TB) *Latch {
	t.Helper()
	l, err := New(filepath.Join(t.TempDir(), "HALT"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestSetReadClear(t *testing.T) {
	l := latch(t)
	if s, err := l.Read(); err != nil || s != (State{}) || l.Halted() {
		t.Fatalf("a new latch reads %+v, %v", s, err)
	}
	if set, err := l.SetFirst("maria", "runaway loop", noon); !set || err != nil {
		t.Fatal(set, err)
	}
	want := State{Halted: true, Who: "maria", Why: "runaway loop", When: noon}
	if s, err := l.Read(); err != nil || s != want || !l.Halted() {
		t.Fatalf("got %+v, %v", s, err)
	}
	b, err := os.ReadFile(l.Path())
	if err != nil || strings.Count(string(b), "\n") != 1 || !json.Valid(b) {
		t.Fatalf("not one line of JSON: %q %v", b, err)
	}
	if info, _ := os.Stat(l.Path()); info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v", info.Mode())
	}
	if err := l.Set("late", "late", noon); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Clear(); err != nil || l.Halted() {
			t.Fatal(err)
		}
	}
	if left, _ := os.ReadDir(filepath.Dir(l.Path())); len(left) != 0 {
		t.Fatalf("left behind: %v", left)
	}
}

// Whatever stands in the latch's place halts, and asking never waits.
func TestD34_AnythingThereHalts(t *testing.T) {
	big := `{"who":"a","why":"` + strings.Repeat("x", MaxSize) + `"}`
	file := func(text string) func(string) error {
		return func(p string) error { return os.WriteFile(p, []byte(text), 0o600) }
	}
	deep := strings.Repeat("[", 60_000)
	cases := map[string]func(path string) error{
		"truncated":      file(`{"who":"maria","why":"ru`),
		"text":           file("stop it\n"),
		"two documents":  file(`{"who":"a"} {"who":"b"}`),
		"wrong type":     file(`{"who":7}`),
		"array":          file(`[]`),
		"bad time":       file(`{"who":"a","why":"b","when":"yesterday"}`),
		"NUL":            file("\x00\x00"),
		"invalid UTF-8":  file("\xff\xfe{"),
		"enormous":       file(big),
		"deeply nested":  file(deep),
		"no permission":  func(p string) error { return os.WriteFile(p, []byte(`{}`), 0) },
		"directory":      func(p string) error { return os.Mkdir(p, 0o700) },
		"dangling link":  func(p string) error { return os.Symlink("/nowhere/at/all", p) },
		"link to itself": func(p string) error { return os.Symlink(p, p) },
		"link to a device": func(p string) error {
			return os.Symlink("/dev/zero", p)
		},
		"link to a good latch": func(p string) error {
			if err := os.WriteFile(p+"2", []byte(`{"who":"a"}`), 0o600); err != nil {
				return err
			}
			return os.Symlink(p+"2", p)
		},
		"pipe": func(p string) error { return syscall.Mkfifo(p, 0o600) },
	}
	for name, put := range cases {
		t.Run(name, func(t *testing.T) {
			l := latch(t)
			if err := put(l.Path()); err != nil {
				t.Fatal(err)
			}
			done := ask(l)
			select {
			case s := <-done:
				if !s.Halted {
					t.Fatalf("not halted: %+v", s)
				}
				// Root reads a file without permissions.
				if name != "no permission" && (s.Why != Unreadable || s.Err == nil) {
					t.Fatalf("got %+v", s)
				}
			case <-time.After(time.Minute):
				t.Fatal("asking waited")
			}
			if !l.Halted() {
				t.Fatal("Halted disagrees")
			}
			if set, err := l.SetFirst("late", "late", noon); set || err != nil {
				t.Fatalf("a second halt: %v %v", set, err)
			}
			if err := l.Clear(); err != nil || l.Halted() {
				t.Fatalf("clear: %v", err)
			}
		})
	}
}

// TestD34_ATouchHalts: an empty file, as a `touch` makes it, says whose it is and since
// when, and is no latch that cannot be read.
func TestD34_ATouchHalts(t *testing.T) {
	l := latch(t)
	if err := os.WriteFile(l.Path(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(l.Path(), noon, noon); err != nil {
		t.Fatal(err)
	}
	want := State{Halted: true, Who: fmt.Sprintf("uid %d", os.Geteuid()), Why: "no reason given", When: noon.UTC()}
	if s, err := l.Read(); err != nil || s != want || !l.Halted() {
		t.Errorf("%+v, %v", s, err)
	}
	if set, err := l.SetFirst("late", "late", noon); set || err != nil {
		t.Errorf("a second halt: %v %v", set, err)
	}
}

func ask(l *Latch) chan State {
	done := make(chan State, 1)
	go func() { s, _ := l.Read(); done <- s }()
	return done
}

func TestD34_WithoutItsDirectoryHalted(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(dir, "gone")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(gone, link); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(dir, strings.Repeat("x", 300))
	for _, d := range []string{gone, plain, link, long} {
		l, err := New(filepath.Join(d, "HALT"))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := l.Read(); !s.Halted || err == nil || !l.Halted() {
			t.Errorf("%s: %+v, %v", d, s, err)
		}
		if set, err := l.SetFirst("a", "b", noon); set || err == nil {
			t.Errorf("%s: set %v, %v", d, set, err)
		}
	}
	var none *Latch
	if s, err := none.Read(); !s.Halted || err == nil || !none.Halted() || !new(Latch).Halted() {
		t.Errorf("a nil latch reads %+v, %v", s, err)
	}
	if os.Geteuid() != 0 {
		shut := filepath.Join(dir, "shut")
		if err := os.Mkdir(shut, 0); err != nil {
			t.Fatal(err)
		}
		l, _ := New(filepath.Join(shut, "HALT"))
		if s, err := l.Read(); !s.Halted || err == nil {
			t.Errorf("an unreadable directory reads %+v, %v", s, err)
		}
	}
}

func TestNewWantsAnAbsolutePath(t *testing.T) {
	for _, p := range []string{"", "HALT", "./HALT", "../HALT", "/", "/a\x00b"} {
		if _, err := New(p); err == nil {
			t.Errorf("New(%q) was accepted", p)
		}
	}
}

func TestD48_FirstReasonStays(t *testing.T) {
	l := latch(t)
	var firsts atomic.Int32
	var first atomic.Value
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			who := fmt.Sprint("w", i)
			set, err := l.SetFirst(who, "because", noon)
			if err != nil {
				t.Error(err)
			}
			if set {
				firsts.Add(1)
				first.Store(who)
			}
			if s, err := l.Read(); !s.Halted || err != nil {
				t.Errorf("a half-written latch was seen: %+v %v", s, err)
			}
		})
	}
	wg.Wait()
	s, _ := l.Read()
	if firsts.Load() != 1 || s.Who != first.Load() {
		t.Fatalf("%d firsts; the latch says %q, the winner is %v", firsts.Load(), s.Who, first.Load())
	}
}

// A reason that cannot be kept must not keep anyone from halting.
func TestSetWithoutReason(t *testing.T) {
	l := latch(t)
	if set, err := l.bare(os.ErrInvalid); !set || err == nil || !l.Halted() {
		t.Fatal(set, err)
	}
	if set, err := l.bare(os.ErrInvalid); set || err != nil {
		t.Fatal(set, err)
	}
	// A year that JSON cannot write is no reason to go on.
	l = latch(t)
	if set, err := l.SetFirst("a", "b", time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC)); !set || err == nil || !l.Halted() {
		t.Fatal(set, err)
	}
}

// Where nothing can be written any more, halting works, without its reason. A
// limit on the size of files stands in for the full disk; it is the process's,
// so a process of its own is limited.
func TestFullDiskHalts(t *testing.T) {
	const key = "HOLDFAST_TEST_HALT"
	if path := os.Getenv(key); path != "" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+"-other", []byte("x"), 0o600); err == nil {
			t.Fatal("something could be written")
		}
		l, err := New(path)
		if err != nil {
			t.Fatal(err)
		}
		if set, err := l.SetFirst("maria", "disk full", noon); !set || err == nil || !strings.Contains(err.Error(), "without a reason") {
			t.Fatal(set, err)
		}
		return
	}
	l := latch(t)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), key+"="+l.Path())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if s, err := l.Read(); !s.Halted || s.Why != noReason || s.Who == "" || err != nil {
		t.Fatalf("%+v %v", s, err)
	}
}

func TestTextsAreCleaned(t *testing.T) {
	cases := []struct{ in, want string }{
		{"plain", "plain"},
		{"", ""},
		{"two\nlines\r\tand\x00more", "two lines and more"},
		{"\x1b[31mred", "[31mred"},
		{"\x1b]0;title\x07", "]0;title"},
		{"a\u202eb\u200bc\ufeff", "a b c"},
		{"caf\u00e9 \u65e5\u672c", "caf\u00e9 \u65e5\u672c"},
		{"bad\xffutf", "bad utf"},
		{"  trimmed  ", "trimmed"},
		{strings.Repeat("\u00e9", 300), strings.Repeat("\u00e9", MaxWho)},
	}
	for _, c := range cases {
		if got := clean(c.in, MaxWho); got != c.want {
			t.Errorf("clean(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	l := latch(t)
	if err := os.WriteFile(l.Path(), []byte(`{"who":"\u001b[2Jroot","why":"x\ny","when":"2026-11-21T12:00:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := l.Read(); err != nil || s.Who != "[2Jroot" || s.Why != "x y" {
		t.Fatalf("%+v %v", s, err)
	}
}

func TestD35_Enabled(t *testing.T) {
	if !Enabled("", false) {
		t.Error("unset must run")
	}
	for _, v := range []string{"true", "1", "yes", "on"} {
		if !Enabled(v, true) {
			t.Errorf("%q must run", v)
		}
	}
	for _, v := range []string{"", "false", "0", "no", "off", "TRUE", " true", "true ", "2", "ja", "\x00"} {
		if Enabled(v, true) {
			t.Errorf("%q must halt", v)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\nb\u202ec\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s, MaxWho)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > MaxWho || strings.ContainsAny(got, "\n\r\x1b\x00\u202e") {
			t.Errorf("clean(%q) = %q", s, got)
		}
		if clean(got, MaxWho) != got {
			t.Errorf("cleaning %q twice changes it", s)
		}
	})
}

func BenchmarkReadAbsent(b *testing.B) {
	l := latch(b)
	b.ReportAllocs()
	for b.Loop() {
		if s, _ := l.Read(); s.Halted {
			b.Fatal("halted")
		}
	}
}

func TestRewordKeepsTheLatchSetAndSinceWhen(t *testing.T) {
	l, err := New(filepath.Join(t.TempDir(), "HALT"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Reword("x", "y"); err != nil || l.Halted() {
		t.Errorf("a latch that is not set: %v, %t", err, l.Halted())
	}
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := l.Set("ann", "hunter2", when); err != nil {
		t.Fatal(err)
	}
	if err := l.Reword("ann", "[secret redacted]"); err != nil {
		t.Fatal(err)
	}
	if s, err := l.Read(); err != nil || !s.Halted || s.Who != "ann" || s.Why != "[secret redacted]" || !s.When.Equal(when) {
		t.Errorf("%+v, %v", s, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(l.Path()), ".HALT*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
