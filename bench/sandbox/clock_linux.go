package sandbox

import (
	"syscall"
	"time"
	"unsafe"
)

// clockMonotonic is CLOCK_MONOTONIC.
const clockMonotonic = 1

// monotonic is the time that the system's monotonic clock showed at t, in
// nanoseconds. t must carry a monotonic reading.
func monotonic(t time.Time) int64 {
	var ts syscall.Timespec
	now := time.Now()
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano() - int64(now.Sub(t))
}
