package process

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

//go:embed zygote.py
var zygotePython string

// zygoteText is zygote.py with what it has to know.
func zygoteText() string {
	places := fmt.Sprintf("%#x, %d, %#x, %d, %d, %d", uint64(zygoteBase), zygoteSize, uint64(tapeBase), tapeSize, zygoteTape, launcherSocket)
	return strings.Replace(zygotePython, " = PLACES\n", " = "+places+"\n", 1)
}

// zygoteScratch is what a zygote reads as its interpreter starts, in its own
// mount namespace; each of its children mounts a scratch over it.
func (l *launcher) zygoteScratch() error {
	if len(l.zygote) == 0 {
		return nil
	}
	at := filepath.Join(l.root, "tmp")
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=256k,nr_inodes=8,mode=0755"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(at, "sitecustomize.py"), []byte(parkText(zygoteText())), 0o444); err != nil {
		return err
	}
	return unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// become turns a launcher whose walls stand into the interpreter of argv, whose
// start leads to zygote.py. It returns only if it failed.
func (l *launcher) become(argv []string) error {
	fds, err := l.zygoteFiles()
	if err != nil {
		return fmt.Errorf("the sandbox's zygote could not be written down: %w", err)
	}
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GOMAXPROCS=") {
			env = append(env, v)
		}
	}
	for i, fd := range fds {
		if err := unix.Dup2(fd, zygoteProc+i); err != nil {
			return fmt.Errorf("the sandbox's zygote could not get its descriptors: %w", err)
		}
	}
	answerSignals()
	return fmt.Errorf("the sandbox's zygote could not start %s: %w", argv[0], syscall.Exec(argv[0], argv, env))
}

// answerSignals takes back what whoever started Holdfast ignores, as nohup does: an
// interpreter keeps what it finds when it starts, and its forks would too.
func answerSignals() {
	var standard [4]uint64 // struct sigaction: the default, no flags, nothing masked
	for sig := uintptr(1); sig <= 64; sig++ {
		// Of SIGKILL and SIGSTOP nobody can, which is no harm.
		unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&standard)), 0, 8, 0, 0)
	}
}

// zygoteFiles are /proc, and the tape with player's code behind it, by numbers
// that are in nobody's way.
func (l *launcher) zygoteFiles() (list []int, err error) {
	tape, err := zygotePlan()
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("zygote", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	text := make([]byte, 2*zygoteSize)
	copy(text, tape)
	copy(text[zygoteSize:], playerCode())
	if n, err := unix.Write(fd, text); err != nil || n < len(text) {
		return nil, fmt.Errorf("write %d bytes of it: %w", n, err)
	}
	for _, fd := range []int{l.proc, fd} {
		high, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 16)
		if err != nil {
			return nil, err
		}
		list = append(list, high)
	}
	return list, nil
}
