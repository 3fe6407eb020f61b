package sandboxtest

// channelTries open what two sandboxes could tell each other something by.
// properties holds the attempts in which two of them run at once.
func channelTries() []try {
	const lock = `
n=os.open(lib,0)
`
	return []try{
		{name: "shared memory", code: `call('shmget',0,4096,0o1600)`, want: violation("shmget"), twin: here},
		{name: "shared memory by a key", code: `call('shmget',0x4846,4096,0o1600)`, want: violation("shmget"), twin: inScratch},
		{name: "attaching memory", code: `
i=0 if os.path.exists('/code') else raw('shmget',0,4096,0o1600)
call('shmat',i,None,0)`, want: violation("shmat"), twin: here},
		{name: "a semaphore", code: `call('semget',0,1,0o1600)`, want: violation("semget"), twin: inScratch},
		{name: "a queue", code: `call('msgget',0,0o1600)`, want: violation("msgget"), twin: inScratch},
		{name: "a named queue", code: `call('mq_open',b'hf',0o102,0o600,None)`, want: violation("mq_open"), twin: inScratch},
		{name: "a lease", code: lock + `call('fcntl',n,1024,0)`, want: refused("fcntl", "EINVAL"), twin: twin{code: `call('fcntl',os.open('main.py',0),1024,0)`}},
		{name: "news of a folder", code: `
n=os.open('/usr',0)
call('fcntl',n,1026,1)`, want: refused("fcntl", "EINVAL"), twin: here},
		{name: "an open file's lock", code: lock + `
l=ctypes.create_string_buffer(32)
call('fcntl',n,37,l)`, want: refused("fcntl", "EINVAL"), twin: here},
		{name: "a lock on a library", code: lock + `call('flock',n,5)`, want: refused("flock", "ENOLCK"), twin: here},
		{name: "who owns a descriptor's signals", code: `call('fcntl',0,8,os.getpid())`, want: refused("fcntl", "EINVAL"), twin: here},
		{name: "the size of a pipe", code: `
r,w=os.pipe()
call('fcntl',w,1031,1<<16)`, want: refused("fcntl", "EINVAL"), twin: here},
		{name: "news of files", code: `call('inotify_init')`, want: refused("inotify_init", "ENOSYS"), twin: here},
		{name: "merged pages", code: `
a=raw('mmap',0,8192,3,0x22,-1,0)
call('madvise',a,8192,12)`, want: refused("madvise", "EINVAL"), twin: here},
		{name: "pages out of memory", code: `
a=raw('mmap',0,8192,3,0x22,-1,0)
call('madvise',a,8192,21)`, want: refused("madvise", "EINVAL"), twin: here},
		{name: "waking who waits on a library", code: `
a=raw('mmap',0,4096,1,1,os.open(lib,0),0)
call('futex',a,1,1)`, want: refused("futex", "EINVAL"), twin: here},
		{name: "moving who waits on a library", code: `
a=raw('mmap',0,4096,1,1,os.open(lib,0),0)
call('futex',a,3,1,1,a+64,0)`, want: refused("futex", "EINVAL"), twin: here},
		{name: "waking by the newer call", code: `
a=raw('mmap',0,4096,1,1,os.open(lib,0),0)
call('futex_wake',a,-1 & 0xffffffff,1,2)`, want: refused("futex_wake", "EINVAL"), twin: here},
		{name: "moving who waits by the newer call", code: `
a=raw('mmap',0,4096,1,1,os.open(lib,0),0)
v=ctypes.c_int.from_address(a).value
w=(ctypes.c_uint64*6)(v,a,2,0,a+64,2)
call('futex_requeue',w,0,1,1)`, want: refused("futex_requeue", "EINVAL"), twin: here},
		{name: "a timer that signals", code: `
t=ctypes.c_int()
call('timer_create',1,None,ctypes.byref(t))`, want: refused("timer_create", "ENOSYS"), twin: here},
		{name: "nice", code: `with attempt(): os.setpriority(os.PRIO_PROCESS,0,1)`, want: denied("EPERM"), twin: here},
		{name: "a processor of its own", code: `with attempt(): os.sched_setaffinity(0,os.sched_getaffinity(0))`, want: denied("EPERM"), twin: here},
		{name: "a real-time class", code: `with attempt(): os.sched_setscheduler(0,os.SCHED_BATCH,os.sched_param(0))`, want: denied("EPERM", "ENOSYS"), twin: here},
		{name: "interrupt processors", code: `call('membarrier',1,0,0)`, want: refused("membarrier", "EINVAL"), twin: here},
		{name: "a pipe of the kernel's events", code: `call('pipe2',ctypes.create_string_buffer(8),0x80)`, want: refused("pipe2", "ENOPKG"), twin: comesBack},
		{name: "a word out of band", code: `
import socket
a,b=socket.socketpair()
with attempt(): a.send(b'x',socket.MSG_OOB)`, want: refused("sendto", "EACCES"), twin: here},
		{name: "read out of band", code: `
import socket
a,b=socket.socketpair()
if not os.path.exists('/code'): a.send(b'x',socket.MSG_OOB)
with attempt(): b.recv(1,socket.MSG_OOB)`, want: refused("recvfrom", "EACCES"), twin: here},
		{name: "waiting on several words", code: `
w=(ctypes.c_uint64*3)(0,ctypes.addressof(ctypes.c_uint32(1)),2); t=(ctypes.c_long*2)(0,0)
call('futex_waitv',w,1,0,t,1)`, want: refused("futex_waitv", "ENOSYS"), twin: comesBack},
		{name: "memory that is never paged out", code: `
b=ctypes.create_string_buffer(4096)
call('mlock',b,4096)`, want: refused("mlock", "EPERM"), twin: here},
	}
}

// pageTries get at the pages of files that they may only read, or at what is
// known of them.
func pageTries() []try {
	const open = `
n=os.open(lib,0); r,w=os.pipe()
`
	return []try{
		{name: "splice a library's pages", code: open + `call('splice',n,None,w,None,4096,0)`, want: refused("splice", "EINVAL"), twin: here},
		{name: "splice between pipes", code: open + `
r2,w2=os.pipe(); os.write(w,b'x')
call('splice',r,None,w2,None,1,0)`, want: refused("splice", "EINVAL"), twin: here},
		{name: "vmsplice", code: open + `
b=ctypes.create_string_buffer(4096); v=(ctypes.c_uint64*2)(ctypes.addressof(b),4096)
call('vmsplice',w,v,1,0)`, want: violation("vmsplice"), twin: here},
		{name: "tee", code: open + `
r2,w2=os.pipe(); os.write(w,b'x')
call('tee',r,w2,1,0)`, want: violation("tee"), twin: here},
		{name: "sendfile", code: open + `call('sendfile',w,n,None,4096)`, want: refused("sendfile", "EINVAL"), twin: here},
		{name: "map a library to write", code: open + `call('mmap',0,4096,3,1,n,0)`, want: denied("EACCES", "EPERM"), twin: twin{code: `call('mmap',0,4096,3,1,os.open('main.py',2),0)`}},
		{name: "make a mapped library writable", code: open + `
a=raw('mmap',0,4096,1,1,n,0)
call('mprotect',a,4096,3)`, want: denied("EACCES", "EPERM"), twin: twin{code: `
a=raw('mmap',0,4096,1,1,os.open('main.py',2),0)
call('mprotect',a,4096,3)`}},
		{name: "copy into a library", code: open + `
f=open('f','wb+'); f.write(b'x'*64); f.flush()
call('copy_file_range',f.fileno(),None,n,None,64,0)`, want: denied("EBADF", "EXDEV", "EPERM"), twin: twin{code: `
f=open('f','wb+'); f.write(b'x'*64); f.flush(); f.seek(0)
call('copy_file_range',f.fileno(),None,os.open('g',0o102),None,64,0)`}},
		{name: "what of a library is in memory", code: open + `
a=raw('mmap',0,4096,1,1,n,0); b=ctypes.create_string_buffer(1)
call('mincore',a,4096,b)`, want: refused("mincore", "ENOSYS"), twin: here},
		{name: "what of a library is in memory by the newer call", code: open + `
q=(ctypes.c_uint64*2)(0,4096); b=(ctypes.c_uint64*5)()
call('cachestat',n,q,b,0)`, want: refused("cachestat", "ENOSYS"), twin: here},
		{name: "read a library only from memory", code: open + `
b=ctypes.create_string_buffer(64); v=(ctypes.c_uint64*2)(ctypes.addressof(b),64)
open(lib,'rb').read()
call('preadv2',n,v,1,0,0,8)`, want: refused("preadv2", "ENOTSUP"), twin: here},
		{name: "read ahead", code: open + `call('readahead',n,0,4096)`, want: refused("readahead", "ENOSYS"), twin: here},
		{name: "drop a library from memory", code: open + `with attempt(): os.posix_fadvise(n,0,0,os.POSIX_FADV_DONTNEED)`, want: denied("ENOSYS"), twin: here},
	}
}
