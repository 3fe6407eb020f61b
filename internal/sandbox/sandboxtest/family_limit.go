package sandboxtest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// signalTries play with signals.
func signalTries() []try {
	bad := `call('unshare',0x10000000)`
	blocked := `
import signal
signal.pthread_sigmask(signal.SIG_BLOCK,range(1,65))
`
	return []try{
		{name: "block every signal", code: blocked + bad, want: escape("unshare"), twin: here},
		{name: "handle SIGSYS", code: `
import signal
signal.signal(signal.SIGSYS,lambda *a: say('reached'))
` + bad, want: escape("unshare"), twin: here},
		{name: "ignore every signal", code: `
import signal
for s in range(1,65):
    try: signal.signal(s,signal.SIG_IGN)
    except OSError: pass
` + bad, want: escape("unshare"), twin: here},
		{name: "a compiled program handles and blocks them", static: "sigsys", want: escape("unshare"), twin: comesBack},
		{name: "kill the init", code: `with attempt(): os.kill(1,9)`, want: refused("kill", "EPERM"), twin: twin{scratch: true, root: false, code: `with attempt(): os.kill(1,0)`}},
		{name: "ask after the init", code: `with attempt(): os.kill(1,0)`, want: refused("kill", "EPERM"), twin: inScratch},
		{name: "kill everybody", code: `with attempt(): os.kill(-1,9 if os.path.exists('/code') else 0)`, want: refused("kill", "EPERM"), twin: here},
		{name: "kill its group", code: `with attempt(): os.kill(0,9 if os.path.exists('/code') else 0)`, want: refused("kill", "EPERM"), twin: here},
		{name: "kill its parent", code: `with attempt(): os.kill(os.getppid(),9 if os.path.exists('/code') else 0)`, want: refused("kill", "EPERM"), twin: here},
		{name: "kill by thread", code: `call('tgkill',1,1,9) if os.path.exists('/code') else call('tgkill',os.getpid(),os.getpid(),0)`, want: refused("tgkill", "EPERM"), twin: here},
		{name: "kill by thread alone", code: `call('tkill',1,9) if os.path.exists('/code') else call('tkill',os.getpid(),0)`, want: refused("tkill", "EPERM"), twin: here},
		{name: "queue a signal", code: `
b=ctypes.create_string_buffer(128); b[8]=b'\xff'; b[9]=b'\xff'; b[10]=b'\xff'; b[11]=b'\xff'
call('rt_sigqueueinfo',1 if os.path.exists('/code') else os.getpid(),17,b)`, want: refused("rt_sigqueueinfo", "EPERM"), twin: here},
		{name: "signal by descriptor", code: `call('pidfd_send_signal',near('pidfd_open',os.getpid(),0),0,None,0)`, want: refused("pidfd_send_signal", "ENOSYS"), twin: here},
		{name: "abort itself", code: `os.abort()`, want: ends(posture.Completed, posture.ReasonSignal, 134), twin: twin{ends: "signal: aborted"}},
		{name: "kill itself", code: `os.kill(os.getpid(),9)`, want: ends(posture.Completed, posture.ReasonSignal, 137), twin: twin{ends: "signal: killed"}},
		{name: "a fault", code: `ctypes.string_at(1)`, want: ends(posture.Completed, posture.ReasonSignal, 139), twin: twin{ends: "signal: segmentation fault"}},
		{name: "a status that looks like a kill", code: `os._exit(159)`, want: ends(posture.Completed, "", 159), twin: twin{ends: "exit status 159"}},
		{name: "a status that looks like a limit", code: `os._exit(137)`, want: ends(posture.Completed, "", 137), twin: twin{ends: "exit status 137"}},
		{name: "stop itself", code: `
import signal
say('stops'); os.kill(os.getpid(),signal.SIGSTOP)`, spec: soon(700), want: ends(posture.Timeout, posture.ReasonWall, 137), twin: twin{code: `
import signal
p=os.fork()
if p==0: os.kill(os.getpid(),signal.SIGSTOP)
os.waitpid(p,os.WUNTRACED); os.kill(p,9); say('reached')`}},
		{name: "wait with every signal blocked", code: blocked + `
import time
time.sleep(60)`, spec: soon(700), want: ends(posture.Timeout, posture.ReasonWall, 137), twin: twin{code: blocked + "say('reached')"}},
		{name: "raise a limit", code: `
import resource
with attempt(): raw('prlimit64',0,7,(ctypes.c_uint64*2)(4096,4096),None)`, want: denied("EPERM"), twin: byRoot},
	}
}

func soon(ms int) func(*sandbox.Spec) {
	return func(s *sandbox.Spec) { s.Timeout = time.Duration(ms) * time.Millisecond }
}

func memory(mb int64) func(*sandbox.Spec) {
	return func(s *sandbox.Spec) { s.MemoryMB = mb }
}

// limitTries take more than their share (003 2.1 "Resource Limits").
func limitTries() []try {
	stopped := ends(posture.OOM, posture.ReasonOOM, 137)
	oom := where(posture.WallMemory, stopped, short(stopped))
	held := func(mb int) string {
		return fmt.Sprintf(`
b=bytearray(%d<<20)
for i in range(0,len(b),4096): b[i]=1
say('held' if os.path.exists('/code') else 'reached')`, mb)
	}
	// The kernel fills a mapping (MAP_POPULATE) in a fraction of the time that a program
	// needs to touch its pages, each of which faults: so the limit on memory comes before
	// the limit on time however busy the machine is.
	filled := func(mb int) string {
		return fmt.Sprintf(`
try: raw('mmap',0,%d<<20,3,0x8022,-1,0)
except OSError as e:
    if e.errno==errno.ENOMEM: raise MemoryError
    raise
say('held' if os.path.exists('/code') else 'reached')`, mb)
	}
	return []try{
		{name: "a loop without end", code: `while True: pass`, spec: soon(1000), want: near(time.Second, ends(posture.Timeout, posture.ReasonWall, 137)), twin: twin{none: "a loop never gets anywhere; that it ends is shown by the limit"}},
		{name: "the default timeout", patient: true, code: `
import time
time.sleep(25)
say('reached')`, spec: func(s *sandbox.Spec) { s.Timeout = 0 }, want: near(10*time.Second, ends(posture.Timeout, posture.ReasonWall, 137)), twin: twin{code: "import time\ntime.sleep(.1)\nsay('reached')"}},
		{name: "the greatest timeout", patient: true, code: `
import time
time.sleep(45)
say('reached')`, spec: soon(30_000), want: near(30*time.Second, ends(posture.Timeout, posture.ReasonWall, 137)), twin: twin{code: "import time\ntime.sleep(.1)\nsay('reached')"}},
		{name: "the default memory", code: held(300), spec: memory(0), want: oom, twin: here},
		{name: "within the default memory", code: held(180), spec: memory(0), want: says("held"), twin: here},
		{name: "the greatest memory", costly: true, code: filled(560), spec: memory(512), want: oom, twin: here},
		{name: "within the greatest memory", costly: true, code: filled(420), spec: memory(512), want: says("held"), twin: here},
		{name: "a list", code: `
x=[1]*99999999
say('held' if os.path.exists('/code') else 'reached')`, want: oom, twin: here},
		{name: "memory of its own mapping", costly: true, code: `
a=raw('mmap',0,400<<20,3,0x8022,-1,0)
say('held' if os.path.exists('/code') else 'reached')`, want: oom, twin: here},
		{name: "memory in files of the scratch", code: `
f=open('f','wb')
for _ in range(70): f.write(b'x'*(1<<20))
f.flush(); say('held' if os.path.exists('/code') else 'reached')`, spec: memory(48), want: where(posture.WallMemory, stopped, says("held")), twin: here},
		{name: "memory that is shared", code: `
import time
a=raw('mmap',0,400<<20,3,0x8021,-1,0)
time.sleep(1)
say('held' if os.path.exists('/code') else 'reached')`, want: oom, twin: here},
		{name: "memory that grows downward", costly: true, code: `
a=raw('mmap',0,400<<20,3,0x8122,-1,0)
say('held' if os.path.exists('/code') else 'reached')`, want: oom, twin: here},
		{name: "the scratch", code: `
n=0
with attempt():
    for i in range(12):
        with open('f%d'%i,'wb') as f:
            for _ in range(10): f.write(b'x'*(1<<20)); n+=1`, spec: memory(512), want: denied("ENOSPC"), twin: here},
		{name: "names in the scratch", code: `
with attempt():
    for i in range(17000): os.close(os.open('f%d'%i,os.O_CREAT|os.O_WRONLY))`, spec: memory(512), want: denied("ENOSPC"), twin: here},
		{name: "a file beyond its limit", code: `
with attempt(): os.truncate(os.open('f',os.O_CREAT|os.O_WRONLY),200<<20)`, want: denied("EFBIG"), twin: here},
		{name: "descriptors", code: `
with attempt():
    for _ in range(300): os.dup(1)`, want: denied("EMFILE"), twin: here},
		{name: "exactly so many descriptors", code: `
n=0
try:
    while True: os.dup(1); n+=1
except OSError: pass
say('had',n+3)
if not os.path.exists('/code'): say('reached')`, want: says("had 256\n"), twin: here},
		{name: "threads", code: `
import threading,time
stop=threading.Event(); n=0
try:
    for _ in range(200): threading.Thread(target=stop.wait,daemon=True).start(); n+=1
    say('held' if os.path.exists('/code') else 'reached')
except RuntimeError: say('refused at',n)
stop.set(); os._exit(0)`, want: says("refused at"), twin: here},
		{name: "processor time", static: "cores", spec: func(s *sandbox.Spec) {
			s.CPUPeriod, s.CPUQuota = 100*time.Millisecond, 20*time.Millisecond
		}, want: where(posture.WallCPU, used(0, 600), used(100, 7000)), twin: twin{says: "used"}},
		{name: "the default share of processors", costly: true, static: "cores", want: where(posture.WallCPU, used(0, 2100), used(100, 7000)), twin: twin{says: "used"}},
		{name: "the greatest share of processors", costly: true, static: "cores", spec: func(s *sandbox.Spec) {
			s.CPUPeriod, s.CPUQuota = 100*time.Millisecond, 200*time.Millisecond
		}, want: where(posture.WallCPU, used(0, 3500), used(100, 7000)), twin: twin{says: "used"}},
		{name: "processes without end", code: `
n=0
for _ in range(2000):
    try:
        if os.fork()==0: os.read(os.pipe()[0],1)
        n+=1
    except OSError: pass
say('made',n); n and say('reached')`, want: says("made 0\n"), twin: twin{code: `
if os.fork()==0: os._exit(0)
say('reached')`}},
		{name: "core files", code: `
import resource
say('core',resource.getrlimit(resource.RLIMIT_CORE))
try: resource.setrlimit(resource.RLIMIT_CORE,(1<<20,1<<20)); say('reached')
except (OSError,ValueError): pass`, want: says("core (0, 0)"), twin: twin{says: "core ("}},
	}
}

// short: without a control group either the run is stopped, or the program is
// told that there is no more and ends by its own error.
func short(stopped want) want {
	return func(t *testing.T, s *suite, res *posture.Result) {
		t.Helper()
		if res.State == posture.Completed && res.ExitCode == 1 && strings.Contains(string(res.Stderr), "MemoryError") {
			never(t, res)
			return
		}
		stopped(t, s, res)
	}
}

// near also wants the time by the wall to be what the limit says, and what a
// busy machine takes to begin and to end: more where the programs run in one that is
// emulated, or wait for a disk, and less than lies between one limit and another.
func near(limit time.Duration, w want) want {
	return func(t *testing.T, s *suite, res *posture.Result) {
		t.Helper()
		w(t, s, res)
		slack := 8 * time.Second
		if s.patience > 0 {
			slack = 20 * time.Second
		}
		if res.WallTime < limit || res.WallTime > limit+slack {
			t.Errorf("it took %v, the limit is %v", res.WallTime, limit)
		}
		if !strings.HasSuffix(string(res.Stderr), "Timeout: wall-clock limit exceeded\n") {
			t.Errorf("stderr ends in %.200q", res.Stderr)
		}
	}
}

// used: the program's threads used from least to most milliseconds of
// processors in 1500 ms.
func used(least, most int) want {
	return func(t *testing.T, _ *suite, res *posture.Result) {
		t.Helper()
		var ms int
		if _, err := fmt.Sscanf(string(res.Stdout), "used %d", &ms); err != nil || ms < least || ms > most {
			t.Errorf("it used %q ms, want %d to %d", res.Stdout, least, most)
		}
	}
}

const mark = "[holdfast: cut here, 1 MB is kept]"

// floodTries write without end.
func floodTries() []try {
	cut := func(which string) want {
		return func(t *testing.T, _ *suite, res *posture.Result) {
			t.Helper()
			ran(t, res)
			b := res.Stdout
			if which == "stderr" {
				b = res.Stderr
			}
			if len(b) < sandbox.MaxOutput || len(b) > sandbox.MaxOutput+100 || !bytes.Contains(b[len(b)-60:], []byte(mark)) {
				t.Errorf("%s has %d bytes and ends in %.80q", which, len(b), b[max(0, len(b)-80):])
			}
		}
	}
	flood := func(w want) want {
		return func(t *testing.T, s *suite, res *posture.Result) {
			t.Helper()
			w(t, s, res)
			if len(res.Stdout) > sandbox.MaxOutput+200 || len(res.Stderr) > sandbox.MaxOutput+200 {
				t.Errorf("kept %d and %d bytes", len(res.Stdout), len(res.Stderr))
			}
		}
	}
	ended := ends(posture.Completed, posture.ReasonOutput, 137)
	return []try{
		{name: "two megabytes of output", code: `os.write(1,b'x'*(1<<20)); [os.write(1,b'y'*65536) for _ in range(16)]`, want: cut("stdout"), twin: twin{says: "yyyyyyyy"}},
		{name: "two megabytes of errors", code: `os.write(2,b'x'*(1<<20)); [os.write(2,b'y'*65536) for _ in range(16)]`, want: cut("stderr"), twin: twin{says: "yyyyyyyy"}},
		{name: "output without end", code: `
b=b'z'*(1<<20)
for _ in range(80 if os.path.exists('/code') else 3): os.write(1,b)
while os.path.exists('/code'): os.write(1,b)`, want: flood(ended), twin: twin{says: "zzzz"}},
		{name: "errors without end", code: `
b=b'z'*(1<<20)
for _ in range(3): os.write(2,b)
while os.path.exists('/code'): os.write(2,b)`, want: flood(ended), twin: twin{says: "zzzz"}},
	}
}
