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
