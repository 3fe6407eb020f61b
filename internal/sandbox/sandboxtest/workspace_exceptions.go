package sandboxtest

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// exceptions is every attempt that on a work tree comes to something else than
// in a run of code, by the reason. What stands in none of them comes to the same.
func exceptions() reasons {
	return slices.Concat(programExceptions(), callExceptions(), fileExceptions(), networkExceptions(), limitExceptions(), nodeExceptions(), propertyExceptions())
}

// programExceptions: a workspace has programs, and they each other.
func programExceptions() reasons {
	second := does("second\n")
	crashes := func(words string) want {
		// It got a second process, which broke the first one's memory.
		return sure(words, func(res *posture.Result) bool {
			return res.State == posture.Completed && (res.Reason == "" || res.Reason == posture.ReasonSignal)
		})
	}
	return reasons{
		{"programs of the toolbox start each other", slices.Concat(
			each(second, "exec", "execve", "execve by a thread", "execve through proc self exe", "execve through proc self fd", "execve through dev fd", "execveat by path", "execveat of a descriptor", "the loader as a program"),
			each(may, "exec", "a compiled program starts a process"),
			each(sure("no trick\n", func(res *posture.Result) bool { return res.ExitCode == 2 && res.Reason == "" }), "exec", "a compiled program starts itself", "a compiled thread starts itself"),
			each(ends(posture.Completed, "", 0), "exec", "execve with no arguments"),
			each(denied("EFAULT"), "exec", "execve of nothing"))},
		{"what the tree or memory holds is not executed, and asking does not end the run", slices.Concat(
			each(fails("PermissionError"), "exec", "a script of its own", "a program of its own"),
			each(denied("EACCES", "ENOSYS"), "exec", "execveat of memory"))},
		{"several processes are allowed, in the same walls", slices.Concat(
			each(may, "process", "fork", "fork by its own call", "clone", "clone beside the parent", "clone with a descriptor of it", "clone out of sight of tracers", "spawn", "subprocess", "a shell", "multiprocessing", "a compiled program forks"),
			each(crashes("reached\n"), "process", "vfork", "a compiled program shares its memory with a process"),
			each(may, "namespace", "unshare nothing"))},
		{"signals among its own, and none to its init", slices.Concat(
			each(lives, "signal", "kill the init", "ask after the init", "kill everybody", "kill its parent", "kill by thread", "kill by thread alone", "queue a signal"),
			each(ends(posture.Completed, posture.ReasonSignal, 137), "signal", "kill its group"),
			each(may, "signal", "signal by descriptor"),
			each(may, "look", "a descriptor of a process"))},
		{"processes read each other's limits, and raise none", []exception{
			row("look/another's limits", "", may),
			row("signal/raise a limit", `
import resource
h=resource.getrlimit(7)[1]
with attempt(): raw('prlimit64',0,7,(ctypes.c_uint64*2)(h+1,h+1),None)`, denied("EPERM")),
		}},
	}
}

// callExceptions: nothing is a violation, because a program of many parts is not
// ended when one of them tries what it could do without; and debuggers and event
// loops have some business on a tree (D16, per use).
func callExceptions() reasons {
	off := func(family, name, call, errno string) exception {
		return row(family+"/"+name, "", refused(call, errno))
	}
	return reasons{
		{"a debugger, a sanitizer or an event loop tries it: refused", []exception{
			off("look", "ptrace traceme", "ptrace", "EPERM"), off("look", "ptrace attach", "ptrace", "EPERM"), off("look", "ptrace seize", "ptrace", "EPERM"), off("look", "ptrace by a thread among many", "ptrace", "EPERM"),
			off("look", "reading memory", "process_vm_readv", "EPERM"), off("look", "writing memory", "process_vm_writev", "EPERM"), off("look", "another's descriptor", "pidfd_getfd", "EPERM"),
			off("look", "comparing processes", "kcmp", "EPERM"), off("look", "freeing another's memory", "process_mrelease", "EPERM"), off("look", "advice about another's memory", "process_madvise", "EPERM"),
			off("kernel", "io_uring", "io_uring_setup", "ENOSYS"), off("kernel", "io_uring enter", "io_uring_enter", "ENOSYS"), off("kernel", "io_uring register", "io_uring_register", "ENOSYS"),
			off("kernel", "perf events", "perf_event_open", "EPERM"), off("kernel", "userfaultfd", "userfaultfd", "EPERM"),
		}},
		{"another root: refused", []exception{off("mount", "chroot", "chroot", "EPERM"), off("mount", "chroot and climb out", "chroot", "EPERM")}},
		{"a mode that sets an identity: refused", each(sure("", func(res *posture.Result) bool {
			return res.ExitCode == 1 && slices.ContainsFunc(res.Refused, func(r posture.Refusal) bool { return r.Name == "chmod" && r.Errno == "EPERM" })
		}), "identity", "a file that gives rights")},
		{"no violation ends it: refused", []exception{
			off("exec", "uselib", "uselib", "ENOSYS"),
			off("mount", "statmount", "statmount", "ENOSYS"), off("mount", "listmount", "listmount", "ENOSYS"), off("mount", "a handle of a file", "name_to_handle_at", "EPERM"),
			off("mount", "listns", "listns", "EPERM"), off("mount", "fanotify", "fanotify_init", "EPERM"), off("mount", "quota", "quotactl", "EPERM"),
			off("kernel", "asynchronous input and output", "io_setup", "EPERM"), off("kernel", "a key", "add_key", "ENOSYS"), off("kernel", "asking for a key", "request_key", "ENOSYS"),
			off("kernel", "a session keyring", "keyctl", "ENOSYS"), off("kernel", "the user's keyring", "keyctl", "ENOSYS"), off("kernel", "segments", "modify_ldt", "ENOSYS"),
			off("kernel", "a personality", "personality", "EPERM"), off("kernel", "the kernel's log", "syslog", "EPERM"), off("kernel", "the clock", "settimeofday", "EPERM"), off("kernel", "the clock's speed", "adjtimex", "EPERM"),
			off("kernel", "the host's name", "sethostname", "EPERM"), off("kernel", "the domain's name", "setdomainname", "EPERM"), off("kernel", "pages to another node", "move_pages", "EPERM"),
			off("kernel", "a number that nothing has", "syscall_999", "ENOSYS"), off("kernel", "a negative number", "syscall_-7", "ENOSYS"), off("kernel", "security modules", "lsm_get_self_attr", "EPERM"),
			off("pagecache", "vmsplice", "vmsplice", "ENOSYS"), off("pagecache", "tee", "tee", "ENOSYS"),
		}},
		{"a filter of its own only takes more away", each(may, "kernel", "a filter of its own", "a filter by prctl")},
		{"there are no rights and no other identities, and the kernel says so", slices.Concat(
			each(denied("EINVAL", "EPERM"), "identity", "setuid 0", "setgid 0", "setreuid to root", "setresuid to root", "setresgid to root", "root with high bits", "groups", "keep capabilities"),
			each(may, "identity", "somebody else", "capabilities", "ambient capabilities", "to stay dumpable", "to outlive its parent", "who adopts its children"),
			each(either("reached", "refused EINVAL"), "identity", "who may trace it"))}, // with Yama, and without
		{"queues and shared memory are of an IPC namespace of its own", slices.Concat(
			each(may, "channel", "shared memory", "shared memory by a key", "a semaphore", "a queue"),
			each(denied("EMFILE"), "channel", "a named queue"),
			each(denied("EINVAL"), "channel", "attaching memory"))},
		{"its own descriptors, timers, words and share", slices.Concat(
			each(may, "channel", "an open file's lock", "who owns a descriptor's signals", "the size of a pipe", "news of files", "a timer that signals", "nice", "a processor of its own", "a real-time class", "a word out of band", "memory that is never paged out"),
			each(denied("EINVAL"), "channel", "read out of band"),
			each(denied("ETIMEDOUT"), "channel", "waiting on several words"))},
		{"files of the toolbox are the host's own: locks on them are seen, and who waits there is woken", slices.Concat(
			each(may, "channel", "a lock on a library", "waking who waits on a library", "moving who waits on a library", "waking by the newer call", "moving who waits by the newer call"),
			each(may, "pagecache", "read a library only from memory"))},
	}
}

// fileExceptions: the tree is there to be written, and the root has what whole
// programs look for.
func fileExceptions() reasons {
	own := does("own\n")
	read := func(path, code string) exception { return row("files/read "+path, code, own) }
	text := func(path, is string) exception {
		return read(path, `
t=open('`+path+`').read(); own=`+is+`
say('own' if own else t)`)
	}
	names := func(path, is string) exception {
		return read(path, `
d=sorted(os.listdir('`+path+`'))
say('own' if d==`+is+` else d)`)
	}
	return reasons{
		{"files that are made for the run", []exception{
			text("/etc/passwd", "[l.split(':')[0] for l in t.split()]==['root','agent','nobody']"), text("/etc/hostname", "t=='workspace\\n'"), text("/etc/resolv.conf", "t==''"),
			names("/home", "['agent']"), names("/run", "[]"), names("/var", "['tmp']"), names("/dev/shm", "[]"),
			read("/proc/self/root/etc", `say('own' if open('/proc/self/root/etc/hostname').read()=='workspace\n' else 'other')`),
			row("files/climb above the root", `
d=os.open('/',0)
for _ in range(64): d=os.open('..',0,dir_fd=d)
say('own' if os.read(os.open('etc/hostname',0,dir_fd=d),99)==b'workspace\n' else 'other')`, own),
			row("files/climb from its working folder", `
say('own' if open('../'*64+'etc/hostname').read()=='workspace\n' else 'other')`, own),
			row("files/write /etc/passwd", "", denied("EROFS", "EACCES")),
			row("files/the only folders", `
d=set(os.listdir('/'))-{'usr','lib','lib64','bin','lib32','libx32','tmp','dev','sbin'}
say('beyond',sorted(d))`, does("beyond ['etc', 'home', 'proc', 'run', 'var']\n")),
			row("files/the only devices", "", does("['fd', 'full', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'tty', 'urandom', 'zero']\n")),
		}},
		{"a /proc of its own processes", []exception{
			read("/proc", `
d=[p for p in os.listdir('/proc') if p.isdigit()]
say('own' if d==['2'] else d)`),
			read("/proc/self/environ", `say('own' if set(open('/proc/self/environ').read().split('\0'))=={'HOME=/home/agent','PATH=/usr/bin:/bin',''} else 'other')`),
			row("files/read /proc/self/exe", "", may), row("files/read /proc/self/mem", "", may), row("files/read /proc/thread-self/attr/current", "", may),
		}},
		{"what the kernel shows every user of the host", each(may, "files", "read /proc/kallsyms")},
		{"harmless devices, and terminals of its own", slices.Concat(
			each(may, "files", "read /dev/zero", "read /dev/random", "read /dev/ptmx"),
			each(may, "terminal", "a terminal of its own"),
			each(denied("ENXIO"), "terminal", "the terminal device"),
			each(denied("ENOTTY"), "terminal", "take the terminal", "leave the terminal", "the size of the window"),
			each(denied("EPERM"), "terminal", "a session"))}, // it leads one already
		{"its streams are pipes of its own", each(may, "files", "read /dev/stdin", "read /proc/self/fd/0", "the times of a device by its descriptor", "the mode of its input")},
		{"the tree is there to be written", append(each(may, "files", "a FIFO", "an attribute"),
			row("files/its own code", `with attempt(): open('main.py','a')`, may),
			row("files/an owner", "", denied("EINVAL", "EPERM")))},
		{"nothing is brought out: what it leaves stays in the tree, its owner's, and the Runner looks", each(says("done\n"), "scratch",
			"a link out", "a link to a link to itself", "a folder that is a link", "a second name", "names that cannot be used", "a name as long as can be", "too deep", "a file that is mostly hole", "many holes", "more files than may come out")},
	}
}

// networkExceptions: a network of its own, with itself.
func networkExceptions() reasons {
	return reasons{
		{"local sockets, TCP and UDP, in a network of its own", slices.Concat(
			each(may, "network", "tcp", "udp", "tcp over IPv6", "a unix socket", "unix packets", "bind to an abstract name", "bind the end of a pair", "a pair that takes addresses", "pass a descriptor"),
			each(denied("ECONNREFUSED"), "network", "connect the end of a pair"),
			each(denied("ENOTSOCK"), "network", "connect without a socket"),
			each(denied("EINVAL"), "network", "listen"),
			each(denied("EISCONN"), "network", "send to an address"))},
		{"which leads nowhere", each(denied("ENETUNREACH"), "network", "a connection")},
		{"other protocols: refused", []exception{row("network/mptcp", "", refused("socket", "EPROTONOSUPPORT")), row("network/sctp", "", refused("socket", "EPROTONOSUPPORT")), row("network/raw", "", denied("EPERM"))}},
		{"what its own network has may be asked", each(may, "network", "netlink")},
	}
}

// limitExceptions: the limits are a workspace's.
func limitExceptions() reasons {
	stopped := ends(posture.OOM, posture.ReasonOOM, 137)
	oom := where(posture.WallMemory, stopped, says("held"))
	endless := near(time.Second, ends(posture.Timeout, posture.ReasonWall, 137))
	flood := func(name string) exception {
		x := row(name, "", endless)
		x.spec = soon(1000)
		return x
	}
	late, late2 := row("limit/the default timeout", "", near(1500*time.Millisecond, ends(posture.Timeout, posture.ReasonWall, 137))), row("limit/the greatest timeout", `say('started')`, says("started\n"))
	late.spec, late2.spec = soon(1500), soon(7*24*3600*1000)
	cpu := row("limit/processor time", "", where(posture.WallCPU, used(0, 2100), used(100, 7000)))
	return reasons{
		{"no end by the clock but the caller's, however far", []exception{late, late2}},
		{"its share is of whole processors", []exception{cpu}},
		{"without a control group nothing bounds its memory, and the posture says so", slices.Concat(
			each(oom, "limit", "the default memory", "the greatest memory", "a list", "memory of its own mapping", "memory that is shared", "memory that grows downward"),
			each(oom, "node", "memory of WebAssembly", "memory of buffers", "memory of the heap", "memory that threads share", "memory of strings"))},
		{"the tree is the host's disk, and can be filled; /tmp is bounded", append(
			each(may, "limit", "names in the scratch", "a file beyond its limit"),
			row("limit/memory in files of the scratch", "", says("held\n")),
			row("limit/the scratch", `
s=os.statvfs('/tmp'); say(s.f_blocks*s.f_frsize>>20,s.f_files)`, says("1024 262144\n")))},
		{"as many processes as its share", []exception{row("limit/processes without end", "", between("made %d\nreached", 1, 66))}},
		{"descriptors as the caller may have, 65536 at most", []exception{row("limit/descriptors", "", may), row("limit/exactly so many descriptors", "", between("had %d\n", 256, 65536))}},
		{"core files: none is kept, and no other limit is taken", each(says("core (1, 1)\n"), "limit", "core files")},
		{"output goes to the caller as it comes, without a cut", []exception{
			flood("flood/output without end"), flood("flood/errors without end"), flood("node/output without end"),
			row("flood/two megabytes of output", "", sure("yyyyyyyy", func(res *posture.Result) bool { return len(res.Stdout) == 2<<20 && res.ExitCode == 0 })),
			row("flood/two megabytes of errors", "", sure("", func(res *posture.Result) bool { return len(res.Stderr) == 2<<20 && res.ExitCode == 0 })),
		}},
	}
}
