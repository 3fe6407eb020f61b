package seccomp

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/elastic/go-seccomp-bpf/arch"
)

// tables are the kernel's names of system calls, here and for i386.
var tables = sync.OnceValue(func() [2]*arch.Info {
	here, err := arch.GetInfo(runtime.GOARCH)
	if err != nil {
		here = &arch.Info{}
	}
	return [2]*arch.Info{here, arch.I386}
})

// newerCalls are those that the tables do not have yet; every architecture
// numbers them alike.
var newerCalls = map[string]int{"file_getattr": 468, "file_setattr": 469, "listns": 470, "rseq_slice_yield": 471}

func callNumber(name string) (int, bool) {
	if n, ok := tables()[0].SyscallNames[name]; ok {
		return n, ok
	}
	n, ok := newerCalls[name]
	return n, ok
}

// callName is the name of a number in a table, or "".
func callName(table *arch.Info, nr int) string {
	if name := table.SyscallNumbers[nr]; name != "" {
		return name
	}
	for name, n := range newerCalls {
		if n == nr {
			return name
		}
	}
	return ""
}

// nativeArch is the AUDIT_ARCH value of this machine.
func nativeArch() uint32 { return uint32(tables()[0].ID) }

// Call is one system call that the filter asked about.
type Call struct {
	nr      int32
	arch    uint32
	args    [6]uint64
	Name    string
	ABI     string // "x86_64", "i386", "x32"
	Foreign bool
}

// NewCall names a call.
func NewCall(nr int32, archID uint32, args [6]uint64) Call {
	c := Call{nr: nr, arch: archID, args: args, ABI: tables()[0].Name}
	table, key := tables()[0], int(nr)
	switch {
	case archID == uint32(tables()[1].ID) && archID != nativeArch():
		table, c.ABI, c.Foreign = tables()[1], "i386", true
	case archID != nativeArch():
		c.ABI, c.Foreign = fmt.Sprintf("arch %#x", archID), true
	case runtime.GOARCH == "amd64" && nr&x32Bit != 0 && nr > 0:
		key, c.ABI, c.Foreign = int(nr&^x32Bit), "x32", true
	}
	if c.Name = callName(table, key); c.Name == "" {
		c.Name = fmt.Sprintf("syscall_%d", nr)
	}
	return c
}

// knownCall says whether any kernel has a call of that name, on this machine's
// architecture or another that Holdfast runs on.
func knownCall(name string) bool {
	for _, t := range []*arch.Info{arch.X86_64, arch.AARCH64, arch.I386} {
		if _, ok := t.SyscallNames[name]; ok {
			return true
		}
	}
	return newerCalls[name] != 0
}
