package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
	"github.com/holdfast-dev/holdfast/ledger"
	"golang.org/x/sys/unix"
)

// row is one of the tables "Error Behavior" of 003 2.1 and 2.2, as it must come
// out of the door, of the log and of the ledger.
type row struct {
	agent  string
	change func(*api.Execution)
	fault  *sandboxtest.Fault
	state  posture.State
	exit   int
	stderr string
	kind   holdfast.Kind // of the failure beside the result, or ""
	level  string
	trace  string
	event  string // of the ledger, or ""
}

func fault(nr, arg int, value uint32, errno syscall.Errno) *sandboxtest.Fault {
	return &sandboxtest.Fault{Nr: nr, Arg: arg, Value: value, Errno: errno}
}

func program(text string) func(*api.Execution) {
	return func(e *api.Execution) { e.Code = []byte(text) }
}

func call(nr int, args string) func(*api.Execution) {
	return program(fmt.Sprintf("import ctypes\nctypes.CDLL(None).syscall(%d, %s)\nprint('after')\n", nr, args))
}

// rows but those that need a control group.
func rows() map[string]row {
	const scratch = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	spawn := func(f *sandboxtest.Fault, kind holdfast.Kind, why, trace string) row {
		return row{fault: f, state: posture.SpawnError, exit: 1, stderr: "Spawn failed: the sandbox could not " + why, kind: kind, level: "ERROR", trace: trace, event: "sandbox_ended"}
	}
	list := map[string]row{
		"Wall-clock timeout": {change: func(e *api.Execution) { e.Code, e.Timeout = []byte("while True: pass"), 300*time.Millisecond },
			state: posture.Timeout, exit: 137, stderr: "Timeout: wall-clock limit exceeded\n", level: "WARN", trace: "trace.sandbox_timeout", event: "sandbox_ended"},
		"Disallowed syscall": {change: call(unix.SYS_NAME_TO_HANDLE_AT, "-100, b'/usr', None, None, 0"),
			state: posture.SyscallBlocked, exit: 159, stderr: "Seccomp violation: syscall name_to_handle_at blocked\n", level: "WARN", trace: "trace.sandbox_seccomp", event: "sandbox_violation"},
		"Code exits with error": {change: program("import sys\nsys.stderr.write('sorry')\nsys.exit(3)\n"),
			state: posture.Completed, exit: 3, stderr: "sorry", level: "INFO", trace: "trace.sandbox_code_error"},
		"Container creation failed": spawn(fault(unix.SYS_PRLIMIT64, -1, 0, unix.EPERM), holdfast.KindSpawn, "take its rights away", "trace.sandbox_spawn_error"),
		"Namespace escape detected": {agent: "mallory", change: call(unix.SYS_SETNS, "0, 0"), kind: holdfast.KindEscape,
			state: posture.SyscallBlocked, exit: 159, stderr: "Seccomp violation: syscall setns blocked\n", level: "ERROR+4", trace: "trace.sandbox_escape_attempt", event: "sandbox_escape_attempted"},
	}
	if !testrepeat.Enduring { // the others are those of internal/sandbox/process, and its words for them of internal/sandbox
		return list
	}
	list["Namespace creation failure"] = spawn(fault(unix.SYS_CLONE3, -1, 0, unix.ENOSYS), holdfast.KindNamespace, "make its namespaces", "trace.sandbox_ns_error")
	list["Seccomp profile load failure"] = spawn(fault(unix.SYS_SECCOMP, -1, 0, unix.EPERM), holdfast.KindSeccomp, "load its filter", "trace.sandbox_seccomp_error")
	list["Rootfs mount failure"] = spawn(fault(unix.SYS_MOUNT, 3, unix.MS_BIND, unix.EPERM), holdfast.KindMount, "mount its root", "trace.sandbox_mount_error")
	list["Tmpfs mount failure"] = spawn(fault(unix.SYS_MOUNT, 3, scratch, unix.ENOMEM), holdfast.KindMount, "mount its scratch", "trace.sandbox_tmpfs_error")
	return list
}

// TestErrorRows_003_2_throughTheDoor: each row of 2.1 and 2.2 comes back with its
// exit code, its words and its state, is told in the log by its trace event at its
// level, and stands in the ledger with it.
func TestErrorRows_003_2_throughTheDoor(t *testing.T) {
	w := executing(t, "walls: [pid, net, mount, uts, ipc, user, seccomp, rights, scratch]")
	first := w.exec(api.Execution{Code: []byte("print('hello')")})
	if first.Result == nil || first.Result.Stdout != "hello\n" || first.Failure != nil {
		t.Fatalf("nothing runs here: %+v %+v", first.Result, first.Failure)
	}
	list := rows()
	if slices.Contains(first.Result.Posture.Up, posture.WallMemory) {
		list["Memory limit exceeded"] = row{change: func(e *api.Execution) { e.Code, e.MemoryMB = []byte("x=[1]*99999999"), 64 },
			state: posture.OOM, exit: 137, stderr: "OOM: memory limit exceeded\n", level: "WARN", trace: "trace.sandbox_oom", event: "sandbox_ended"}
	}
	if first.Result.Posture.Groups == "v1" && testrepeat.Enduring {
		// The one byte by which the first process enters its group.
		list["Cgroup limit setup failure"] = row{fault: fault(unix.SYS_WRITE, 2, 1, unix.EINVAL), state: posture.SpawnError, exit: 1, kind: holdfast.KindCgroup,
			stderr: "Spawn failed: the sandbox could not hold it to its share", level: "ERROR", trace: "trace.sandbox_cgroup_error", event: "sandbox_ended"}
	}
	for name, r := range list {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { w.row(t, r) })
	}
}

// TestCgroupRow_003_2_withoutGroups: a contract that takes nothing less asks for
// control groups, and there are none.
func TestCgroupRow_003_2_withoutGroups(t *testing.T) {
	w := executing(t, "walls: [pid, net, mount, seccomp, memory]")
	got := w.exec(api.Execution{Code: []byte("print('ran')")})
	if got.Result != nil && slices.Contains(got.Result.Posture.Up, posture.WallMemory) {
		t.Log("there are control groups here: the row is that of TestErrorRows_003_2_throughTheDoor")
		return
	}
	w.judge(t, row{state: posture.SpawnError, exit: 1, kind: holdfast.KindCgroup, stderr: "Spawn failed: the sandbox is missing a wall here: memory",
		level: "ERROR", trace: "trace.sandbox_cgroup_error", event: "sandbox_ended"}, got)
}

// row makes the row come about, and a good run after it.
func (w *execWorld) row(t *testing.T, r row) {
	e := api.Execution{Agent: r.agent, Code: []byte("print('ran')")}
	if r.change != nil {
		r.change(&e)
	}
	if r.fault != nil {
		r.fault.Set(t, w.dir) // first: one that starts in between has it too
		w.endLaunchers(t)
		defer func() {
			if r := w.exec(api.Execution{Code: []byte("print('again')")}); r.Result == nil || r.Result.Stdout != "again\n" {
				t.Errorf("the next run: %+v %+v", r.Result, r.Failure)
			}
		}()
		defer w.endLaunchers(t)
		defer sandboxtest.Mend(t, w.dir)
	}
	w.judge(t, r, w.exec(e))
}

func (w *execWorld) judge(t *testing.T, r row, got *api.Executed) {
	t.Helper()
	d := got.Result
	if d == nil {
		t.Fatalf("no result: %+v", got.Failure)
	}
	if d.State != r.state || d.ExitCode != r.exit || !strings.HasPrefix(d.Stderr, r.stderr) || strings.Contains(d.Stdout, "ran") || strings.Contains(d.Stdout, "after") {
		t.Errorf("%s %d %q %q, want %s %d %q", d.State, d.ExitCode, d.Stderr, d.Stdout, r.state, r.exit, r.stderr)
	}
	if r.state == posture.SpawnError && d.ErrorMessage+"\n" != d.Stderr {
		t.Errorf("the error message is %q, standard error %q", d.ErrorMessage, d.Stderr)
	}
	if f := got.Failure; r.kind == "" && f != nil || r.kind != "" && (f == nil || f.Kind != r.kind) {
		t.Errorf("it failed with %+v, want kind %q", f, r.kind)
	}
	found := 0
	for _, l := range w.lines(t) {
		if l.Trace == r.trace && l.Crossing == got.Outcome.Crossing {
			if found++; l.Level != r.level || l.Run != d.RequestID || l.State != "" && l.State != string(r.state) {
				t.Errorf("the log has %+v, want level %s", l, r.level)
			}
		}
	}
	if found != 1 {
		t.Errorf("the log has %s %d times", r.trace, found)
	}
	w.recorded(t, r, got)
}

// recorded: the ledger holds the row.
func (w *execWorld) recorded(t *testing.T, r row, got *api.Executed) {
	t.Helper()
	var events []ledger.Stored
	err := w.d.store.View(t.Context(), func(tx kernel.Tx) (err error) {
		events, err = tx.Events(holdfast.Local, got.Outcome.Crossing, 20)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range events {
		e, err := ledger.ParseEvent(s.Record)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name)
		if e.Name != r.event {
			continue
		}
		var data struct {
			Level, Trace, State string
			Run                 string `json:"request_id"`
			Exit                int    `json:"exit_code"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil || data.Trace != r.trace || data.Run != got.Result.RequestID {
			t.Errorf("the ledger has %s, %v", e.Data, err)
		}
		if want := map[string]string{"WARN": "WARNING", "ERROR": "ERROR", "ERROR+4": "CRITICAL"}[r.level]; data.Level != want {
			t.Errorf("the ledger has it at level %s, want %s", data.Level, want)
		}
		if r.event == "sandbox_ended" && (data.State != string(r.state) || data.Exit != r.exit) {
			t.Errorf("the ledger has %s", e.Data)
		}
	}
	if r.event != "" && !slices.Contains(names, r.event) || r.event == "" && slices.Contains(names, "sandbox_ended") {
		t.Errorf("the ledger has %v, want %q", names, r.event)
	}
}

// TestProtocolError_003_2_1_FP1_to_FP4: what cannot be asked for is refused by its
// kind before anything crosses, in the state PROTOCOL_ERROR, and told once.
func TestProtocolError_003_2_1_FP1_to_FP4(t *testing.T) {
	w := executing(t, "walls: [pid, net, mount, seccomp]")
	const good = `"language":"python3","code":"cHJpbnQoMSk="`
	for name, c := range map[string]struct {
		body string
		kind holdfast.Kind
	}{
		"FP1 no JSON":         {`{`, holdfast.KindProtocol},
		"FP1 no such field":   {`{"request_id":"r",` + good + `,"image":"alpine"}`, holdfast.KindProtocol},
		"FP1 two messages":    {`{"request_id":"r",` + good + `}{}`, holdfast.KindProtocol},
		"FP1 no id":           {`{` + good + `}`, holdfast.KindProtocol},
		"FP1 no code":         {`{"request_id":"r","language":"python3"}`, holdfast.KindProtocol},
		"FP1 no language":     {`{"request_id":"r","code":"cHJpbnQoMSk="}`, holdfast.KindProtocol},
		"FP2 cobol":           {`{"request_id":"r","language":"cobol","code":"cHJpbnQoMSk="}`, holdfast.KindLanguage},
		"FP2 another version": {`{"request_id":"r","language":"python2.7","code":"cHJpbnQoMSk="}`, holdfast.KindLanguage},
		"FP3 10 MB and one":   {`{"request_id":"r","language":"python3","code":"` + strings.Repeat("ICAg", (10<<20)/3+1) + `"}`, holdfast.KindCodeSize},
		"FP4 31 seconds":      {`{"request_id":"r",` + good + `,"timeout":31000000000}`, holdfast.KindLimit},
		"FP4 513 MB":          {`{"request_id":"r",` + good + `,"memory_limit_mb":513}`, holdfast.KindLimit},
		"FP4 three cores":     {`{"request_id":"r",` + good + `,"cpu_period":100000000,"cpu_quota":300000000}`, holdfast.KindLimit},
	} {
		before := len(w.lines(t))
		rec := httptest.NewRecorder()
		w.d.api(api.DefaultRoom()).Handler().ServeHTTP(rec, httptest.NewRequest("POST", "/v1/exec", strings.NewReader(c.body)))
		var got struct {
			Outcome *holdfast.Outcome
			Error   *api.Failure
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != http.StatusBadRequest || got.Outcome != nil || got.Error == nil || got.Error.Kind != c.kind || got.Error.State != posture.ProtocolError || got.Error.Hint == "" {
			t.Errorf("%s: %d %.300s, %v", name, rec.Code, rec.Body, err)
		}
		found := 0
		for _, l := range w.lines(t)[before:] {
			if l.Trace == "trace.sandbox_protocol_error" && l.Level == "WARN" && l.State == "PROTOCOL_ERROR" && l.Kind == string(c.kind) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s: the log has it %d times", name, found)
		}
	}
	if r := w.exec(api.Execution{Code: []byte("print('good')")}); r.Result == nil || r.Result.Stdout != "good\n" {
		t.Errorf("the next run: %+v %+v", r.Result, r.Failure)
	}
}

// execWorld is a daemon that runs code, and its log.
type execWorld struct {
	t   *testing.T
	d   *Daemon
	c   *api.Client
	dir string // of the sandbox
	seq int

	mu  sync.Mutex
	log bytes.Buffer // guarded by mu
}

func (w *execWorld) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func executing(t *testing.T, walls string) *execWorld {
	t.Helper()
	w := &execWorld{t: t}
	d, c, down := up(t, "version: 1\nlisten: {pages: none}\nboundaries:\n  - {boundary: exec/*, risk: LOW, "+walls+"}\n", func(o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(w, nil))
	}, shareRuntimes)
	t.Cleanup(down)
	d.repeats()
	w.d, w.c, w.dir = d, c, filepath.Join(d.Paths.Dir, "sandbox")
	return w
}

func (w *execWorld) exec(e api.Execution) *api.Executed {
	w.t.Helper()
	w.seq++
	e.RequestID, e.Language = fmt.Sprint("run-", w.seq), "python3"
	if e.Agent == "" {
		e.Agent = "ada"
	}
	got, err := w.c.Exec(w.t.Context(), e)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

type execLine struct {
	Level, Trace, State, Crossing, Kind string
	Run                                 string `json:"request_id"`
}

func (w *execWorld) lines(t *testing.T) (out []execLine) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range bytes.Lines(w.log.Bytes()) {
		var l execLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

// endLaunchers ends this process's launchers: they keep the fault that they
// started behind.
func (w *execWorld) endLaunchers(t *testing.T) {
	t.Helper()
	for range 500 {
		n := 0
		stats, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, s := range stats {
			b, _ := os.ReadFile(s)
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(s)))
			if name, dir, ok := strings.Cut(string(b), "\x00"); ok && name == "holdfast-launcher" && strings.HasPrefix(dir, w.dir) {
				n++
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		if n == 0 {
			time.Sleep(50 * time.Millisecond) // until its end is heard of
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("a launcher that was killed lives")
}
