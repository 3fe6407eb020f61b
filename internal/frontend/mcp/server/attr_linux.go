package server

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes puts the server into a group of its own and lets it die with the
// thread that started it, so that a killed Holdfast leaves no server behind.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// reap waits for the process to end, kills what is left of its group, and
// only then frees its number: until it is reaped, the number, which is also
// its group's, cannot belong to another.
func reap(cmd *exec.Cmd, kill func()) error {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	kill()
	return cmd.Wait()
}
