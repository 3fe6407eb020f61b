package process

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data.
const (
	dataNr   = 0
	dataArch = 4
	dataArgs = 16 // eight bytes each, the low half first
)

// x32Bit marks the calls of the x32 ABI, whose architecture reads as x86-64.
const x32Bit = 0x40000000

// compile turns a profile into the kernel's filter: what the profile allows
// passes, everything else asks Holdfast (SECCOMP_RET_USER_NOTIF), which refuses,
// or names it and kills. A call of another architecture, or of x32, is always
// asked about. Conditions look at the low 32 bits of an argument, as the kernel
// does with an int; high bits cannot get around them.
func (p *profile) compile(native uint32) ([]unix.SockFilter, error) {
	f := &filter{}
	f.load(dataArch)
	f.unless(unix.BPF_JEQ, native, unix.SECCOMP_RET_USER_NOTIF)
	f.load(dataNr)
	f.when(unix.BPF_JGE, x32Bit, unix.SECCOMP_RET_USER_NOTIF)
	for _, c := range p.allow {
		nr, ok := callNumber(c.name)
		if !ok {
			continue // a call that this architecture never had
		}
		if len(c.when) == 0 {
			f.when(unix.BPF_JEQ, uint32(nr), unix.SECCOMP_RET_ALLOW)
			continue
		}
		f.conditional(uint32(nr), c.when)
	}
	f.ret(unix.SECCOMP_RET_USER_NOTIF)
	if len(f.code) > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("the filter has %d instructions, the kernel takes %d", len(f.code), unix.BPF_MAXINSNS)
	}
	return f.code, nil
}

type filter struct{ code []unix.SockFilter }

func (f *filter) emit(code uint16, k uint32, jt, jf uint8) {
	f.code = append(f.code, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

func (f *filter) load(at uint32) { f.emit(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at, 0, 0) }
func (f *filter) ret(v uint32)   { f.emit(unix.BPF_RET|unix.BPF_K, v, 0, 0) }

// when returns v if the loaded word compares with k.
func (f *filter) when(cmp uint16, k, v uint32) {
	f.emit(unix.BPF_JMP|cmp|unix.BPF_K, k, 0, 1)
	f.ret(v)
}

// unless returns v if the loaded word does not compare with k.
func (f *filter) unless(cmp uint16, k, v uint32) {
	f.emit(unix.BPF_JMP|cmp|unix.BPF_K, k, 1, 0)
	f.ret(v)
}

// conditional allows the call nr if one of the conditions holds for each
// argument that has any; else it asks.
func (f *filter) conditional(nr uint32, list []condition) {
	body := &filter{}
	for i := 0; i < len(list); {
		j := i
		for j < len(list) && list[j].arg == list[i].arg {
			j++
		}
		body.argument(list[i:j])
		i = j
	}
	body.ret(unix.SECCOMP_RET_ALLOW)
	f.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, nr, 0, uint8(len(body.code)))
	f.code = append(f.code, body.code...)
}

// argument asks unless one alternative holds.
func (f *filter) argument(list []condition) {
	for i, c := range list {
		f.load(dataArgs + 8*uint32(c.arg))
		if c.mask != 0 {
			f.emit(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, c.mask, 0, 0)
		}
		left := 0
		for _, n := range list[i+1:] {
			left += 2
			if n.mask != 0 {
				left++
			}
		}
		if i == len(list)-1 {
			f.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, c.value, 1, 0)
			f.ret(unix.SECCOMP_RET_USER_NOTIF)
			break
		}
		f.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, c.value, uint8(left+1), 0)
	}
}

func rawFilter(code []unix.SockFilter) []byte {
	var b []byte
	for _, i := range code {
		b = binary.LittleEndian.AppendUint16(b, i.Code)
		b = append(b, i.Jt, i.Jf)
		b = binary.LittleEndian.AppendUint32(b, i.K)
	}
	return b
}
