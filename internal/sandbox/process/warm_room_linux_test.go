//go:build linux

package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// crowded is the largest environment that a request can bring to one that waits,
// in names.
func crowded() map[string]string {
	env := map[string]string{}
	for i := range roomNames - 8 {
		env[fmt.Sprintf("N%03d", i)] = strings.Repeat("v", i%90)
	}
	return env
}

// TestWarm_nodeWithAnEnvironment: what a program of Node.js finds, says and leaves
// does not tell whether its environment was there when node started.
func TestWarm_nodeWithAnEnvironment(t *testing.T) {
	t.Parallel()
	b := warmed(t, "node", 2)
	cold := tier(t)
	env := map[string]string{"A": "1", "PATH": "/x", "TMPDIR": "/tmp/t", "empty": "", "b": "ö=ä", "HTTP_PROXY": "p", "z": strings.Repeat("z", 3000)}
	few := []string{"all of it", "the most names", "the most bytes", "changed", "a module", "a worker", "a report", "node options", "too much"}
	const all = "Object.keys(process.env).join(), JSON.stringify(process.env)"
	for name, s := range map[string]sandbox.Spec{
		"all of it":       {Code: []byte("console.log(" + all + ", 'A' in process.env, process.env.empty, process.env.none, 'none' in process.env, process.env.UV_USE_IO_URING); for (const k in process.env) console.log(k, Object.getOwnPropertyDescriptor(process.env, k))")},
		"none":            {Environment: map[string]string{}, Code: []byte("console.log(" + all + ", Object.keys(process.env).length)")},
		"one":             {Environment: map[string]string{"ONE": "1"}, Code: []byte("console.log(" + all + ")")},
		"the most names":  {Environment: crowded(), Code: []byte("console.log(" + all + ")")},
		"the most bytes":  {Environment: map[string]string{"Z": strings.Repeat("z", roomBytes-1<<10-3)}, Code: []byte("console.log(" + all + ")")},
		"as node has it":  {Environment: map[string]string{"PATH": "/usr/bin", "TMPDIR": "/tmp"}, Code: []byte("console.log(" + all + ")")},
		"changed":         {Code: []byte("process.env.N = 'new'; delete process.env.A; process.env.b = 2; delete process.env.none; console.log(" + all + "); for (const k of Object.keys(process.env)) delete process.env[k]; process.env.A = 3; console.log(" + all + ")")},
		"many new":        {Code: []byte("for (let i = 0; i < 600; i++) process.env['K' + i] = 'x'.repeat(i); console.log(" + all + ")")},
		"as a program":    {Code: []byte("#!/usr/bin/env node\n'use strict';\nconsole.log(process.argv, process.execArgv, process.execPath, process.argv0, process.title, require.main === module, __filename, module.paths, module.children, module.parent, require.main.loaded, Object.keys(require.cache), require.resolve.paths('x'), this === module.exports, process.cwd(), process.release.name, process.config.variables.napi_build_version, Object.keys(globalThis))")},
		"strict":          {Code: []byte("'use strict'; try { undeclared = 1 } catch (e) { console.log(e.message) }; console.log((function () { return this })())")},
		"sloppy":          {Code: []byte("undeclared = 1; console.log(typeof undeclared, (function () { return this === globalThis })())")},
		"its source":      {Code: []byte("const s = require('fs').readFileSync('/code/main.js', 'utf8'); console.log(s.length, s, require('fs').readdirSync('/code'), require('fs').statSync('/code/main.js').mode)")},
		"places":          {Code: []byte("function f() { console.log(new Error('x').stack.replace(/node:internal.*/g, 'i')) }\n\n   f(); Promise.resolve().then(() => f()); setImmediate(f)")},
		"a throw":         {Code: []byte("// one\nlet x = process.env.A;\n  throw new TypeError('of ' + x)")},
		"a rejection":     {Code: []byte("Promise.reject(new Error(process.env.A))")},
		"a bad shebang":   {Code: []byte("#!x\n#!y\nconsole.log(1)")},
		"a BOM":           {Code: []byte("\ufeffconsole.log(process.env.A)")},
		"a module":        {Code: []byte("import fs, { readFileSync } from 'fs';\nconsole.log(" + all + ", import.meta.url, this, typeof require, readFileSync('/code/main.js', 'utf8'));\nconst m = await import('os'); console.log(m.tmpdir(), m.homedir(), fs === m.default);\nexport const x = 1;\nthrow new Error('at 5')")},
		"a module fails":  {Code: []byte("import x from './none.js'")},
		"a worker":        {Code: []byte("const { Worker, isMainThread, parentPort } = require('worker_threads');\nif (isMainThread) { const w = new Worker(__filename, { argv: ['w'] }); w.on('message', m => { console.log(m); w.terminate() }) } else parentPort.postMessage([" + all + ", process.argv, process.execArgv, require.main === module, new Error('w').stack.split('\\n').slice(0, 2)])")},
		"a shared worker": {Code: []byte("const { Worker, SHARE_ENV } = require('worker_threads');\nnew Worker('process.env.W = 5; delete process.env.A; require(\"worker_threads\").parentPort.postMessage(JSON.stringify(process.env))', { eval: true, env: SHARE_ENV }).on('message', m => console.log(m)).on('exit', () => console.log(" + all + "))")},
		"an own worker":   {Code: []byte("const { Worker } = require('worker_threads');\nnew Worker('require(\"worker_threads\").parentPort.postMessage(JSON.stringify(process.env))', { eval: true, env: { X: 'y' } }).on('message', m => console.log(m))")},
		"a child":         {Code: []byte("const c = require('child_process'); for (const f of [() => c.spawnSync(process.execPath, ['-v']), () => c.execFileSync('x'), () => c.fork(__filename)]) try { console.log(Object.keys(f()).length) } catch (e) { console.log(e.code, e.message) }")},
		"a report":        {Code: []byte("const r = process.report.getReport(); console.log(r.environmentVariables, r.header.commandLine, r.userLimits, r.header.nodejsVersion)")},
		"what it reads":   {Code: []byte("const os = require('os'); console.log(os.tmpdir(), os.homedir(), new Date(0).toString(), Intl.DateTimeFormat().resolvedOptions(), require('module').globalPaths, (1e6).toLocaleString())")},
		"a zone of its":   {Code: []byte("process.env.TZ = 'Asia/Tokyo'; console.log(new Date(0).toString()); process.env.TZ = 'UTC'; console.log(new Date(0).toString())")},
		"colours":         {Environment: map[string]string{"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLORTERM": "truecolor", "CI": "1"}, Code: []byte("console.log({ a: 1 }, process.stdout.isTTY); console.error(new Error('x').message); console.table([1]); throw { a: 1 }")},
		"no colours":      {Environment: map[string]string{"NO_COLOR": "1", "NODE": ""}, Code: []byte("console.log({ a: 1 }); require('assert').deepEqual({ a: 1 }, { a: 2 })")},
		"no colour":       {Environment: map[string]string{"NO_COLOR": "1"}, Code: []byte("console.log({ a: 1 }); require('assert').deepEqual({ a: 1 }, { a: 2 })")},
		"large":           {Code: []byte("console.log(process.env.A)\n//" + strings.Repeat("x", 1<<20))},
		"files":           {Files: map[string][]byte{"m.js": []byte("module.exports = [process.env.A, module.parent.filename, __filename]"), "m.mjs": []byte("export default process.env.A"), "package.json": []byte(`{"type":"module"}`)}, Code: []byte("console.log(require('/tmp/m.mjs' && 'fs').existsSync('m.js')); import('/tmp/m.mjs').then(m => console.log(m.default)); try { console.log(require('/tmp/m.js')) } catch (e) { console.log(e.code) }")},
		"exit":            {Code: []byte("process.on('exit', c => console.log(c, process.env.A)); process.exit(7)")},
		"depth":           {Code: []byte("let d = 0; function f() { d++; f() } try { f() } catch (e) { console.log(e.message, d > 5000) }")},
		"threads":         {Code: []byte("const c = require('crypto'); for (let i = 0; i < 6; i++) c.pbkdf2('p', 's', 1000, 8, 'sha256', (e, k) => { if (!--left) console.log(k.toString('hex'), process.env.A) }); let left = 6")},
		"node options":    {Environment: map[string]string{"NODE_OPTIONS": "--no-warnings --stack-trace-limit=1"}, Code: []byte("function f() { throw new Error(process.execArgv) }; f()")},
		"node path":       {Environment: map[string]string{"NODE_PATH": "/tmp"}, Files: map[string][]byte{"m.js": []byte("module.exports = 3")}, Code: []byte("console.log(require('m'))")},
		"home":            {Environment: map[string]string{"HOME": "/tmp/h"}, Files: map[string][]byte{"h/.node_modules/m.js": []byte("module.exports = 4")}, Code: []byte("console.log(require('m'))")},
		"zone":            {Environment: map[string]string{"TZ": "Asia/Tokyo"}, Code: []byte("console.log(new Date(0).toString())")},
		"locale":          {Environment: map[string]string{"LC_ALL": "de_DE.UTF-8"}, Code: []byte("console.log((1e6).toLocaleString())")},
		"pool":            {Environment: map[string]string{"UV_THREADPOOL_SIZE": "1"}, Code: []byte("require('fs').readFile('/code/main.js', (e, b) => console.log(b.length))")},
		"too much":        {Environment: map[string]string{"Z": strings.Repeat("z", roomBytes)}, Code: []byte("console.log(" + all + ".length)")},
	} {
		if s.Environment == nil {
			s.Environment = env
		}
		if !testrepeat.Enduring && !slices.Contains(few, name) {
			continue
		}
		s.Language, s.ID, s.Need = "node", "same", anyWalls
		want, err := cold.Run(t.Context(), s)
		if err != nil {
			t.Fatal(name, err)
		}
		b.Settle(t.Context())
		got, err := b.Run(t.Context(), s)
		if err != nil {
			t.Fatal(name, err)
		}
		path := posture.PathParked
		if early(s.Environment, nodeReads) || name == "too much" {
			path = posture.PathCold
		}
		if got.Path != path {
			t.Errorf("%s: came by %q, not %q", name, got.Path, path)
		}
		want.Refused, got.Refused = nil, nil // they depend on what its threads do meanwhile
		if a, b := facts(want), facts(got); a != b {
			t.Errorf("%s: cold\n%s\nwarm\n%s", name, a, b)
		}
	}
}

// answering starts what o is, a program that says what it is told, and returns
// its pidfd once it does: a process is there before Linux has laid its stack out.
func answering(t *testing.T, o *order) int {
	t.Helper()
	in, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	hear, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fd := -1
	p, err := os.StartProcess(o.argv[0], o.argv, &os.ProcAttr{Env: o.env, Files: []*os.File{in, out}, Sys: &syscall.SysProcAttr{PidFD: &fd}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		p.Wait()
		unix.Close(fd)
		closeFiles([]*os.File{in, tell, hear, out})
	})
	word := []byte("here")
	if _, err := tell.Write(word); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if _, err := io.ReadFull(hear, make([]byte, len(word))); err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestWarm_roomIsFoundExactly: only where all stands as Linux wrote it is anything
// written, and what is written is what was asked for.
func TestWarm_roomIsFoundExactly(t *testing.T) {
	o := &order{argv: []string{"/bin/cat", "-u"}, env: []string{"A=1", "B=2"}}
	started := o.spare()
	fd, err := answering(t, o), error(nil)
	for name, r := range map[string]*envRoom{
		"one argument more": {argv: append(o.argv[:2:2], "x"), env: o.env, own: 2},
		"one name less":     {argv: o.argv, env: o.env[1:], own: 2},
		"one name more":     {argv: o.argv, env: append(o.env[:len(o.env):len(o.env)], "X=1"), own: 2},
		"another text":      {argv: o.argv, env: append([]string{"A=2"}, o.env[1:]...), own: 2},
	} {
		if err := r.find(fd); !errors.Is(err, errNoRoom) {
			t.Errorf("%s: %v", name, err)
		}
		r.close()
	}
	if err := started.find(fd); err != nil {
		t.Fatal(err)
	}
	mem, vector := started.mem, started.vector
	read := func() (list []string) {
		b, _ := load(mem, vector, 8*(len(o.env)+1))
		for ; binary.NativeEndian.Uint64(b) != 0; b = b[8:] {
			text, ok := load(mem, binary.NativeEndian.Uint64(b), 8)
			if !ok {
				t.Fatal("it cannot be read")
			}
			list = append(list, string(text[:bytes.IndexByte(text, 0)]))
		}
		return list
	}
	if got := read(); !slices.Equal(got, []string{"A=1", "B=2"}) {
		t.Errorf("while it waits: %q", got)
	}
	defer mem.Close()
	if started.mem, err = os.OpenFile(mem.Name(), os.O_RDWR, 0); err != nil { // which is closed behind it
		t.Fatal(err)
	}
	if err := started.furnish([]string{"A=x", "C=", "D=ö"}); err != nil {
		t.Fatal(err)
	}
	if got := read(); !slices.Equal(got, []string{"A=x", "C=", "D=ö"}) {
		t.Errorf("then: %q", got)
	}
	if err := started.find(-1); !errors.Is(err, errNoRoom) {
		t.Errorf("of nobody: %v", err)
	}
}

// TestWarm_nodeWithoutRoom: where no environment can be brought, those who wait
// serve requests without one.
func TestWarm_nodeWithoutRoom(t *testing.T) {
	t.Parallel()
	b := warmed(t, "node", 2)
	p := b.only(t).pool
	if p.roomless.Load() {
		t.Fatal("no room was found")
	}
	p.roomless.Store(true)
	p.empty()
	s := sandbox.Spec{ID: "roomless", Language: "node", Code: []byte("console.log(Object.keys(process.env).join(), process.env.A)"), Need: anyWalls}
	for range 3 {
		for path, env := range map[posture.Path]map[string]string{posture.PathCold: {"A": "1"}, posture.PathParked: nil} {
			if path == posture.PathCold && len(p.ready) > 0 {
				continue // it was made before
			}
			b.Run(t.Context(), s)
			b.Settle(t.Context())
			s.Environment = env
			res, err := b.Run(t.Context(), s)
			want := "HOME,PATH,TMPDIR,UV_USE_IO_URING undefined\n"
			if env != nil {
				want = "A,HOME,PATH,TMPDIR,UV_USE_IO_URING 1\n"
			}
			if err != nil || res.Path != path || string(res.Stdout) != want {
				t.Errorf("%+v %v", res, err)
			}
		}
	}
}

// TestWarm_roomIsTried: what cannot be seen by a program is no room.
func TestWarm_roomIsTried(t *testing.T) {
	b := warmed(t, "node", 2)
	z := b.only(t)
	as := parkingOf(z.pool.lang)
	if err := b.tryRoom(z, z.pool.lang, as); err != nil || !z.pool.roomy.Load() {
		t.Error(err)
	}
	for name, first := range map[string]string{"one is missing": "delete process.env.z;", "one is another": "process.env.A = 2;", "one is behind": "delete process.env.A; process.env.A = 1;", "nothing": "process.exit(0);"} {
		as.shows = append([]byte(first), parkingOf(z.pool.lang).shows...)
		if err := b.tryRoom(z, z.pool.lang, as); !errors.Is(err, errNoRoom) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWarm_nodeIsReplacedByAge: node that waited too long serves nobody.
func TestWarm_nodeIsReplacedByAge(t *testing.T) {
	t.Parallel()
	b := warmed(t, "node", 2)
	p := b.only(t).pool
	before := map[*run]bool{}
	for range cap(p.ready) {
		r := <-p.ready
		r.parkedAt = r.parkedAt.Add(-2 * parkedFor)
		before[r] = true
		p.ready <- r
	}
	s := sandbox.Spec{ID: "old", Language: "node", Code: []byte("console.log(process.env.A)"), Environment: map[string]string{"A": "1"}, Need: anyWalls}
	if res, err := b.Run(t.Context(), s); err != nil || res.Path != posture.PathCold || string(res.Stdout) != "1\n" {
		t.Errorf("%+v %v", res, err)
	}
	for r := range before {
		if !r.deserted() {
			t.Error("an old one is still there")
		}
	}
	if res := parkedRun(t, b, s); string(res.Stdout) != "1\n" {
		t.Errorf("%+v", res)
	}
}

// TestWarm_nodeThatDoesNotRead: of those who wait and cannot read what comes to
// them, none holds a request for longer than it may take, whether it fits into the
// FIFO or not; and what was not read has not run.
func TestWarm_nodeThatDoesNotRead(t *testing.T) {
	for name, pad := range map[string]int{"small": 0, "more than the FIFO holds": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // with the other, which waits too
			b := warmed(t, "node", 2)
			stopped := 0
			for _, pid := range descendants(b.only(t).cmd.Process.Pid) {
				if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.HasPrefix(string(comm), "node") {
					unix.Kill(pid, unix.SIGSTOP)
					stopped++
				}
			}
			s := sandbox.Spec{ID: "held", Language: "node", Code: []byte("console.log(process.env.A)\n//" + strings.Repeat("x", pad)), Environment: map[string]string{"A": "1"}, Timeout: time.Second, Need: anyWalls}
			start := time.Now()
			res, err := b.Run(t.Context(), s)
			took := time.Since(start)
			if err != nil || stopped == 0 || took > time.Duration(stopped+2)*s.Timeout {
				t.Fatalf("%d stopped, %v: %+v %v", stopped, took, res, err)
			}
			if ran := string(res.Stdout) == "1\n"; ran != (res.State == posture.Completed) || !ran && res.State != posture.Timeout {
				t.Errorf("%+v", res)
			}
			b.only(t).pool.empty()
			s.Timeout = 10 * time.Second
			b.Run(t.Context(), s)
			if res = parkedRun(t, b, s); string(res.Stdout) != "1\n" {
				t.Errorf("%+v", res)
			}
		})
	}
}
