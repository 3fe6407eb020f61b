package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// listenerName is the socket's name in the run's folder, from which the runtime
// is started: a whole path could be longer than a socket's may be.
const listenerName = "listener"

// door is where the runtime brings the listener of a container's filter.
type door struct {
	socket *net.UnixListener
	folder *os.File
}

// openDoor listens in the run's folder.
func openDoor(home string) (*door, error) {
	fd, err := unix.Open(home, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	folder := os.NewFile(uintptr(fd), home)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", fd, listenerName), Net: "unix"})
	if err != nil {
		folder.Close()
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it goes with the folder
	return &door{l, folder}, nil
}

func (d *door) close() {
	d.socket.Close()
	d.folder.Close()
}

// path is how a runtime that is started in the folder reaches the socket. crun
// wants a path from the root on, and gets one that is short whatever the folder's
// is.
func (d *door) path(v version) string {
	if v.name == "runc" {
		return listenerName
	}
	return fmt.Sprintf("/proc/%d/fd/%d/%s", os.Getpid(), d.folder.Fd(), listenerName)
}

// maxState bounds what a runtime says of a container's state.
const maxState = 256 << 10

// take waits for the listener, which comes with the container's state (OCI
// runtime specification, config-linux.md "The Container Process State").
func (d *door) take(within time.Duration) (int, error) {
	d.socket.SetDeadline(time.Now().Add(within))
	c, err := d.socket.AcceptUnix()
	if err != nil {
		return -1, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(within))
	buf, oob := make([]byte, maxState), make([]byte, unix.CmsgSpace(4*8))
	n, m, flags, _, err := c.ReadMsgUnix(buf, oob)
	fds := descriptors(oob[:m])
	if err == nil {
		err = stated(buf[:n], flags, len(fds))
	}
	if err != nil {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return -1, err
	}
	unix.CloseOnExec(fds[0])
	return fds[0], nil
}

// stated checks that the state names one descriptor, the listener.
func stated(b []byte, flags, got int) error {
	var state struct {
		Fds []string `json:"fds"`
	}
	switch err := json.Unmarshal(b, &state); {
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		return errors.New("the container's state is longer than one may be")
	case err != nil:
		return fmt.Errorf("the container's state cannot be read: %w", err)
	case !slices.Equal(state.Fds, []string{"seccompFd"}) || got != 1:
		return fmt.Errorf("the container's state names %d descriptors, with it came %d", len(state.Fds), got)
	}
	return nil
}

func descriptors(oob []byte) []int {
	var list []int
	messages, _ := unix.ParseSocketControlMessage(oob)
	for _, m := range messages {
		if fds, err := unix.ParseUnixRights(&m); err == nil {
			list = append(list, fds...)
		}
	}
	return list
}
