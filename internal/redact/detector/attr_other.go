//go:build !linux

package detector

import "syscall"

// processAttributes gives the program a process group. If Holdfast is killed, the program sees the end of its input.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
