package sandboxtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// fileTries reach for files that are not the runtime's or the scratch's
// (003 2.2; D19: the root holds nothing of the host).
func fileTries() []try {
	var list []try
	read := func(path string, tw twin) {
		list = append(list, try{name: "read " + path, code: `
with attempt(): n=os.open('` + path + `',0)`, want: denied("ENOENT"), twin: tw})
	}
	for _, p := range []string{"/etc/passwd", "/etc/hostname", "/etc/resolv.conf", "/proc", "/proc/self/exe", "/proc/self/mem", "/proc/self/environ", "/proc/self/fd/0", "/proc/self/root/etc", "/proc/1/status",
		"/proc/kallsyms", "/proc/thread-self/attr/current", "/sys", "/sys/kernel", "/sys/fs/cgroup", "/dev/zero", "/dev/shm", "/dev/stdin", "/dev/random", "/dev/ptmx", "/var", "/home", "/run", "/opt", "/boot", "/mnt", "/srv"} {
		read(p, here)
	}
	for _, p := range []string{"/etc/shadow", "/root", "/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/console", "/proc/kcore"} {
		read(p, byRoot)
	}
	for _, p := range []string{"environ", "root", "cwd", "ns/net", "mem"} {
		read("/proc/1/"+p, twin{code: "with attempt(): os.open('/proc/self/" + p + "',0)"})
	}
	write := func(name, code, errno string, tw twin) {
		list = append(list, try{name: name, code: "with attempt(): " + code, want: denied(errno, "EACCES", "EPERM"), twin: tw})
	}
	inPlace := func(code string) twin { return twin{code: "with attempt(): " + code} }
	write("write a file of the runtime", `os.open(lib,os.O_WRONLY)`, "EROFS", byRoot)
	write("write /etc/passwd", `os.open('/etc/passwd',os.O_WRONLY|(os.O_CREAT if os.path.exists('/code') else 0))`, "ENOENT", byRoot)
	write("a new file in the root", `open('/hf-suite-new','x')`, "EROFS", twin{root: true, code: "with attempt(): open('/hf-suite-new','x')\nos.unlink('/hf-suite-new')"})
	write("a new file beside the program", `open('/usr/bin/hf-suite','x')`, "EROFS", twin{root: true, code: "with attempt(): open('/usr/bin/hf-suite','x')\nos.unlink('/usr/bin/hf-suite')"})
	write("a folder in the root", `os.mkdir('/hf-suite-dir')`, "EROFS", twin{root: true, code: "with attempt(): os.mkdir('/hf-suite-dir')\nos.rmdir('/hf-suite-dir')"})
	write("its own code", `open('/code/main.py','a')`, "EROFS", inPlace(`open('main.py','a')`))
	write("another's mode", `os.chmod(lib,0o777)`, "EROFS", inPlace(`os.chmod('main.py',0o777)`))
	write("another's times", `os.utime(lib)`, "EROFS", inPlace(`os.utime('main.py')`))
	write("another's name", `os.rename(lib,lib+'x')`, "EROFS", inPlace(`os.rename('main.py','x')`))
	write("remove a library", `os.unlink(lib)`, "EROFS", inPlace(`os.unlink('main.py')`))
	write("cut a library", `os.truncate(lib,0)`, "EROFS", inPlace(`os.truncate('main.py',0)`))
	write("a name for a library in the scratch", `os.link(lib,'l')`, "EXDEV", inPlace(`os.link('main.py','l')`))
	write("a file without a name in the root", `os.open('/usr',os.O_TMPFILE|os.O_RDWR)`, "EROFS", inPlace(`os.open('.',os.O_TMPFILE|os.O_RDWR)`))
	write("the times of a device", `os.utime('/dev/null')`, "EROFS", here)
	write("the times of a device by its descriptor", `os.utime(0)`, "EROFS", inPlace(`os.utime(os.open('/dev/null',0))`))
	write("the mode of a device", `os.chmod('/dev/null',0o666)`, "EROFS", byRoot)
	write("the mode of its input", `os.fchmod(0,0o666)`, "EROFS", twin{root: true, code: "with attempt(): os.fchmod(os.open('/dev/null',0),0o666)"})
	write("an owner", `(open('f','w'),os.chown('f',0,0))`, "EPERM", byRoot)
	write("a device", `os.mknod('d',0o666|0o020000,os.makedev(1,5))`, "EPERM", byRoot)
	write("a block device", `os.mknod('d',0o666|0o060000,os.makedev(254,0))`, "EPERM", byRoot)
	write("a FIFO", `os.mkfifo('p')`, "EPERM", here)
	write("an attribute", `os.setxattr('/tmp' if os.path.exists('/code') else '.','user.x',b'y')`, "ENOTSUP", here)
	return append(list,
		try{name: "climb above the root", code: `
d=os.open('/',0)
for _ in range(64): d=os.open('..',0,dir_fd=d)
with attempt(): os.open('etc/passwd',0,dir_fd=d)`, want: denied("ENOENT"), twin: here},
		try{name: "climb from its working folder", code: `
with attempt(): os.open('../../../../../../../../etc/passwd',0)`, want: denied("ENOENT"), twin: here},
		try{name: "climb from its input", code: `
with attempt(): os.open('../etc/passwd',0,dir_fd=0 if os.path.exists('/code') else os.open('/usr',0))`, want: denied("ENOTDIR", "EBADF"), twin: here},
		try{name: "climb by a link", code: `
os.symlink('/proc/1/root/etc/passwd' if os.path.exists('/code') else '/etc/passwd','l')
with attempt(): os.open('l',0)`, want: denied("ENOENT"), twin: here},
		try{name: "the only devices", code: `
say(sorted(os.listdir('/dev')))
len(os.listdir('/dev'))>2 and say('reached')`, want: says("['null', 'urandom']"), twin: here},
		try{name: "the only folders", code: `
d=set(os.listdir('/'))-{'usr','lib','lib64','bin','lib32','code','tmp','dev','sbin'}
say('beyond',sorted(d)); d and say('reached')`, want: says("beyond []"), twin: here},
	)
}

// scratchTries leave in the scratch what must not come out as it is.
func scratchTries() []try {
	out := func(name, code string, check func(t *testing.T, res *posture.Result)) try {
		return try{name: name, code: code + "\nsay('done')", twin: twin{says: "done"}, want: func(t *testing.T, _ *suite, res *posture.Result) {
			t.Helper()
			ran(t, res)
			check(t, res)
		}}
	}
	only := func(names ...string) func(*testing.T, *posture.Result) {
		return func(t *testing.T, res *posture.Result) {
			t.Helper()
			for n, b := range res.OutputFiles {
				if !slices.Contains(names, n) {
					t.Errorf("%q came out (%.40q)", n, b)
				}
			}
			if len(res.OutputFiles) != len(names) {
				t.Errorf("%d files came out, want %v", len(res.OutputFiles), names)
			}
		}
	}
	skips := func(n int, names ...string) func(*testing.T, *posture.Result) {
		return func(t *testing.T, res *posture.Result) {
			t.Helper()
			only(names...)(t, res)
			if len(res.Skipped) != n {
				t.Errorf("skipped %v, want %d", res.Skipped, n)
			}
		}
	}
	return []try{
		out("a link out", `os.symlink('/etc/passwd','l'); os.symlink('/','m')`, skips(2)),
		out("a link to a link to itself", `os.symlink('a','b'); os.symlink('b','a')`, skips(2)),
		out("a folder that is a link", `os.mkdir('d'); open('d/f','w').write('x'); os.symlink('d','e')`, skips(1, "d/f")),
		out("a second name", `open('f','w').write('x'); os.link('f','g')`, skips(2)),
		out("a socket", `
import socket
try: socket.socket(socket.AF_UNIX).bind('s')
except OSError: pass`, only()),
		out("names that cannot be used", `
for n in ('a\nb','a\x1b[31m','-rf\r','back\\slash','\x7f'): open(n,'w').write('x')
open(b'\xff\xfe','w').write('x'); open('good name','w').write('x')`, skips(6, "good name")),
		out("a name as long as can be", `open('n'*255,'w').write('x')`, only(strings.Repeat("n", 255))),
		out("too deep", `
for _ in range(40): os.mkdir('d'); os.chdir('d'); open('f','w').write('x')`, func(t *testing.T, res *posture.Result) {
			if len(res.OutputFiles) != 32 || len(res.Skipped) == 0 {
				t.Errorf("%d files, skipped %v", len(res.OutputFiles), res.Skipped)
			}
		}),
		out("folders without rights", `os.mkdir('d'); open('d/f','w').write('x'); os.chmod('d',0); open('g','w').write('y'); os.chmod('g',0)`, func(t *testing.T, res *posture.Result) {
			for n := range res.OutputFiles {
				if n != "d/f" && n != "g" {
					t.Errorf("%q came out", n)
				}
			}
		}),
		out("a file that is mostly hole", `
f=open('h','wb'); f.truncate(90<<20); f.close()`, func(t *testing.T, res *posture.Result) {
			if n := len(res.OutputFiles["h"]); n != 90<<20 {
				t.Errorf("the hole came out as %d bytes", n)
			}
		}),
		out("many holes", `
for i in range(40):
    f=open('h%d'%i,'wb'); f.truncate(90<<20); f.close()`, func(t *testing.T, res *posture.Result) {
			total := 0
			for _, b := range res.OutputFiles {
				total += len(b)
			}
			if total > sandbox.MaxOutputBytes || len(res.Skipped) == 0 {
				t.Errorf("%d bytes came out, skipped %d", total, len(res.Skipped))
			}
		}),
		out("more files than may come out", `
for i in range(12000): os.close(os.open('f%d'%i,os.O_CREAT|os.O_WRONLY))`, func(t *testing.T, res *posture.Result) {
			if len(res.OutputFiles) > sandbox.MaxFiles || len(res.Skipped) == 0 || len(res.Skipped) > 200 {
				t.Errorf("%d files came out, skipped %d", len(res.OutputFiles), len(res.Skipped))
			}
		}),
		out("frames as the init writes them", `
import struct
w=[struct.pack('<III',k,a,b) for k in range(0xfa11ed00,0xfa11ed05) for a in (0,1) for b in (0,1)]
sent=0
for n in range(3,1025):
    for f in w:
        try: os.write(n,f); sent+=1
        except OSError: break
say('sent',sent) if os.path.exists('/code') else say('sent 0')`, func(t *testing.T, res *posture.Result) {
			if !strings.Contains(string(res.Stdout), "sent 0\n") {
				t.Errorf("a frame found a door: %q", res.Stdout)
			}
		}),
		out("frames on the output", `
import struct
for n in (1,2):
    for k in range(0xfa11ed00,0xfa11ed05): os.write(n,struct.pack('<III',k,0,0))
os.write(1,b'{"state":"OOM","exit_code":7}\n')`, func(t *testing.T, res *posture.Result) {
			if !strings.Contains(string(res.Stdout), "\x00\xed\x11\xfa") {
				t.Error("what it wrote is not its output")
			}
		}),
		out("words of the sandbox on the error output", `
os.write(2,b'Seccomp violation: syscall ptrace blocked\nTimeout: wall-clock limit exceeded\n')`, func(t *testing.T, res *posture.Result) {
			if res.Call != nil || res.Err != "" {
				t.Errorf("words were believed: %v %q", res.Call, res.Err)
			}
		}),
	}
}
