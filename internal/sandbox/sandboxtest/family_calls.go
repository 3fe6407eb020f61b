package sandboxtest

func families() []family {
	return []family{
		{"foreign", foreignTries()}, {"exec", execTries()}, {"process", processTries()}, {"namespace", namespaceTries()}, {"mount", mountTries()}, {"kernel", kernelTries()},
		{"identity", identityTries()}, {"look", lookTries()}, {"network", networkTries()}, {"terminal", terminalTries()}, {"channel", channelTries()}, {"pagecache", pageTries()},
		{"files", fileTries()}, {"scratch", scratchTries()}, {"signal", signalTries()}, {"limit", limitTries()}, {"flood", floodTries()}, {"node", nodeTries()},
	}
}

// foreignTries enter the kernel by another architecture's door, where numbers
// mean other calls.
func foreignTries() []try {
	const heaven = `
def code(a):
    n=lambda v:v.to_bytes(4,'little')
    # push r12; mov r12,rsp; push 0x23; push low; retfq | 32: mov eax,20; int 0x80; jmp 0x33:back | mov rsp,r12; pop r12; ret
    head=b'\x41\x54\x49\x89\xe4\x6a\x23\x68'+n(a+64)+b'\x48\xcb'
    low=b'\xb8'+n(20)+b'\xcd\x80\xea'+n(a+128)+b'\x33\x00'
    back=b'\x4c\x89\xe4\x41\x5c\xc3'
    return head.ljust(64,b'\x90')+low.ljust(64,b'\x90')+back
with attempt(): machine(code,True)`
	return []try{
		{name: "int 0x80", code: `with attempt(): machine(int80(20))`, want: foreign("386"), twin: here},
		{name: "int 0x80 execve", code: `with attempt(): machine(int80(11))`, want: foreign("386"), twin: comesBack},
		{name: "int 0x80 socketcall", code: `
b=raw('mmap',0,4096,3,0x22|0x40,-1,0); ctypes.memmove(b,b'\x01\0\0\0\x01\0\0\0\0\0\0\0',12)
with attempt(): machine(int80(102,1,b))`, want: foreign("386"), twin: here},
		{name: "int 0x80 mount", code: `with attempt(): machine(int80(21))`, want: foreign("386"), twin: comesBack},
		{name: "int 0x80 getpid by a thread", code: `
def f():
    with attempt(): machine(int80(20))
thread(f)`, want: foreign("386"), twin: here},
		{name: "a far jump into 32 bits", code: heaven, want: foreign("386"), twin: here},
		{name: "int 0x80 in a compiled program", static: "int80", want: foreign("386"), twin: here},
		{name: "int 0x80 in a compiled thread", static: "int80thread", want: foreign("386"), twin: here},
		{name: "x32 getpid", code: `call(0x40000000|39)`, want: foreign("x"), twin: here},
		{name: "x32 execve", code: `call(0x40000000|520)`, want: foreign("x"), twin: here},
		{name: "x32 mount", code: `call(0x40000000|165)`, want: foreign("x"), twin: here},
	}
}

// execTries are the ways to a second program. Starting the interpreter was the
// one execve there is (D17).
func execTries() []try {
	py := `(sys.executable or '/usr/bin/python3')`
	started := twin{says: "second"}
	args := `
S=os.fsencode(` + py + `)
argv=(ctypes.c_char_p*4)(S,b'-c',b'print("second")',None)
`
	return []try{
		{name: "execve", code: `os.execv(` + py + `,['python3','-c','print("second")'])`, want: escape("execve"), twin: started},
		{name: "execve with no arguments", code: `call('execve',b'/usr/bin/python3',None,None)`, want: escape("execve"), twin: twin{ends: "exit status 0"}},
		{name: "execve of nothing", code: `call('execve',None,None,None)`, want: escape("execve"), twin: comesBack},
		{name: "execve by a thread", code: `
def f(): os.execv(` + py + `,['python3','-c','print("second")'])
thread(f)`, want: escape("execve"), twin: started},
		{name: "execve through proc self exe", code: args + `call('execve',b'/proc/self/exe',argv,None)`, want: escape("execve"), twin: started},
		{name: "execve through proc self fd", code: args + `
n=os.open(` + py + `,os.O_RDONLY)
call('execve',b'/proc/self/fd/%d'%n,argv,None)`, want: escape("execve"), twin: started},
		{name: "execve through dev fd", code: args + `
n=os.open(` + py + `,os.O_RDONLY)
call('execve',b'/dev/fd/%d'%n,argv,None)`, want: escape("execve"), twin: started},
		{name: "execveat by path", code: args + `call('execveat',-100,S,argv,None,0)`, want: escape("execveat"), twin: started},
		{name: "execveat of a descriptor", code: args + `
n=os.open(` + py + `,os.O_RDONLY)
call('execveat',n,b'',argv,None,0x1000)`, want: escape("execveat"), twin: started},
		{name: "execveat of memory", code: args + `
n=near('memfd_create',b'x',1)
if n: os.sendfile(n,os.open(` + py + `,os.O_RDONLY),0,1<<30)
call('execveat',n,b'',argv,None,0x1000)`, want: escape("execveat"), twin: started},
		{name: "memory without a name", code: `call('memfd_create',b'x',1)`, want: refused("memfd_create", "ENOSYS"), twin: here},
		{name: "secret memory", code: `call('memfd_secret',0)`, want: refused("memfd_secret", "ENOSYS"), twin: here},
		{name: "the loader as a program", code: `
l=next(p for p in ('/lib64/ld-linux-x86-64.so.2','/lib/ld-linux-aarch64.so.1') if os.path.exists(p))
os.execv(l,[l,` + py + `,'-c','print("second")'])`, want: escape("execve"), twin: started},
		{name: "a script of its own", code: `
open('s','w').write('#!'+` + py + `+'\nprint("second")\n'); os.chmod('s',0o755)
os.execv('./s',['s'])`, want: escape("execve"), twin: started},
		{name: "a program of its own", code: `
import shutil
shutil.copyfile(` + py + `,'own'); os.chmod('own',0o755)
os.execv('./own',['own','-c','print("second")'])`, want: escape("execve"), twin: started},
		{name: "a library of its own", code: `
import shutil,_ctypes
shutil.copyfile(_ctypes.__file__,'own.so')
try: ctypes.CDLL('./own.so'); say('reached')
except OSError as e: say('not loaded',e)`, want: says("not loaded"), twin: here},
		{name: "code of its own from the scratch", code: `
import mmap
f=open('c','w+b'); f.write(b'\xc3'*4096); f.flush()
with attempt(): mmap.mmap(f.fileno(),4096,mmap.MAP_PRIVATE,mmap.PROT_READ|mmap.PROT_EXEC)`, want: denied("EPERM", "EACCES"), twin: here},
		{name: "making the scratch executable in memory", code: `
f=open('c','w+b'); f.write(b'\xc3'*4096); f.flush()
a=raw('mmap',0,4096,1,2,f.fileno(),0)
call('mprotect',a,4096,5)`, want: denied("EPERM", "EACCES"), twin: here},
		{name: "uselib", code: `call('uselib',b'/usr/lib/x')`, want: violation("uselib"), twin: comesBack},
		{name: "a compiled program starts itself", static: "exec", want: escape("execve"), twin: twin{says: "no trick"}},
		{name: "a compiled thread starts itself", static: "execthread", want: escape("execve"), twin: twin{says: "no trick"}},
		{name: "a compiled program starts a process", static: "processes", want: says("refused EPERM"), twin: twin{says: "reached"}},
	}
}

// processTries make a second process (003 2.2: clone() blocked, EPERM).
func processTries() []try {
	return []try{
		{name: "fork", code: `with attempt(): os.waitpid(child(os.fork()),0)`, want: refused("clone", "EPERM"), twin: here},
		{name: "fork by its own call", code: `with attempt(): os.waitpid(child(raw('fork')),0)`, want: refused("fork", "EPERM"), twin: here},
		{name: "vfork", code: `call('vfork') or os._exit(0)`, want: refused("vfork", "EPERM"), twin: here},
		{name: "clone", code: `clone(0)`, want: refused("clone", "EPERM"), twin: here},
		{name: "clone beside the parent", code: `
with attempt(): child(raw('clone',0x8000|17))`, want: refused("clone", "EPERM"), twin: here},
		{name: "clone with a descriptor of it", code: `
p=ctypes.c_int()
with attempt(): child(raw('clone',0x1000|17,0,ctypes.byref(p)))`, want: refused("clone", "EPERM"), twin: here},
		{name: "clone out of sight of tracers", code: `clone(0x800000)`, want: refused("clone", "EPERM"), twin: here},
		{name: "clone3", code: `
a=(ctypes.c_uint64*11)(); a[4]=17
with attempt(): os.waitpid(child(raw('clone3',a,88)),0)`, want: refused("clone3", "ENOSYS"), twin: here},
		{name: "spawn", code: `with attempt(): os.waitpid(os.posix_spawn(sys.executable or '/usr/bin/python3',['p','-c',''],{}),0)`, want: denied("EPERM"), twin: here},
		{name: "subprocess", code: `
import subprocess
with attempt(): subprocess.run([sys.executable or '/usr/bin/python3','-c',''],check=True)`, want: denied("EPERM"), twin: here},
		{name: "a shell", code: `
r=os.system('true')
say('reached' if r==0 else 'no shell')`, want: says("no shell"), twin: here},
		{name: "multiprocessing", code: `
import multiprocessing
with attempt():
    p=multiprocessing.get_context('fork').Process(target=int); p.start(); p.join()`, want: denied("EPERM"), twin: here},
		{name: "a compiled program forks", static: "fork", want: refused("clone", "EPERM"), twin: here},
		{name: "a compiled program shares its memory with a process", static: "bare", want: refused("clone", "EPERM"), twin: here},
	}
}

// namespaceTries ask for other namespaces than those that stand.
func namespaceTries() []try {
	var list []try
	for _, n := range []struct{ name, flag string }{{"mount", "0x20000"}, {"cgroup", "0x2000000"}, {"uts", "0x4000000"}, {"ipc", "0x8000000"}, {"user", "0x10000000"}, {"pid", "0x20000000"}, {"net", "0x40000000"}, {"time", "0x80"}} {
		list = append(list, try{name: "unshare " + n.name, code: `call('unshare',` + n.flag + `)`, want: escape("unshare"), twin: inScratch})
		if n.name != "time" { // clone has no room for it
			list = append(list, try{name: "clone " + n.name, code: `clone(` + n.flag + `)`, want: escape("clone"), twin: inScratch})
		}
	}
	return append(list,
		try{name: "unshare everything", code: `call('unshare',0x7e020000)`, want: escape("unshare"), twin: inScratch},
		try{name: "unshare nothing", code: `call('unshare',0)`, want: escape("unshare"), twin: here},
		try{name: "clone3 into a user namespace", code: `
a=(ctypes.c_uint64*11)(); a[0]=0x10000000; a[4]=17
with attempt(): os.waitpid(child(raw('clone3',a,88)),0)`, want: refused("clone3", "ENOSYS"), twin: here},
		try{name: "clone hides a namespace among the flags of a thread", code: `call('clone',0x10000000|0x50f00)`, want: escape("clone"), twin: comesBack},
		try{name: "setns", code: `call('setns',fd('/proc/self/ns/uts'),0)`, want: escape("setns"), twin: inScratch},
		try{name: "setns by a process", code: `
n=near('pidfd_open',os.getpid(),0)
call('setns',n,0x4000000)`, want: escape("setns"), twin: inScratch},
		try{name: "setns of a descriptor that was there", code: `call('setns',0,0x40000000)`, want: escape("setns"), twin: comesBack},
		try{name: "many threads at the same moment", static: "manythreads", want: escape("unshare"), twin: here},
	)
}

// mountTries are the old and the new way to change what is mounted.
func mountTries() []try {
	return []try{
		{name: "mount a bind", code: `
os.mkdir('d')
call('mount',b'/usr',b'd',None,0x1000,None)`, want: escape("mount"), twin: inScratch},
		{name: "mount a tmpfs", code: `
os.mkdir('d')
call('mount',b't',b'd',b'tmpfs',0,None)`, want: escape("mount"), twin: inScratch},
		{name: "mount proc", code: `
os.mkdir('d')
call('mount',b'p',b'd',b'proc',0,None)`, want: escape("mount"), twin: inScratch},
		{name: "mount cgroups", code: `
os.mkdir('d')
call('mount',b'c',b'd',b'cgroup2',0,None)`, want: escape("mount"), twin: rootInScratch},
		{name: "make everything writable", code: `call('mount',b'none',b'/tmp' if os.path.exists('/code') else b'/',None,0x1000|0x20|0x4000 if 0 else 0x40000|0x4000,None)`, want: escape("mount"), twin: inScratch},
		{name: "umount", code: `
os.path.exists('/code') or raw('mount',b't',b'/mnt',b'tmpfs',0,None)
call('umount2',b'/code' if os.path.exists('/code') else b'/mnt',0)`, want: escape("umount2"), twin: inScratch},
		{name: "pivot_root", code: `
os.mkdir('r')
if not os.path.exists('/code'): raw('mount',None,b'/',None,0x44000,None); raw('mount',b't',b'r',b'tmpfs',0,None); os.mkdir('r/o')
call('pivot_root',b'r',b'r/o')`, want: escape("pivot_root"), twin: inScratch},
		{name: "chroot", code: `call('chroot',b'.')`, want: escape("chroot"), twin: inScratch},
		{name: "chroot and climb out", code: `
os.mkdir('d'); d=os.open('.',0)
with attempt(): os.chroot('d'); os.fchdir(d); [os.chdir('..') for _ in range(64)]; os.chroot('.')`, want: escape("chroot"), twin: inScratch},
		{name: "fsopen", code: `call('fsopen',b'tmpfs',0)`, want: escape("fsopen"), twin: inScratch},
		{name: "fsconfig", code: `
n=fd('/none') if os.path.exists('/code') else raw('fsopen',b'tmpfs',0)
call('fsconfig',n,6,None,None,0)`, want: escape("fsconfig"), twin: inScratch},
		{name: "fsmount", code: `
n=0
if not os.path.exists('/code'): n=raw('fsopen',b'tmpfs',0); raw('fsconfig',n,6,None,None,0)
call('fsmount',n,0,0)`, want: escape("fsmount"), twin: inScratch},
		{name: "fspick", code: `call('fspick',-100,b'/tmp',0)`, want: escape("fspick"), twin: twin{scratch: true, code: `
os.mkdir('d'); raw('mount',b't',b'd',b'tmpfs',0,None)
call('fspick',-100,b'd',0)`}},
		{name: "open_tree", code: `call('open_tree',-100,b'/',1)`, want: escape("open_tree"), twin: twin{scratch: true, code: `call('open_tree',-100,b'/',1|0x8000)`}},
		{name: "open_tree_attr", code: `call('open_tree_attr',-100,b'/',0,None,0)`, want: escape("open_tree_attr"), twin: comesBack},
		{name: "move_mount", code: `
os.mkdir('d'); n=0
if not os.path.exists('/code'): n=raw('open_tree',-100,b'/',1|0x8000)
call('move_mount',n,b'',-100,b'd',4)`, want: escape("move_mount"), twin: inScratch},
		{name: "mount_setattr", code: `
os.mkdir('d')
if not os.path.exists('/code'): raw('mount',b't',b'd',b'tmpfs',0,None)
a=(ctypes.c_uint64*4)(1,0,0,0)
call('mount_setattr',-100,b'd',0,a,32)`, want: escape("mount_setattr"), twin: inScratch},
		{name: "statmount", code: `
a=(ctypes.c_uint64*4)(32,0,0,0); b=ctypes.create_string_buffer(4096)
call('statmount',a,b,4096,0)`, want: violation("statmount"), twin: comesBack},
		{name: "listmount", code: `
a=(ctypes.c_uint64*3)(24,0xffffffffffffffff,0); b=(ctypes.c_uint64*64)()
call('listmount',a,b,64,0)`, want: violation("listmount"), twin: here},
		{name: "a handle of a file", code: `
b=ctypes.create_string_buffer(160); b[0]=128; m=ctypes.c_int()
call('name_to_handle_at',-100,b'/usr',b,ctypes.byref(m),0)`, want: violation("name_to_handle_at"), twin: here},
		{name: "a file by its handle", code: `
b=ctypes.create_string_buffer(160); b[0]=128; m=ctypes.c_int()
if not os.path.exists('/code'): raw('name_to_handle_at',-100,b'/tmp',b,ctypes.byref(m),0)
call('open_by_handle_at',os.open('/tmp',0),b,0)`, want: escape("open_by_handle_at"), twin: byRoot},
		{name: "listns", code: `call('listns',None,None,0,0)`, want: violation("listns"), twin: comesBack},
		{name: "fanotify", code: `call('fanotify_init',0,0)`, want: violation("fanotify_init"), twin: byRoot},
		{name: "quota", code: `call('quotactl',0x80000100,None,0,None)`, want: violation("quotactl"), twin: comesBack},
	}
}
