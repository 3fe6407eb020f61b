package process

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestPlayer: what is an operation of both players comes to the same, and those
// of zygotes do what tape.go says.
func TestPlayer(t *testing.T) {
	at, err := unix.MmapPtr(-1, 0, unsafe.Add(unsafe.Pointer(nil), zygoteBase), zygoteSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.MunmapPtr(at, zygoteSize)
	r := &recorder{home: zygoteBase}
	words := r.words(uint64(7)|uint64(0xffff_fffe)<<32, 0)
	r.keep(0, unix.SYS_GETPID)
	r.mark(1)
	r.load(2, words, 0)
	r.load(3, words, 1)
	r.put(slot(2), words+8)
	r.load(4, words, slot(5)) // slot 5 is 2
	r.add(opCall, unix.SYS_CLOSE, 6, anyErrno, []any{-1})
	no := r.branch(slot(2))
	r.keep(7, unix.SYS_GETPID)
	r.aim(no)
	yes := r.branch(slot(6))
	r.keep(8, unix.SYS_GETPID)
	r.aim(yes)
	r.lenient(int(unix.EBADF), unix.SYS_CLOSE, -1)
	r.store(slot(0), words)
	j := r.here()
	r.jump(0)
	r.keep(8, unix.SYS_GETPID)
	r.aim(j)
	r.giveBack()
	b, data, err := r.assemble()
	if err != nil {
		t.Fatal(err)
	}
	tape := unsafe.Slice((*uint64)(at), zygoteSize/8)
	tape[5] = 2
	copy(unsafe.Slice((*byte)(at), zygoteSize)[opsOffset:], b)
	playNative(at, 0, ^uintptr(0))
	pid := uint64(os.Getpid())
	for i, want := range map[int]uint64{0: pid, 2: 7, 3: 0xffff_ffff_ffff_fffe, 4: 7, 6: uint64(1<<64 - 9), 7: pid, 8: 0} {
		if tape[i] != want {
			t.Errorf("slot %d: %d, want %d", i, tape[i], want)
		}
	}
	if got := tape[(opsOffset+data+int(words))/8]; uint32(got) != uint32(pid) {
		t.Errorf("stored %x", got)
	}
	if tape[1] == 0 {
		t.Error("no time")
	}
	if n := len(playerCode()); n < 200 || n > 2000 {
		t.Errorf("%d bytes of code", n)
	}
}
