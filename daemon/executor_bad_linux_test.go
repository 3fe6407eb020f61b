package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/executorpb"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
	"github.com/holdfast-dev/holdfast/ledger"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// executorService is a daemon with a code executor that is at rest, and what it holds
// then.
type executorService struct {
	*Daemon
	t    *testing.T
	c    executorpb.CodeExecutorClient
	sock *api.Client
	ctx  context.Context // with ada's token
	dirs []string
	held sandboxtest.Held
	more []*grpc.ClientConn
}

func serviceUp(t *testing.T, config string) *executorService {
	t.Helper()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp) // whose names are counted
	d, sock, down := up(t, config, shareRuntimes)
	t.Cleanup(down)
	d.repeats()
	roots, err := runtimeCopies()
	if err != nil {
		t.Fatal(err)
	}
	s := &executorService{Daemon: d, t: t, sock: sock, c: executorClient(t, d, nil), ctx: d.as(t, "ada"),
		dirs: []string{roots, tmp}}
	for range 3 { // from then on some wait for the next
		s.serves()
	}
	if _, err := d.witness.Checkpoint(t.Context()); err != nil { // which leaves a file there, within a minute
		t.Fatal(err)
	}
	s.rests()
	s.held = sandboxtest.AtRest(t, os.Getpid(), s.dirs...)
	return s
}

// serves wants a plain request to be served.
func (s *executorService) serves() {
	s.t.Helper()
	got, err := s.c.Execute(s.ctx, python("print(6 * 7)"))
	if err != nil || got.Stdout != "42\n" || got.ExitCode != 0 {
		s.t.Fatalf("a plain request: %v, %v", got, err)
	}
}

// rests waits until the sandbox does nothing by itself any more.
func (s *executorService) rests() {
	s.t.Helper()
	tier, err := s.sandboxes.OpenProcess(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	tier.Settle(s.ctx)
}

// goesOn wants nothing to be left of what was, the service to serve, and the
// ledger to have so many of each outcome.
func (s *executorService) goesOn(want map[ledger.Outcome]int) {
	s.t.Helper()
	s.serves()
	for _, c := range s.more {
		c.Close()
	}
	// A zygote whose forks are half spent has the next one beside it. Once nothing
	// is under way any more none comes unasked.
	spent := 0
	for s.rests(); len(s.launchers()) > 2 && spent < 80; s.rests() {
		s.serves()
		spent++
	}
	sandboxtest.NothingLeft(s.t, os.Getpid(), s.held, s.dirs...)
	if n := len(s.Kernel.Flights()); n != 0 {
		s.t.Errorf("%d crossings are under way", n)
	}
	have := map[ledger.Outcome]int{}
	for _, e := range s.entries("exec/") {
		have[e.Outcome]++
	}
	for outcome, n := range want {
		if outcome == ledger.Done {
			n += spent
		}
		if have[outcome] != n {
			s.t.Errorf("the ledger has %v, want %v and %d more that are done", have, want, spent)
		}
	}
}

// entriesOf are the entries of boundaries that begin with prefix, in order.
func (d *Daemon) entriesOf(prefix string) (list []*ledger.Entry, err error) {
	err = d.store.View(context.Background(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		for _, h := range heads {
			err = errors.Join(err, tx.Leaves(h.Tenant, 0, h.Size, func(s ledger.Stored) error {
				if s.Kind != ledger.KindEntry {
					return nil
				}
				e, err := ledger.ParseEntry(s.Record)
				if err == nil && strings.HasPrefix(e.Boundary, prefix) {
					list = append(list, e)
				}
				return err
			}))
		}
		return err
	})
	return list, err
}

func (s *executorService) entries(prefix string) []*ledger.Entry {
	s.t.Helper()
	list, err := s.entriesOf(prefix)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// dialed is another client, by a connection of its own, and what ends it in every way.
func (s *executorService) dialed() (executorpb.CodeExecutorClient, *grpc.ClientConn, func() *net.TCPConn) {
	s.t.Helper()
	var mu sync.Mutex
	var raw *net.TCPConn
	conn, err := grpc.NewClient("passthrough:///"+s.executorAt(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, at string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", at)
			mu.Lock()
			defer mu.Unlock()
			if raw != nil {
				return nil, errors.Join(errors.New("a second connection"), err)
			}
			raw, _ = c.(*net.TCPConn)
			return c, err
		}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.more = append(s.more, conn)
	return executorpb.NewCodeExecutorClient(conn), conn, func() *net.TCPConn { mu.Lock(); defer mu.Unlock(); return raw }
}

// soon waits until what is, a minute at most.
func (s *executorService) soon(what string, is func() bool) {
	s.t.Helper()
	for start := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			s.t.Fatalf("waited too long for %s", what)
		}
	}
}

// begins is code that starts a thread, so that it is known from outside that it runs.
const begins = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"

// begun are the processes below this one that run what begins so.
func begun() (list []int) {
	for _, p := range sandboxtest.Below(os.Getpid()) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
		text := string(b)
		f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if len(f) < 18 || !strings.Contains(text, "(python") {
			continue
		}
		if threads, _ := strconv.Atoi(f[17]); threads > 1 {
			list = append(list, p)
		}
	}
	return list
}

// TestExecutorFlood: of many requests at once as many run and as many wait as there is
// room for; the others are told so at once, each by name and with a hint, whatever door
// they come by, and none of them crosses.
func TestExecutorFlood(t *testing.T) {
	asked, running, waiting := testrepeat.Times(300, 40), testrepeat.Times(10, 2), testrepeat.Times(100, 10)
	const room = "sandbox:\n  executor: {listen: '127.0.0.1:0'}\n  running: %d\n  waiting: %d\n  wait: 10m\n"
	s := serviceUp(t, withCode+fmt.Sprintf(room, running, waiting))
	before := len(s.entries("exec/"))
	at, _ := s.pagesAt()
	model := reachMCP(t, at+"/mcp/code", "2025-11-25", &asking{giveToken(t, s.sock, "nightly").Token})
	type told struct {
		code      codes.Code
		kind, why string
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	var mu sync.Mutex
	seen, hints := map[told]int{}, map[string]bool{}
	var wg sync.WaitGroup
	for range 4 { // of one connection 128 are taken at once
		c, _, _ := s.dialed()
		for range asked / 4 {
			wg.Go(func() {
				_, err := c.Execute(ctx, python(begins))
				info := infoOf(err)
				mu.Lock()
				defer mu.Unlock()
				seen[told{status.Code(err), info.GetReason(), status.Convert(err).Message()}]++
				if status.Code(err) == codes.ResourceExhausted {
					hints[info.GetMetadata()["hint"]] = true
				}
			})
		}
	}
	full := told{codes.ResourceExhausted, "TimeoutError", fmt.Sprint(waiting, " requests to run code wait already")}
	s.soon("a full house", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return seen[full] == asked-running-waiting && len(begun()) == running
	})
	if len(seen) != 1 || hints[""] || len(hints) == 0 {
		t.Errorf("%v with hints %v", seen, hints)
	}
	_, err := s.sock.Exec(t.Context(), api.Execution{Agent: "ann", RequestID: "x", Language: "python3", Code: []byte("print(1)")})
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Kind != holdfast.KindTimeout || !strings.Contains(e.Why, "wait already") || e.Hint == "" {
		t.Errorf("holdfast exec is told: %v", err)
	}
	r, text := callCode(t, model, map[string]any{"language": "python3", "code": "print(1)"})
	if !r.IsError || !strings.Contains(text, "nothing was run: "+full.why) || !strings.Contains(text, "hint: try again") {
		t.Errorf("a model is told: %v %q", r.IsError, text)
	}
	if n := len(s.Kernel.Flights()); n != running {
		t.Errorf("%d crossings are under way", n)
	}
	cancel()
	wg.Wait()
	model.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	s.soon("the end of all that ran", func() bool { return len(s.Kernel.Flights()) == 0 })
	// Who waits and who runs is taken back at once: one who waited may have begun.
	if n := len(s.entries("exec/")) - before; n < running || n > running+waiting {
		t.Errorf("%d crossings", n)
	}
	s.goesOn(nil)
}

// TestExecutorWaitEnds: a request that waits for room is told when its wait is over, by
// name and with a hint, and does not cross.
func TestExecutorWaitEnds(t *testing.T) {
	d, c := executorUp(t, "}\n  running: 1\n  waiting: 1\n  wait: 100ms\n", nil)
	running, cancel := context.WithCancel(d.as(t, "ada"))
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Execute(running, python("import time\ntime.sleep(600)"))
		ended <- err
	}()
	for len(d.Kernel.Flights()) == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	_, err := c.Execute(d.as(t, "bob"), python("print(1)"))
	info := infoOf(err)
	if status.Code(err) != codes.ResourceExhausted || info.GetReason() != string(holdfast.KindTimeout) ||
		info.GetMetadata()["hint"] == "" ||
		status.Convert(err).Message() != "1 programs run already, and none ended in time" {
		t.Errorf("%v", err)
	}
	cancel()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Errorf("%v", err)
	}
	if n := d.boundaryEntries(t, "exec/"); n > 1 {
		t.Errorf("%d crossings", n)
	}
}

// TestExecutorClientsVanish: however a client goes in the middle of its run, the
// run ends, stands in the ledger as given up, and its room is free for the next.
func TestExecutorClientsVanish(t *testing.T) {
	s := serviceUp(t, quiet+walls+"sandbox:\n  executor: {listen: '127.0.0.1:0'}\n  running: 1\n  waiting: 1\n  wait: 10m\n")
	ways := []string{"takes it back", "closes", "resets", "waits and closes"}
	s.serves()
	for _, way := range ways {
		c, conn, raw := s.dialed()
		ctx, cancel := context.WithCancel(s.ctx)
		ended := make(chan error, 2)
		run := func() {
			_, err := c.Execute(ctx, python(begins))
			ended <- err
		}
		go run()
		var pids []int
		s.soon("its run", func() bool { pids = begun(); return len(s.Kernel.Flights()) == 1 && len(pids) == 1 })
		if way == "waits and closes" { // one of its requests runs, one waits
			go run()
			time.Sleep(50 * time.Millisecond)
		}
		switch way {
		case "takes it back":
			cancel()
		case "closes", "waits and closes":
			conn.Close()
		case "resets":
			raw().SetLinger(0)
			raw().Close()
		}
		s.soon("its end", func() bool { return !lives(pids[0]) && len(s.Kernel.Flights()) == 0 })
		if err := <-ended; err == nil {
			t.Errorf("who %s was answered", way)
		}
		cancel()
		s.serves()
	}
	list := s.entries("exec/")
	for i := range list {
		if i < 4 { // those that came first
			continue
		}
		want, kind := ledger.Canceled, holdfast.KindCanceled
		if i%2 == 1 {
			want, kind = ledger.Done, ""
		}
		if e := list[i]; e.Outcome != want || e.ErrorKind != kind {
			t.Errorf("entry %d is %s %s, want %s %s", i, e.Outcome, e.ErrorKind, want, kind)
		}
	}
	s.goesOn(map[ledger.Outcome]int{ledger.Canceled: len(ways)})
}

// launchers are the processes that start what runs: this process's own children
// that are its launcher, and the interpreters of which others are forks.
func (s *executorService) launchers() (list []int) {
	for _, p := range sandboxtest.Below(os.Getpid()) {
		if s.ours(p) && parentOf(p) == os.Getpid() {
			list = append(list, p)
		}
	}
	return list
}

// interpreters are those that wait and those that run code, each with its first
// process where that is a fork too.
func (s *executorService) interpreters() (list []int) {
	for _, p := range sandboxtest.Below(os.Getpid()) {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p)); strings.HasPrefix(string(b), "python") && parentOf(p) != os.Getpid() {
			list = append(list, p)
		}
	}
	return list
}

// ours says that a process is one of the sandbox's.
func (s *executorService) ours(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	name, rest, _ := strings.Cut(string(b), "\x00")
	return name == "holdfast-launcher" && strings.HasPrefix(rest, s.Paths.Dir) || strings.HasPrefix(filepath.Base(name), "python") && strings.HasSuffix(rest, "/code/main.py\x00")
}

func parentOf(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	text := string(b)
	f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}

// lives says that a process is there and not dead; it may be dead and not reaped.
func lives(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	text := string(b)
	return err == nil && !strings.HasPrefix(text[strings.LastIndexByte(text, ')')+1:], " Z")
}

func killAll(pids []int) {
	for _, p := range pids {
		_ = unix.Kill(p, unix.SIGKILL)
	}
}

// launcherIsKilled: with the launcher of a language goes what runs
// behind it, and each caller is told; none of it is run a second time, and the
// next request finds a launcher.
func (s *executorService) launcherIsKilled(t *testing.T) {
	runs, times := testrepeat.Times(10, 3), testrepeat.Times(5, 1)
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			r := python("print('began', flush=True)\n" + begins)
			r.RequestId = fmt.Sprint("k-", i)
			got, err := s.c.Execute(s.ctx, r)
			if err != nil || got.Stdout != "began\n" || got.ExitCode != 137 || got.Reason != "signal" || got.Stderr != "Killed: the host ended the run\n" || got.ErrorMessage == "" {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	s.soon("all runs", func() bool { return len(s.Kernel.Flights()) == runs && len(begun()) == runs })
	killAll(s.launchers())
	wg.Wait()
	for range times { // and where nothing runs
		s.serves()
		old := s.launchers()
		killAll(old)
		// A run may begin between a signal and a death.
		s.soon("their death", func() bool { return !slices.ContainsFunc(old, lives) })
	}
	s.goesOn(map[ledger.Outcome]int{ledger.Done: 3 + runs + times + 1})
}

// TestExecutorProcessesDie: whatever of what the service consists of is killed,
// it serves on, and is afterwards what it was.
func TestExecutorProcessesDie(t *testing.T) {
	s := serviceUp(t, quiet+walls+"sandbox:\n  executor: {listen: '127.0.0.1:0'}\n")
	for _, c := range []struct {
		name string
		test func(*testing.T)
	}{{"the launcher", s.launcherIsKilled}, {"any under load", s.processesAreKilled}, {"all who wait", s.allWhoWaitDie}} {
		t.Run(c.name, func(t *testing.T) {
			defer func() { s.t = t }()
			s.t, t = t, s.t
			c.test(s.t)
		})
	}
}

// processesAreKilled: whichever of the processes that wait, run code or start
// others are killed, again and again and under load, each request has its own
// answer or is told what happened to it.
func (s *executorService) processesAreKilled(t *testing.T) {
	for name, whom := range map[string]func() []int{
		"interpreters": s.interpreters,
		"everybody": func() []int {
			var list []int
			for _, l := range s.launchers() {
				list = append(append(list, sandboxtest.Below(l)...), l)
			}
			return list
		},
	} {
		if name == "interpreters" && !testrepeat.Enduring {
			continue // allWhoWaitDie kills them
		}
		served, ended, failed := s.underFire(name, whom)
		if t.Logf("%s: %d served, %d ended, %d not begun", name, served, ended, failed); served == 0 || ended+failed == 0 {
			t.Errorf("%s: %d served, %d ended, %d not begun", name, served, ended, failed)
		}
		s.serves()
	}
	s.goesOn(nil)
}

// underFire has six clients ask while whom is killed, again after each time that a
// request was served.
func (s *executorService) underFire(name string, whom func() []int) (served, ended, failed int) {
	s.t.Helper()
	stop := make(chan struct{})
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				r := python(fmt.Sprintf("print('%s-%d-%d')", name, w, i))
				got, err := s.c.Execute(s.ctx, r)
				mu.Lock()
				switch own := fmt.Sprintf("%s-%d-%d\n", name, w, i); {
				case err != nil:
					s.t.Errorf("%s: %v", name, err)
				case got.ExitCode == 0 && got.Stdout == own && got.State == "COMPLETED":
					served++
				case got.ExitCode == 137 && (got.Stdout == "" || got.Stdout == own) && got.Reason == "signal" && got.ErrorMessage != "":
					ended++
				case got.ExitCode == 1 && got.State == "SPAWN_ERROR" && got.Stdout == "" && strings.HasPrefix(got.Stderr, "Spawn failed: the sandbox could not ") && got.ErrorMessage != "":
					failed++
				default:
					s.t.Errorf("%s: %v", name, got)
				}
				mu.Unlock()
			}
		})
	}
	least := testrepeat.Times(20, 2)
	count := func() (int, int) { mu.Lock(); defer mu.Unlock(); return served, ended + failed }
	for good, bad := 0, 0; good < least || bad < least; good, bad = count() {
		before, _ := count()
		killAll(whom())
		s.soon("a request that is served after a death", func() bool { good, _ := count(); return good > before })
	}
	close(stop)
	wg.Wait()
	return served, ended, failed
}

// allWhoWaitDie: when all that wait are dead the next requests are
// served all the same, and others come to wait.
func (s *executorService) allWhoWaitDie(t *testing.T) {
	path := func() string {
		t.Helper()
		got, err := s.c.Execute(s.ctx, python("print(6 * 7)"))
		if err != nil || got.Stdout != "42\n" || got.ExitCode != 0 {
			t.Fatalf("%v %v", got, err)
		}
		return got.Path
	}
	s.soon("those who wait", func() bool { return path() == "parked" })
	for range testrepeat.Times(3, 1) {
		old := s.interpreters()
		if len(old) == 0 {
			t.Fatal("nobody waits")
		}
		killAll(old)
		s.soon("their death", func() bool { return !slices.ContainsFunc(old, lives) })
		for range 3 {
			s.serves()
		}
		s.soon("others who wait", func() bool { return len(s.interpreters()) > 0 && path() == "parked" })
	}
	s.goesOn(nil)
}
