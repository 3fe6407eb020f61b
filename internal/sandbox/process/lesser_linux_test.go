package process

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestBombsWithoutGroups: where there is no control group a run that takes more
// memory than its share is ended and named all the same, by whichever way it
// takes it, and threads are bounded.
func TestBombsWithoutGroups(t *testing.T) {
	b := withoutGroups(t)
	const rw, populate = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_POPULATE | unix.MAP_ANONYMOUS
	oom := func(t *testing.T, r *posture.Result) {
		if r.State != posture.OOM || r.Reason != posture.ReasonOOM || r.ExitCode != posture.ExitLimit || !strings.HasSuffix(string(r.Stderr), "OOM: memory limit exceeded\n") {
			t.Errorf("%s %q %d, stderr %.300q", r.State, r.Reason, r.ExitCode, r.Stderr)
		}
		if r.MemoryPeak > 400<<20 {
			t.Errorf("it got %d MB of 128", r.MemoryPeak>>20)
		}
	}
	says := func(words string) func(*testing.T, *posture.Result) {
		return func(t *testing.T, r *posture.Result) {
			if r.State != posture.Completed || !strings.Contains(string(r.Stdout)+string(r.Stderr), words) {
				t.Errorf("%s %q %d, %.300q %.300q, want %q", r.State, r.Reason, r.ExitCode, r.Stdout, r.Stderr, words)
			}
		}
	}
	refused := func(errno unix.Errno) func(*testing.T, *posture.Result) {
		return func(t *testing.T, r *posture.Result) {
			if got := answers(r.Stdout, 1)[0]; r.State != posture.Completed || got != -int64(errno) {
				t.Errorf("%s, and the answer was %s", r.State, answerWords(got))
			}
		}
	}
	costly := []string{"a lot of threads' work", "a script's heap"}
	for name, c := range map[string]struct {
		lang, code string
		want       func(*testing.T, *posture.Result)
	}{
		"lists":                    {"python3", "x = []\nwhile True: x.append(bytearray(1 << 20))", oom},
		"one that is too large":    {"python3", "bytearray(2 << 30)", says("MemoryError")},
		"reserved, not used":       {"python3", "x = bytes(300 << 20); print('held')", says("held")},
		"a lot of threads' work":   {"python3", "import threading\nx = []\ndef f():\n  while True: x.append(bytearray(1 << 20))\nfor _ in range(8): threading.Thread(target=f).start()", oom},
		"a first thread that ends": {"python3", "import threading, ctypes, time\nx = []\ndef f():\n  time.sleep(.3)\n  while True: x.append(bytearray(1 << 20)); time.sleep(.001)\nthreading.Thread(target=f).start()\nctypes.CDLL(None).syscall(" + map[string]string{"amd64": "60", "arm64": "93"}[runtime.GOARCH] + ", 0)", oom},
		"shared memory":            {"python3", "import mmap\nm = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096): m[i] = 1", oom},
		"threads":                  {"python3", "import threading\ne = threading.Event(); n = 0\ntry:\n  for _ in range(200): threading.Thread(target=e.wait, daemon=True).start(); n += 1\nexcept RuntimeError: print('refused at', n, flush=True)\nimport os; os._exit(0)", says("refused at 64\n")},
		"a script's buffers":       {"node", "const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))", oom},
		"a script's heap":          {"node", "const a = []; for (;;) a.push(new Array(1e5).fill(1.5))", oom},
		"a script":                 {"node", "console.log('ran')", says("ran")},
		"private, of a program":    {sandbox.Static, string(probe(asking(unix.SYS_MMAP, 0, 500<<20, rw, unix.MAP_PRIVATE|populate, -1, 0))), oom},
		"shared, of a program":     {sandbox.Static, string(probe(asking(unix.SYS_MMAP, 0, 2<<30, rw, unix.MAP_SHARED|populate, -1, 0))), oom},
		"a stack, of a program":    {sandbox.Static, string(probe(asking(unix.SYS_MMAP, 0, 2<<30, rw, unix.MAP_PRIVATE|unix.MAP_GROWSDOWN|populate, -1, 0))), oom},
		"too much, of a program":   {sandbox.Static, string(probe(asking(unix.SYS_MMAP, 0, 2<<30, rw, unix.MAP_PRIVATE|populate, -1, 0))), refused(unix.ENOMEM)},
		"made writable later": {sandbox.Static, string(probe(asking(unix.SYS_MPROTECT, probeText, 4096, unix.PROT_READ|unix.PROT_EXEC), asking(unix.SYS_MMAP, 0x7000_0000, 2<<30, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED, -1, 0),
			asking(unix.SYS_MPROTECT, 0x7000_0000, 2<<30, rw))), func(t *testing.T, r *posture.Result) {
			if got := answers(r.Stdout, 3); got[1] != 0x7000_0000 || got[2] != -int64(unix.ENOMEM) {
				t.Errorf("%s: %x", r.State, got)
			}
		}},
	} {
		if !testrepeat.Enduring && slices.Contains(costly, name) {
			continue // another one meets the same wall
		}
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			l := installed(t, c.lang)
			r, err := b.Run(t.Context(), sandbox.Spec{ID: "bomb", Language: l.Exact, Code: []byte(c.code), MemoryMB: 128, Timeout: sandbox.MaxTimeout, Need: anyWalls})
			if err != nil {
				t.Fatal(err)
			}
			c.want(t, r)
			t.Logf("%v, %d MB", r.WallTime, r.MemoryPeak>>20)
			for w, words := range map[posture.Wall]string{posture.WallMemory: "RLIMIT_DATA", posture.WallPids: "RLIMIT_NPROC", posture.WallCPU: "RLIMIT_CPU"} {
				if !strings.Contains(r.Posture.Instead[w], words) || !strings.HasPrefix(r.Posture.Instead[w], "not by a control group: ") || r.Posture.Down[w] == "" {
					t.Errorf("of %s the posture says %q instead of %q", w, r.Posture.Instead[w], r.Posture.Down[w])
				}
			}
		})
	}
}

// TestResident: only what is the process's own counts, and what has ended or
// cannot be read has nothing.
func TestResident(t *testing.T) {
	for text, want := range map[string]int64{
		"Name:\tx\nVmRSS:\t   900 kB\nRssAnon:\t     100 kB\nRssFile:\t  700 kB\nRssShmem:\t   100 kB\nVmPTE:\t   8 kB\nVmSwap:\t  10 kB\n": 218 << 10,
		"Name:\tRssAnon\nState:\tZ (zombie)\n": -1,
		"RssAnon:\tmuch kB\n":                  -1,
		"":                                     -1,
	} {
		got, ok := resident([]byte(text))
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}
