package sandboxtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// channels are what two runs, or a run and the host, could tell each other
// something by, tried with both ends.
func channels() []property {
	return []property{
		{"a thread that ends wakes no other run", message{listen: listenAt, send: `
def f():
    raw('set_tid_address',a)
speak(f)`}.passesNot},
		{"a lock that its owner leaves wakes no other run", message{listen: listenAt, send: `
def f():
    h=(ctypes.c_uint64*3)(); h[0]=ctypes.addressof(h); h[2]=a; kept.append(h)
    raw('set_robust_list',h,24)
speak(f)`}.passesNot},
		{"a lock on a library is seen by no other run", message{listen: `
import time,fcntl,struct
n=os.open(lib,0); seen=0; end=time.time()+1.2
while time.time()<end and not seen:
    k=struct.unpack('hhqqi4x',fcntl.fcntl(n,fcntl.F_GETLK,struct.pack('hhqqi4x',fcntl.F_WRLCK,0,0,0,0)))
    seen=int(k[0]!=fcntl.F_UNLCK); time.sleep(.01)
say('heard',seen)`, send: `
import time,fcntl,struct
n=os.open(lib,0); time.sleep(.2)
fcntl.fcntl(n,fcntl.F_SETLK,struct.pack('hhqqi4x',fcntl.F_RDLCK,0,0,0,0))
time.sleep(.8); say('spoke')`}.passesNot},
		{"how many threads there are is seen by no other run", message{listen: `
import time
b=ctypes.create_string_buffer(112); seen=set(); end=time.time()+1.2
while time.time()<end:
    raw('sysinfo',b); seen.add(bytes(b)[8:]); time.sleep(.01)
say('heard',int(len(seen)>1))`, send: `
import time,threading
time.sleep(.3); go=threading.Event()
for _ in range(40): threading.Thread(target=go.wait,daemon=True).start()
time.sleep(.5); go.set(); say('spoke')`}.passesNot},
		{"how full the disk is is not seen", diskUnseen},
		{"a lock on a device is not seen by the host", deviceLock},
	}
}

// message is what one run does and another would hear: "heard 1".
type message struct{ listen, send string }

// The two ends of a message that somebody who waits on a library is woken by: a
// word that is 0 in a file that both map.
const atLibrary = `
import time,threading,_ctypes,mmap
kept=[]
with open(_ctypes.__file__,'rb') as f: b=f.read()
at=next(i for i in range(4096*2,len(b)-4,4) if b[i:i+4]==bytes(4))
a=raw('mmap',0,4096,1,1,os.open(_ctypes.__file__,0),at//4096*4096)+at%4096
def speak(f):
    time.sleep(.3)
    for _ in range(20):
        t=threading.Thread(target=f); t.start(); time.sleep(.04)
    say('spoke'); os._exit(0)
`

const listenAt = atLibrary + `
t=(ctypes.c_long*2)(1,500000000)
try: raw('futex',a,0,0,t); say('heard 1')
except OSError as e: say('heard 0')
`

func (m message) passesNot(t *testing.T, s *suite) {
	if strings.Contains(m.send, "speak(f)") {
		m.send = atLibrary + m.send
	}
	a, b := s.pair(t, m.listen, m.send)
	if string(a.Stdout) != "heard 0\n" || string(b.Stdout) != "spoke\n" {
		t.Errorf("A MESSAGE PASSED: %q and %q (%.600q %.600q)", a.Stdout, b.Stdout, a.Stderr, b.Stderr)
	}
	if s.part.brief {
		return
	}
	// On a busy machine one of the two can come too late for the other.
	var out [2]string
	for range 5 {
		var wg sync.WaitGroup
		for i, code := range []string{m.listen, m.send} {
			wg.Go(func() { out[i], _ = s.outside(t, try{code: code}) })
		}
		wg.Wait()
		if out[0] == "heard 1\n" && out[1] == "spoke\n" {
			return
		}
	}
	t.Errorf("outside no message passed: %q", out)
}

// diskUnseen: what is written to the disk of the state directory.
func diskUnseen(t *testing.T, s *suite) {
	const code = `
import time
p='/' if os.path.exists('/code') else os.environ['TMPDIR']
seen=set(); end=time.time()+1.0
while time.time()<end:
    v=os.statvfs(p); seen.add((v.f_blocks,v.f_bfree,v.f_bavail,v.f_files,v.f_ffree)); time.sleep(.02)
say('heard',int(len(seen)>1))`
	dir, done := t.TempDir(), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
				write(t, filepath.Join(dir, fmt.Sprint(i)), make([]byte, 1<<20), 0o600)
			}
		}
	})
	res := s.python(t, code)
	// On a busy machine a look outside may find nothing written meanwhile.
	out, how := "", ""
	for i := 0; i < 5 && out != "heard 1\n" && !s.part.brief; i++ {
		out, how = s.outside(t, try{code: code})
	}
	close(done)
	wg.Wait()
	if string(res.Stdout) != "heard 0\n" {
		t.Errorf("it sees the disk: %q %q", res.Stdout, res.Stderr)
	}
	if out != "heard 1\n" && !s.part.brief {
		t.Errorf("outside it does not: %q, %s", out, how)
	}
}

// deviceLock: /dev/null is the host's own.
func deviceLock(t *testing.T, s *suite) {
	const code = `
import time,fcntl,struct
with attempt():
    n=os.open('/dev/null',0)
    fcntl.fcntl(n,fcntl.F_SETLK,struct.pack('hhqqi4x',fcntl.F_RDLCK,0,7000,%d,0))
time.sleep(.8)`
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	heard := func(length int64, run func()) bool {
		done := make(chan struct{})
		go func() { run(); close(done) }()
		for seen := false; ; {
			held, err := lockSeen(null, 7000, length)
			if err != nil {
				t.Error(err)
			}
			seen = seen || held
			select {
			case <-done:
				return seen
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	own := int64(os.Getpid())
	if heard(own, func() { s.python(t, fmt.Sprintf(code, own)) }) {
		t.Error("A MESSAGE PASSED to the host by a lock on /dev/null")
	}
	if !s.part.brief && !heard(own+1, func() { s.outside(t, try{code: fmt.Sprintf(code, own+1)}) }) {
		t.Error("outside no message passed")
	}
}
