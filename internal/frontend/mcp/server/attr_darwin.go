package server

import (
	"os/exec"
	"syscall"
)

// attributes puts the server into a group of its own. This system cannot tie
// a child's life to its parent's: after a killed Holdfast the server sees the
// end of its standard input.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// reap waits for the process to end and kills what is left of its group. This
// system has no waiting without reaping (its waitid also returns for a stopped
// process), so the group is named by a number that is free if nobody is left
// in it; numbers are given out in turn, so it is not taken again at once.
func reap(cmd *exec.Cmd, kill func()) error {
	err := cmd.Wait()
	kill()
	return err
}
