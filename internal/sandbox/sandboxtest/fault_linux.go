package sandboxtest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// Fault is a layer of a real system that says no: a filter of system calls around
// the launcher, as a container's runtime puts one on, which answers a call with
// an error before the kernel does it. What the launcher and everything below it
// then meets is what it would meet there.
type Fault struct {
	Nr    int // the call
	Arg   int // the argument that has to be Value, or -1 for any
	Value uint32
	Errno syscall.Errno
	// Watched puts a listener on as well, as an agent that watches containers
	// does: a second one is then EBUSY. The other fields say nothing.
	Watched bool
}

// faultFile stands in the directory that a tier keeps its runtimes in; a launcher
// that starts while it is there is put behind the fault.
const faultFile = "layer-fault"

// Set puts launchers that start in dir from now on behind the fault, until Mend
// or the test's end.
func (f Fault) Set(t *testing.T, dir string) {
	t.Helper()
	text := fmt.Sprintf("%d %d %d %d %t", f.Nr, f.Arg, f.Value, f.Errno, f.Watched)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(filepath.Join(dir, faultFile)) })
	if err := os.WriteFile(filepath.Join(dir, faultFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Mend takes the fault of dir away.
func Mend(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, faultFile)); err != nil {
		t.Fatal(err)
	}
}

// Faulty puts this process behind the fault of its directory, if it is a launcher
// there. TestMain calls it before the launcher goes on.
func Faulty() {
	if len(os.Args) != 2 || os.Args[0] != "holdfast-launcher" {
		return
	}
	b, err := os.ReadFile(filepath.Join(os.Args[1], "..", "..", faultFile))
	if err != nil {
		return
	}
	var f Fault
	if _, err = fmt.Sscanf(string(b), "%d %d %d %d %t", &f.Nr, &f.Arg, &f.Value, &f.Errno, &f.Watched); err == nil {
		err = f.install()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the fault cannot be put on:", err)
		os.Exit(3)
	}
}

type instruction struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

// install puts the filter on this thread, which from then on is the goroutine's
// alone: the launcher builds every wall in it. Go and the C library start threads
// in others, which they could no more where clone3 is refused, and would die. It
// needs CAP_SYS_ADMIN, which a launcher begins with.
func (f Fault) install() error {
	const (
		load, equal, ret = 0x20, 0x15, 0x06
		allow, errno     = 0x7fff0000, 0x00050000
		setFilter        = 1
		listener         = 8
	)
	prog := []instruction{{load, 0, 0, 0}, {equal, 0, 3, uint32(f.Nr)}}
	if f.Arg >= 0 {
		prog = append(prog, instruction{load, 0, 0, uint32(16 + 8*f.Arg)}, instruction{equal, 0, 1, f.Value})
	} else {
		prog[1].jf = 1
	}
	prog = append(prog, instruction{ret, 0, 0, errno | uint32(f.Errno)}, instruction{ret, 0, 0, allow})
	flags := uintptr(0)
	if f.Watched {
		prog, flags = []instruction{{ret, 0, 0, allow}}, listener
	}
	fprog := struct {
		n int
		p *instruction
	}{len(prog), &prog[0]}
	runtime.LockOSThread()
	if _, _, e := syscall.Syscall(sysSeccomp, setFilter, flags, uintptr(unsafe.Pointer(&fprog))); e != 0 {
		return e
	}
	return nil
}

// FellsRun says whether text tells of the fault's error and of nothing that was
// put on badly.
func (f Fault) FellsRun(text string) bool {
	want := f.Errno.Error()
	if f.Watched {
		want = syscall.EBUSY.Error()
	}
	return strings.Contains(text, want) && !strings.Contains(text, "cannot be put on")
}
