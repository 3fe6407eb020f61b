package vm

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// seedBytes is how much a guest is given to begin its random numbers with: more
// than the 32 that the kernel's generator has as its key.
const seedBytes = 64

// reseed gives the kernel's random numbers a beginning of their own: the pool
// takes in the seed, and the generator takes its key from the pool anew (random(4)).
func reseed(random *os.File, seed []byte) error {
	if len(seed) != seedBytes {
		return errors.New("the seed has another length")
	}
	pool := make([]byte, 8, 8+seedBytes) // struct rand_pool_info
	binary.NativeEndian.PutUint32(pool, 8*seedBytes)
	binary.NativeEndian.PutUint32(pool[4:], seedBytes)
	pool = append(pool, seed...)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, random.Fd(), unix.RNDADDENTROPY, uintptr(unsafe.Pointer(&pool[0])))
	runtime.KeepAlive(pool)
	if errno != 0 {
		return errno
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, random.Fd(), rndReseedCRNG, 0); errno != 0 {
		return errno
	}
	return nil
}

// rndReseedCRNG is RNDRESEEDCRNG of linux/random.h: _IO('R', 0x07).
const rndReseedCRNG = 0x5207
