//go:build linux

package process

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
)

// A tape is the list of system calls by which a cloned process, which may not
// allocate, lock or run Go's scheduler, builds its walls. It is one block of
// memory that Holdfast writes and that the launcher and the processes it clones
// map at tapeBase, so that pointers in it are ready: the slots, the operations,
// and the data that their pointers lead to.
//
//	slots   64 words: what the launcher fills in, and results of operations
//	ops     12 words each
//	data    bytes, aligned to 8
//
// and, once a request is there, operations and data again: a process that waits
// for one jumps to them.
const (
	slotCount = 64
	opWords   = 12
	opsOffset = 8 * slotCount

	// tapeBase is below every place where Linux or Go puts something of its
	// own, with 39 bits of address too.
	tapeBase = 0x20_0000_0000

	// tapeSize has room for everything a run brings: 10 MB of code, 100 MB of
	// files and the calls that write them. What is not touched takes no memory.
	tapeSize = 128 << 20
)

// The kinds of operation, by the numbers that player_linux_amd64.s has too.
const (
	opCall  = iota // a system call
	opClone        // clone3; the child goes on at the operation of word 10
	opReap         // wait until the process in slot word 4 has ended, storing status and usage
	opMark         // store the monotonic clock, in nanoseconds, in a slot
	opStore        // store the low half of slot word 4 at the address of word 5
	opJump         // go on at the operation whose index stands in slot word 4
	opEnd          // leave: exit_group(0)

	// Those of a zygote, which player alone knows.
	opLoad   // the 32-bit number at the address of word 4, plus 4 for each of word 5
	opPut    // store word 4 at the address of word 5
	opBranch // go on at the operation of word 5 where word 4 is not positive
	opTurn   // go on with another tape: its address, operation and control
	opReturn // give the process back to who called player
)

// A slot names the result of an earlier operation as an argument.
type slot uint64

// ref is the offset of data in the tape.
type ref uint64

// recorder builds a tape. Its first error stays.
type recorder struct {
	ops    []uint64
	data   []byte
	relocs []uint64 // offsets in data of words that point into data
	opRefs []uint64 // indexes of words in ops that point into data
	stage  stage
	base   int    // the index of the first operation
	home   uint64 // where the tape is mapped, if not at tapeBase
	err    error
}

// anyErrno lets an operation fail with whatever errno: its slot is then negative.
const anyErrno = -1

// stage says what an operation belongs to, so that one that fails is reported
// by the name of its wall.
type stage uint8

const (
	stageNamespace stage = iota
	stageMount
	stageFiles
	stageLimits
	stagePrivileges
	stageLandlock
	stageSeccomp
	stageReport
	stageExec
)

// kind is the document's error where a stage fails.
func (s stage) kind() holdfast.Kind {
	switch s {
	case stageNamespace:
		return holdfast.KindNamespace
	case stageMount:
		return holdfast.KindMount
	case stageSeccomp:
		return holdfast.KindSeccomp
	case stageLimits:
		return holdfast.KindCgroup
	}
	return holdfast.KindSpawn
}

// task is what a stage does, to follow "the sandbox could not".
func (s stage) task() string {
	return [...]string{"set up its namespaces", "mount its scratch", "write its files", "hold it to its share", "take its rights away", "lock its files", "load its filter", "report", "start the interpreter"}[s]
}

// bytes puts b in the data and returns where.
func (r *recorder) bytes(b []byte) ref {
	at := len(r.data)
	r.data = append(r.data, b...)
	for len(r.data)%8 != 0 {
		r.data = append(r.data, 0)
	}
	return ref(at)
}

// cstring puts s and a NUL in the data.
func (r *recorder) cstring(s string) ref {
	for i := range len(s) {
		if s[i] == 0 && r.err == nil {
			r.err = fmt.Errorf("a NUL in %q", s)
		}
	}
	return r.bytes(append([]byte(s), 0))
}

// vector puts a NULL-terminated array of C strings in the data.
func (r *recorder) vector(list []string) ref {
	refs := make([]any, 0, len(list)+1)
	for _, s := range list {
		refs = append(refs, r.cstring(s))
	}
	return r.words(append(refs, 0)...)
}

// words puts 64-bit words in the data: numbers, or refs that become addresses.
func (r *recorder) words(list ...any) ref {
	at := len(r.data)
	for _, w := range list {
		if p, ok := w.(ref); ok {
			r.relocs = append(r.relocs, uint64(len(r.data)))
			r.data = binary.LittleEndian.AppendUint64(r.data, uint64(p))
			continue
		}
		n, err := number(w)
		if err != nil && r.err == nil {
			r.err = err
		}
		r.data = binary.LittleEndian.AppendUint64(r.data, n)
	}
	return ref(at)
}

// call records a system call: its result, where it must be kept, goes to a slot.
func (r *recorder) call(nr int, args ...any) { r.keep(-1, nr, args...) }

// keep records a system call whose result goes to slot dst.
func (r *recorder) keep(dst int, nr int, args ...any) { r.add(opCall, uint64(nr), dst, 0, args) }

// lenient records a system call that may also fail with errno.
func (r *recorder) lenient(errno int, nr int, args ...any) {
	r.add(opCall, uint64(nr), -1, errno, args)
}

// clone records a clone3 with args at the given data; the new process goes on
// at the operation that join sets.
func (r *recorder) clone(dst int, nr int, args ref, size int) (op int) {
	op = r.here()
	r.add(opClone, uint64(nr), dst, 0, []any{args, size})
	return op
}

// cloneAny is clone, whose slot is negative where it failed.
func (r *recorder) cloneAny(dst int, nr int, args ref, size int) (op int) {
	op = r.here()
	r.add(opClone, uint64(nr), dst, anyErrno, []any{args, size})
	return op
}

// childHere says that the child of the clone at op goes on with what is
// recorded next.
func (r *recorder) childHere(op int) {
	r.ops[op*opWords+10] = uint64(r.base + r.here())
}

// reap waits for the process whose number stands in slot pid.
func (r *recorder) reap(pid slot, status, usage ref) {
	r.add(opReap, 0, -1, 0, []any{pid, status, usage})
}

func (r *recorder) mark(dst int) { r.add(opMark, 0, dst, 0, nil) }

// store puts the low 32 bits of a slot at to, as a descriptor stands in a
// control message.
func (r *recorder) store(from slot, to any) { r.add(opStore, 0, -1, 0, []any{from, to}) }

// jump goes on at an operation, or at that whose index stands in a slot.
func (r *recorder) jump(to any) { r.add(opJump, 0, -1, 0, []any{to}) }

// load puts the i-th 32-bit number behind from in slot dst.
func (r *recorder) load(dst int, from, i any) { r.add(opLoad, 0, dst, 0, []any{from, i}) }

// put puts a number, or the whole of a slot, at to.
func (r *recorder) put(from, to any) { r.add(opPut, 0, -1, 0, []any{from, to}) }

// branch goes on at the operation that aim sets, where a slot is not positive.
func (r *recorder) branch(on slot) (op int) {
	op = r.here()
	r.add(opBranch, 0, -1, 0, []any{on, 0})
	return op
}

// aim says that the branch or jump at op goes to what is recorded next.
func (r *recorder) aim(op int) {
	word := 4
	if r.ops[op*opWords]&0xff == opBranch {
		word = 5
	}
	r.ops[op*opWords+word] = uint64(r.base + r.here())
}

// here is how many operations there are.
func (r *recorder) here() int { return len(r.ops) / opWords }

// turn goes on with operation 0 of the tape at an address.
func (r *recorder) turn(tape uint64, control slot) {
	r.add(opTurn, 0, -1, 0, []any{tape, 0, control})
}

// giveBack returns to who called player.
func (r *recorder) giveBack() { r.add(opReturn, 0, -1, 0, nil) }

func (r *recorder) end() { r.add(opEnd, 0, -1, 0, nil) }

// An operation's words: kind and stage, number, slot of the result plus one,
// the errno that is no failure, six arguments, the child's operation, and the
// mask of arguments that are slots.
func (r *recorder) add(kind int, nr uint64, dst, errno int, args []any) {
	op := make([]uint64, opWords)
	op[0] = uint64(kind) | uint64(r.stage)<<8
	op[1], op[2], op[3] = nr, uint64(dst+1), uint64(errno)
	for i, a := range args {
		switch v := a.(type) {
		case ref:
			op[4+i] = uint64(v)
			r.opRefs = append(r.opRefs, uint64(len(r.ops)+4+i))
		case slot:
			op[4+i] = uint64(v)
			op[11] |= 1 << i
		default:
			n, err := number(a)
			if err != nil && r.err == nil {
				r.err = err
			}
			op[4+i] = n
		}
	}
	r.ops = append(r.ops, op...)
}

func number(v any) (uint64, error) {
	switch n := v.(type) {
	case int:
		return uint64(n), nil
	case int64:
		return uint64(n), nil
	case uint64:
		return n, nil
	case uint32:
		return uint64(n), nil
	case uintptr:
		return uint64(n), nil
	}
	return 0, fmt.Errorf("%T is no argument of a system call", v)
}

var errTapeSize = errors.New("a run's code and files take more than 128 MB")

// assemble returns the operations and their data as they stand from operation
// base on, every pointer an address, and where the data begins, in bytes from
// there.
func (r *recorder) assemble() ([]byte, int, error) {
	if r.err != nil {
		return nil, 0, r.err
	}
	dataAt := 8 * len(r.ops)
	at := opAt(r.base)
	if at+dataAt+len(r.data) > tapeSize {
		return nil, 0, errTapeSize
	}
	b := make([]byte, dataAt+len(r.data))
	for i, w := range r.ops {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
	copy(b[dataAt:], r.data)
	for _, ref := range r.opRefs {
		r.address(b[8*ref:], at+dataAt)
	}
	for _, ref := range r.relocs {
		r.address(b[uint64(dataAt)+ref:], at+dataAt)
	}
	return b, dataAt, nil
}

// opAt is where an operation stands in the tape.
func opAt(op int) int { return opsOffset + 8*opWords*op }

// nextOp is the first operation that fits behind n bytes from operation 0 on.
func nextOp(n int) int { return (n + 8*opWords - 1) / (8 * opWords) }

// address turns the offset in data that b begins with into an address.
func (r *recorder) address(b []byte, dataAt int) {
	binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)+cmp.Or(r.home, tapeBase)+uint64(dataAt))
}

// fill writes words at a place in the data that bytes returned.
func (r *recorder) fill(at ref, words ...uint64) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(r.data[int(at)+8*i:], w)
	}
}

// stageList is the stage of every operation.
func (r *recorder) stageList() []stage {
	list := make([]stage, len(r.ops)/opWords)
	for i := range list {
		list[i] = stage(r.ops[i*opWords] >> 8)
	}
	return list
}
