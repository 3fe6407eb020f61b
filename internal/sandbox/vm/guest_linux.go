package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// guestEnv is in the environment of a guest's first process, put there by the
// kernel from its command line, and nowhere else.
const guestEnv = "HOLDFAST_VM"

// guestRoot is where the tier in the guest keeps its copies of runtimes.
const guestRoot = "/tmp/roots"

// guestPort is the guest's port for frames; the first is its console.
const guestPort = "/dev/ttyS1"

// Guest turns this process into the supervisor of a guest, and does not return,
// if it is the first process of a machine that this package started. A program
// that is started as one calls it first thing in main. open opens the tier that
// code runs in; dir is for its files.
func Guest(open func(ctx context.Context, dir string) (Inside, error)) {
	if os.Getpid() != 1 || os.Getenv(guestEnv) == "" {
		return
	}
	err := serveGuest(open)
	fmt.Println("holdfast: the guest ends:", err) // on the console, for the log
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	for {
		time.Sleep(time.Hour)
	}
}

func serveGuest(open func(context.Context, string) (Inside, error)) error {
	if err := errors.Join(guestMounts(), os.Setenv("PATH", "/usr/bin"), os.Setenv("HOME", "/tmp"), os.Setenv("TMPDIR", "/tmp"), os.Unsetenv(guestEnv)); err != nil {
		return err
	}
	port, err := openPort(guestPort)
	if err != nil {
		return err
	}
	err = serveOrder(port, open) // comes back only where it cannot go on
	writeFrame(port, frame{frameFailed, []byte(words(err.Error()))})
	time.Sleep(time.Second) // the port is slow, and the machine's end is not
	return err
}

// serveOrder makes everything ready, waits for one order and does it. Between
// the greeting and the order the machine's memory is kept.
func serveOrder(port *os.File, open func(context.Context, string) (Inside, error)) error {
	box, err := openBox()
	if err != nil {
		return err
	}
	ctx := context.Background()
	tier, err := open(ctx, guestRoot)
	if err != nil {
		return err
	}
	hello := greeting{Posture: tier.Posture()}
	hello.Languages, hello.Absent = tier.Languages()
	if err := whole("/"+guestWhole, hello); err != nil {
		return err
	}
	if err := warm(ctx, tier, hello.Languages); err != nil {
		return err
	}
	if err := say(port, frameReady, hello); err != nil {
		return err
	}
	f, err := readFrame(port)
	if err != nil || f.kind != frameOrder {
		return fmt.Errorf("no order came, but %q (%v)", f.kind, err)
	}
	var o order
	if err := json.Unmarshal(f.body, &o); err != nil || o.Length < 0 || o.Length > len(box) {
		return fmt.Errorf("the order cannot be read (%v)", err)
	}
	if err := become(o); err != nil {
		return err
	}
	if err := say(port, frameAccepted, nil); err != nil {
		return err
	}
	n, err := obey(ctx, tier, box, o.Length)
	if err != nil {
		return err
	}
	if err := say(port, frameDone, outcome{n}); err != nil {
		return err
	}
	for {
		time.Sleep(time.Hour) // Holdfast ends the machine
	}
}

// whole says of a guest in which something is missing of what was packed for it
// that it is: as a rule there is too little memory to unpack it.
func whole(mark string, hello greeting) error {
	const more = "; give guests more memory, in holdfast.yaml: sandbox: vm: {memory: MB}"
	b, err := os.ReadFile(mark)
	if err != nil {
		return errors.New("its file system was not unpacked to the end" + more)
	}
	there := slices.DeleteFunc(slices.Clone(hello.Languages), func(l string) bool { return l == sandbox.Static })
	if want, err := strconv.Atoi(string(b)); err != nil || len(there) < want {
		return fmt.Errorf("it has runtimes for %s languages and can use only %q (%v)"+more, b, there, hello.Absent)
	}
	return nil
}

// warm runs a program that does nothing in every language, twice: from the
// second on the tier keeps processes that wait behind their walls. After that it
// makes nothing ready: the one processor is the run's.
func warm(ctx context.Context, tier Inside, languages []string) error {
	for _, l := range languages {
		code := map[bool]string{true: "0", false: ""}[strings.HasPrefix(l, "python") || strings.HasPrefix(l, "node")]
		if code == "" {
			continue
		}
		for range 2 {
			res, err := tier.Run(ctx, sandbox.Spec{ID: "warm", Language: l, Code: []byte(code), Timeout: sandbox.MaxTimeout, Need: []posture.Wall{posture.WallPID}})
			if err != nil {
				return err
			}
			if res.State != posture.Completed || res.ExitCode != 0 {
				return fmt.Errorf("%s does not run in the guest: %s %d %.200q", l, res.State, res.ExitCode, res.Stderr)
			}
		}
	}
	tier.Settle(ctx)
	tier.Last()
	return nil
}

// obey runs the request in the box, and puts the answer into it.
func obey(ctx context.Context, tier Inside, box []byte, length int) (int, error) {
	spec, err := unpackSpec(box[:length])
	if err != nil {
		return 0, fmt.Errorf("the request cannot be read: %w", err)
	}
	res, err := tier.Run(ctx, spec)
	if err != nil {
		return packError(err, box)
	}
	return packResult(res, box)
}

func say(port *os.File, kind byte, what any) error {
	b, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return writeFrame(port, frame{kind, b})
}

// guestMounts makes a system of the unpacked archive. The kernel's own first
// root cannot be pivoted away from, which launchers do; so it is bound over
// itself.
func guestMounts() error {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"/", "/new", "", unix.MS_BIND, ""},
		{"proc", "/new/proc", "proc", quiet, ""},
		{"sysfs", "/new/sys", "sysfs", quiet, ""},
		{"devtmpfs", "/new/dev", "devtmpfs", unix.MS_NOSUID, ""},
		{"tmpfs", "/new/tmp", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
		{"cgroup2", "/new/sys/fs/cgroup", "cgroup2", quiet, "nsdelegate"},
	} {
		if m.kind != "sysfs" && m.kind != "cgroup2" {
			if err := os.MkdirAll(m.target, 0o755); err != nil {
				return err
			}
		}
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return &os.PathError{Op: "mount", Path: m.target, Err: err}
		}
	}
	return errors.Join(os.WriteFile("/new/sys/fs/cgroup/cgroup.subtree_control", []byte("+cpu +memory +pids"), 0),
		unix.Chdir("/new"), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), unix.Chdir("/"), unix.Sethostname([]byte("template")))
}

// openPort opens a serial port so that bytes go through it as they are.
func openPort(name string) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	t := &unix.Termios{Cflag: unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B4000000}
	t.Cc[unix.VMIN] = 1
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, t); err != nil {
		return nil, &os.PathError{Op: "set up", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openBox maps the memory that is shared with Holdfast. No driver of the guest
// knows it, so it is there as what a machine's memory is.
func openBox() ([]byte, error) {
	fd, err := unix.Open("/dev/mem", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/mem", Err: err}
	}
	defer unix.Close(fd)
	box, err := unix.Mmap(fd, boxAddress, boxBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("the memory that is shared with Holdfast cannot be mapped: %w", err)
	}
	return box, nil
}

// become makes the guest another one than every other that was restored from
// the same memory: its random numbers, its clock, its name.
func become(o order) error {
	f, err := os.OpenFile("/dev/urandom", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := reseed(f, o.Seed); err != nil {
		return fmt.Errorf("the random numbers cannot be made its own: %w", err)
	}
	now := unix.NsecToTimespec(o.Now.UnixNano())
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &now); err != nil {
		return fmt.Errorf("the clock cannot be set: %w", err)
	}
	return unix.Sethostname([]byte(o.Host))
}
