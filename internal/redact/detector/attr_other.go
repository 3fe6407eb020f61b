//go:build !linux

package detector

import "syscall"

// attributes gives the program a process group. If Holdfast is killed, the program sees the end of its input.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
