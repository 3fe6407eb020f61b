package judge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

func script(text string, args ...string) Fact {
	return Fact{Argv: append([]string{"/bin/sh", "-c", text}, args...)}
}

func fileFact(path string) Fact {
	return Fact{File: path, Read: func(path string, most int64) ([]byte, error) {
		b, err := os.ReadFile(path)
		if int64(len(b)) > most {
			return nil, errors.New("too much")
		}
		return b, err
	}}
}

func unasked() ([]byte, error) { return nil, errors.New("nobody may ask for it") }

func (f *Facts) one(t *testing.T) constitution.Fetched {
	t.Helper()
	return f.Fetch(t.Context(), []string{"x"}, unasked)["x"]
}

func put(t *testing.T, path, text string, old time.Duration) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-old)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestFactsThatCannotBeHad(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	half, huge, deep := filepath.Join(dir, "half"), filepath.Join(dir, "huge"), filepath.Join(dir, "deep")
	put(t, half, `{"a": [1, 2`, 0)
	put(t, huge, `"`+strings.Repeat("a", constitution.MaxFact)+`"`, 0)
	put(t, deep, strings.Repeat("[", 40)+strings.Repeat("]", 40), 0)
	brief := func(f Fact) Fact { f.Within = 300 * time.Millisecond; return f }
	misfit := script("echo 3")
	misfit.Conforms = func(context.Context, any) error { return errors.New("no") }
	for name, c := range map[string]struct {
		fact Fact
		want string
	}{
		"nothing declared":  {Fact{}, "there is no program"},
		"missing":           {fileFact(filepath.Join(dir, "nowhere")), "cannot be found"},
		"a directory":       {fileFact(dir), "no regular file"},
		"a pipe":            {fileFact(fifo), "no regular file"},
		"half written":      {fileFact(half), "not JSON"},
		"a huge file":       {fileFact(huge), "more than 65536 bytes"},
		"deep":              {fileFact(deep), "not JSON of at most"},
		"slow":              {brief(script("sleep 5; echo 1")), "longer than 300ms"},
		"hanging":           {brief(script("trap '' TERM INT HUP; while :; do sleep 1; done")), "longer than 300ms"},
		"a huge output":     {script("head -c 70000 /dev/zero | tr '\\0' 1"), "more than 65536 bytes"},
		"endless output":    {script("cat /dev/zero"), "more than 65536 bytes"},
		"not JSON":          {script("echo yes"), "not JSON"},
		"nothing printed":   {script("true"), "not JSON"},
		"two documents":     {script("echo 1 2"), "not JSON"},
		"a name twice":      {script(`echo '{"a":1,"a":2}'`), "not JSON"},
		"a failure":         {script("echo 1; exit 1"), "the program failed"},
		"no such program":   {Fact{Argv: []string{"/nonexistent/program"}}, "cannot be started"},
		"another schema":    {misfit, "does not fit its schema"},
		"a grandchild left": {script("echo 1; sleep 600 &"), "the program failed"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			got := NewFacts(map[string]Fact{"x": c.fact}).one(t)
			if got.Err == nil || got.Value != nil || !strings.Contains(got.Err.Error(), c.want) {
				t.Errorf("%+v, want %q", got, c.want)
			}
			if took := time.Since(start); took > 60*time.Second {
				t.Errorf("it took %s", took) // 600 s is what it would wait
			}
		})
	}
	if got := NewFacts(nil).one(t); got.Err == nil {
		t.Errorf("%+v", got)
	}
}

// TestFactsKillWhatTheyStarted: what hangs is killed with what it started.
func TestFactsKillWhatTheyStarted(t *testing.T) {
	note := filepath.Join(t.TempDir(), "pid")
	c := script(`sleep 600 & echo $! >"$0"; wait`, note)
	c.Within = 300 * time.Millisecond
	if got := NewFacts(map[string]Fact{"x": c}).one(t); got.Err == nil {
		t.Fatalf("%+v", got)
	}
	b, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%d lives", pid)
}

// TestFactsAskOnce: a thousand at once make one fetch, and those within keep after
// it make none; beyond keep, or when a clock went back, it is asked again.
func TestFactsAskOnce(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	c := script(`echo x >>"$0"; sleep 0.5; wc -l <"$0"`, count)
	c.Keep, c.Within = time.Minute, LongestFact
	f := NewFacts(map[string]Fact{"x": c})
	now := time.Now()
	f.sources["x"].now = func() time.Time { return now }
	runs := func() int {
		b, err := os.ReadFile(count)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "\n")
	}
	var wait sync.WaitGroup
	for range 1000 {
		wait.Go(func() {
			if got := f.one(t); got.Err != nil || fmt.Sprint(got.Value) != "1" {
				t.Errorf("%+v", got)
			}
		})
	}
	wait.Wait()
	if n := runs(); n != 1 {
		t.Errorf("a thousand made %d fetches", n)
	}
	for _, c := range []struct {
		by   time.Duration
		want int
	}{{59 * time.Second, 1}, {time.Second, 2}, {-time.Second, 3}, {30 * time.Second, 3}} {
		now = now.Add(c.by).Round(0)
		if got := f.one(t); got.Err != nil || runs() != c.want {
			t.Errorf("%s later: %+v, %d fetches, want %d", c.by, got, runs(), c.want)
		}
	}
}

// TestFactsForgetFailures: a failure is not asked for anew at once, and not kept
// beyond a second; a value that is older than keep never stands in for it.
func TestFactsForgetFailures(t *testing.T) {
	dir := t.TempDir()
	c := script(`echo x >>"$0/count"; cat "$0/value"`, dir)
	c.Keep = time.Minute
	f := NewFacts(map[string]Fact{"x": c})
	now := time.Now().Round(0)
	f.sources["x"].now = func() time.Time { return now }
	put(t, filepath.Join(dir, "value"), "1", 0)
	if got := f.one(t); got.Err != nil {
		t.Fatal(got.Err)
	}
	if err := os.Remove(filepath.Join(dir, "value")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	for range 3 {
		if got := f.one(t); got.Err == nil {
			t.Fatalf("%+v", got)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "count")); strings.Count(string(b), "x") != 2 {
		t.Errorf("%q", b)
	}
	put(t, filepath.Join(dir, "value"), "2", 0)
	now = now.Add(time.Second)
	if got := f.one(t); got.Err != nil || fmt.Sprint(got.Value) != "2" {
		t.Errorf("%+v", got)
	}
}

// TestFactsFollowTheirFile: what changed is read again, though size and time are
// the same where the time is young; an old one is read once; half a file is an
// error and not what stood there before.
func TestFactsFollowTheirFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers.json")
	reads := 0
	c := fileFact(path)
	read := c.Read
	c.Read = func(path string, most int64) ([]byte, error) { reads++; return read(path, most) }
	f := NewFacts(map[string]Fact{"x": c})
	for i, s := range []struct {
		text string
		old  time.Duration
		want string
		runs int
	}{
		{`["a"]`, 0, "[a]", 1},
		{`["b"]`, 0, "[b]", 2},
		{`["c"]`, time.Hour, "[c]", 3},
		{"", 0, "[c]", 3},
		{`["cd"]`, time.Hour, "[cd]", 4},
		{`["c`, time.Hour, "", 5},
		{`["e"]`, 2 * time.Hour, "[e]", 6},
	} {
		if s.text != "" {
			put(t, path, s.text, s.old)
		}
		got := f.one(t)
		if s.want == "" && got.Err == nil || s.want != "" && (got.Err != nil || fmt.Sprint(got.Value) != s.want) || reads != s.runs {
			t.Errorf("%d: %+v after %d reads, want %q after %d", i, got, reads, s.want, s.runs)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := f.one(t); got.Err == nil {
		t.Errorf("removed: %+v", got)
	}
}

// TestFactsPerRequest: the program is given the request and nothing is kept; one
// that is shared is given nothing; only named variables are there.
func TestFactsPerRequest(t *testing.T) {
	t.Setenv("HOLDFAST_TEST_NAMED", `"yes"`)
	own := script("cat")
	own.PerRequest, own.Keep = true, time.Hour
	shared := script("echo [$(wc -c)]")
	named := script(`echo "[$HOLDFAST_TEST_NAMED, \"$HOME\"]"`)
	named.Env = []string{"HOLDFAST_TEST_NAMED"}
	f := NewFacts(map[string]Fact{"own": own, "shared": shared, "named": named})
	for _, of := range []string{`{"n":1}`, `{"n":2}`} {
		asked := 0
		got := f.Fetch(t.Context(), []string{"named", "own", "shared"}, func() ([]byte, error) { asked++; return []byte(of), nil })
		if string(got["own"].Text) != of || !got["own"].PerRequest || asked != 1 || string(got["shared"].Text) != "[0]" || fmt.Sprint(got["named"].Value) != "[yes ]" {
			t.Errorf("%+v, asked %d times", got, asked)
		}
	}
	if got := f.Fetch(t.Context(), []string{"own"}, unasked)["own"]; got.Err == nil || strings.Contains(got.Err.Error(), "nobody") {
		t.Errorf("%+v", got)
	}
}

// TestFactsOfOneWhoGaveUp: who gives up waits no longer, and takes nothing from
// those who wait on; when nobody does, the program is killed and the next fetch is
// a new one.
func TestFactsOfOneWhoGaveUp(t *testing.T) {
	dir := t.TempDir()
	c := script(`echo x >>"$0/count"; while [ ! -e "$0/go" ]; do sleep 0.02; done; echo 1`, dir)
	c.Within, c.Keep = LongestFact, time.Minute
	f := NewFacts(map[string]Fact{"x": c})
	first, cancel := context.WithCancel(t.Context())
	one := make(chan constitution.Fetched)
	go func() { one <- f.Fetch(first, []string{"x"}, unasked)["x"] }()
	for { // it is there before anything stands in it
		if b, err := os.ReadFile(filepath.Join(dir, "count")); err == nil && len(b) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	if got := <-one; got.Err == nil || !strings.Contains(got.Err.Error(), "did not wait") {
		t.Fatalf("%+v", got)
	}
	put(t, filepath.Join(dir, "go"), "", 0)
	if got := f.one(t); got.Err != nil {
		t.Errorf("%+v", got)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "count")); strings.Count(string(b), "x") != 2 {
		t.Errorf("%q", b)
	}
}
