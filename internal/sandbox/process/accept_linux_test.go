package process

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// accepted is one acceptance criterion of 003 2.1 (CE) or 2.2 (SB): its program,
// and what has to become of it.
type accepted struct {
	code string
	spec sandbox.Spec
	wall posture.Wall // that must stand; where it does not, the run is refused for it
	want func(*posture.Result) bool
}

func printed(text string) func(*posture.Result) bool {
	return func(r *posture.Result) bool {
		return r.State == posture.Completed && r.ExitCode == 0 && string(r.Stdout) == text
	}
}

func raised(text string) func(*posture.Result) bool {
	return func(r *posture.Result) bool {
		return r.State == posture.Completed && r.ExitCode == 1 && strings.Contains(string(r.Stderr), text)
	}
}

func blocked(call string) func(*posture.Result) bool {
	return func(r *posture.Result) bool {
		return r.State == posture.SyscallBlocked && r.ExitCode == 159 && r.Call != nil && r.Call.Name == call && string(r.Stderr) == "Seccomp violation: syscall "+call+" blocked\n"
	}
}

func outOfMemory(r *posture.Result) bool {
	return r.State == posture.OOM && r.ExitCode == 137 && strings.HasSuffix(string(r.Stderr), "OOM: memory limit exceeded\n")
}

const busyFor = "import time\nb=bytearray(64<<20)\nfor i in range(0,len(b),4096): b[i]=1\nwhile time.process_time()<0.5: pass\n"

func criteria() map[string]accepted {
	const ptrace = "import ctypes\nctypes.CDLL(None).ptrace(16,1,0,0)\n"
	half := sandbox.Spec{CPUPeriod: 100 * time.Millisecond, CPUQuota: 50 * time.Millisecond}
	return map[string]accepted{
		"CE-AC1 successful execution": {code: "print('hello')", want: printed("hello\n")},
		"CE-AC2 timeout enforcement": {code: "while True: pass", spec: sandbox.Spec{Timeout: 5 * time.Second}, want: func(r *posture.Result) bool {
			return r.State == posture.Timeout && r.ExitCode == 137 && r.WallTime >= 5*time.Second && r.WallTime < 8*time.Second && string(r.Stderr) == "Timeout: wall-clock limit exceeded\n"
		}},
		"CE-AC3 memory limit": {code: "x=[1]*999999999", spec: sandbox.Spec{MemoryMB: 256}, wall: posture.WallMemory, want: outOfMemory},
		"CE-AC4 network":      {code: "import socket; socket.create_connection(('8.8.8.8', 53))", want: raised("PermissionError")},
		"CE-AC5 filesystem":   {code: "open('/etc/passwd')", want: raised("FileNotFoundError")},
		"CE-AC6 seccomp":      {code: "import os; os.execve('/bin/sh', ['sh'], {})", want: blocked("execve")},
		"CE-AC8 resource stats": {code: busyFor, want: func(r *posture.Result) bool {
			cpu := r.UserTime + r.SystemTime
			return r.ExitCode == 0 && r.MemoryPeak >= 64<<20 && r.MemoryPeak < 160<<20 && cpu > 400*time.Millisecond && cpu < 1200*time.Millisecond
		}},
		"SB-AC1 no process of the host": {code: "import os\nn=0\nfor p in range(1,40000):\n  try: os.getpgid(p); n+=1\n  except OSError: pass\nprint(os.getpid(), n)", want: printed("2 2\n")},
		"SB-AC2 no connection":          {code: "import socket\ns=socket.socket(); s.connect(('127.0.0.1', 22))", want: raised("PermissionError: [Errno 13]")},
		"SB-AC3 read-only root":         {code: "open('/usr/x', 'w')", want: raised("Read-only file system")},
		"SB-AC4 ptrace":                 {code: ptrace, want: blocked("ptrace")},
		"SB-AC5 OOM at the limit":       {code: "l=[]\nwhile True: l.append(bytearray(1<<20))", spec: sandbox.Spec{MemoryMB: 256}, wall: posture.WallMemory, want: outOfMemory},
		"SB-AC6 throttled to its quota": {code: "import time\ne=time.time()+2\nwhile time.time()<e: pass", spec: half, wall: posture.WallCPU, want: func(r *posture.Result) bool {
			return r.ExitCode == 0 && r.UserTime+r.SystemTime < 1400*time.Millisecond
		}},
		"SB-AC7 its scratch": {code: "open('/tmp/test.txt','w').write('kept'); print(open('/tmp/test.txt').read())", want: printed("kept\n")},
	}
}

// TestAcceptance_003_2: the acceptance criteria of 2.1 and 2.2 that a program
// shows by itself, as the document writes them.
func TestAcceptance_003_2(t *testing.T) {
	t.Parallel()
	_, b := prepared(t, "python3")
	for name, c := range criteria() {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			spec := c.spec
			spec.ID, spec.Language, spec.Code, spec.Need = "accept", "python3", []byte(c.code), anyWalls
			if c.wall != "" {
				spec.Need = []posture.Wall{c.wall}
			}
			res, err := b.Run(t.Context(), spec)
			if c.wall != "" && !slices.Contains(b.Posture().Up, c.wall) {
				if holdfast.KindOf(err) != holdfast.KindCgroup || res == nil || res.ExitCode != posture.ExitSpawn {
					t.Errorf("nothing holds it, and it is not refused: %+v, %v", res, err)
				}
				return
			}
			if err != nil || !c.want(res) {
				t.Errorf("%v, %s %d %s %v, %d MB, cpu %v, wall %v\n%q %.400q", err, res.State, res.ExitCode, res.Reason, res.Call, res.MemoryPeak>>20, res.UserTime+res.SystemTime, res.WallTime, res.Stdout, res.Stderr)
			}
		})
	}
}

// TestNoStateLeaks_003_2_1_AC7_2_2_AC8: what one run left in its scratch, no later
// one finds, whatever way it ended.
func TestNoStateLeaks_003_2_1_AC7_2_2_AC8(t *testing.T) {
	t.Parallel()
	_, b := prepared(t, "python3")
	for _, end := range []string{"", "while True: pass", "import os; os.execve('/bin/sh', ['sh'], {})", "import os; os.abort()"} {
		for i, code := range []string{"open('/tmp/file','w').write('x')\n" + end, "import os; print(os.listdir('/tmp'), os.path.exists('/tmp/file'))"} {
			res, err := b.Run(t.Context(), sandbox.Spec{ID: fmt.Sprint("leak-", i), Language: "python3", Code: []byte(code), Timeout: time.Second, Need: anyWalls})
			if err != nil {
				t.Fatal(err)
			}
			if i == 1 && string(res.Stdout) != "[] False\n" {
				t.Errorf("after %q: %q %q", end, res.Stdout, res.Stderr)
			}
		}
	}
}

// TestStates_003_2_ofRealRuns: the way of both machines that a run of each end
// shows, in the order of time.
func TestStates_003_2_ofRealRuns(t *testing.T) {
	_, b := prepared(t, "python3")
	if _, err := b.Run(t.Context(), sandbox.Spec{ID: "first", Language: "python3", Code: []byte("pass"), Need: anyWalls}); err != nil {
		t.Fatal(err) // its root is built once, and takes longer than a halt
	}
	const begin, around = "IDLE RECEIVING REQUEST_PARSED SPAWNING EXECUTING ", "INITIALIZING READY ACTIVE TEARDOWN DESTROYED"
	const well = begin + "COMPLETED COLLECTING_METRICS RETURNING IDLE"
	type ending struct {
		code string
		mb   int64
		halt bool
		want string
	}
	endings := map[string]ending{
		"well":      {code: "print(1)", want: well},
		"its error": {code: "raise SystemExit(3)", want: well},
		"a signal":  {code: "import os; os.abort()", want: well},
		"time":      {code: "while True: pass", want: begin + "TIMEOUT CLEANUP IDLE"},
		"memory":    {code: "x=[1]*999999999", mb: 64, want: begin + "OOM CLEANUP IDLE"},
		"a call":    {code: "import ctypes\nctypes.CDLL(None).ptrace(16,1,0,0)", want: begin + "SYSCALL_BLOCKED CLEANUP IDLE"},
		"halted":    {code: "while True: pass", halt: true, want: well},
	}
	check := func(name string, c ending) {
		if name == "memory" && !slices.Contains(b.Posture().Up, posture.WallMemory) {
			return // MemoryError, or what is looked at in its place: another state
		}
		spec := sandbox.Spec{ID: "states", Language: "python3", Code: []byte(c.code), MemoryMB: c.mb, Timeout: sandbox.MaxTimeout, Need: anyWalls}
		if name == "time" {
			spec.Timeout = time.Second
		}
		ctx, cancel := context.WithCancel(t.Context())
		if c.halt {
			time.AfterFunc(300*time.Millisecond, cancel)
		}
		res, err := b.Run(ctx, spec)
		cancel()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if got := visited(res.States); got != c.want {
			t.Errorf("%s: the executor went %s, want %s", name, got, c.want)
		}
		if got := visited(res.Around); got != around {
			t.Errorf("%s: the boundary went %s, want %s", name, got, around)
		}
		if d := res.Document(); len(d.States) != len(res.States) || len(d.Around) != len(res.Around) {
			t.Errorf("%s: the document has %v, %v", name, d.States, d.Around)
		}
	}
	var together sync.WaitGroup
	for name, c := range endings {
		if !c.halt {
			together.Go(func() { check(name, c) })
		}
	}
	together.Wait()
	check("halted", endings["halted"]) // alone: it runs for less than a second
}

// TestLimits_003_2_1_ofRealRuns: the rows of "Resource Limits" that a program can
// read of itself, with their defaults and maximums; those that it must run into
// are attempts of the suite (family "limit").
func TestLimits_003_2_1_ofRealRuns(t *testing.T) {
	t.Parallel()
	_, b := prepared(t, "python3")
	code := "import resource,os\nprint(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CORE))\n" +
		"try: os.fork()\nexcept OSError as e: print(e.errno)\n" +
		"s=os.statvfs('/tmp'); print(s.f_blocks*s.f_frsize>>20, s.f_files)"
	res, err := b.Run(t.Context(), sandbox.Spec{ID: "limits", Language: "python3", Code: []byte(code), Need: anyWalls})
	if err != nil || string(res.Stdout) != "(256, 256) (0, 0)\n1\n100 16384\n" {
		t.Errorf("%v %q %q", err, res.Stdout, res.Stderr)
	}
	// Disk I/O: the document's optional row.
	if why := res.Posture.Unbound["io"]; why == "" {
		t.Errorf("nothing says whether disk I/O is bounded: %+v", res.Posture)
	}
	for _, up := range []posture.Wall{posture.WallMemory, posture.WallCPU, posture.WallPids} {
		if !slices.Contains(res.Posture.Up, up) && res.Posture.Down[up] == "" {
			t.Errorf("nothing says why %s is not bounded", up)
		}
	}
}
