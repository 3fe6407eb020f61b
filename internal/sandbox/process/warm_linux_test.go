//go:build linux

package process

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/seccomp"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// warmed is a tier in which n workloads of a language wait.
func warmed(t testing.TB, name string, n int) *Tier {
	t.Helper()
	b := tierOf(t, name, n)
	for range 2 { // the first of a language parks nothing
		if _, err := b.Run(t.Context(), sandbox.Spec{ID: "first", Language: name, Code: []byte("1"), Need: anyWalls}); err != nil {
			t.Fatal(err)
		}
	}
	b.Settle(t.Context())
	return b
}

// tierOf is a tier in which n workloads of a language come to wait.
func tierOf(t testing.TB, name string, n int) *Tier {
	t.Helper()
	installed(t, name)
	b, err := Open(context.Background(), Config{Dir: rootsFor(t), Secret: func(string) bool { return false }, Note: func(s string) { t.Log(s) }, Warn: func(s string) { t.Log("warning:", s) }, Parked: n})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// parkedRun runs spec once some wait, and demands that one of them served it; or
// a fork made for it, where those who wait cannot take its environment.
func parkedRun(t testing.TB, b *Tier, spec sandbox.Spec) *posture.Result {
	t.Helper()
	b.Settle(t.Context())
	if spec.ID == "" {
		spec.ID = "warm"
	}
	spec.Need = anyWalls
	res, err := b.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	want := posture.PathParked
	if strings.HasPrefix(spec.Language, "python") && len(spec.Environment) > 0 && playerCode() != nil {
		want = posture.PathForked
	}
	if res.Path != want {
		t.Fatalf("it came by %q, not %q: %+v", res.Path, want, res)
	}
	return res
}

// runBy runs spec in one that waits, or where none does. On a machine that has much
// else to do one may come to wait before the run looks for it: then another is tried.
func runBy(t testing.TB, b *Tier, path posture.Path, spec sandbox.Spec) (res *posture.Result, err error) {
	t.Helper()
	for range 3 {
		b.Settle(t.Context())
		if path == posture.PathForked {
			b.only(t).pool.empty()
		}
		if res, err = b.Run(t.Context(), spec); err != nil || path != posture.PathForked || res.Path != posture.PathParked {
			break
		}
	}
	return res, err
}

// zygotes are the processes that workloads of z are started from.
func (z *launcherConn) zygotes() []int {
	list := []int{z.cmd.Process.Pid}
	n := z.pool.nursery
	if n == nil {
		return list
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, b := range []*brood{n.now, n.next} {
		if b != nil {
			list = append(list, b.cmd.Process.Pid)
		}
	}
	for b := range n.old {
		list = append(list, b.cmd.Process.Pid)
	}
	return list
}

// TestWarm_sameAsCold: what a program finds, says and leaves does not tell
// whether its interpreter was started for it or waited.
func TestWarm_sameAsCold(t *testing.T) {
	t.Parallel()
	b := warmed(t, "python3", 4)
	cold := tier(t)
	env := map[string]string{"A": "1", "PATH": "/x", "empty": "", "b": "ö=ä"}
	files := map[string][]byte{"m.py": []byte("print('m', __name__, __file__)\ndef f(): 1/0\nclass D:\n def __del__(s): print('m.D gone')\nx = D()\n"), "in/data": []byte("given")}
	specs := map[string]sandbox.Spec{
		"hello":        {Code: []byte("print('hello')")},
		"empty":        {Code: []byte("\n")},
		"no newline":   {Code: []byte("print(1)\nprint(2)")},
		"names":        {Code: []byte("import sys, os\nprint(__name__, __file__, __doc__, __package__, __spec__, type(__loader__), __annotations__, __builtins__, sorted(globals()))\nprint(sys.argv, sys.orig_argv, sys.path, sys.flags, sys.executable, os.getcwd(), sys.warnoptions, sys._xoptions)")},
		"modules":      {Code: []byte("import sys; print(sorted(sys.modules), sorted(sys.path_importer_cache), sys.meta_path, sys.path_hooks)")},
		"frames":       {Code: []byte("import sys\nprint(sys._getframe().f_back, sys._getframe().f_code.co_filename, sys.getrecursionlimit())\nimport traceback; traceback.print_stack(); print(len(traceback.extract_stack()))\ndef f(n): return f(n+1)\ntry: f(0)\nexcept RecursionError as e: print(e)\nd=0\ndef g():\n global d; d+=1; g()\ntry: g()\nexcept RecursionError: print(d)")},
		"environment":  {Code: []byte("import os\nprint(list(os.environ.items()), list(os.environb.items()), os.getenv('A'))\nimport posix; print(list(posix.environ.items()))\nimport ctypes\ng=ctypes.CDLL(None).getenv; g.restype=ctypes.c_char_p; print(g(b'A'), g(b'HOME'), g(b'NO'))"), Environment: env},
		"environment0": {Code: []byte("import os; print(list(os.environ.items()))")},
		"hash seed":    {Code: []byte("print(hash('x'))"), Environment: map[string]string{"PYTHONHASHSEED": "7"}},
		"zone":         {Code: []byte("import time; print(time.tzname, time.localtime(0).tm_hour)"), Environment: map[string]string{"TZ": "Asia/Tokyo"}},
		"locale":       {Code: []byte("import locale, sys\nprint(locale.setlocale(locale.LC_ALL), locale.getpreferredencoding(), sys.stdout.encoding, sys.stdout.errors, sys.stderr.errors, sys.getfilesystemencoding(), 'ü')")},
		"files":        {Code: []byte("import os, m\nprint(sorted(os.listdir()), open('in/data').read())\nopen('out','w').write('x')\nprint(sorted(os.listdir('/code')), open('/code/main.py').read()[:9])"), Files: files},
		"shadow":       {Code: []byte("print(2)"), Files: map[string][]byte{"sitecustomize.py": []byte("print('mine')")}},
		"shadow2":      {Code: []byte("import random; print(random.x)"), Files: map[string][]byte{"random.py": []byte("x = 4")}},
		"exit 3":       {Code: []byte("import sys; print('a'); sys.exit(3)")},
		"exit words":   {Code: []byte("import sys; sys.exit('words')")},
		"exit none":    {Code: []byte("raise SystemExit")},
		"exit hard":    {Code: []byte("import os; print('lost'); os._exit(4)")},
		"exit 300":     {Code: []byte("import sys; sys.exit(300)")},
		"error":        {Code: []byte("import m\ndef f():\n  try: m.f()\n  except ZeroDivisionError: raise ValueError('x')\nf()"), Files: files},
		"syntax":       {Code: []byte("x = 1\nif x\n  pass")},
		"indent":       {Code: []byte("if 1:\npass")},
		"warning":      {Code: []byte("1 is 1\nimport warnings; warnings.warn('w'); warnings.warn('v', stacklevel=2)")},
		"latin-1":      {Code: []byte("# -*- coding: latin-1 -*-\nprint('ä')")},
		"group":        {Code: []byte("raise ExceptionGroup('g', [ValueError(1), KeyError(2)])")},
		"hook":         {Code: []byte("import sys\nsys.excepthook = lambda *a: print('hook', a[0])\n1/0")},
		"bad hook":     {Code: []byte("import sys\ndef h(*a): 1/0\nsys.excepthook = h\nx")},
		"stdin":        {Code: []byte("import sys\nprint(repr(sys.stdin.read()), sys.stdin.fileno(), sys.stdin.isatty())\ninput()")},
		"atexit":       {Code: []byte("import atexit\natexit.register(print, 'first'); atexit.register(print, 'second'); print('main')\natexit.register(lambda: 1/0)")},
		"del":          {Code: []byte("class D:\n def __init__(s, n): s.n = n\n def __del__(s): print('gone', s.n, D is None, __name__)\na = D('a'); _b = D('b'); c = [D('c')]; c.append(c)")},
		"unflushed":    {Code: []byte("f = open('kept', 'w'); f.write('text'); print('no newline', end='')")},
		"in a module":  {Code: []byte("import m; m.f = open('kept', 'w'); m.f.write('text')"), Files: files},
		"generator":    {Code: []byte("def g():\n try: yield 1\n finally: print('closed')\nx = g(); next(x)")},
		"closed out":   {Code: []byte("import sys; sys.stdout.close()")},
		"bad out":      {Code: []byte("import os; print('x'); os.close(1)")},
		"other out":    {Code: []byte("import sys, io\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-16')\nprint('wide')")},
		"threads":      {Code: []byte("import threading, time\ndef f(): time.sleep(.05); print('thread')\nthreading.Thread(target=f).start(); print('main')")},
		"signal":       {Code: []byte("import os, signal\nsignal.signal(signal.SIGUSR1, lambda *a: print('got', a[0])); os.kill(os.getpid(), signal.SIGUSR1)\nprint([s for s in range(1, 65) if s not in (32, 33) and signal.getsignal(s) not in (signal.SIG_DFL, None)], signal.pthread_sigmask(signal.SIG_BLOCK, []))")},
		"interrupt":    {Code: []byte("raise KeyboardInterrupt")},
		"sigint":       {Code: []byte("import os, signal; os.kill(os.getpid(), signal.SIGINT)")},
		"killed":       {Code: []byte("import os, signal; os.kill(os.getpid(), signal.SIGTERM)")},
		"abort":        {Code: []byte("import os; os.abort()")},
		"walls":        {Code: []byte("import resource\nprint([(n, resource.getrlimit(getattr(resource, n))) for n in sorted(dir(resource)) if n.startswith('RLIMIT_')])\nimport os\nprint(os.getpid(), os.getppid(), os.getsid(0), os.umask(0), os.uname().nodename, os.statvfs('/code')[:5], os.statvfs('/tmp')[:5])\nfor f in range(256):\n  try: os.fstat(f); print(f)\n  except OSError: pass"), Timeout: 7 * time.Second},
		"asyncio":      {Code: []byte("import asyncio\nasync def m(): await asyncio.sleep(0.01); print('done')\nasyncio.run(m())")},
		"del and exit": {Code: []byte("del __file__, __cached__\nprint('x')")},
		"large":        {Code: append([]byte("print(1)\n#"), strings.Repeat("x", 1<<20)...)},
		"much output":  {Code: []byte("import sys\nfor i in range(40000): print(i)\nsys.stderr.write('e'*300000)")},
		"refused":      {Code: []byte("import os\nfor i in range(3):\n  try: os.fork()\n  except OSError as e: print(e)")},
		"blocked":      {Code: []byte("import os; print('a', flush=True); os.execv('/usr/bin/x', ['x'])")},
	}
	list := []string{"names", "modules", "frames", "environment", "hash seed", "files", "shadow2", "exit words", "exit hard", "error",
		"syntax", "latin-1", "bad hook", "stdin", "atexit", "del", "unflushed", "other out", "threads", "signal", "sigint", "walls",
		"large", "much output", "refused", "blocked"}
	if testrepeat.Enduring {
		list = slices.Sorted(maps.Keys(specs))
	}
	for i, name := range list {
		s, there := specs[name]
		if !there {
			t.Fatalf("there is no program %q", name)
		}
		s.Language, s.ID, s.Need = "python3", "same", anyWalls
		want, err := cold.Run(t.Context(), s)
		if err != nil {
			t.Fatal(name, err)
		}
		forks := playerCode() != nil
		paths := []posture.Path{posture.PathParked, posture.PathForked}
		if !testrepeat.Enduring {
			paths = paths[i%2:][:1] // the one or the other
		}
		for _, through := range paths {
			got, err := runBy(t, b, through, s)
			if err != nil {
				t.Fatal(name, err)
			}
			if forks && (name == "environment" || name == "latin-1") {
				through = posture.PathForked // who waits has come too far for them
			}
			if slices.Contains([]string{"hash seed", "zone", "shadow"}, name) || through == posture.PathForked && !forks {
				through = posture.PathCold
			}
			if got.Path != through || want.Path != posture.PathCold {
				t.Errorf("%s: came by %q, not %q, and %q without any that wait", name, got.Path, through, want.Path)
			}
			if a, b := facts(want), facts(got); a != b {
				t.Errorf("%s: cold\n%s\n%s\n%s", name, a, through, b)
			}
		}
	}
}

// facts are what a result says that the same program must say again.
func facts(r *posture.Result) string {
	var files []string
	for _, n := range slices.Sorted(maps.Keys(r.OutputFiles)) {
		files = append(files, fmt.Sprintf("%s=%q", n, r.OutputFiles[n]))
	}
	return places.ReplaceAllString(fmt.Sprintf("%s %d signal %d reason %q call %v refused %v files %v error %q\nout %s\nerr %s", r.State, r.ExitCode, r.Signal, r.Reason, r.Call, r.Refused, files, r.Err, r.Stdout, r.Stderr), "0xN")
}

var places = regexp.MustCompile(`0x[0-9a-f]{6,}`)

// TestWarm_siblingsShareNothingRandom: of many that waited no two draw
// anything random that the other draws. What an interpreter drew before they
// were is common to the forks of one zygote, and to no more.
func TestWarm_siblingsShareNothingRandom(t *testing.T) {
	t.Parallel()
	siblings := map[string]int{"python3": 12, "node": 3}
	for name, code := range map[string]string{
		"python3": "import random, uuid, os, ssl, tempfile, secrets\nprint(random.random(), hash('x'), uuid.uuid4(), os.urandom(8).hex(), ssl.RAND_bytes(8).hex(), os.path.basename(tempfile.mktemp()), secrets.token_hex(8), id(object()), hash(b'holdfast'), uuid.uuid1().node, sep='\\n')",
		"node":    "const c = require('crypto'); console.log([Math.random(), c.randomBytes(8).toString('hex'), c.randomUUID(), c.webcrypto.getRandomValues(new Uint32Array(4)).join()].join('\\n'))",
	} {
		t.Run(name, func(t *testing.T) {
			b := warmed(t, name, 4)
			if z := b.only(t).pool.nursery; z != nil && !testrepeat.Enduring {
				z.mu.Lock()
				z.now.forks = max(z.now.forks, zygoteForks-6) // the last siblings are another's forks
				z.mu.Unlock()
			}
			n, seen, drawn := testrepeat.Times(100, siblings[name]), map[string]int{}, map[int]map[string]int{}
			if name == "python3" && playerCode() != nil {
				drawn = map[int]map[string]int{1: {}, 7: {}, 8: {}} // hashes, and a place in memory
			}
			for i := range n {
				res := parkedRun(t, b, sandbox.Spec{Language: name, Code: []byte(code)})
				lines := strings.Fields(string(res.Stdout))
				if len(lines) < 4 {
					t.Fatalf("%q %q", res.Stdout, res.Stderr)
				}
				for k, line := range lines {
					if drawn[k] != nil {
						drawn[k][line]++
						continue
					}
					key := strconv.Itoa(k) + " " + line
					if at, twice := seen[key]; twice {
						t.Errorf("%d and %d both said %q", at, i, key)
					}
					seen[key] = i
				}
			}
			for k, times := range drawn {
				for line, n := range times {
					if n > zygoteForks {
						t.Errorf("%d had %q of line %d", n, line, k)
					}
				}
				if len(times) < 2 {
					t.Errorf("all had the same line %d", k)
				}
			}
		})
	}
}

// TestWarm_eachServesOnce: many at once, each its own code, environment and files;
// no process serves two.
func TestWarm_eachServesOnce(t *testing.T) {
	b := warmed(t, "python3", 8)
	var wg sync.WaitGroup
	var parked atomic.Int64
	for w := range 8 {
		wg.Go(func() {
			for i := range testrepeat.Times(12, 4) {
				me := fmt.Sprintf("%d-%d", w, i)
				code := "import os, builtins, sys\nassert not hasattr(builtins, 'been'); builtins.been = 1\nprint(os.environ['ME'], open('f').read(), sorted(os.listdir()), os.uname().nodename, '" + me + "'); open('been', 'w').write('x')"
				res, err := b.Run(t.Context(), sandbox.Spec{ID: me, Language: "python3", Code: []byte(code), Environment: map[string]string{"ME": me}, Files: map[string][]byte{"f": []byte(me)}, Need: anyWalls})
				if err != nil {
					t.Error(err)
					return
				}
				if want := fmt.Sprintf("%s %s ['f'] sandbox_%s %s\n", me, me, me, me); string(res.Stdout) != want || res.ExitCode != 0 || len(res.OutputFiles) != 1 {
					t.Errorf("%q %q, want %q", res.Stdout, res.Stderr, want)
				}
				if res.Path != posture.PathCold {
					parked.Add(1)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	if parked.Load() < 8 {
		t.Errorf("only %d were served by one that waited", parked.Load())
	}
}

// TestWarm_othersThatWait: node, with modules of both kinds and threads of its
// own, and static programs.
func TestWarm_othersThatWait(t *testing.T) {
	t.Parallel()
	b := warmed(t, "node", 2)
	cold := tier(t)
	for name, code := range map[string]string{
		"hello":   "console.log('hello', process.argv, process.execArgv, __filename, require.main === module, process.env, Object.keys(require.cache))",
		"module":  "import fs from 'fs'; console.log(fs.readFileSync('/code/main.js', 'utf8').length, import.meta.url); await 1; export {}",
		"error":   "function f() { throw new Error('x') }\nf()",
		"exit":    "process.exitCode = 4; setTimeout(() => console.log('later'), 20)",
		"worker":  "const { Worker } = require('worker_threads'); new Worker('require(\"worker_threads\").parentPort.postMessage(1 + 1)', { eval: true }).on('message', m => console.log(m))",
		"syntax":  "let x = ;",
		"reading": "console.log(require('fs').readFileSync(0, 'utf8') === '', require('fs').readdirSync('/tmp'), require('fs').statSync('/code/main.js').isFile())",
	} {
		want, err := cold.Run(t.Context(), sandbox.Spec{ID: "same", Language: "node", Code: []byte(code), Need: anyWalls})
		if err != nil {
			t.Fatal(err)
		}
		got := parkedRun(t, b, sandbox.Spec{ID: "same", Language: "node", Code: []byte(code)})
		want.Refused, got.Refused = nil, nil // they depend on what its threads do meanwhile
		if a, b := facts(want), facts(got); a != b {
			t.Errorf("%s: cold\n%s\nwarm\n%s", name, a, b)
		}
	}
	b.Settle(t.Context())
	res, err := b.Run(t.Context(), sandbox.Spec{ID: "env", Language: "node", Code: []byte("console.log(process.env.A)"), Environment: map[string]string{"A": "1"}, Need: anyWalls})
	if err != nil || res.Path != posture.PathParked || string(res.Stdout) != "1\n" {
		t.Errorf("with an environment: %+v %v", res, err)
	}
	s := sandbox.Spec{ID: "static", Language: sandbox.Static, Code: probe(asking(unix.SYS_GETPID)), Need: anyWalls}
	for range 2 {
		if _, err := b.Run(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	got := parkedRun(t, b, s)
	if list := answers(got.Stdout, 1); got.ExitCode != 0 || len(list) != 1 || list[0] != seccomp.WorkloadPID {
		t.Errorf("a static program: %+v", got)
	}
}

// TestWarm_whoDiesWhileWaiting is not used, and the next run is served.
func TestWarm_whoDiesWhileWaiting(t *testing.T) {
	b := warmed(t, "python3", 4)
	launcher := b.only(t)
	for _, pid := range descendants(launcher.cmd.Process.Pid) {
		if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.HasPrefix(string(name), "python") {
			unix.Kill(pid, unix.SIGKILL)
		}
	}
	res, err := b.Run(t.Context(), sandbox.Spec{ID: "next", Language: "python3", Code: []byte("print(1)"), Need: anyWalls})
	if err != nil || string(res.Stdout) != "1\n" {
		t.Fatalf("%+v %v", res, err)
	}
	parkedRun(t, b, sandbox.Spec{Language: "python3", Code: []byte("print(1)")})
	unix.Kill(launcher.cmd.Process.Pid, unix.SIGKILL)
	<-launcher.done
	if res, err = b.Run(t.Context(), sandbox.Spec{ID: "next", Language: "python3", Code: []byte("print(1)"), Need: anyWalls}); err != nil || string(res.Stdout) != "1\n" || res.Path != posture.PathCold {
		t.Fatalf("after its launcher was killed: %+v %v", res, err)
	}
	for range 2 {
		if _, err := b.Run(t.Context(), sandbox.Spec{ID: "more", Language: "python3", Code: []byte("1"), Need: anyWalls}); err != nil {
			t.Fatal(err)
		}
	}
	parkedRun(t, b, sandbox.Spec{Language: "python3", Code: []byte("print(1)")})
}

// only is the tier's one launcher.
func (t *Tier) only(tb testing.TB) *launcherConn {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, z := range t.launchers {
		if len(t.launchers) == 1 {
			return z
		}
	}
	tb.Fatalf("there are %d launchers", len(t.launchers))
	return nil
}

// TestWarm_theOldAreNotUsed: a workload that waited too long is replaced.
func TestWarm_theOldAreNotUsed(t *testing.T) {
	b := warmed(t, "python3", 2)
	p := b.only(t).pool
	for range cap(p.ready) {
		r := <-p.ready
		r.parkedAt = r.parkedAt.Add(-2 * parkedFor)
		p.ready <- r
	}
	res, err := b.Run(t.Context(), sandbox.Spec{ID: "old", Language: "python3", Code: []byte("1"), Need: anyWalls})
	if err != nil || res.Path == posture.PathParked {
		t.Errorf("%+v %v", res, err)
	}
	parkedRun(t, b, sandbox.Spec{Language: "python3", Code: []byte("1")})
}

// TestWarm_narrowedAndResized: a narrowed profile is not had parked; other
// limits are set when the request comes.
func TestWarm_narrowedAndResized(t *testing.T) {
	t.Parallel()
	b := warmed(t, "python3", 4)
	res, err := b.Run(t.Context(), sandbox.Spec{ID: "narrow", Language: "python3", Code: []byte("import os; os.mkdir('x')"), Narrow: []string{"mkdir"}, Need: anyWalls})
	if err != nil || res.Path != posture.PathCold || res.Call == nil || res.Call.Name != "mkdir" {
		t.Errorf("%+v %v", res, err)
	}
	if !slices.Contains(b.Posture().Up, posture.WallMemory) {
		t.Log("no control groups here")
		return
	}
	const eat = "b = bytearray(%d << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nprint('had it')"
	for mb, want := range map[int64]posture.State{64: posture.OOM, 256: posture.OOM, 400: posture.Completed} {
		res := parkedRun(t, b, sandbox.Spec{Language: "python3", Code: fmt.Appendf(nil, eat, 300), MemoryMB: mb, Timeout: sandbox.MaxTimeout})
		if res.State != want {
			t.Errorf("300 MB with %d: %s %q", mb, res.State, res.Stdout)
		}
	}
}

// TestWarm_noSecretOutlivesItsRun: what a run was given, in its code, its
// environment and its files, is in the memory of no process of the tier behind
// it: not in the launcher, and not in those that wait for others.
func TestWarm_noSecretOutlivesItsRun(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root reads the memory of processes that are behind the walls")
	}
	b := warmed(t, "python3", 2)
	look := func(secret string) (found, read int) {
		for _, top := range b.only(t).zygotes() {
			for _, pid := range append(descendants(top), top) {
				n, holds := searchMemory(t, pid, []byte(secret))
				read += n
				if holds {
					found++
				}
			}
		}
		return found, read
	}
	half := fmt.Sprintf("planted%d", time.Now().UnixNano())
	secret := half + half
	spec := sandbox.Spec{Language: "python3", Environment: map[string]string{"S": secret}, Files: map[string][]byte{"s": []byte(secret)}, Code: []byte("s = '" + secret + "'\nimport os, sys; x = os.environ['S'] + open('s').read(); print(x)")}
	for range 3 {
		if res := parkedRun(t, b, spec); string(res.Stdout) != secret+secret+"\n" {
			t.Fatalf("%q %q", res.Stdout, res.Stderr)
		}
	}
	b.Settle(t.Context())
	if found, read := look(secret); found > 0 || read < 1<<20 {
		t.Errorf("of %d bytes, %d processes hold what a run before was given", read, found)
	}
	// The twin: while such a run goes on it is found.
	done := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		spec.Code, spec.ID, spec.Need, spec.Timeout = append(spec.Code, "\nimport time; time.sleep(29)"...), "long", anyWalls, 30*time.Second
		b.Run(ctx, spec)
	}()
	for found := 0; found == 0; {
		select {
		case <-done:
			t.Fatal("the search does not find what is there")
		default:
			found, _ = look(secret)
		}
	}
	stop()
	<-done
}

// searchMemory reads what a process can read of its own memory.
func searchMemory(t *testing.T, pid int, secret []byte) (read int, found bool) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	mem, err2 := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil || err2 != nil {
		return 0, false // it has ended
	}
	defer mem.Close()
	buf := make([]byte, 1<<20)
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err != nil || mode[0] != 'r' || strings.Contains(line, "[v") {
			continue
		}
		for at := from; at < to; at += uint64(len(buf)) {
			n, _ := mem.ReadAt(buf[:min(uint64(len(buf)), to-at)], int64(at))
			read += n
			found = found || bytes.Contains(buf[:n], secret)
		}
	}
	return read, found
}

// TestWarm_nothingIsLeft: after many uses there is as much of everything as
// before.
func TestWarm_nothingIsLeft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // whose names are counted
	b, often := warmed(t, "python3", 4), testrepeat.Times(1000, 20)
	spec := sandbox.Spec{ID: "soak", Language: "python3", Code: []byte("print(6 * 7)"), Need: anyWalls}
	count := func() Trace {
		for b.Settle(t.Context()); !b.only(t).pool.nursery.alone(); b.Settle(t.Context()) {
			if _, err := b.Run(t.Context(), spec); err != nil {
				t.Fatal(err)
			}
		}
		return b.Trace()
	}
	paths := map[posture.Path]int{}
	before := count()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range often / 2 {
				res, err := b.Run(context.Background(), spec)
				if err != nil || string(res.Stdout) != "42\n" || res.ExitCode != 0 {
					t.Errorf("%+v %v", res, err)
					return
				}
				mu.Lock()
				paths[res.Path]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	isAsBefore := func(now Trace) bool {
		return now.Processes == before.Processes && now.Mounts == before.Mounts && now.Groups == before.Groups &&
			now.Namespaces == before.Namespaces && now.Files <= before.Files && now.Descriptors <= before.Descriptors
	}
	after := count()
	// The kernel removes a process, its mounts and its descriptors one after the other.
	for start := time.Now(); !isAsBefore(after) && time.Since(start) < time.Minute; after = count() {
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("%v: before %+v, after %+v", paths, before, after)
	if !isAsBefore(after) {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// alone says that one zygote stands where there are any, of which the next one is
// not made yet, and that those before it are gone: else there is more of
// everything, and rightly.
func (n *nursery) alone() bool {
	if n == nil {
		return true
	}
	n.mu.Lock()
	one := n.now != nil && n.next == nil && n.raising == nil && len(n.old) == 0 && n.now.forks < zygoteForks/2
	n.mu.Unlock()
	if one {
		n.running.Wait()
	}
	return one
}

// TestEscapeSuiteWarm makes every attempt of the suite on workloads that were parked, which
// costs less than to start an interpreter for each.
func TestEscapeSuiteWarm(t *testing.T) {
	onlyHere(t)
	t.Parallel()
	w := &warmRunner{}
	sandboxtest.Again(t, choosePart(sandboxtest.Once()), func(t *testing.T) sandboxtest.Runner {
		w.Tier = warmed(t, "python3", 4)
		return w
	})
	t.Logf("by path: %v", w.paths)
	if w.paths[posture.PathParked] < 3*w.paths[posture.PathCold] {
		t.Errorf("too few were parked: %v", w.paths)
	}
}

// warmRunner waits until a workload does.
type warmRunner struct {
	*Tier
	mu    sync.Mutex
	paths map[posture.Path]int
}

func (w *warmRunner) Run(ctx context.Context, spec sandbox.Spec) (*posture.Result, error) {
	w.Settle(ctx)
	res, err := w.Tier.Run(ctx, spec)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.paths == nil {
			w.paths = map[posture.Path]int{}
		}
		w.paths[res.Path]++
	}
	return res, err
}
