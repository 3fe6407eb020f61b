package detector

import "syscall"

// processAttributes gives the program a process group, and lets it die with the thread that started it.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
