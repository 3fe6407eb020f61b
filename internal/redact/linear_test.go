package redact

import (
	"syscall"
	"testing"
	"time"
)

// linear fails where four times as much takes far more than four times the
// processor's time, three times in a row: a quadratic run takes sixteen times
// as much. It is not the clock that decides, so that a loaded machine passes.
func linear(t *testing.T, what string, n int, run func(n int)) {
	t.Helper()
	var small, large time.Duration
	for range 3 {
		small, large = processor(func() { run(n) }), processor(func() { run(4 * n) })
		if large <= 10*small+20*time.Millisecond {
			return
		}
	}
	t.Errorf("%q: %d take %v of the processor, %d take %v", what, n, small, 4*n, large)
}

// processor is what run took of the processors' time.
func processor(run func()) time.Duration {
	from := used()
	run()
	return used() - from
}

func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
