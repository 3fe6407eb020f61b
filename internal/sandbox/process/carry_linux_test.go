//go:build linux

package process

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/scratch"
)

// These tests try to carry something from one run to another, to the zygote or
// to the host, by the ways on which processes wait for runs.

// TestCarry: what programs try to carry to others, and what they look for of
// others, comes to nothing.
func TestCarry(t *testing.T) {
	b, cold := warmed(t, "python3", 4), tier(t)
	for _, c := range []struct {
		name string
		try  func(t *testing.T, b, cold *Tier)
	}{
		{"nothing is inherited", carryInherited},
		{"what a process keeps is as in a cold run", carryKept},
		{"no word of another in memory", carryWords},
		{"nothing is shared", carryShared},
		{"nothing is written behind the result", carryLate},
		{"files run in nobody else", carryFiles},
		{"every text is read as in a cold run", carryTexts},
		{"environments reach no interpreter that has started", carryEnvironments},
		{"none is made because a program ends", carryTimes},
		{"while zygotes come and go", carryCrowd},
	} {
		t.Run(c.name, func(t *testing.T) { c.try(t, b, cold) })
	}
}

// bothWays runs code in one that waited and in one that is forked for it.
func bothWays(t *testing.T, b *Tier, spec sandbox.Spec, check func(*testing.T, *posture.Result)) {
	t.Helper()
	runThrough(t, b, []posture.Path{posture.PathParked, posture.PathForked}, spec, check)
}

// runThrough runs code on each of the paths.
func runThrough(t *testing.T, b *Tier, paths []posture.Path, spec sandbox.Spec,
	check func(*testing.T, *posture.Result)) {
	t.Helper()
	spec.Language, spec.ID, spec.Need = "python3", "carry", anyWalls
	for _, path := range paths {
		if path == posture.PathForked && playerCode() == nil {
			continue
		}
		res, err := runBy(t, b, path, spec)
		if err != nil {
			t.Fatal(err)
		}
		if res.Path != path && res.Path != posture.PathForked {
			t.Errorf("it came by %q, not %q", res.Path, path)
		}
		check(t, res)
	}
}

// carryInherited: of zygote, init and runs before nothing is there that a
// program could find, reach or change.
func carryInherited(t *testing.T, b, _ *Tier) {
	for i, name := range slices.Sorted(maps.Keys(inheritances)) {
		code, through := inheritances[name], []posture.Path{posture.PathParked, posture.PathForked}
		if !testrepeat.Enduring {
			through = through[i%2:][:1] // the one or the other
		}
		t.Run(name, func(t *testing.T) {
			runThrough(t, b, through, sandbox.Spec{Code: []byte(finding + code + "\nprint(found)")}, func(t *testing.T, res *posture.Result) {
				if string(res.Stdout) != "[]\n" || res.ExitCode != 0 {
					t.Errorf("%s %q %v", res.Path, bytes.TrimSpace(res.Stdout), strings.TrimSpace(string(res.Stderr)))
				}
			})
		})
	}
}

// carryKept: what a process keeps beside its memory is as in a cold run.
func carryKept(t *testing.T, b, cold *Tier) {
	if playerCode() == nil {
		t.Skip("its numbers of calls are amd64's")
	}
	want, err := cold.Run(t.Context(), sandbox.Spec{Language: "python3", ID: "carry", Code: []byte(keptState), Need: anyWalls})
	if err != nil || want.ExitCode != 0 {
		t.Fatalf("%+v %s %v", want, want.Stderr, err)
	}
	bothWays(t, b, sandbox.Spec{Code: []byte(keptState)}, func(t *testing.T, got *posture.Result) {
		a, b := strings.Split(facts(want), "\n"), strings.Split(facts(got), "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Errorf("%s:\n%s\nnot\n%s", got.Path, b[i], a[i])
			}
		}
		if len(a) != len(b) {
			t.Errorf("%d lines, not %d", len(b), len(a))
		}
	})
}

// carryWords: a program that reads all of its heap, its stack and what its
// libraries map, freed or not, finds no word that a run before it, or one beside
// it, was given.
func carryWords(t *testing.T, b, _ *Tier) {
	half := fmt.Sprintf("grown%d", time.Now().UnixNano())
	word := half + half
	given := sandbox.Spec{Language: "python3", ID: "gives", Need: anyWalls, Code: []byte("s = ['" + word + "' + str(i) for i in range(999)]"), Files: map[string][]byte{"f": []byte(word)}}
	lasting := given
	lasting.Code = append(bytes.Clone(given.Code), "\nimport time; time.sleep(0.3)"...)
	var beside sync.WaitGroup
	for range 2 {
		if _, err := b.Run(t.Context(), given); err != nil {
			t.Fatal(err)
		}
		beside.Go(func() { b.Run(t.Context(), lasting) })
	}
	look := finding + `
half = %q
c.sbrk.restype, c.getauxval.restype = ctypes.c_void_p, ctypes.c_ulong
def area(at, back, fore):
    return [x for x in range((at & ~4095) - back, (at & ~4095) + fore, 4096) if there(x)]
pages = set(area(c.sbrk(0), 8 << 20, 0) + area(ctypes.cast(c.printf, ctypes.c_void_p).value, 24 << 20, 4 << 20) + area(c.getauxval(25), 1 << 18, 1 << 16))
word = half.encode() * 2
mine = [len(pages)]
for x in sorted(pages):
    if word in ctypes.string_at(x, 4096): mine.append(hex(x))
print(mine[0] > 1500, len(mine) - 1)`
	search := func(code, want string) {
		t.Helper()
		bothWays(t, b, sandbox.Spec{Code: []byte(code)}, func(t *testing.T, res *posture.Result) {
			if string(res.Stdout) != want {
				t.Errorf("%s: %q %s, not %q", res.Path, res.Stdout, res.Stderr, want)
			}
		})
	}
	search(fmt.Sprintf(look, half), "True 1\n") // word itself
	search(fmt.Sprintf(strings.ReplaceAll(look, "mine = [", "other = ctypes.create_string_buffer(word + bytes(8192)); mine = ["), half), "True 2\n")
	beside.Wait()
}

// carryShared: of the memory of a program that runs nothing is shared, so that
// it cannot write where its zygote, its init or a sibling reads.
func carryShared(t *testing.T, b, _ *Tier) {
	done := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		b.Run(ctx, sandbox.Spec{Language: "python3", ID: "sleeps", Need: anyWalls, Code: []byte("import ctypes, time\nctypes.CDLL(None).prctl(15, b'carrying'); time.sleep(9)")})
	}()
	defer func() { stop(); <-done }()
	looked, shared := 0, 0
	for looked == 0 || shared == 0 {
		select {
		case <-done:
			if looked == 0 || playerCode() != nil && shared == 0 {
				t.Errorf("looked at %d programs, and %d that wait share their tape", looked, shared)
			}
			return
		default:
		}
		for _, pid := range descendants(os.Getpid()) {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
			common := strings.Count(string(list), "-s ") + strings.Count(string(list), "xs ") + strings.Count(string(list), "ws ")
			switch {
			case len(list) == 0:
			case string(name) == "carrying\n":
				if looked++; common > 0 {
					t.Errorf("it shares memory:\n%s", list)
				}
			case strings.HasPrefix(string(name), "python") && common > 0:
				shared++ // a zygote, or an init of its
			}
		}
	}
}

// carryLate: once a result is there, not an instruction of the program runs any
// more, though it is not gone yet, and its files and output are those of the
// result.
func carryLate(t *testing.T, b, _ *Tier) {
	l := installed(t, "python3")
	const head = "import os, ctypes, mmap, signal, threading, time\nc = ctypes.CDLL(None)\nf = os.open('/tmp/f', os.O_RDWR | os.O_CREAT | os.O_APPEND)\n"
	const tail = "\nos.write(f, b'end')\nc.syscall(231, 7)\n"
	for name, code := range lateWriters {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(code, "fromhex") && playerCode() == nil {
				t.Skip("it is written for amd64")
			}
			left := 0
			for range testrepeat.Times(5, 2) {
				b.Settle(t.Context())
				spec, err := b.Prepare(t.Context(), sandbox.Spec{Language: "python3", ID: "late", Need: anyWalls, Code: []byte(head + code + tail), Timeout: 5 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				o, err := b.order(l, spec)
				if err != nil {
					t.Fatal(err)
				}
				r := b.takeParked(b.only(t), spec)
				if r == nil {
					t.Fatal("nobody waits")
				}
				if err := b.release(r, o, spec, posture.Instants{}); err != nil {
					t.Fatal(err)
				}
				res, err := r.outcome(t.Context(), spec.Timeout)
				if err != nil {
					t.Fatal(err)
				}
				if r.hasLeft() {
					left++
				}
				time.Sleep(5 * time.Millisecond)
				later, _ := scratch.Collect(r.fs, nil)
				if !maps.EqualFunc(res.OutputFiles, later, bytes.Equal) {
					t.Errorf("its files have changed behind the result")
				}
				if r.hasLeft() && (res.ExitCode != 7 || !bytes.HasSuffix(res.OutputFiles["f"], []byte("end"))) || strings.HasPrefix(name, "much") && len(res.Stdout) != 900000 || strings.HasPrefix(name, "a handler") && !bytes.HasPrefix(res.Stdout, []byte("LL")) {
					t.Errorf("%+v %d bytes %q", res, len(res.Stdout), res.Stderr)
				}
				out := len(r.stdout.text())
				r.free()
				if len(r.stdout.text()) != out {
					t.Errorf("it wrote %d bytes more behind the result", len(r.stdout.text())-out)
				}
			}
			if threads := strings.Contains(code, "threading"); threads && left > 0 || !threads && left == 0 {
				t.Errorf("%d had a result before their end", left)
			}
		})
	}
}

// carryFiles: a file of a request that stands for a module of the interpreter's
// start, or for what it reads to start, is read by that run as a cold one would,
// and by nobody before, beside or after it.
func carryFiles(t *testing.T, b, cold *Tier) {
	evil := "import sys; sys.stderr.write('read\\n'); open('/tmp/read', 'a').write(__name__)\n"
	const program = "import sys, os\nprint(sorted(os.listdir()), [p for p in sys.path if 'evil' in p], len(sys.modules))\n"
	for name, files := range map[string][]string{
		"at the start":  {"usercustomize.py", "sitecustomize/__init__.py", "site.pyc", "encodings/__init__.py", "encodings/utf_8.py", "codecs.pyc"},
		"of customers":  {"usercustomize.py", "evil.pth", "python3.pth", "pyvenv.cfg", "python311._pth", "site-packages/evil.pth", "lib/python3.11/site-packages/usercustomize.py"},
		"of the zygote": {"ctypes.py", "ctypes/__init__.py", "_ctypes.so", "_ctypes.cpython-311-x86_64-linux-gnu.so", "atexit.py", "gc.py", "struct.py", "_struct.py", "importlib/__init__.py"},
		"compiled":      {"__pycache__/os.cpython-311.pyc", "__pycache__/usercustomize.cpython-311.pyc", "__pycache__/sitecustomize.cpython-311.pyc", "main.py", "code/main.py"},
	} {
		given := map[string][]byte{}
		for _, f := range files {
			given[f] = []byte(evil)
		}
		want, err := cold.Run(t.Context(), sandbox.Spec{Language: "python3", ID: "carry", Code: []byte(program), Files: given, Need: anyWalls})
		if err != nil {
			t.Fatal(err)
		}
		for range testrepeat.Times(3, 1) {
			b.Settle(t.Context())
			got, err := b.Run(t.Context(), sandbox.Spec{Language: "python3", ID: "carry", Code: []byte(program), Files: given, Need: anyWalls})
			if err != nil || facts(got) != facts(want) {
				t.Errorf("%s: %v\n%s\nnot\n%s", name, err, facts(got), facts(want))
			}
		}
		bothWays(t, b, sandbox.Spec{Code: []byte(program)}, func(t *testing.T, res *posture.Result) {
			if !strings.HasPrefix(string(res.Stdout), "[] [] ") || len(res.Stderr) > 0 || len(res.OutputFiles) > 0 {
				t.Errorf("%s: who came behind it: %q %q %v", name, res.Stdout, res.Stderr, res.OutputFiles)
			}
		})
	}
}

// carryTexts: every text is read as in a cold run, once, and by one process
// alone.
func carryTexts(t *testing.T, b, cold *Tier) {
	paths := []posture.Path{posture.PathParked, posture.PathForked}
	list := texts()
	names := []string{"a carriage return before an encoding", "two, and an encoding too late", "both ends", "a mark and another encoding, long",
		"an unknown encoding", "UTF-7", "brackets, long", "a control character"}
	if testrepeat.Enduring {
		names = slices.Sorted(maps.Keys(list))
	}
	for i, name := range names {
		code, there := list[name]
		if !there {
			t.Fatalf("the texts have no %q", name)
		}
		want, err := cold.Run(t.Context(), sandbox.Spec{Language: "python3", ID: "carry", Code: []byte(code), Need: anyWalls})
		if err != nil {
			t.Fatal(name, err)
		}
		through := paths
		if !testrepeat.Enduring {
			through = paths[i%2:][:1] // the one or the other
		}
		runThrough(t, b, through, sandbox.Spec{Code: []byte(code)}, func(t *testing.T, got *posture.Result) {
			if facts(got) != facts(want) {
				t.Errorf("%s, %s:\n%s\nnot\n%s", name, got.Path, facts(got), facts(want))
			}
		})
	}
}

// carryEnvironments: names that an interpreter reads in any case are as in a
// cold run; others are refused.
func carryEnvironments(t *testing.T, b, cold *Tier) {
	const say = "import os, sys\nprint(sorted(os.environ.items()), sys.path, sys.flags, sys.prefix)\nos.environ['B'] = 'c'; import ctypes; g = ctypes.CDLL(None).getenv; g.restype = ctypes.c_char_p; print(g(b'B'), [g(n.encode()) for n in sorted(os.environ)])"
	many := map[string]string{}
	for i := range 250 {
		many[fmt.Sprintf("N%d", i)] = strings.Repeat("ö\n=", 60)
	}
	for name, env := range map[string]map[string]string{
		"small letters": {"pythonpath": "/x", "python_home": "y", "lc_all": "C", "tz": "Asia/Tokyo", "path": "z"},
		"odd values":    {"A": "=", "B": "\n", "_": "x=y\t", "C": "\xff\xfe", "HOME": "", "PATH": ""},
		"many":          many,
		"its own":       {"PYTHONPATH": "/nowhere", "PYTHONSTARTUP": "/tmp/x", "PYTHONINSPECT": ""},
		"late readers":  {"OPENSSL_CONF": "/tmp/x", "TMPDIR": "/", "COLUMNS": "7", "POSIXLY_CORRECT": "1"},
	} {
		s := sandbox.Spec{Language: "python3", ID: "carry", Code: []byte(say), Environment: env, Need: anyWalls}
		want, wantErr := cold.Run(t.Context(), s)
		for range testrepeat.Times(2, 1) {
			b.Settle(t.Context())
			got, err := b.Run(t.Context(), s)
			if (err == nil) != (wantErr == nil) || err == nil && facts(got) != facts(want) {
				t.Errorf("%s: %v %v\n%v\nnot\n%v", name, err, wantErr, got, want)
			}
		}
	}
	for _, name := range []string{"", "A=B", "=", "A\x00B", "LD_PRELOAD", "LD_AUDIT", "A B", "Ä"} {
		var own *holdfast.Error
		_, err := b.Run(t.Context(), sandbox.Spec{Language: "python3", ID: "carry", Code: []byte("1"), Environment: map[string]string{name: "x"}, Need: anyWalls})
		if !errors.As(err, &own) || own.Kind != holdfast.KindProtocol {
			t.Errorf("%q: %v", name, err)
		}
	}
	bothWays(t, b, sandbox.Spec{Code: []byte("import os; print(sorted(os.environ))")}, func(t *testing.T, res *posture.Result) {
		if string(res.Stdout) != "['HOME', 'PATH', 'PYTHONPATH', 'TMPDIR']\n" {
			t.Errorf("behind all that: %q", res.Stdout)
		}
	})
}

// carryTimes: when a process that waits was made, which a program finds out,
// does not tell when another program ended.
func carryTimes(t *testing.T, b, _ *Tier) {
	const ends = 500 * time.Millisecond
	b.Settle(t.Context())
	p := b.only(t).pool
	began := time.Now()
	if _, err := b.Run(t.Context(), sandbox.Spec{Language: "python3", ID: "ends", Need: anyWalls, Code: fmt.Appendf(nil, "import time; time.sleep(%f)", ends.Seconds())}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if len(p.ready) != cap(p.ready) {
		t.Fatalf("only %d wait", len(p.ready))
	}
	news := 0
	for range cap(p.ready) {
		res, err := b.Run(t.Context(), sandbox.Spec{Language: "python3", ID: "looks", Need: anyWalls, Code: []byte("import os; print(os.stat('/tmp').st_ctime_ns, os.fstat(1).st_ctime_ns)")})
		if err != nil {
			t.Fatal(err)
		}
		var made, piped int64
		if _, err := fmt.Sscan(string(res.Stdout), &made, &piped); err != nil || res.Path != posture.PathParked {
			t.Fatalf("%s %q %v", res.Path, res.Stdout, err)
		}
		at := time.Unix(0, max(made, piped)).Sub(began)
		if at > 0 {
			news++
		}
		if at > ends-20*time.Millisecond {
			t.Errorf("it was made %v after a program began that ended after %v", at, ends)
		}
	}
	if news != 1 {
		t.Errorf("%d were made for that one", news)
	}
}

// carryCrowd: runs in a crowd, under which zygotes are stopped, killed and
// spent, each have their own code, files and environment, and wait for none that
// is stopped.
func carryCrowd(t *testing.T, b, _ *Tier) {
	if playerCode() == nil {
		t.Skip("there are no zygotes on this processor")
	}
	z := b.only(t)
	stop := make(chan struct{})
	var crowd sync.WaitGroup
	var longest sync.Map
	for w := range 4 {
		crowd.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				me := fmt.Sprintf("%d-%d", w, i)
				s := sandbox.Spec{Language: "python3", ID: me, Code: []byte("import os; print(open('f').read(), os.environ.get('ME'), os.uname().nodename, sorted(os.listdir()), '" + me + "')"), Files: map[string][]byte{"f": []byte(me)}, Need: anyWalls}
				want := fmt.Sprintf("%s None sandbox_%s ['f'] %s\n", me, me, me)
				if i%2 == 1 {
					s.Environment = map[string]string{"ME": me}
					want = strings.Replace(want, "None", me, 1)
				}
				began := time.Now()
				res, err := b.Run(t.Context(), s)
				if err == nil && string(res.Stdout) != want && res.Reason != posture.ReasonSignal {
					t.Errorf("%q %q, not %q", res.Stdout, res.Stderr, want)
				}
				if took := time.Since(began); took > 8*time.Second {
					longest.Store(me, took)
				}
			}
		})
	}
	for i := range testrepeat.Times(6, 2) {
		for _, pid := range z.zygotes()[1:] {
			if i%2 == 0 {
				unix.Kill(pid, unix.SIGSTOP)
			} else {
				unix.Kill(pid, unix.SIGKILL)
			}
		}
		time.Sleep(300 * time.Millisecond)
	}
	close(stop)
	crowd.Wait()
	longest.Range(func(me, took any) bool { t.Errorf("%v took %v", me, took); return true })
}

// TestCarry_othersInheritNothing: nor do programs of Node.js, and static ones.
func TestCarry_othersInheritNothing(t *testing.T) {
	t.Parallel()
	const look = `const fs = require('fs'), found = [];
if (fs.readdirSync('/code').join() !== 'main.js' || !fs.statSync('/code/main.js').isFile() || fs.readdirSync('/tmp').length) found.push('files');
for (let f = 3; f < 256; f++) try { const s = fs.fstatSync(f); if (s.isFIFO() && s.uid === process.getuid() && s.mode % 512 === 0o600 && s.ino < 99) found.push(f); if (s.isDirectory() || s.isFile()) found.push(f, s.mode) } catch {}
for (const p of ['/code/main.js', '/code/x']) for (const f of ['w', 'r+', 'a']) try { fs.openSync(p, f); found.push(p, f) } catch {}
for (const p of [1, 0, -1, -2]) for (let s = 1; s < 32; s++) try { process.kill(p, s); found.push(p, s) } catch {}
if (Object.keys(process.env).join() !== 'HOME,PATH,TMPDIR,UV_USE_IO_URING') found.push(process.env);
console.log(found.join())`
	b := warmed(t, "node", 2)
	for _, env := range []map[string]string{{"SAID": "secret"}, nil, {"SAID": strings.Repeat("x", 9999)}, nil} {
		s := sandbox.Spec{Language: "node", Code: []byte("console.log(process.env.SAID)"), Environment: env}
		if env == nil {
			s.Code = []byte(look)
		}
		if res := parkedRun(t, b, s); env == nil && string(res.Stdout) != "\n" {
			t.Errorf("found %q %q", res.Stdout, res.Stderr)
		}
	}
	var asks []ask
	for fd := range 64 {
		asks = append(asks, asking(unix.SYS_FCNTL, fd, unix.F_GETFD))
	}
	for _, name := range []string{"/code/request", "/code/program", "/code/x"} {
		asks = append(asks, asking(unix.SYS_OPENAT, -100, name, unix.O_RDWR|unix.O_CREAT), asking(unix.SYS_UNLINKAT, -100, name, 0))
	}
	asks = append(asks, asking(unix.SYS_KILL, 1, 15), asking(unix.SYS_KILL, -1, 15), asking(unix.SYS_CHDIR, tapeBase))
	static := sandbox.Spec{Language: sandbox.Static, Code: probe(asks...), ID: "first", Need: anyWalls}
	for range 2 {
		if _, err := b.Run(t.Context(), static); err != nil {
			t.Fatal(err)
		}
	}
	res := parkedRun(t, b, static)
	list := answers(res.Stdout, len(asks))
	if len(list) != len(asks) {
		t.Fatalf("%+v", res)
	}
	for i, got := range list {
		if fine := i < 3; fine != (got >= 0) {
			t.Errorf("call %d (%v): %d", i, asks[i], got)
		}
	}
}

// TestCarry_staticProgramsThatCannotStart come to the same whether they waited or
// not, and who comes behind them is served.
func TestCarry_staticProgramsThatCannotStart(t *testing.T) {
	t.Parallel()
	b, cold := tierOf(t, sandbox.Static, 4), tier(t)
	good := probe(asking(unix.SYS_GETPID))
	head := int(binary.LittleEndian.Uint64(good[0x20:])) // its first segment's
	with := func(at int, v uint64) []byte {
		return append(binary.LittleEndian.AppendUint64(bytes.Clone(good[:at]), v), good[at+8:]...)
	}
	kind := func(k byte) []byte { b := bytes.Clone(good); b[head] = k; return b }
	for range 2 {
		if _, err := b.Run(t.Context(), sandbox.Spec{Language: sandbox.Static, ID: "first", Code: good, Need: anyWalls}); err != nil {
			t.Fatal(err)
		}
	}
	for name, code := range map[string][]byte{
		"as it should be": good, "a large segment": with(head+40, 1<<46), "more than its file": with(head+32, 1<<30),
		"at the kernel's place": with(head+16, 0xffff<<48), "at no place": with(head+16, 0), "at the tape's": with(head+16, tapeBase),
		"into nothing": with(0x18, 1), "into the tape": with(0x18, tapeBase), "an odd page": with(head+48, 3), "cut": good[:200],
		"nothing to load": kind(6), "no kind": kind(0x51), "long": append(bytes.Clone(good), make([]byte, 9<<20)...),
	} {
		s := sandbox.Spec{Language: sandbox.Static, ID: "carry", Code: code, Need: anyWalls}
		want, err := cold.Run(t.Context(), s)
		if err != nil {
			t.Fatal(name, err)
		}
		if got := parkedRun(t, b, s); facts(got) != facts(want) {
			t.Errorf("%s:\n%s\nnot\n%s", name, facts(got), facts(want))
		}
	}
}
