package process

import (
	"bytes"
	_ "embed"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/language"
)

// parking is how a language's workloads wait behind every wall, before anything
// of a request is there. They open a FIFO of their init's, and go on when it has
// been written to and closed.
type parking struct {
	fifo string // in /code
	// files stand in the scratch while it waits.
	files map[string][]byte
	// words are what goes through the FIFO.
	words func(o *order) []byte
	// early: it waits before its one execve, not behind it.
	early bool
	// zygote: it can be a fork of an interpreter that stands ready; forks: it is
	// one, which executes nothing.
	zygote, forks bool
	// room: an environment can be brought to it; see envRoom.
	room bool
	// shows prints its environment, names in their order, a NUL between them.
	shows []byte
	// takes says whether a request can be served by one that waits.
	takes func(spec sandbox.Spec) bool
	// hosts says whether a root lets it wait.
	hosts func(root string) bool
	// share divides the tier's Config.Parked: so many of the language wait, at least
	// one.
	share int
}

// fork is how a fork of a zygote waits. Its zygote has read what makes it wait.
func (p parking) fork() parking {
	p.forks, p.files = true, nil
	return p
}

// stock is how a fork waits that is made before its request is known: as late as
// an interpreter can, where it opens its program. An environment would come too
// late there, and a program in another encoding is read twice.
func (p parking) stock() parking {
	p = p.fork()
	p.fifo = "/code/main.py"
	p.words = func(o *order) []byte { return o.code }
	takes := p.takes
	p.takes = func(s sandbox.Spec) bool { return takes(s) && len(s.Environment) == 0 && !encoded(s.Code) }
	return p
}

// roomless is how a workload waits to which no environment can be brought.
func (p parking) roomless() parking {
	if p.room {
		p.room, p.takes = false, func(s sandbox.Spec) bool { return len(s.Environment) == 0 }
	}
	return p
}

// encoded says whether a program names an encoding, which Python looks for in
// its first two lines (PEP 263). A carriage return ends a line too.
func encoded(code []byte) bool {
	for range 2 {
		line, rest := code, []byte(nil)
		if end := bytes.IndexAny(code, "\r\n"); end >= 0 {
			line, rest = code[:end], code[end+1:]
			if code[end] == '\r' {
				rest = bytes.TrimPrefix(rest, []byte("\n"))
			}
		}
		if pythonEncoding().Match(line) {
			return true
		}
		code = rest
	}
	return false
}

var pythonEncoding = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[ \t\f]*#.*coding[:=]`)
})

// parkingOf returns how the workloads of a language wait.
func parkingOf(l language.Language) parking {
	switch l.Name {
	case "python3":
		return parkedPython()
	case "node":
		return parkedNode()
	case sandbox.Static:
		// The code is the program: what waits is a process that will execute it.
		return parking{fifo: "/code/request", early: true, takes: always, hosts: anywhere, share: 1}
	}
	return parking{takes: never, hosts: nowhere}
}

func always(sandbox.Spec) bool { return true }
func never(sandbox.Spec) bool  { return false }
func anywhere(string) bool     { return true }
func nowhere(string) bool      { return false }

//go:embed park.py
var parkPython string

// parkText is what an interpreter reads to become one that waits: zygote is what
// it does before that to have children, if it has any.
func parkText(zygote string) string {
	return strings.Replace(parkPython, "    # Here stands zygote.py, in a zygote.\n", zygote, 1)
}

// parkedPython waits in the import of sitecustomize, by which every interpreter
// starts and which a root does not have. Its hash seed, its addresses and all
// else that is random were made for it alone.
func parkedPython() parking {
	return parking{
		fifo:  "/code/request",
		files: map[string][]byte{"sitecustomize.py": []byte(parkText(""))},
		words: func(o *order) []byte {
			if !o.given {
				return nil // its own stands
			}
			return []byte(strings.Join(o.env, "\x00"))
		},
		takes: func(s sandbox.Spec) bool { return !early(s.Environment, pythonReads) && !shadows(s.Files) },
		hosts: func(root string) bool {
			own, err := filepath.Glob(filepath.Join(root, "usr", "lib*", "python3*", "sitecustomize*"))
			return err == nil && len(own) == 0
		},
		share:  1,
		zygote: true,
	}
}

// pythonReads begin the names that the interpreter or the C library read only
// when they start.
var pythonReads = []string{"PYTHON", "LC_", "LANG", "LOC", "TZ", "NLS", "GCONV", "GLIBC", "MALLOC", "LD_"}

func early(env map[string]string, prefixes []string) bool {
	for name := range env {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			return true
		}
	}
	return false
}

// pythonStarts are the modules that an interpreter imports before its program,
// some of which a file in the scratch can stand for.
var pythonStarts = strings.Fields(`__main__ _abc _bootlocale _codecs _collections_abc _distutils_hack _frozen_importlib _frozen_importlib_external _imp
	_io _locale _signal _sitebuiltins _stat _thread _virtualenv _warnings _weakref _weakrefset abc builtins codecs encodings genericpath io marshal nt ntpath os posix
	posixpath site sitecustomize usercustomize stat sys time types warnings zipimport linecache tokenize token re functools`)

// shadows says whether one of the files stands for a module that an interpreter
// imports as it starts.
func shadows(files map[string][]byte) bool {
	for name := range files {
		top, _, _ := strings.Cut(name, "/")
		stem, _, _ := strings.Cut(top, ".")
		if slices.Contains(pythonStarts, stem) {
			return true
		}
	}
	return false
}

// parkedNode waits to read its program, which is what goes through the FIFO: what
// node reads once is a regular file of the same name and text for all who look
// later. Its process.env is the C library's environment, of which it keeps nothing.
func parkedNode() parking {
	return parking{
		fifo:  "/code/main.js",
		words: func(o *order) []byte { return o.code },
		room:  true,
		shows: []byte(`process.stdout.write(Object.keys(process.env).map(k => k + '=' + process.env[k]).join('\0'))`),
		takes: func(s sandbox.Spec) bool { return !early(s.Environment, nodeReads) && fits(s.Environment) },
		hosts: anywhere,
		share: 2,
	}
}

// nodeReads begin the names that Node.js and what it links read before they read
// the program, or only once in a process; HOME is where it looks for modules.
var nodeReads = strings.Fields("NODE HOME UV_ V8_ OPENSSL SSL_ ICU SIMDUTF WATCH_REPORT LC_ LANG LOC TZ NLS GCONV GLIBC MALLOC LD_")

// parkedFor is how long a workload waits before another takes its place.
const parkedFor = 10 * time.Minute

// parkedSpec is what a workload that waits is held to; a request may differ in
// what is set when it comes. Its processor time can only be lowered then.
func parkedSpec(l language.Language) sandbox.Spec {
	return sandbox.Spec{ID: "parked", Language: l.Exact, Timeout: sandbox.MaxTimeout, MemoryMB: sandbox.DefaultMemoryMB, CPUPeriod: sandbox.DefaultPeriod, CPUQuota: sandbox.DefaultPeriod}
}

// cpuLimit is the bound of processor time that a run has beside its share.
func cpuLimit(timeout time.Duration) rlimit {
	return atMost(unix.RLIMIT_CPU, uint64(timeout.Seconds()*sandbox.MaxCores)+2)
}
