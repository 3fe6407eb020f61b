package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

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

// Compile turns a profile into the kernel's filter: what the profile allows
// passes, what it feigns comes back as done, everything else asks Holdfast (SECCOMP_RET_USER_NOTIF), which refuses,
// or names it and kills. A call of another architecture, or of x32, is always
// asked about. Conditions look at the low 32 bits of an argument, as the kernel
// does with an int; high bits cannot get around them.
func (p *Profile) Compile() ([]unix.SockFilter, error) {
	f := &filter{}
	f.load(dataArch)
	f.unless(unix.BPF_JEQ, nativeArch(), unix.SECCOMP_RET_USER_NOTIF)
	f.load(dataNr)
	ranges, err := p.ranges()
	if err != nil {
		return nil, err
	}
	if err := f.tree(ranges); err != nil {
		return nil, err
	}
	if f.far {
		return nil, errors.New("a call has more conditions than a jump can cross")
	}
	if len(f.code) > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("the filter has %d instructions, the kernel takes %d", len(f.code), unix.BPF_MAXINSNS)
	}
	return f.code, nil
}

// span is the calls from low up to the next span, which are answered alike.
type span struct {
	low   uint32
	allow bool
	allowed
}

// ranges is the profile in order of numbers, neighbours that are answered alike
// put together. The last span reaches to the end: x32 is asked about like all
// that nobody allows.
func (p *Profile) ranges() ([]span, error) {
	byNr := map[uint32]allowed{}
	for _, c := range p.allow {
		nr, ok := callNumber(c.name)
		if !ok || !p.many && asked(c.name) {
			continue // a call that this architecture never had, or is asked about
		}
		if _, twice := byNr[uint32(nr)]; twice {
			return nil, fmt.Errorf("%s is in the profile twice", c.name)
		}
		byNr[uint32(nr)] = c
	}
	list, next := []span{{}}, uint32(0)
	for _, nr := range slices.Sorted(maps.Keys(byNr)) {
		if nr > next {
			list = join(list, span{low: next})
		}
		list, next = join(list, span{low: nr, allow: true, allowed: byNr[nr]}), nr+1
	}
	return join(list, span{low: next}), nil
}

// plain: no argument matters, and what is allowed happens.
func (s span) plain() bool { return s.when == nil && s.feign == nil && !s.feigned }

// join puts s behind list, or makes it part of the last where they are alike.
func join(list []span, s span) []span {
	last := &list[len(list)-1]
	if last.low == s.low {
		*last = s
		return list
	}
	if last.allow == s.allow && last.plain() && s.plain() {
		return list
	}
	return append(list, s)
}

// tree decides between spans by halves. The kernel tries the whole filter with
// every number when it is loaded, so that its depth is what loading costs.
func (f *filter) tree(list []span) error {
	if len(list) == 1 {
		switch s := list[0]; {
		case !s.allow:
			f.ret(unix.SECCOMP_RET_USER_NOTIF)
		case s.feigned:
			f.ret(unix.SECCOMP_RET_ERRNO) // of no error: success
		case len(s.when) == 0:
			f.ret(unix.SECCOMP_RET_ALLOW)
		default:
			f.feign(s.feign)
			f.conditional(s.when)
		}
		return nil
	}
	half := len(list) / 2
	left := &filter{}
	if err := left.tree(list[:half]); err != nil {
		return err
	}
	f.far = f.far || left.far
	at := list[half].low
	if n := len(left.code); n <= 255 {
		f.emit(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, at, uint8(n), 0)
	} else {
		f.emit(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, at, 0, 1)
		f.emit(unix.BPF_JMP|unix.BPF_JA, uint32(n), 0, 0)
	}
	f.code = append(f.code, left.code...)
	return f.tree(list[half:])
}

type filter struct {
	code []unix.SockFilter
	far  bool // a jump did not fit into its eight bits
}

// over is the length of a jump.
func (f *filter) over(n int) uint8 {
	f.far = f.far || n > 255
	return uint8(n)
}

func (f *filter) emit(code uint16, k uint32, jt, jf uint8) {
	f.code = append(f.code, unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k})
}

func (f *filter) load(at uint32) { f.emit(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at, 0, 0) }
func (f *filter) ret(v uint32)   { f.emit(unix.BPF_RET|unix.BPF_K, v, 0, 0) }

// unless returns v if the loaded word does not compare with k.
func (f *filter) unless(cmp uint16, k, v uint32) {
	f.emit(unix.BPF_JMP|cmp|unix.BPF_K, k, 1, 0)
	f.ret(v)
}

// conditional allows a call if one of the conditions holds for each argument
// that has any; else it asks.
func (f *filter) conditional(list []condition) {
	for i := 0; i < len(list); {
		j := i
		for j < len(list) && list[j].arg == list[i].arg {
			j++
		}
		f.argument(list[i:j])
		i = j
	}
	f.ret(unix.SECCOMP_RET_ALLOW)
}

// feign answers with success if one of the conditions holds.
func (f *filter) feign(list []condition) {
	for _, c := range list {
		f.load(dataArgs + 8*uint32(c.arg))
		if c.mask != 0 {
			f.emit(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, c.mask, 0, 0)
		}
		f.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, c.value, 0, 1)
		f.ret(unix.SECCOMP_RET_ERRNO)
	}
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
		f.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, c.value, f.over(left+1), 0)
	}
}

func RawFilter(code []unix.SockFilter) []byte {
	var b []byte
	for _, i := range code {
		b = binary.LittleEndian.AppendUint16(b, i.Code)
		b = append(b, i.Jt, i.Jf)
		b = binary.LittleEndian.AppendUint32(b, i.K)
	}
	return b
}
