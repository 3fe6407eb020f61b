package seccomp

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// machineFor loads a compiled filter into an interpreter of classic BPF that is
// not ours.
func machineFor(t *testing.T, p *Profile) *bpf.VM {
	t.Helper()
	code, err := p.Compile()
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]bpf.RawInstruction, len(code))
	for i, c := range code {
		raw[i] = bpf.RawInstruction{Op: c.Code, Jt: c.Jt, Jf: c.Jf, K: c.K}
	}
	list, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the filter has instructions that are none")
	}
	vm, err := bpf.NewVM(list)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// verdict runs the filter over a call. The interpreter reads words from the
// network, high byte first; seccomp reads the machine's.
func verdict(t *testing.T, vm *bpf.VM, nr, arch uint32, args [6]uint64) uint32 {
	t.Helper()
	b := make([]byte, 64)
	binary.BigEndian.PutUint32(b, nr)
	binary.BigEndian.PutUint32(b[4:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(b[16+8*i:], uint32(a))
		binary.BigEndian.PutUint32(b[20+8*i:], uint32(a>>32))
	}
	n, err := vm.Run(b)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// TestFilterIsTheProfile runs every filter over every number, of this
// architecture, of i386, of x32 and of a stranger, with arguments at and beside
// every border of its conditions, and compares with what the profile says.
func TestFilterIsTheProfile(t *testing.T) {
	t.Parallel()
	native, i386 := nativeArch(), uint32(tables()[1].ID)
	narrow, err := PythonProfile().Without([]string{"clone", "openat", "fcntl"})
	if err != nil {
		t.Fatal(err)
	}
	for lang, p := range map[string]*Profile{"python3": PythonProfile(), "node": NodeProfile(), "static": StaticProfile(), "narrowed": narrow, "empty": {}} {
		vm := machineFor(t, p)
		passed := 0
		for nr := uint32(0); nr < 600; nr += uint32(10 / testrepeat.Times(10, 2)) {
			name := callName(tables()[0], int(nr))
			for _, args := range borders(p, name) {
				want := uint32(unix.SECCOMP_RET_USER_NOTIF)
				switch {
				case name != "" && p.Feigns(name, args):
					want = unix.SECCOMP_RET_ERRNO
				case name != "" && p.Passes(name, args):
					want = unix.SECCOMP_RET_ALLOW
					passed++
				}
				if got := verdict(t, vm, nr, native, args); got != want {
					t.Errorf("%s: %s (%d) with %x: %#x, want %#x", lang, name, nr, args, got, want)
				}
				for _, foreign := range [][2]uint32{{nr, i386}, {nr | x32Bit, native}, {nr, 0}, {nr, 0xc00000f3}, {nr | 1<<31, native}} {
					if got := verdict(t, vm, foreign[0], foreign[1], args); got != unix.SECCOMP_RET_USER_NOTIF {
						t.Errorf("%s: call %#x of architecture %#x with %x: %#x", lang, foreign[0], foreign[1], args, got)
					}
				}
			}
		}
		if lang != "empty" && passed < testrepeat.Times(100, 20) {
			t.Errorf("%s: only %d calls pass", lang, passed)
		}
	}
}

// borders are arguments at which a condition of the call turns: each value, its
// neighbours, each with one more bit, high bits that must not matter, and for
// several conditioned arguments every pair.
func borders(p *Profile, name string) [][6]uint64 {
	values := map[int][]uint64{}
	for _, a := range p.allow {
		if a.name != name {
			continue
		}
		for _, c := range append(slices.Clone(a.when), a.feign...) {
			v := uint64(c.value)
			list := []uint64{v, v + 1, v - 1, v | 1<<32, v | 0xdeadbeef<<32, v ^ 1<<31, ^uint64(0), 0, 1 << 32}
			for bit := range 32 {
				list = append(list, v^1<<bit)
			}
			values[c.arg] = append(values[c.arg], list...)
		}
	}
	out := [][6]uint64{{}, {^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}}
	for i, list := range values {
		for _, v := range list {
			args := [6]uint64{}
			args[i] = v
			out = append(out, args)
			for j, others := range values {
				for _, w := range others[:min(len(others), 9)] {
					if j != i {
						args[j] = w
						out = append(out, args)
					}
				}
			}
		}
	}
	return out
}

// TestFilterFitsTheKernel: no filter is near the kernel's limit, and a condition
// list that no jump can cross is an error, not a wrong jump.
func TestFilterFitsTheKernel(t *testing.T) {
	for _, p := range []*Profile{PythonProfile(), NodeProfile(), StaticProfile()} {
		code, err := p.Compile()
		if err != nil || len(code) > 1000 {
			t.Errorf("%d instructions, %v", len(code), err)
		}
	}
	many := make([]uint32, 200)
	for i := range many {
		many[i] = uint32(i)
	}
	if _, err := (&Profile{allow: []allowed{{name: "ioctl", when: oneOf(1, many...)}}}).Compile(); err == nil {
		t.Error("a jump over 400 instructions was compiled into 8 bits")
	}
}
