package api

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// receiveFiles reads one message with descriptors, at most maxSockets.
func receiveFiles(conn net.Conn) ([]*os.File, error) {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("not a unix connection")
	}
	b, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4*maxSockets))
	_, n, flags, _, err := u.ReadMsgUnix(b, oob)
	if err != nil {
		return nil, err
	}
	files, err := filesOf(oob[:n])
	if err == nil && flags&unix.MSG_CTRUNC != 0 {
		err = fmt.Errorf("more than %d descriptors", maxSockets)
	}
	if err != nil {
		closeFiles(files)
		return nil, badSocket(err)
	}
	return files, nil
}

// filesOf are the descriptors of control messages; those it returns with an error
// are the caller's too.
func filesOf(oob []byte) ([]*os.File, error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, m := range msgs {
		fds, bad := unix.ParseUnixRights(&m)
		err = errors.Join(err, bad)
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "socket"))
		}
	}
	return files, err
}

func sendFiles(conn net.Conn, files []*os.File) error {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return errors.New("not a unix connection")
	}
	var fds []int
	for _, f := range files {
		raw, err := f.SyscallConn()
		if err != nil {
			return err
		}
		if err := raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) }); err != nil {
			return err
		}
	}
	_, _, err := u.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil)
	return err
}

// sortSockets tells the sockets of a workspace's network by where each listens.
// They are refused together unless each listens by TCP over IPv4, or is the one
// by UDP, and all were made in one network that is not this process's: what is
// heard there nobody of the machine or beyond can have said. files stay the
// caller's.
func sortSockets(files []*os.File) (s Sockets, err error) {
	defer func() {
		if err != nil {
			s, err = Sockets{}, badSocket(errors.Join(err, s.Close()))
		}
	}()
	own, err := ownNetwork()
	if err != nil {
		return s, err
	}
	network := uint64(0)
	for _, f := range files {
		k, err := look(f)
		if err != nil {
			return s, err
		}
		if k.network == own || network != 0 && k.network != network {
			return s, errors.New("a socket of another network than the run's")
		}
		if network = k.network; k.udp {
			err = s.names(f, k)
		} else {
			err = s.listener(f, k)
		}
		if err != nil {
			return s, err
		}
	}
	if s.Proxy == nil || s.Names == nil || len(s.Meant) == 0 {
		return s, errors.New("a socket is missing")
	}
	return s, nil
}

func (s *Sockets) names(f *os.File, k kindOf) (err error) {
	if s.Names != nil || k.port != sandbox.NamePort {
		return errors.New("a UDP socket that is not that of names")
	}
	s.Names, err = net.FilePacketConn(f)
	return err
}

func (s *Sockets) listener(f *os.File, k kindOf) error {
	l, err := net.FileListener(f)
	if err != nil {
		return err
	}
	if k.port != sandbox.ProxyPort {
		s.Meant = append(s.Meant, l)
		return nil
	}
	if s.Proxy != nil {
		return errors.Join(errors.New("two sockets of the proxy"), l.Close())
	}
	s.Proxy = l
	return nil
}

func badSocket(err error) error {
	return &holdfast.Error{Kind: holdfast.KindUsage, Why: "what was handed over is not the network of a workspace: " + err.Error(), Hint: "sockets are handed over by `holdfast run`", Err: err}
}

// kindOf is what a socket is.
type kindOf struct {
	udp     bool
	port    int
	network uint64 // the kernel's number of the network where it was made
}

// look says what a descriptor is, or why it is no socket to be served.
func look(f *os.File) (k kindOf, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return k, err
	}
	bad := raw.Control(func(fd uintptr) { k, err = lookAt(int(fd)) })
	return k, errors.Join(bad, err)
}

func lookAt(fd int) (k kindOf, err error) {
	option := func(name int) int {
		v, bad := unix.GetsockoptInt(fd, unix.SOL_SOCKET, name)
		err = errors.Join(err, bad)
		return v
	}
	family, kind, protocol, listens := option(unix.SO_DOMAIN), option(unix.SO_TYPE), option(unix.SO_PROTOCOL), option(unix.SO_ACCEPTCONN)
	if err != nil {
		return k, err
	}
	switch {
	case family == unix.AF_INET && kind == unix.SOCK_STREAM && protocol == unix.IPPROTO_TCP && listens == 1:
	case family == unix.AF_INET && kind == unix.SOCK_DGRAM && protocol == unix.IPPROTO_UDP:
		if _, err := unix.Getpeername(fd); err != unix.ENOTCONN {
			return k, errors.New("a UDP socket that is connected")
		}
		k.udp = true
	default:
		return k, errors.New("a descriptor that is no listening socket")
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return k, err
	}
	four, ok := at.(*unix.SockaddrInet4)
	if !ok {
		return k, errors.New("a socket that listens nowhere")
	}
	k.port = four.Port
	k.network, err = networkOf(fd)
	return k, err
}

// networkOf is the number that the kernel gave the network of a socket, and gives
// no other (Linux 5.14; the walls need 5.19).
func networkOf(fd int) (uint64, error) {
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}

func ownNetwork() (uint64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return networkOf(fd)
}

// shut ends a socket for all who have it, and wakes who waits at it: whoever
// handed it over has it too, and may have made it wait.
func shut(f *os.File) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	}
}
