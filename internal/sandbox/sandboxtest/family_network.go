package sandboxtest

// networkTries reach for the network (003 2.2: no egress, no names).
func networkTries() []try {
	sock := func(name, args string, w want, tw twin) try {
		return try{name: name, code: `call('socket',` + args + `)`, want: w, twin: tw}
	}
	no := refused("socket", "EACCES")
	return []try{
		sock("tcp", "2,1,0", no, here), sock("udp", "2,2,0", no, here), sock("tcp over IPv6", "10,1,0", no, here), sock("raw", "2,3,1", no, inScratch),
		sock("mptcp", "2,1,262", no, here), sock("sctp", "2,1,132", no, here), sock("netlink", "16,3,0", no, here), sock("packets", "17,3,0", no, inScratch),
		sock("a unix socket", "1,1,0", no, here), sock("unix packets", "1,5,0", no, here), sock("bluetooth", "31,3,1", no, here), sock("rxrpc", "33,2,2", no, here),
		sock("the kernel's ciphers", "38,5,0", escape("socket"), here), sock("the hypervisor", "40,1,0", escape("socket"), here),
		sock("packets by memory", "44,3,0", escape("socket"), inScratch), sock("ipsec keys", "15,3,2", escape("socket"), inScratch),
		sock("the kernel's ciphers with high bits", "38|1<<32,5,0", escape("socket"), here),
		{name: "a connection", code: `
import socket
with attempt(): socket.create_connection(('8.8.8.8',53),2)`, want: refused("socket", "EACCES"), twin: twin{code: `
import socket
l=socket.create_server(('127.0.0.1',0))
with attempt(): socket.create_connection(l.getsockname(),2)`}},
		{name: "a name", code: `
import socket
try: socket.getaddrinfo('localhost' if not os.path.exists('/code') else 'example.com',80); say('reached')
except socket.gaierror: say('no names')`, want: says("no names"), twin: here},
		{name: "connect without a socket", code: `
a=b'\x02\0\0\x35\x08\x08\x08\x08'+bytes(8)
call('connect',0,a,16)`, want: refused("connect", "EACCES"), twin: twin{code: `
import socket
s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)
call('connect',s.fileno(),b'\x02\0\0\x35\x7f\0\0\x01'+bytes(8),16)`}},
		{name: "bind to an abstract name", code: `
import socket
with attempt(): socket.socket(socket.AF_UNIX).bind('\0holdfast-suite-%d'%os.getpid())`, want: refused("socket", "EACCES"), twin: here},
		{name: "bind the end of a pair", code: `
import socket
a,b=socket.socketpair()
with attempt(): a.bind('\0holdfast-suite-pair-%d'%os.getpid())`, want: refused("bind", "EACCES"), twin: here},
		{name: "connect the end of a pair", code: `
import socket
with attempt():
    if os.path.exists('/code'): socket.socketpair()[0].connect('\0x')
    else: l=socket.socket(socket.AF_UNIX); l.bind('\0hf-%d'%os.getpid()); l.listen(); socket.socket(socket.AF_UNIX).connect('\0hf-%d'%os.getpid())`, want: refused("connect", "EACCES"), twin: here},
		{name: "listen", code: `
import socket
with attempt(): (socket.socketpair()[0] if os.path.exists('/code') else socket.socket()).listen()`, want: refused("listen", "EACCES"), twin: here},
		{name: "a pair that takes addresses", code: `call('socketpair',1,2,0,ctypes.create_string_buffer(8))`, want: refused("socketpair", "EACCES"), twin: here},
		{name: "send to an address", code: `
import socket
a,b=socket.socketpair(socket.AF_UNIX,socket.SOCK_STREAM if os.path.exists('/code') else socket.SOCK_DGRAM)
with attempt():
    if os.path.exists('/code'): a.sendto(b'x','\0y')
    else: b.close(); c=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM); c.bind('\0hs-%d'%os.getpid()); socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM).sendto(b'x','\0hs-%d'%os.getpid())`, want: refused("sendto", "EACCES"), twin: here},
		{name: "pass a descriptor", code: `
import socket
a,b=socket.socketpair()
with attempt(): socket.send_fds(a,[b'x'],[0])`, want: refused("sendmsg", "EACCES"), twin: here},
		{name: "a network device", code: `
with attempt(): os.open('/dev/net/tun',2)`, want: denied("ENOENT"), twin: byRoot},
	}
}

// terminalTries put words into a terminal, or take it over.
func terminalTries() []try {
	// Outside: a terminal that the twin controls.
	own := `
n=0
if not os.path.exists('/code'):
    n=os.open(os.ttyname(os.openpty()[1]),2)
    T=n
`
	ioctl := func(name, req, arg string, w want, tw twin) try {
		return try{name: name, code: own + `call('ioctl',n,` + req + `,` + arg + `)`, want: w, twin: tw}
	}
	return []try{
		ioctl("type", "0x5412", "b'x'", escape("ioctl"), here),
		ioctl("type with high bits", "0x5412|1<<32", "b'x'", escape("ioctl"), here),
		ioctl("type with all high bits", "0x5412|0x7fffffff<<32", "b'x'", escape("ioctl"), here),
		{name: "type into the output", code: `
if not os.path.exists('/code'): s=os.openpty(); os.dup2(os.open(os.ttyname(s[1]),2),0)
call('ioctl',1 if os.path.exists('/code') else 0,0x5412,b'x')`, want: escape("ioctl"), twin: here},
		ioctl("paste", "0x541c", "b'\\x03'", escape("ioctl"), comesBack),
		ioctl("a discipline", "0x5423", "ctypes.byref(ctypes.c_int(0))", escape("ioctl"), here),
		ioctl("a discipline with high bits", "0x5423|1<<40", "ctypes.byref(ctypes.c_int(0))", escape("ioctl"), here),
		ioctl("take the terminal", "0x540e", "0", escape("ioctl"), here),
		ioctl("take the console", "0x541d", "0", escape("ioctl"), comesBack),
		ioctl("leave the terminal", "0x5422", "0", refused("ioctl", "ENOTTY"), twin{ends: "signal: hangup"}),
		ioctl("the size of the window", "0x5414", "bytes(8)", refused("ioctl", "ENOTTY"), here),
		{name: "a session", code: `
with attempt(): raw('setsid')`, want: refused("setsid", "EPERM"), twin: twin{code: `
p=os.fork()
if p==0:
    with attempt(): raw('setsid')
    os._exit(0)
os.waitpid(p,0)`}},
		{name: "the terminal device", code: `with attempt(): os.open('/dev/tty',0)`, want: denied("ENOENT"), twin: twin{code: `
n=os.open(os.ttyname(os.openpty()[1]),2)
with attempt(): os.open('/dev/tty',0)`}},
		{name: "a terminal of its own", code: `with attempt(): os.openpty()`, want: denied("ENOENT"), twin: here},
	}
}
