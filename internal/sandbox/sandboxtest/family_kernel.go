package sandboxtest

// kernelTries speak to parts of the kernel that no program here needs.
func kernelTries() []try {
	return []try{
		{name: "bpf", code: `
a=(ctypes.c_uint32*32)(2,4,4,1)
call('bpf',0,a,128)`, want: escape("bpf"), twin: byRoot},
		{name: "perf events", code: `
a=ctypes.create_string_buffer(128); a[0]=1; a[4]=112; a[40]=b'\x60'
call('perf_event_open',a,0,-1,-1,0)`, want: escape("perf_event_open"), twin: comesBack},
		{name: "userfaultfd", code: `call('userfaultfd',1)`, want: escape("userfaultfd"), twin: here},
		{name: "io_uring", code: `
p=ctypes.create_string_buffer(120)
call('io_uring_setup',4,p)`, want: escape("io_uring_setup"), twin: here},
		{name: "io_uring enter", code: `
p=ctypes.create_string_buffer(120); n=0 if os.path.exists('/code') else raw('io_uring_setup',4,p)
call('io_uring_enter',n,0,0,0,None,0)`, want: escape("io_uring_enter"), twin: here},
		{name: "io_uring register", code: `
p=ctypes.create_string_buffer(120); n=0 if os.path.exists('/code') else raw('io_uring_setup',4,p)
i=(ctypes.c_int*2)(0,1)
call('io_uring_register',n,2,i,2)`, want: escape("io_uring_register"), twin: here},
		{name: "asynchronous input and output", code: `
c=ctypes.c_ulong()
call('io_setup',1,ctypes.byref(c))`, want: violation("io_setup"), twin: here},
		{name: "a key", code: `call('add_key',b'user',b'k',b'v',1,-2)`, want: escape("add_key"), twin: here},
		{name: "asking for a key", code: `
os.path.exists('/code') or raw('add_key',b'user',b'k2',b'v',1,-2)
call('request_key',b'user',b'k2',None,-2)`, want: escape("request_key"), twin: here},
		{name: "a session keyring", code: `call('keyctl',1,None)`, want: escape("keyctl"), twin: here},
		{name: "the user's keyring", code: `call('keyctl',0,-4,1)`, want: escape("keyctl"), twin: here},
		{name: "init_module", code: `call('init_module',None,0,b'')`, want: escape("init_module"), twin: comesBack},
		{name: "finit_module", code: `call('finit_module',0,b'',0)`, want: escape("finit_module"), twin: comesBack},
		{name: "delete_module", code: `call('delete_module',b'none_such',0x800)`, want: escape("delete_module"), twin: comesBack},
		{name: "kexec_load", code: `call('kexec_load',0,0,None,0x80000000)`, want: escape("kexec_load"), twin: comesBack},
		{name: "kexec_file_load", code: `call('kexec_file_load',-1,-1,0,None,0x80000000)`, want: escape("kexec_file_load"), twin: comesBack},
		{name: "reboot", code: `call('reboot',0xfee1dead,672274793,0x1234567)`, want: escape("reboot"), twin: twin{scratch: true, ends: "signal: hangup"}},
		{name: "swapon", code: `call('swapon',b'/none/such',0)`, want: escape("swapon"), twin: comesBack},
		{name: "swapoff", code: `call('swapoff',b'/none/such')`, want: escape("swapoff"), twin: comesBack},
		{name: "accounting", code: `call('acct',b'/none/such')`, want: escape("acct"), twin: comesBack},
		{name: "ports by level", code: `call('iopl',3)`, want: escape("iopl"), twin: byRoot},
		{name: "ports", code: `call('ioperm',0x80,1,1)`, want: escape("ioperm"), twin: byRoot},
		{name: "segments", code: `
b=ctypes.create_string_buffer(64)
call('modify_ldt',0,b,64)`, want: escape("modify_ldt"), twin: here},
		{name: "a filter of its own", code: `
class F(ctypes.Structure): _fields_=[('n',ctypes.c_ushort),('p',ctypes.c_char_p)]
f=F(1,b'\x06\0\0\0\0\0\xff\x7f'); raw('prctl',38,1,0,0,0) if not os.path.exists('/code') else 0
call('seccomp',1,0,ctypes.byref(f))`, want: violation("seccomp"), twin: here},
		{name: "a filter by prctl", code: `
class F(ctypes.Structure): _fields_=[('n',ctypes.c_ushort),('p',ctypes.c_char_p)]
f=F(1,b'\x06\0\0\0\0\0\xff\x7f'); raw('prctl',38,1,0,0,0) if not os.path.exists('/code') else 0
call('prctl',22,2,ctypes.byref(f))`, want: violation("prctl"), twin: here},
		{name: "a personality", code: `call('personality',0x0040000)`, want: violation("personality"), twin: here},
		{name: "the kernel's log", code: `call('syslog',10,None,0)`, want: violation("syslog"), twin: here},
		{name: "the clock", code: `
t=(ctypes.c_long*2)(-1,-1)
call('settimeofday',t,None)`, want: violation("settimeofday"), twin: comesBack},
		{name: "the clock's speed", code: `
b=ctypes.create_string_buffer(256)
call('adjtimex',b)`, want: violation("adjtimex"), twin: here},
		{name: "the host's name", code: `call('sethostname',b'x',1)`, want: violation("sethostname"), twin: inScratch},
		{name: "the domain's name", code: `call('setdomainname',b'x',1)`, want: violation("setdomainname"), twin: inScratch},
		{name: "pages to another node", code: `call('move_pages',0,0,None,None,None,0)`, want: violation("move_pages"), twin: here},
		{name: "a number that nothing has", code: `call(999)`, want: killedAny(), twin: here},
		{name: "a negative number", code: `call(-7)`, want: killedAny(), twin: here},
		{name: "security modules", code: `
n=ctypes.c_uint(0)
call('lsm_get_self_attr',100,None,ctypes.byref(n),0)`, want: violation("lsm_get_self_attr"), twin: comesBack},
		{name: "a landlock of its own", code: `
a=(ctypes.c_uint64*1)(4)
call('landlock_create_ruleset',a,8,0)`, want: refused("landlock_create_ruleset", "ENOSYS"), twin: here},
	}
}

// identityTries become somebody else.
func identityTries() []try {
	return []try{
		{name: "setuid 0", code: `call('setuid',0)`, want: escape("setuid"), twin: inScratch},
		{name: "setgid 0", code: `call('setgid',0)`, want: escape("setgid"), twin: inScratch},
		{name: "setreuid to root", code: `call('setreuid',-1,0)`, want: escape("setreuid"), twin: inScratch},
		{name: "setresuid to root", code: `call('setresuid',0,0,0)`, want: escape("setresuid"), twin: inScratch},
		{name: "setresgid to root", code: `call('setresgid',-1,-1,0)`, want: escape("setresgid"), twin: inScratch},
		{name: "root with high bits", code: `call('setuid',1<<32)`, want: escape("setuid"), twin: inScratch},
		{name: "somebody else", code: `call('setuid',os.getuid())`, want: violation("setuid"), twin: here},
		{name: "groups", code: `call('setgroups',0,None)`, want: violation("setgroups"), twin: byRoot},
		{name: "capabilities", code: `
h=(ctypes.c_uint32*2)(0x20080522,0); d=(ctypes.c_uint32*6)()
call('capset',h,d)`, want: refused("capset", "ENOSYS"), twin: here},
		{name: "keep capabilities", code: `call('prctl',8,1)`, want: refused("prctl", "EINVAL"), twin: here},
		{name: "ambient capabilities", code: `call('prctl',47,4,0,0,0)`, want: refused("prctl", "EINVAL"), twin: here},
		{name: "who may trace it", code: `call('prctl',0x59616d61,-1)`, want: refused("prctl", "EINVAL"), twin: comesBack},
		{name: "its memory map", code: `call('prctl',35,1,0,0,0)`, want: refused("prctl", "EINVAL"), twin: comesBack},
		{name: "who adopts its children", code: `call('prctl',36,1)`, want: refused("prctl", "EINVAL"), twin: here},
		{name: "to stay dumpable", code: `call('prctl',4,1)`, want: refused("prctl", "EINVAL"), twin: here},
		{name: "to outlive its parent", code: `call('prctl',1,0)`, want: refused("prctl", "EINVAL"), twin: here},
		{name: "a file that gives rights", code: `
open('s','w').close(); os.chmod('s',0o6755)
say('reached' if not os.path.exists('/code') else 'no program starts from here'); os.path.exists('/code') and os.execv('./s',['s'])`, want: escape("execve"), twin: here},
	}
}

// lookTries look into other processes (003 2.2: ptrace, setns).
func lookTries() []try {
	return []try{
		{name: "ptrace traceme", code: `call('ptrace',0,0,0,0)`, want: escape("ptrace"), twin: here},
		{name: "ptrace attach", code: `call('ptrace',16,1,0,0)`, want: escape("ptrace"), twin: twin{code: `
p=os.fork()
if p==0: os.read(os.pipe()[0],1)
call('ptrace',16,p,0,0); os.kill(p,9)`}},
		{name: "ptrace seize", code: `call('ptrace',0x4206,1,0,0)`, want: escape("ptrace"), twin: twin{code: `
p=os.fork()
if p==0: os.read(os.pipe()[0],1)
call('ptrace',0x4206,p,0,0); os.kill(p,9)`}},
		{name: "ptrace by a thread among many", static: "ptracethread", want: escape("ptrace"), twin: here},
		{name: "reading memory", code: `
b=ctypes.create_string_buffer(8); v=(ctypes.c_uint64*2)(ctypes.addressof(b),8)
call('process_vm_readv',os.getpid(),v,1,v,1,0)`, want: escape("process_vm_readv"), twin: here},
		{name: "writing memory", code: `
b=ctypes.create_string_buffer(8); v=(ctypes.c_uint64*2)(ctypes.addressof(b),8)
call('process_vm_writev',os.getpid(),v,1,v,1,0)`, want: escape("process_vm_writev"), twin: here},
		{name: "another's descriptor", code: `call('pidfd_getfd',near('pidfd_open',os.getpid(),0),1,0)`, want: escape("pidfd_getfd"), twin: here},
		{name: "a descriptor of a process", code: `call('pidfd_open',1,0)`, want: refused("pidfd_open", "ENOSYS"), twin: here},
		{name: "comparing processes", code: `call('kcmp',os.getpid(),os.getpid(),0,0,0)`, want: violation("kcmp"), twin: here},
		{name: "freeing another's memory", code: `call('process_mrelease',0,0)`, want: violation("process_mrelease"), twin: comesBack},
		{name: "advice about another's memory", code: `call('process_madvise',near('pidfd_open',os.getpid(),0),None,0,20,0)`, want: refused("process_madvise", "ENOSYS"), twin: here},
		{name: "another's limits", code: `
b=(ctypes.c_uint64*2)()
call('prlimit64',1,7,None,b)`, want: refused("prlimit64", "EPERM"), twin: twin{code: `
b=(ctypes.c_uint64*2)()
call('prlimit64',os.getpid(),7,None,b)`}},
		{name: "its parent is not of the host", code: `say('parent',os.getppid()); os.getppid()>1 and say('reached')`, want: says("parent 1\n"), twin: here},
	}
}
