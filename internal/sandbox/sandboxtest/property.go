package sandboxtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// property is something that has to hold of several runs, or of a run and the
// host: the invariants and criteria of 003 2.1 and 2.2.
type property struct {
	name  string
	holds func(*testing.T, *suite)
}

func properties() []property {
	return []property{
		{"no scratch is kept", freshScratch}, {"figures are measured", figures}, {"a name of its own", hostName}, {"no way and no device", noRoute},
		{"nothing but itself is seen", alone}, {"no descriptor leaks", descriptors}, {"no secret is found", secrets},
		{"what is mapped is its own", ownPages}, {"two at once share no memory", pairMemory}, {"two at once share no waking", pairFutex}, {"two at once share no times", pairTimes}, {"two at once share no names", pairNames},
		{"two at once see no reading", pairAtime}, {"bad requests are named", badRequests}, {"a program's own end is its own", ownEnd}, {"a halted run ends", halted}, {"attempts do not wear the walls", again},
	}
}

// freshScratch: 2.1 AC 7, 2.2 AC 7 and 8, invariant 2.
func freshScratch(t *testing.T, s *suite) {
	for range 3 {
		res := s.python(t, `
say(os.listdir('/tmp'))
open('/tmp/test.txt','w').write('kept'); say(open('/tmp/test.txt').read())`)
		if string(res.Stdout) != "[]\nkept\n" || string(res.OutputFiles["test.txt"]) != "kept" {
			t.Errorf("%q %q", res.Stdout, res.Stderr)
		}
	}
}

// figures: 2.1 AC 8, invariant 3.
func figures(t *testing.T, s *suite) {
	res := s.python(t, `
import time
b=bytearray(100<<20)
for i in range(0,len(b),4096): b[i]=1
while time.process_time()<0.4: pass
say('used',time.process_time())`)
	var own float64
	if _, err := fmt.Sscanf(string(res.Stdout), "used %f", &own); err != nil {
		t.Fatal(err)
	}
	cpu := (res.UserTime + res.SystemTime).Seconds()
	if cpu < own*0.8 || cpu > own+0.5 {
		t.Errorf("it used %.3f s, and %.3f s were measured", own, cpu)
	}
	if res.MemoryPeak < 100<<20 || res.MemoryPeak > 180<<20 {
		t.Errorf("it used 100 MB and a little, and %d MB were measured", res.MemoryPeak>>20)
	}
	if res.WallTime < 300*time.Millisecond || res.End.Sub(res.Start) != res.WallTime || len(res.Stages) == 0 {
		t.Errorf("%v from %v to %v, stages %v", res.WallTime, res.Start, res.End, res.Stages)
	}
}

// hostName: 2.2 layer 4.
func hostName(t *testing.T, s *suite) {
	res := s.python(t, `say(os.uname().nodename)`, func(spec *sandbox.Spec) { spec.ID = "name-1" })
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if got := string(res.Stdout); got != "sandbox_name-1\n" || got == own+"\n" {
		t.Errorf("its name is %q", got)
	}
}

// noRoute: 2.1 invariants 1 and 4. The list of devices needs a socket, of which
// there is none.
func noRoute(t *testing.T, s *suite) {
	res := s.python(t, `
import socket
try: say(socket.if_nameindex())
except OSError as e: say('none')
say('pid',os.getpid())`)
	if string(res.Stdout) != "none\npid 2\n" {
		t.Errorf("%q", res.Stdout)
	}
}

// alone: 2.2 AC 1 and invariant 3: no number but its own answers.
func alone(t *testing.T, s *suite) { seesAlone(t, s, "[1, 2]\n") }

func seesAlone(t *testing.T, s *suite, want string) {
	t.Helper()
	res := s.python(t, `
seen=[]
for p in range(1,70000):
    try: os.getpgid(p); seen.append(p)
    except OSError: pass
say(seen)`)
	if string(res.Stdout) != want {
		t.Errorf("it sees %q", res.Stdout)
	}
}

// descriptors: three, none of which leads to a folder or a socket.
func descriptors(t *testing.T, s *suite) { opens(t, s, "0 0o20000\n1 0o10000\n2 0o10000\n") }

func opens(t *testing.T, s *suite, want string) {
	t.Helper()
	res := s.python(t, `
import stat
for n in range(1025):
    try: st=os.fstat(n)
    except OSError: continue
    if n>2 and stat.S_ISREG(st.st_mode): continue
    say(n,oct(stat.S_IFMT(st.st_mode)))`)
	if !strings.HasPrefix(string(res.Stdout), want) || strings.Count(string(res.Stdout), "\n") > 4 {
		t.Errorf("it has %q, want %q", res.Stdout, want)
	}
}

// findSecret looks for a planted word in its environment, in every file that it
// can read and in every page that is mapped. The pages are found by asking for
// their places: where a mapping can be made nothing is, and what cannot be made
// is halved.
const findSecret = `
import re
pat=re.compile(rb'S[u]ite[S]ecret([0-9a-f]{32})'); word=b'Suite'+b'Secret'
def has(b): return word in b and pat.search(b)
hits=set()
for k,v in os.environb.items():
    if has(v): hits.add('environment')
files=0
top='/' if os.path.exists('/code') else os.environ['SUITE_FOLDER']
for d,_,names in os.walk(top):
    if d.startswith(('/code','/dev')): continue
    for n in names:
        try:
            with open(os.path.join(d,n),'rb') as f: b=f.read(); files+=1
        except OSError: continue
        if has(b): hits.add('file')
del b
found=[]
def holds(a,n):
    try: r=raw('mmap',a,n,0,0x22|0x4000|0x100000,-1,0)
    except OSError: return True
    _L.munmap(ctypes.c_void_p(r),ctypes.c_size_t(n)); return False
def look(a,n):
    if not holds(a,n): return
    if n<=65536: found.append((a,n)); return
    look(a,n//2); look(a+n//2,n//2)
for i in range(1<<7): look(i<<40,1<<40)
r,w=os.pipe(); read=0; last=b''
for a,n in found:
    for p in range(a,a+n,4096):
        try: raw('write',w,ctypes.c_void_p(p),4096)
        except OSError:
            # Linux before 6.15 leaves an empty place in the pipe, and 16 fill it
            os.close(r); os.close(w); r,w=os.pipe(); continue
        b=os.read(r,4096); read+=1
        if has(last+b): hits.add('memory')
        last=b[-64:]
say('looked in',len(os.environ),files,read)
say('found',sorted(hits))
`

// planting is held while a secret stands in this process's environment: suites run
// beside each other, and each looks for its own there.
var planting sync.Mutex

// newSecret is a word that findSecret finds.
func newSecret() string {
	var b [16]byte
	rand.Read(b[:])
	return "Suite" + "Secret" + hex.EncodeToString(b[:])
}

// secrets: nothing of the supervisor's environment, memory or files is found.
func secrets(t *testing.T, s *suite) {
	secret := newSecret()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "secret"), []byte(secret), 0o644)
	planting.Lock()
	defer planting.Unlock()
	os.Setenv("SUITE_SECRET", secret)
	defer os.Unsetenv("SUITE_SECRET")
	res := s.python(t, findSecret)
	out := string(res.Stdout)
	var env, files, pages int
	if _, err := fmt.Sscanf(out, "looked in %d %d %d", &env, &files, &pages); err != nil || files < 500 || pages < 500 {
		t.Errorf("it looked in %q (%.600q)", out, res.Stderr)
	}
	if !strings.HasSuffix(out, "found []\n") {
		t.Errorf("IT FOUND THE SECRET: %q", out)
	}
	if s.part.brief {
		return
	}
	os.Setenv("SUITE_FOLDER", dir)
	defer os.Unsetenv("SUITE_FOLDER")
	twin, how := s.outside(t, try{code: findSecret})
	if !strings.Contains(twin, "found ['environment', 'file', 'memory']") {
		t.Errorf("outside the same search found %s %.800q", how, twin)
	}
}

// ownPages: what a run writes into a private mapping of a library, the next one
// does not see.
func ownPages(t *testing.T, s *suite) {
	code := `
import mmap
n=os.open(lib,0); size=os.fstat(n).st_size
a=raw('mmap',0,4096,3,2,n,0)
say('was',ctypes.string_at(a,8)==os.pread(n,8,0))
ctypes.memmove(a,b'HOLDFAST',8); say('now',ctypes.string_at(a,8),os.pread(n,8,0)==b'HOLDFAST')`
	for range 2 {
		if res := s.python(t, code); string(res.Stdout) != "was True\nnow b'HOLDFAST' False\n" {
			t.Errorf("%q %q", res.Stdout, res.Stderr)
		}
	}
}

// pair runs two programs at once, and outside as the twin, and returns what each
// said.
func (s *suite) pair(t *testing.T, one, two string) (a, b *posture.Result) {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() { a = s.python(t, one) })
	wg.Go(func() { b = s.python(t, two) })
	wg.Wait()
	return a, b
}

const waiter = `
import time
a=raw('mmap',0,4096,1,1,os.open(lib,0),0)
v=ctypes.c_int.from_address(a).value
t=(ctypes.c_long*2)(1,500000000)
try: raw('futex',a,0,v,t); say('woken')
except OSError as e: say('nobody',errno.errorcode[e.errno])
`

const waker = `
import time
a=raw('mmap',0,4096,1,1,os.open(lib,0),0)
end=time.time()+1.2; n=0
while time.time()<end and n==0:
    try: n=raw('futex',a,1,1)
    except OSError: break
    time.sleep(.01)
say('woke',n)
`

// pairFutex: a file that two runs map is a place to wait at; no run may wake
// another there.
func pairFutex(t *testing.T, s *suite) {
	a, b := s.pair(t, waiter, waker)
	if string(a.Stdout) != "nobody ETIMEDOUT\n" || string(b.Stdout) != "woke 0\n" {
		t.Errorf("A MESSAGE PASSED: %q and %q", a.Stdout, b.Stdout)
	}
	if s.part.brief {
		return
	}
	var out [2]string
	for range 5 { // on a busy machine one of the two can come too late for the other
		var wg sync.WaitGroup
		for i, code := range []string{waiter, waker} {
			wg.Go(func() { out[i], _ = s.outside(t, try{code: code}) })
		}
		wg.Wait()
		if out[0] == "woken\n" && out[1] == "woke 1\n" {
			return
		}
	}
	t.Errorf("outside no message passed: %q", out)
}

// pairMemory: what one writes into a shared mapping of its own scratch the other
// does not find under the same name.
func pairMemory(t *testing.T, s *suite) {
	const code = `
import mmap,time
f=open('/tmp/m','a+b'); f.truncate(4096)
m=mmap.mmap(f.fileno(),4096); m[0]+=1
time.sleep(.4); say('sees',m[0])`
	a, b := s.pair(t, code, code)
	if string(a.Stdout) != "sees 1\n" || string(b.Stdout) != "sees 1\n" {
		t.Errorf("A MESSAGE PASSED: %q and %q", a.Stdout, b.Stdout)
	}
}

// pairTimes: nothing that two runs see keeps a time that one of them can set.
func pairTimes(t *testing.T, s *suite) {
	const look = `
import time
def times(): return {p:os.stat(p)[7:] for p in ('/','/tmp/..','/dev','/dev/null','/dev/urandom','/usr',lib,'/code')}
b=times(); c=os.fstat(0)
time.sleep(%s)
say('changed',[p for p,t in times().items() if t!=b[p]], os.fstat(0).st_mtime_ns!=c.st_mtime_ns)`
	const touch = `
import time
end=time.time()+1.3
while time.time()<end:
    for p in ('/','/dev','/dev/null','/dev/urandom','/usr',lib,'/code',0,1):
        try: os.utime(p)
        except OSError: pass
    try: os.pwrite(os.open('/dev/null',1),b'x',0); os.read(0,1)
    except OSError: pass
    time.sleep(.05)`
	a, _ := s.pair(t, fmt.Sprintf(look, "1.0"), touch)
	if string(a.Stdout) != "changed [] False\n" {
		t.Errorf("A MESSAGE PASSED: %q", a.Stdout)
	}
}

// pairAtime: reading a library leaves no mark that another run sees.
func pairAtime(t *testing.T, s *suite) {
	const look = `
import time
p=os.path.join(os.path.dirname(lib),'this.py')
b=os.stat(p).st_atime_ns; time.sleep(.8); say('read',os.stat(p).st_atime_ns!=b)`
	const read = `
import time
time.sleep(.3); p=os.path.join(os.path.dirname(lib),'this.py')
for _ in range(5): open(p).read(); os.listdir(os.path.dirname(p)); time.sleep(.05)`
	if a, _ := s.pair(t, look, read); string(a.Stdout) != "read False\n" {
		t.Errorf("A MESSAGE PASSED: %q", a.Stdout)
	}
}

// pairNames: a name that one binds, or a signal that it sends, reaches no other.
func pairNames(t *testing.T, s *suite) { bindNames(t, s, 2) }

func bindNames(t *testing.T, s *suite, pid int) {
	t.Helper()
	const code = `
import socket,time
for k in (socket.SOCK_STREAM,socket.SOCK_DGRAM):
    try: socket.socket(socket.AF_UNIX,k).bind('\0suite'); say('bound')
    except OSError: pass
seen=0
for p in range(3,1024): # a run has far fewer, each with a number of its own
    try: os.kill(p,0); seen+=1
    except OSError: pass
say('pid',os.getpid(),'others',seen)`
	a, b := s.pair(t, code, code)
	for _, r := range []*posture.Result{a, b} {
		if string(r.Stdout) != fmt.Sprintf("pid %d others 0\n", pid) {
			t.Errorf("%q %q", r.Stdout, r.Stderr)
		}
	}
}

// badRequests: the failure predicates of 2.1 that a request alone brings about.
func badRequests(t *testing.T, s *suite) {
	big := make([]byte, sandbox.MaxCode+1)
	for i := range big {
		big[i] = ' '
	}
	many := map[string][]byte{}
	for i := range sandbox.MaxFiles + 1 {
		many[fmt.Sprint(i)] = nil
	}
	for name, tc := range map[string]struct {
		change func(*sandbox.Spec)
		kind   holdfast.Kind
	}{
		"no id":               {func(s *sandbox.Spec) { s.ID = "" }, holdfast.KindProtocol},
		"no code":             {func(s *sandbox.Spec) { s.Code = nil }, holdfast.KindProtocol},
		"code that is bytes":  {func(s *sandbox.Spec) { s.Code = []byte("a\x00b") }, holdfast.KindProtocol},
		"code not text":       {func(s *sandbox.Spec) { s.Code = []byte("\xff\xfe") }, holdfast.KindProtocol},
		"no language":         {func(s *sandbox.Spec) { s.Language = "" }, holdfast.KindProtocol},
		"another language":    {func(s *sandbox.Spec) { s.Language = "cobol" }, holdfast.KindLanguage},
		"a path for language": {func(s *sandbox.Spec) { s.Language = "../bin/sh" }, holdfast.KindLanguage},
		"too much code":       {func(s *sandbox.Spec) { s.Code = big }, holdfast.KindCodeSize},
		"too long":            {func(s *sandbox.Spec) { s.Timeout = 31 * time.Second }, holdfast.KindLimit},
		"a year":              {func(s *sandbox.Spec) { s.Timeout = 365 * 24 * time.Hour }, holdfast.KindLimit},
		"a time before now":   {func(s *sandbox.Spec) { s.Timeout = -1 }, holdfast.KindLimit},
		"too much memory":     {func(s *sandbox.Spec) { s.MemoryMB = 513 }, holdfast.KindLimit},
		"memory below none":   {func(s *sandbox.Spec) { s.MemoryMB = -1 }, holdfast.KindLimit},
		"three cores":         {func(s *sandbox.Spec) { s.CPUPeriod, s.CPUQuota = time.Second, 3*time.Second }, holdfast.KindLimit},
		"a name that climbs":  {func(s *sandbox.Spec) { s.Files = map[string][]byte{"../x": nil} }, holdfast.KindProtocol},
		"an absolute name":    {func(s *sandbox.Spec) { s.Files = map[string][]byte{"/etc/passwd": nil} }, holdfast.KindProtocol},
		"a name of two lines": {func(s *sandbox.Spec) { s.Files = map[string][]byte{"a\nb": nil} }, holdfast.KindProtocol},
		"a file as folder":    {func(s *sandbox.Spec) { s.Files = map[string][]byte{"a": nil, "a/b": nil} }, holdfast.KindProtocol},
		"too many files":      {func(s *sandbox.Spec) { s.Files = many }, holdfast.KindProtocol},
		"the loader's ways":   {func(s *sandbox.Spec) { s.Environment = map[string]string{"LD_PRELOAD": "x"} }, holdfast.KindProtocol},
		"a wall nobody knows": {func(s *sandbox.Spec) { s.Need = []posture.Wall{"moat"} }, holdfast.KindLimit},
		"a call nobody knows": {func(s *sandbox.Spec) { s.Narrow = []string{"no_such_call"} }, holdfast.KindProtocol},
	} {
		spec := sandbox.Spec{ID: "bad", Language: "python3", Code: []byte("print('ran')")}
		tc.change(&spec)
		res, err := s.run(t, spec)
		var e *holdfast.Error
		if !errors.As(err, &e) || e.Kind != tc.kind || e.Hint == "" || res != nil {
			t.Errorf("%s: %v, want kind %v with a hint", name, err, tc.kind)
		}
	}
}

// ownEnd: "Code exits with error": its own code and words, and nothing of ours.
func ownEnd(t *testing.T, s *suite) {
	res := s.python(t, `sys.stderr.write('mine'); sys.exit(7)`)
	if res.State != posture.Completed || res.ExitCode != 7 || string(res.Stderr) != "mine" || res.Reason != "" {
		t.Errorf("%s %d %q %q", res.State, res.ExitCode, res.Stderr, res.Reason)
	}
}

// halted: the caller goes away, and the code with it.
func halted(t *testing.T, s *suite) {
	res, late, err := s.haltedAfter(t, 500*time.Millisecond)
	for after := time.Second; res != nil && res.State == posture.SpawnError && after < time.Minute; after *= 2 {
		res, late, err = s.haltedAfter(t, after) // it had not begun
	}
	if err != nil || res.Reason != posture.ReasonHalt || res.ExitCode != posture.ExitLimit || late > 25*time.Second { // its own limit is 30
		t.Errorf("%+v %v, %v later", res, err, late)
	}
}

// haltedAfter runs code without an end until its caller goes away, and says how much
// later it came back.
func (s *suite) haltedAfter(t *testing.T, after time.Duration) (*posture.Result, time.Duration, error) {
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	start := time.Now()
	res, err := s.Run(ctx, sandbox.Spec{ID: "halt", Language: "python3", Code: []byte("while True: pass"), Need: least, Timeout: sandbox.MaxTimeout})
	return res, time.Since(start) - after, err
}

// again: a wall that was tried forty times, or ten in brief, stands, and names each.
func again(t *testing.T, s *suite) {
	times := 40
	if s.part.brief {
		times = 10
	}
	for i := range times {
		res := s.compiled(t, "manythreads")
		if res.ExitCode != posture.ExitSyscall || res.Call == nil || res.Call.Name != "unshare" {
			t.Fatalf("attempt %d: %d %v", i, res.ExitCode, res.Call)
		}
	}
}
