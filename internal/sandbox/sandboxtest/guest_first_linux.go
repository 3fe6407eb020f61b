package sandboxtest

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// A test's program is also the first process of the machine that BootGuest
// boots: there it mounts what a system has, and starts itself again for each
// scene.
const (
	// GuestSelf is where it is.
	GuestSelf = "/guest/self"
	// GuestEnv is which of the guests it is. Only that machine sets it for its
	// first process.
	GuestEnv = "HOLDFAST_GUEST"
)

// What the first process says on the console, beside what the tests print.
const (
	saysScene = "guest: scene "    // NAME
	saysEnded = "guest: ended "    // STATUS NAME
	saysDone  = "guest: all done " // SECONDS since the kernel's start
)

// GuestInit plays the scenes of a guest and does not return where this is its
// first process. A program calls it first thing in TestMain.
func GuestInit(play func(guest string) error) {
	if os.Getpid() != 1 || os.Getenv(GuestEnv) == "" {
		return
	}
	err := guestMounts()
	if err == nil {
		err = play(os.Getenv(GuestEnv))
	}
	if err != nil {
		fmt.Println("guest: failed:", err)
	} else {
		fmt.Println(saysDone + sinceBoot())
	}
	syscall.Sync()
	syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

func sinceBoot() string {
	b, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return err.Error()
	}
	return strings.Fields(string(b))[0]
}

// guestMounts makes a system of the unpacked archive. The kernel's own first
// root cannot be pivoted away from, which launchers do; so it is bound over
// itself.
func guestMounts() error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"/", "/new", "", syscall.MS_BIND, ""},
		{"proc", "/new/proc", "proc", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC, ""},
		{"sysfs", "/new/sys", "sysfs", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC, ""},
		{"devtmpfs", "/new/dev", "devtmpfs", syscall.MS_NOSUID, ""},
		{"tmpfs", "/new/tmp", "tmpfs", syscall.MS_NOSUID | syscall.MS_NODEV, "mode=1777"},
		{"tmpfs", "/new/sys/fs/cgroup", "tmpfs", syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC, "mode=755"},
	} {
		if err := os.MkdirAll(m.target, 0o755); err != nil && m.kind != "sysfs" {
			return err
		}
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return &os.PathError{Op: "mount", Path: m.target, Err: err}
		}
	}
	return errors.Join(syscall.Chdir("/new"), syscall.Mount(".", "/", "", syscall.MS_MOVE, ""), syscall.Chroot("."), syscall.Chdir("/"),
		syscall.Sethostname([]byte("guest")))
}

// UnifyGroups mounts version 2 with every controller handed down to slices.
func UnifyGroups() error {
	top := "/sys/fs/cgroup"
	if _, err := os.Stat(top + "/cgroup.procs"); err == nil {
		return nil
	}
	if err := syscall.Mount("cgroup2", top, "cgroup2", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, "nsdelegate"); err != nil {
		return &os.PathError{Op: "mount", Path: top, Err: err}
	}
	return os.WriteFile(top+"/cgroup.subtree_control", []byte("+cpu +memory +pids"), 0)
}

// PlayScene starts the tests of the pattern in a test program, such as GuestSelf, as attr
// says, and prints the result.
func PlayScene(name, program, pattern string, attr *os.ProcAttr) error {
	fmt.Println(saysScene + name)
	attr.Dir, attr.Files = "/tmp", []*os.File{nil, os.Stdout, os.Stdout}
	p, err := os.StartProcess(program, []string{program, "-test.v", "-test.timeout=4m", "-test.run=" + pattern}, attr)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Println(saysEnded+strconv.Itoa(reapAll(p.Pid)), name)
	return nil
}

// reapAll waits for everybody, as a first process does, until pid has ended.
func reapAll(pid int) int {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		if err == nil && got == pid {
			return int(status)
		}
		if err != nil && err != syscall.EINTR {
			return -1
		}
	}
}
