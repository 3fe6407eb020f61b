package sandboxtest

import (
	"os"
	"os/exec"
	"syscall"
)

// apart puts a twin into namespaces of its own, where it is asked for: as their
// root, or with the machine's own rights.
func apart(cmd *exec.Cmd, scratch, root bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if !scratch {
		return
	}
	flags := uintptr(syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET)
	if !root {
		flags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	cmd.SysProcAttr.Cloneflags = flags
}

// lockSeen says whether another process holds a lock on exactly so much of a
// file.
func lockSeen(f *os.File, start, length int64) (bool, error) {
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: start, Len: length}
	err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock)
	return lock.Type != syscall.F_UNLCK && lock.Start == start && lock.Len == length, err
}
