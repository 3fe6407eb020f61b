package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/workroot"
)

// workspaceLauncher is the name that a launcher of a workspace is started by:
// it builds the root of the one run that it serves.
const workspaceLauncher = "holdfast-workspace"

// serveWorkspace turns this process into the launcher of a workspace.
func serveWorkspace() {
	runtime.LockOSThread()
	l := &launcher{}
	err := l.wallWorkspace()
	if err == nil {
		err = l.serve()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		leave(exitOther)
	}
	leave(0)
}

func (l *launcher) wallWorkspace() error {
	w := &workroot.Root{}
	steps := []workroot.Step{
		{What: "follow Holdfast's death", Do: func() error {
			return unix.Prctl(unix.PR_SET_PDEATHSIG,
				uintptr(unix.SIGKILL), 0, 0, 0)
		}},
		{What: "read what to build", Do: w.Read},
		{What: "build its network", Do: func() error { return l.handOutNetwork(w) }},
		{What: "open /proc", Do: func() (err error) {
			l.proc, err = unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			return err
		}},
		{What: "make mounts private", Do: func() error {
			return unix.Mount("", "/", "",
				unix.MS_REC|unix.MS_PRIVATE, "")
		}},
	}
	steps = append(steps, w.ListSteps()...)
	steps = append(steps, []workroot.Step{
		{What: "enter the root", Do: func() error {
			return w.Enter(func(root string) error { return (&launcher{root: root}).enter() })
		}},
		{What: "give up rights", Do: func() error { return giveUpInWorkspace(w.Root) }},
	}...)
	for _, s := range steps {
		if err := s.Do(); err != nil {
			return fmt.Errorf("the workspace's launcher could not %s: %w", s.What, err)
		}
	}
	return nil
}

// handOutNetwork builds the workspace's network and hands its sockets out, in a frame
// whose second word is everyPort or an errno.
func (l *launcher) handOutNetwork(w *workroot.Root) error {
	if w.Network == nil {
		return nil
	}
	fds, listed, err := w.OpenNetwork()
	defer closeAll(fds)
	if err != nil {
		return err
	}
	reach := uint32(everyPort)
	if listed != nil {
		reach = errnoOf(listed)
	}
	return l.answer(frameNetwork, reach, unix.UnixRights(fds...))
}

// everyPort says in a frame that each connection comes to a door; else it is the
// errno for which only those to ports that are heard do.
const everyPort = 0

// giveUpInWorkspace leaves the launcher of a workspace without rights. Rootless it keeps
// the one that lets
// a namespace below map the only identity there is, which is root's in its own.
func giveUpInWorkspace(root bool) error {
	if root {
		return giveUp()
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var few [2]unix.CapUserData
	few[0].Effective, few[0].Permitted = 1<<unix.CAP_SETFCAP, 1<<unix.CAP_SETFCAP
	if err := unix.Capset(&hdr, &few[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// Hand takes the sockets of a workspace's network before its program starts:
// that of the proxy, that of names, and those that hear what was meant for
// another process. They are the caller's to read from as long as it runs, by copies
// of its own; an error ends the run before it begins.
type Hand func(ctx context.Context, sockets []*os.File) error

// handOver waits for the sockets of the network, gives them to hand, and returns how
// far the network reaches.
func (s *workspace) handOver(ctx context.Context, n *sandbox.Network, hand Hand) (posture.Reach, error) {
	if n == nil {
		return "", nil
	}
	if hand == nil {
		return "", failed(holdfast.KindSpawn, "give it a network", errors.New("nobody serves it"))
	}
	s.z.conn.SetDeadline(time.Now().Add(cloneWithin))
	f, fds, err := receive(s.z.conn)
	sockets := make([]*os.File, len(fds))
	for i, fd := range fds {
		sockets[i] = os.NewFile(uintptr(fd), "socket")
	}
	defer closeFiles(sockets)
	if err != nil {
		return "", failed(holdfast.KindNamespace, "build its network", s.z.gone(err))
	}
	if f.kind != frameNetwork || len(fds) < 3 {
		return "", failed(holdfast.KindNamespace, "build its network", errors.New("its launcher answered what it should not"))
	}
	if err := hand(ctx, sockets); err != nil {
		return "", err
	}
	if f.a == everyPort {
		return posture.ReachAll, nil
	}
	return posture.ReachPorts, nil
}
