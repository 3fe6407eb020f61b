//go:build linux

package process

import "strings"

// finding has programs say what they found of what they should not, in Python;
// c is the C library.
const finding = `import os, sys, ctypes, errno
c = ctypes.CDLL(None, use_errno=True)
found = []
r, w = os.pipe()
os.set_blocking(w, False)
c.write.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
def there(a):
    if c.write(w, a, 1) != 1: return False
    os.read(r, 1)
    return True
def does(what, call, *a, **k):
    try: found.append((what, call(*a, **k)))
    except OSError: pass
`

// inheritances are programs that look for what they got of a zygote, an init or
// a run before.
var inheritances = map[string]string{
	"the tapes are not in its memory": `
for a in range(0x2000000000, 0x2008000000 + (1 << 20), 16384):
    if there(a): found.append(hex(a))
assert there(id(found) & ~7)  # the twin: it does find what is there`,
	"no descriptor is": `
import fcntl
os.close(r); os.close(w)
for f in range(3, 1024): does(f, fcntl.fcntl, f, fcntl.F_GETFD)
fcntl.fcntl(2, fcntl.F_GETFD)`,
	"no FIFO is left, and none can be made": `
import stat
if os.listdir('/code') != ['main.py']: found.append(os.listdir('/code'))
for p in ('/code/main.py', '/code/.', '/tmp'):
    s = os.stat(p)
    if stat.S_ISFIFO(s.st_mode): found.append(p)
for f in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_NONBLOCK): does('write', os.open, '/code/main.py', f)
for p in ('/code/request', '/code/x'):
    does(p, os.open, p, os.O_RDWR | os.O_CREAT); does(p, os.mkfifo, p); does(p, os.link, '/code/main.py', p); does(p, os.mkdir, p)
does('unlink', os.unlink, '/code/main.py'); does('rename', os.rename, '/code/main.py', '/code/y'); does('times', os.utime, '/code/main.py'); does('mode', os.chmod, '/code/main.py', 0o777)
does('fifo', os.mkfifo, '/tmp/f')
one = open('/code/main.py').read()
if not one or one != open('/code/main.py').read(): found.append('read once only')`,
	"its init cannot be reached": `
import signal, resource
for pid in (1, 0, -1, -2, 3, 4, 5):
    for s in range(1, 65): does((pid, s), os.kill, pid, s)
does('group', os.killpg, 1, 15); does('limit', resource.prlimit, 1, resource.RLIMIT_NOFILE)
does('nice', os.setpriority, 0, 1, 5); does('place', os.sched_setaffinity, 1, [0]); does('group', os.setpgid, 1, 1)
for number in (200, 234, 129, 297):  # tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo
    for args in ((1, 15, 0, 0), (1, 1, 15, 0), (2, 1, 15, 0), (1, 2, 15, 0)):
        if number == 200 and args[0] != 1 or number == 129 and args[0] == 2: continue
        if c.syscall(number, *args) == 0: found.append((number, args))
if os.getppid() != 1: found.append('it is gone')`,
	"its own state is new": `
import signal, resource
name = ctypes.create_string_buffer(16); c.prctl(16, name)
if not name.value.startswith(b'python3'): found.append(name.value)
if signal.pthread_sigmask(signal.SIG_BLOCK, []) or signal.sigpending(): found.append('signals')
if any(signal.getitimer(n) != (0, 0) for n in range(3)): found.append('timers')
if os.umask(0) != 0o77 or os.getpriority(0, 0) or os.getgroups() or os.getsid(0) != os.getpid(): found.append('identity')
if any(resource.getrusage(resource.RUSAGE_CHILDREN)): found.append('children')
if os.listdir('/tmp') or os.getcwd() != '/tmp' or os.path.exists('/dev/shm') or os.path.exists('/proc/1'): found.append('files')
u = os.statvfs('/tmp')
if u.f_bfree != u.f_blocks and u.f_blocks - u.f_bfree > 1: found.append(u)
if os.path.getsize('/dev/null') or os.lseek(0, 0, 1): found.append('null')`,
	"times of the runtime stay": `
for p in ('/', '/usr', '/dev/null', '/dev/urandom', os.__file__):
    was = os.stat(p)
    does(p, os.utime, p, (1, 1)); does(p, os.chmod, p, 0o777)
    f = os.open(p, os.O_RDONLY); does(p, os.utime, f, (2, 2)); does(p, os.fchmod, f, 0o777); os.close(f)
    if os.path.isfile(p): open(p, 'rb').read()
    now = os.stat(p)
    if (was.st_atime_ns, was.st_mtime_ns, was.st_ctime_ns) != (now.st_atime_ns, now.st_mtime_ns, now.st_ctime_ns): found.append(p)`,
}

// lateWriters go on, or try to, when they have asked to leave.
var lateWriters = map[string]string{
	"a handler of signals": `
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex('48c7c001000000' '48c7c701000000' '488d350e000000' '48c7c202000000' '0f05' 'c3' '90909090' '4c4c'))
at = ctypes.addressof(ctypes.c_char.from_buffer(code))
c.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
c.signal(14, at)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002); time.sleep(0.003)`,
	"a signal that kills": `
signal.signal(14, signal.SIG_DFL); signal.setitimer(signal.ITIMER_REAL, 0.03)`,
	"another thread": `
def more():
    while True: os.write(1, b'+'); os.write(f, b'+')
threading.Thread(target=more, daemon=True).start(); time.sleep(0.01)`,
	"many threads under a name that counts one": `
def more():
    while True: os.write(f, b'+')
for _ in range(8): threading.Thread(target=more, daemon=True).start()
c.prctl(15, b'x\nThreads:\t1\n')`,
	"memory that is a file": `
os.truncate('/tmp/m', 8192) if os.path.exists('/tmp/m') else open('/tmp/m', 'wb').write(bytes(8192))
m = mmap.mmap(os.open('/tmp/m', os.O_RDWR), 8192); m[0:4] = b'last'
at = ctypes.addressof(ctypes.c_char.from_buffer(m, 4096))
m[4096:4100] = b'tidy'; c.syscall(218, at)  # set_tid_address: the kernel writes there at the end`,
	"a timer's descriptor and a full pipe": `
p, q = os.pipe(); os.set_blocking(q, False)
try:
    while True: os.write(q, bytes(4096))
except BlockingIOError: pass
os.dup2(p, 0)`,
	"much output at the end": `
os.write(1, b'=' * 900000)`,
}

// texts are programs that are hard to read: encodings, ends of lines, and errors
// at which Python reads no further.
func texts() map[string]string {
	long := strings.Repeat("#"+strings.Repeat("x", 200)+"\n", 2000)
	return map[string]string{
		"a carriage return before an encoding": "\r# coding: latin-1\rprint('ä')\r",
		"a blank line that ends in one":        "  \r \x0c# coding=latin-1\nprint('ä')\n",
		"two, and an encoding too late":        "\r\r# coding: latin-1\nprint('ä')\n",
		"lines that end in carriage returns":   "print(1)\rprint('ä')\r",
		"both ends":                            "# x\r\n# coding: latin-1\r\nprint('ä')\r\n",
		"form feeds":                           "\x0c\n\x0c# coding: latin-1\nprint('ä')\n",
		"a mark of order":                      "\ufeff# coding: utf-8\nprint('ä')\n",
		"a mark and another encoding, long":    "\ufeff# coding: latin-1\nprint('ä')\n" + long,
		"an unknown encoding":                  "# coding: nosuch\nprint(1)\n" + long,
		"UTF-7":                                "# -*- coding: utf-7 -*-\nprint('+AOQ-')\n",
		"an encoding of Python's own":          "# coding: raw_unicode_escape\nprint('\\u0041')\n",
		"a line for the shell":                 "#!/bin/sh\nprint('ä')\n",
		"an encoding far along the line":       "#" + strings.Repeat("x", 9000) + "coding: latin-1\nprint('ä')\n",
		"an error at once, long":               "$\n" + long,
		"brackets, long":                       strings.Repeat("(", 300) + "\n" + long,
		"folds, long":                          "if 1:\n  x=1\n y=2\n" + long,
		"a control character":                  "print(1)\n\x1a\nprint(2)\n",
	}
}

// keptState is a program that says what a process keeps beside its memory, all of
// which has to be as in a cold run.
const keptState = `import os, ctypes, resource, struct
c = ctypes.CDLL(None, use_errno=True)
b = ctypes.create_string_buffer(256)
signals = []
for s in range(1, 65):
    b.raw = bytes(256)
    if c.syscall(13, s, None, b, 8) == 0:  # rt_sigaction
        at, flags, _, mask = struct.unpack_from('<QQQQ', b)
        signals.append((s, at if at < 2 else 'own', hex(flags), hex(mask)))
print(signals)
b.raw = bytes(256); print(c.sigaltstack(None, b), b.raw[8:24])
print([c.prctl(n, 0, 0, 0, 0) for n in (3, 39)], [c.prctl(23, n, 0, 0, 0) for n in range(64)])  # dumpable, no new rights, bounds
b.raw = bytes(256); print(c.prctl(16, b), b.value)
print([resource.getrlimit(n) for n in range(16)], [os.getpriority(w, 0) for w in range(3)], os.sched_getaffinity(0), os.sched_getaffinity(1))
print(os.getresuid(), os.getresgid(), os.getgroups(), os.getpgid(0), os.getsid(0), os.getpgid(1), os.getsid(1), os.getppid(), os.umask(0), os.getcwd(), os.ctermid())
for p in ('/', '/tmp', '/code', '/code/main.py', '/dev/null', '/usr'):
    s = os.stat(p); print(p, oct(s.st_mode), s.st_nlink, s.st_uid, s.st_gid, s.st_size, s.st_blocks, s.st_blksize, os.access(p, os.W_OK), os.access(p, os.X_OK))
for f in range(256):
    try: s = os.fstat(f)
    except OSError: continue
    import fcntl
    print(f, oct(s.st_mode), s.st_nlink, s.st_size, s.st_blksize, [fcntl.fcntl(f, n) for n in (fcntl.F_GETFD, fcntl.F_GETFL)])
print([os.sysconf(n) for n in ('SC_NPROCESSORS_ONLN', 'SC_OPEN_MAX', 'SC_CLK_TCK', 'SC_ARG_MAX', 'SC_PHYS_PAGES')], os.uname()[1:])
import threading
print(threading.get_native_id(), threading.active_count(), threading.stack_size())
`
