package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
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

// lockSeen says whether a process holds a lock on exactly so much of a file. Who asks
// the file itself is told of one lock alone, behind which another may stand: a Docker
// engine holds one on all of /dev/null.
func lockSeen(f *os.File, start, length int64) (bool, error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	st := info.Sys().(*syscall.Stat_t)
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return false, err
	}
	major, minor := st.Dev>>8&0xfff, st.Dev&0xff|st.Dev>>12&0xfff00
	return strings.Contains(string(locks), fmt.Sprintf(" %02x:%02x:%d %d %d\n", major, minor, st.Ino, start, start+length-1)), nil
}
