package process

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// tables are the kernel's names of system calls, here and for i386.
var tables = sync.OnceValue(func() [2]*arch.Info {
	here, err := arch.GetInfo(runtime.GOARCH)
	if err != nil {
		here = &arch.Info{}
	}
	return [2]*arch.Info{here, arch.I386}
})

func callNumber(name string) (int, bool) {
	n, ok := tables()[0].SyscallNames[name]
	return n, ok
}

// nativeArch is the AUDIT_ARCH value of this machine.
func nativeArch() uint32 { return uint32(tables()[0].ID) }

// call is one system call that the filter asked about.
type call struct {
	nr      int32
	arch    uint32
	args    [6]uint64
	name    string
	abi     string // "x86_64", "i386", "x32"
	foreign bool
}

// newCall names a call.
func newCall(nr int32, archID uint32, args [6]uint64) call {
	c := call{nr: nr, arch: archID, args: args, abi: tables()[0].Name}
	table, key := tables()[0], int(nr)
	switch {
	case archID == uint32(tables()[1].ID) && archID != nativeArch():
		table, c.abi, c.foreign = tables()[1], "i386", true
	case archID != nativeArch():
		c.abi, c.foreign = fmt.Sprintf("arch %#x", archID), true
	case runtime.GOARCH == "amd64" && nr&x32Bit != 0 && nr > 0:
		key, c.abi, c.foreign = int(nr&^x32Bit), "x32", true
	}
	if c.name = table.SyscallNumbers[key]; c.name == "" {
		c.name = fmt.Sprintf("syscall_%d", nr)
	}
	return c
}

// refusal is what the kernel is told for a call that is refused.
func refusal(e unix.Errno) int32 { return -int32(e) }
