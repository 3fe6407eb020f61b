package seccomp

import "golang.org/x/sys/unix"

// The profiles of the languages: what each runtime calls beyond widened, found by
// tracing programs that use its library broadly, each addition with its reason.

// readAttributes lets attributes be read: copying a file with its mode asks for
// them (shutil.copy2), and tells that there are none.
var readAttributes = []string{"listxattr", "llistxattr", "flistxattr", "getxattr", "lgetxattr", "fgetxattr"}

// PythonProfile: an event loop of asyncio wakes itself over a pair of connected
// stream sockets. Such a pair has no name, reaches nobody else, and a stream
// takes no address to send to; sockets of any other kind stay refused, and so do
// words out of band, in whose handling the kernel has had faults.
func PythonProfile() *Profile {
	const loop = "asyncio's event loop wakes itself over a pair of stream sockets"
	stream := oneOf(0, unix.AF_UNIX)
	for _, flags := range []uint32{0, unix.SOCK_CLOEXEC, unix.SOCK_NONBLOCK, unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK} {
		stream = append(stream, condition{arg: 1, value: unix.SOCK_STREAM | flags})
	}
	more := []allowed{
		threads,
		{name: "socketpair", why: loop, when: stream},
		{name: "sendto", why: loop + "; without an address", when: []condition{{arg: 3, mask: ^uint32(unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL)}, {arg: 5}}},
		{name: "recvfrom", why: loop, when: []condition{{arg: 3, mask: ^uint32(unix.MSG_DONTWAIT | unix.MSG_PEEK | unix.MSG_WAITALL | unix.MSG_TRUNC)}}},
		{name: "getsockname", why: loop + ": making the socket object asks for its name"},
	}
	for _, n := range readAttributes {
		more = append(more, allowed{name: n, why: "shutil copies the attributes of a file"})
	}
	return newProfile(more...)
}

// NodeProfile: V8 and libuv start threads, and every look at an environment
// variable asks whether the process has capabilities.
func NodeProfile() *Profile {
	return newProfile(threads, allowed{name: "capget", why: "node asks, before it trusts the environment, whether it has capabilities; it has none"})
}

// StaticProfile: a compiled program starts threads (Go's always does).
func StaticProfile() *Profile { return newProfile(threads) }
