package sandboxtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// prelude begins every program in Python: it makes calls by their numbers, past
// the C library's own ideas, and tells what came of them in one line: "reached",
// or "refused" and the error's name.
func prelude() string {
	var b strings.Builder
	b.WriteString("NR=dict(")
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		fmt.Fprintf(&b, "%s=%d,", name, numbers[name])
	}
	b.WriteString(")\n")
	return b.String() + preludeText
}

const preludeText = `
import ctypes,os,sys,errno
_L=ctypes.CDLL(None,use_errno=True); _L.syscall.restype=ctypes.c_long
def _c(a):
    if a is None: return ctypes.c_void_p(0)
    if isinstance(a,int): return ctypes.c_long(a)
    if isinstance(a,bytes): return ctypes.c_char_p(a)
    return a
def raw(name,*a):
    a=list(a)+[0]*(6-len(a))
    ctypes.set_errno(0)
    r=_L.syscall(ctypes.c_long(name if isinstance(name,int) else NR[name]),*map(_c,a))
    if r==-1:
        e=ctypes.get_errno(); raise OSError(e,os.strerror(e))
    return r
def say(*a): print(*a,flush=True)
class attempt:
    def __enter__(s): return s
    def __exit__(s,k,e,tb):
        if k is None: say('reached')
        elif isinstance(e,OSError) and e.errno:
            say('refused',errno.errorcode.get(e.errno,e.errno)); return True
def call(name,*a):
    with attempt(): return raw(name,*a)
def near(name,*a):
    # the answer to a call before the one that is tried; where it is refused, 0
    try: return raw(name,*a)
    except OSError: return 0
def fd(path,flags=0):
    try: return os.open(path,flags)
    except OSError: return 0
def child(r):
    if r==0: os._exit(0)
    return r
def clone(flags):
    with attempt(): os.waitpid(child(raw('clone',flags|17)),0)
def machine(code,low=False):
    a=raw('mmap',0,4096,7,0x22|(0x40 if low else 0),-1,0)
    ctypes.memmove(a,code(a) if callable(code) else code,len(code(a) if callable(code) else code))
    r=ctypes.CFUNCTYPE(ctypes.c_int)(a)()
    if -4096<r<0: raise OSError(-r,os.strerror(-r))
    return r
def int80(nr,b=0,c=0):
    # push rbx; mov eax,nr; mov ebx,b; mov ecx,c; int 0x80; pop rbx; ret
    i=lambda n:(n&0xffffffff).to_bytes(4,'little')
    return b'\x53\xb8'+i(nr)+b'\xbb'+i(b)+b'\xb9'+i(c)+b'\xcd\x80\x5b\xc3'
def terminal():
    # a terminal of one's own, which it controls; where there is none, fd 1
    try:
        m,s=os.openpty()
        if os.getpid()!=os.getpgrp(): pass
        return s
    except OSError: return 1
def thread(f):
    import threading
    t=threading.Thread(target=f); t.start(); t.join()
lib=next((p for p in (os.path.realpath(os.__file__),) ),None)
`

// numbers are the system calls that are tried, on amd64; from 424 on they are
// the same everywhere.
var numbers = map[string]int{
	"read": 0, "write": 1, "open": 2, "mmap": 9, "mprotect": 10, "rt_sigprocmask": 14, "ioctl": 16, "pipe": 22, "mincore": 27, "madvise": 28, "shmget": 29, "shmat": 30,
	"sendfile": 40, "socket": 41, "connect": 42, "accept": 43, "sendto": 44, "recvfrom": 45, "sendmsg": 46, "recvmsg": 47, "bind": 49, "listen": 50, "socketpair": 53,
	"clone": 56, "fork": 57, "vfork": 58, "execve": 59, "kill": 62, "semget": 64, "msgget": 68, "fcntl": 72, "flock": 73, "getuid": 102, "syslog": 103, "setuid": 105, "setgid": 106,
	"ptrace": 101, "setpgid": 109, "setsid": 112, "setreuid": 113, "setgroups": 116, "setresuid": 117, "setresgid": 119, "setfsuid": 122, "capset": 126, "rt_sigqueueinfo": 129,
	"mknod": 133, "uselib": 134, "personality": 135, "mlock": 149, "vhangup": 153, "modify_ldt": 154, "pivot_root": 155, "prctl": 157, "adjtimex": 159, "setrlimit": 160, "chroot": 161, "acct": 163,
	"settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
	"init_module": 175, "delete_module": 176, "quotactl": 179, "readahead": 187, "setxattr": 188, "tkill": 200, "futex": 202, "io_setup": 206, "sysinfo": 99, "set_tid_address": 218, "set_robust_list": 273, "timer_create": 222,
	"clock_settime": 227, "tgkill": 234, "mbind": 237, "mq_open": 240, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "inotify_init": 253, "migrate_pages": 256, "openat": 257, "mknodat": 259,
	"fchownat": 260, "unshare": 272, "splice": 275, "tee": 276, "vmsplice": 278, "move_pages": 279, "utimensat": 280, "signalfd": 282, "pipe2": 293, "membarrier": 324, "perf_event_open": 298, "fanotify_init": 300, "prlimit64": 302,
	"name_to_handle_at": 303, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "sched_setattr": 314,
	"seccomp": 317, "memfd_create": 319, "kexec_file_load": 320, "bpf": 321, "execveat": 322, "userfaultfd": 323, "copy_file_range": 326, "preadv2": 327, "pwritev2": 328, "pkey_alloc": 330,
	"pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
	"pidfd_open": 434, "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "landlock_create_ruleset": 444, "memfd_secret": 447,
	"process_mrelease": 448, "futex_waitv": 449, "cachestat": 451, "map_shadow_stack": 453, "futex_wake": 454, "futex_wait": 455, "futex_requeue": 456, "statmount": 457, "listmount": 458,
	"lsm_get_self_attr": 459, "mseal": 462, "setxattrat": 463, "open_tree_attr": 467, "listns": 470,
}
