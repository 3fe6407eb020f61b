package api

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/holdfast-dev/holdfast"
)

// CheckPeer refuses a Unix connection whose other side is neither this user
// nor root (D48).
func CheckPeer(conn net.Conn) error {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return errors.New("not a unix connection")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	var uid uint32
	var uerr error
	if err := raw.Control(func(fd uintptr) { uid, uerr = peerUID(int(fd)) }); err != nil {
		return err
	}
	if uerr != nil {
		return uerr
	}
	if int(uid) != os.Getuid() && uid != 0 {
		return &holdfast.Error{Kind: holdfast.KindPermission, Why: fmt.Sprintf("the other side of the socket is user %d", uid), Hint: "use a state directory of your own"}
	}
	return nil
}

// Listener admits only connections of this user and root, and counts who is
// connected.
type Listener struct {
	net.Listener
	// Refused is told of a connection that was turned away; it may be nil.
	Refused func(error)
}

// Accept waits for a connection that CheckPeer admits.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if err := CheckPeer(conn); err != nil {
			conn.Close()
			if l.Refused != nil {
				l.Refused(err)
			}
			continue
		}
		return conn, nil
	}
}
