package sandboxtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// A refusal leaves the program running. So a brief suite makes many attempts that have to
// be refused one after another in one program, each in its own directory and with its own
// names. An attempt cannot hide another: each has its own part of the output, without
// which it fails, and uses up one of the refusals that are counted.

// ownPrograms has, of each family whose attempts are made together, those that are not: the
// program ends with them, or they change what others need.
var ownPrograms = map[string][]string{
	"process":   {"vfork"},
	"network":   {"the kernel's ciphers", "the hypervisor", "packets by memory", "ipsec keys", "the kernel's ciphers with high bits"},
	"channel":   {"shared memory", "shared memory by a key", "attaching memory", "a semaphore", "a queue", "a named queue"},
	"pagecache": {"vmsplice", "tee"},
	"files":     {"the only folders"},
	"node": {
		"exec", "execFile", "spawn", "spawn that shares its output", "spawn apart", "spawn by a shell", "fork", "spawn by a thread", "cluster",
		"a library of its own", "a library of its own by require", "setuid", "setgid", "seteuid", "setegid", "setuid to somebody", "setgroups",
		"watch", "watch everything below", "after natives were let in", "after its flags were changed", "with a clock of shared memory",
		"the inspector", "the inspector by a signal", "a name by its own question",
		"kill itself", "abort", "hear every signal", "memory of WebAssembly", "memory of buffers", "memory of the heap", "memory that threads share", "memory of strings", "threads",
		"output without end", "a file beyond its limit", "the scratch", "descriptors", "wait for nobody", "how full the disk is",
	},
}

// mostTogether bounds the attempts of one program.
const mostTogether = 40

// batch is a program that makes attempts one after another.
type batch struct {
	tries []try
	once  sync.Once
	res   *posture.Result
	said  map[string]string // by an attempt's name
}

// batchesOf returns the batches of a family, by the names of their attempts.
func batchesOf(f family) map[string]*batch {
	except, some := ownPrograms[f.name]
	if !some {
		return nil
	}
	of, last := map[string]*batch{}, map[bool]*batch{}
	for _, a := range f.tries {
		script := a.js != ""
		if a.static != "" || a.spec != nil || a.patient || slices.Contains(except, a.name) {
			continue
		}
		b := last[script]
		if b == nil || len(b.tries) == mostTogether {
			b = &batch{}
			last[script] = b
		}
		b.tries = append(b.tries, a)
		of[a.name] = b
	}
	return of
}

// run runs the program, and returns what it came to for one of its attempts.
func (b *batch) run(t *testing.T, s *suite, name string) *posture.Result {
	t.Helper()
	b.once.Do(func() {
		if b.tries[0].js != "" {
			b.res = s.node(t, b.script(t), func(*sandbox.Spec) {})
		} else {
			b.res = s.python(t, b.program())
		}
		b.said = map[string]string{}
		for _, part := range strings.Split(string(b.res.Stdout), "\x1e")[1:] {
			name, text, _ := strings.Cut(part, "\n")
			b.said[name] = text
		}
	})
	if b.res == nil {
		t.Fatal("the program that makes this attempt and others did not run")
	}
	text, there := b.said[name]
	if !there {
		t.Fatalf("the program ended before this attempt: %s %d %v, after %.200q %.900q", b.res.State, b.res.ExitCode, b.res.Call, b.res.Stdout, b.res.Stderr)
	}
	res := *b.res
	if res.Stdout = []byte(text); strings.Contains(text, "broke off") {
		res.ExitCode = 1
	}
	return &res
}

// program is the batch in Python.
func (b *batch) program() string {
	var code strings.Builder
	code.WriteString("\nfor N,(T,C) in enumerate([\n")
	for _, a := range b.tries {
		fmt.Fprintf(&code, "(%s,%s),\n", strconv.QuoteToASCII(a.name), strconv.QuoteToASCII(a.code))
	}
	code.WriteString(`]):
    say('\x1e'+T)
    os.mkdir('/tmp/%d'%N); os.chdir('/tmp/%d'%N)
    try: exec(compile(C,T,'exec'),dict(globals()))
    except BaseException as e: say('broke off',repr(e))
`)
	return code.String()
}

// script is the batch in JavaScript. What attempts fail by, and nobody catches, is told as
// the prelude tells it.
func (b *batch) script(t *testing.T) string {
	t.Helper()
	var list [][2]string
	for _, a := range b.tries {
		list = append(list, [2]string{a.name, a.js})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return `
let pending,uncaught;
const each=f=>{pending=(async()=>{try{await f();say('reached')}catch(e){tell(e)}})()};
process.removeAllListeners('uncaughtException');
process.on('uncaughtException',e=>{tell(e);uncaught()});
(async()=>{let n=0;for(const [name,code] of ` + string(text) + `){
  say('\x1e'+name);
  fs.mkdirSync('/tmp/'+n);process.chdir('/tmp/'+n++);
  const end=new Promise(y=>uncaught=y); pending=undefined;
  try{
    new Function('require','__filename','fs','os','util','cp','net','inside','say','tell','event','fails','attempt',"'use strict';"+code)(
      require,__filename,fs,os,util,cp,net,inside,say,tell,event,fails,each);
    await Promise.race([pending,end]);
  }catch(e){say('broke off',e)}
}process.exit(0)})()`
}
