package sandboxtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// nodeExceptions: what the exceptions for Python say, by what Node.js brings.
func nodeExceptions() reasons {
	own := does("own\n")
	return reasons{
		{"several processes are allowed, in the same walls", each(may, "node", "exec", "execFile", "spawn", "spawn that shares its output", "spawn apart", "spawn by a shell", "fork", "execSync", "execFileSync", "spawnSync", "spawn by a thread", "cluster",
			"the binding of spawnSync", "a process out of another context")},
		{"signals among its own, and none to its init", each(lives, "node", "kill the init", "kill its parent", "kill everybody", "debug the init")},
		{"there are no other identities, and the kernel says so", each(denied("EINVAL", "EPERM"), "node", "setuid", "setgid", "seteuid", "setegid", "setuid to somebody", "setgroups", "give a file away")},
		{"files of the toolbox are the host's own: who watches them sees them opened", each(may, "node", "watch")},
		{"the tree is there to be written, and watched", each(may, "node", "change its own code", "watch everything below", "the scratch", "a file beyond its limit")},
		{"files that are made for the run; whose they are, files/read /etc/passwd shows", each(may, "node", "read /etc/passwd", "read /etc/resolv.conf", "read through a link", "climb", "leave the scratch", "after natives were let in", "after its flags were changed")},
		{"a /proc of its own processes", each(may, "node", "read /proc/self/environ", "read /proc/self/maps", "read /proc/self/exe", "read /proc/sys/kernel/hostname", "open /proc/self/mem")},
		{"what the kernel shows every user of the host", each(may, "node", "with a clock of shared memory", "memory and load")},
		{"harmless devices, and memory of its own", append(each(may, "node", "open /dev/zero", "open /dev/full", "a file in shared memory"), row("node/open /dev/tty", "", denied("ENXIO")))},
		{"local sockets, TCP and UDP, in a network of its own", slices.Concat(
			each(may, "node", "listen", "listen at a path", "listen at an abstract name", "dgram", "dgram over IPv6", "a binding of sockets", "the inspector", "the inspector by a signal"),
			each(denied("ECONNREFUSED"), "node", "connect", "tls", "http", "http2", "fetch"))},
		{"descriptors as the caller may have, 65536 at most", each(may, "node", "descriptors")},
		{"its own, by other names than in a run of code", []exception{
			row("node/interfaces", `say(Object.keys(os.networkInterfaces()).every(n=>n==='lo')?'own':'other')`, own),
			row("node/the host's name", `say(os.hostname()==='workspace'?'own':'other')`, own),
			row("node/its user", `const u=os.userInfo(); say(u.username==='agent'&&u.homedir==='/home/agent'?'own':'other')`, own),
			row("node/how full the disk is", `const s=fs.statfsSync('/'); say(s.blocks*s.bsize===16*2**20?'own':'other')`, own),
			row("node/a report of itself", `
const r=process.report.getReport();
say(Object.keys(r.environmentVariables).every(k=>['HOME','PATH'].includes(k))&&r.header.networkInterfaces.every(n=>n.name==='lo')?'own':'other')`, own),
		}},
	}
}

// propertyExceptions are properties that on a work tree are told otherwise, and
// those that it has not.
func propertyExceptions() reasons {
	holds := func(name string, f func(*testing.T, *suite)) exception {
		return exception{try: try{name: "property/" + name}, holds: f}
	}
	not := func(names ...string) []exception { return each(nil, "property", names...) }
	return reasons{
		{"nothing is brought out of /tmp", []exception{holds("no scratch is kept", freshTmp)}},
		{"what it finds is a workspace's", []exception{
			holds("a name of its own", found(`say(os.uname().nodename)`, "workspace\n")),
			holds("no way and no device", found(`
import socket
say(socket.if_nameindex(),'pid',os.getpid())`, "[(1, 'lo')] pid 2\n")),
			holds("no descriptor leaks", found(`
import stat
for n in range(1025):
    try: st=os.fstat(n)
    except OSError: continue
    if n>2 and stat.S_ISREG(st.st_mode): continue
    say(n,oct(stat.S_IFMT(st.st_mode)))`, "0 0o10000\n1 0o10000\n2 0o10000\n")),
		}},
		{"all but the toolbox, which is the host's own", []exception{holds("no secret is found", noSecret)}},
		{"names are of a network of its own", []exception{holds("two at once share no names", ownNames)}},
		{"its working folder is its own", []exception{holds("two at once share no times", ownTimes)}},
		{"the toolbox and /dev/null are the host's own: locks on their files are seen, and who waits there is woken (doc/sandbox.md)", not(
			"two at once share no waking", "a thread that ends wakes no other run", "a lock that its owner leaves wakes no other run", "a lock on a library is seen by no other run", "a lock on a device is not seen by the host")},
		{"the host's statistics, and how full the tree's disk is, are seen (doc/sandbox.md)", not("how many threads there are is seen by no other run", "how full the disk is is not seen")},
		{"a workspace is asked for by other words, which TestCheckWorkspaceRefuses tries", not("bad requests are named")},
	}
}

// freshTmp: what a run writes into /tmp, HOME and /dev/shm no other finds, nor
// the host.
func freshTmp(t *testing.T, s *suite) {
	for range 3 {
		res := s.python(t, `
for d in ('/tmp','/home/agent','/dev/shm'):
    f=d+'/suite-fresh'; say(os.path.exists(f)); open(f,'w').write('kept'); say(open(f).read())`)
		if want := strings.Repeat("False\nkept\n", 3); string(res.Stdout) != want || len(res.OutputFiles) > 0 {
			t.Errorf("%q %q", res.Stdout, res.Stderr)
		}
	}
	for _, d := range []string{"/tmp", "/home/agent", "/dev/shm"} {
		if _, err := os.Lstat(d + "/suite-fresh"); err == nil {
			t.Errorf("IT CAME OUT at %s", d)
		}
	}
}

// found: a program says exactly this of what it finds.
func found(code, words string) func(*testing.T, *suite) {
	return func(t *testing.T, s *suite) {
		if res := s.python(t, code); string(res.Stdout) != words {
			t.Errorf("it found %q, want %q (%q)", res.Stdout, words, res.Stderr)
		}
	}
}

// noSecret: what secrets looks for, in everything but the toolbox: in each
// process that it sees, in every file and in its own pages.
func noSecret(t *testing.T, s *suite) {
	secret := newSecret()
	write(t, filepath.Join(t.TempDir(), "secret"), []byte(secret), 0o644)
	planting.Lock()
	defer planting.Unlock()
	os.Setenv("SUITE_SECRET", secret)
	defer os.Unsetenv("SUITE_SECRET")
	code := strings.NewReplacer("for d,_,names in", "for d,below,names in", "if d.startswith(('/code','/dev')): continue",
		"if d.startswith(('/usr','/bin','/sbin','/lib','/dev','/proc')): below.clear(); continue").Replace(findSecret)
	if !strings.Contains(code, "below.clear()") {
		t.Fatal("the search has changed")
	}
	res := s.python(t, `
import glob
for f in glob.glob('/proc/*/environ')+glob.glob('/proc/*/cmdline'):
    try: b=open(f,'rb').read()
    except OSError: continue
    if b'Suite'+b'Secret' in b: say('in',f)
`+code)
	out := string(res.Stdout)
	var env, files, pages int
	if _, err := fmt.Sscanf(out, "looked in %d %d %d", &env, &files, &pages); err != nil || files < 10 || pages < 500 {
		t.Errorf("it looked in %q (%.600q)", out, res.Stderr)
	}
	if !strings.HasSuffix(out, "found []\n") {
		t.Errorf("IT FOUND THE SECRET: %q", out)
	}
}

// ownNames: two bind the same names at once, each in its own network, and see
// no process but their own.
func ownNames(t *testing.T, s *suite) {
	const code = `
import socket,time
keep=[]
for f,k,n in ((socket.AF_UNIX,socket.SOCK_STREAM,'\0suite'),(socket.AF_UNIX,socket.SOCK_DGRAM,'\0suite-d'),(socket.AF_INET,socket.SOCK_STREAM,('127.0.0.1',7007)),(socket.AF_INET6,socket.SOCK_DGRAM,('::',7007))):
    x=socket.socket(f,k); x.bind(n); keep.append(x)
time.sleep(.5); seen=0
for p in range(3,4096):
    try: os.kill(p,0); seen+=1
    except OSError: pass
say('bound',len(keep),'pid',os.getpid(),'others',seen)`
	a, b := s.pair(t, code, code)
	for _, r := range []*posture.Result{a, b} {
		if string(r.Stdout) != "bound 4 pid 2 others 0\n" {
			t.Errorf("%q %q", r.Stdout, r.Stderr)
		}
	}
}

// ownTimes: nothing that two workspaces see keeps a time that one of them can
// set.
func ownTimes(t *testing.T, s *suite) {
	const look = `
import time
def times(): return {p:os.stat(p)[7:] for p in ('/','/tmp','/home/agent','/dev','/dev/null','/dev/urandom','/dev/shm','/usr',lib,'/etc','/etc/ld.so.cache','.')}
b=times(); c=os.fstat(0)
time.sleep(1.0)
say('changed',[p for p,t in times().items() if t!=b[p]], os.fstat(0).st_mtime_ns!=c.st_mtime_ns)`
	const touch = `
import time
end=time.time()+1.3
while time.time()<end:
    for p in ('/','/tmp','/home/agent','/dev','/dev/null','/dev/urandom','/dev/shm','/usr',lib,'/etc','/etc/ld.so.cache','.',0,1):
        try: os.utime(p)
        except OSError: pass
    for p in ('/tmp','/home/agent','/dev/shm','.'): open(p+'/touched','w')
    os.pwrite(os.open('/dev/null',1),b'x',0)
    time.sleep(.05)`
	a, b := s.pair(t, look, touch)
	if string(a.Stdout) != "changed [] False\n" || b.ExitCode != 0 {
		t.Errorf("A MESSAGE PASSED: %q %q, %q", a.Stdout, a.Stderr, b.Stderr)
	}
}

// connectedExceptions: every address and every name is Holdfast's.
func connectedExceptions() reasons {
	return reasons{{"what is meant for anybody comes to Holdfast", []exception{
		row("network/a connection", "", does("reached\n")),
		row("node/a name by its own question", "", denied("ENODATA")),
		row("files/read /etc/resolv.conf", `
t=open('/etc/resolv.conf').read()
print('own' if t.split()[:2]==['nameserver','127.0.0.1'] else t)`, does("own\n")),
	}}}
}
