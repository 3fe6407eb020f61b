// Package testgrowth is for tests of what hostile input costs: it fails where the
// work grows faster than the input. It does not depend on the clock or on the speed
// of one machine: a run is compared with one of the same process with a sixteenth of
// the input, in processor time, which other processes do not lengthen.
package testgrowth

import (
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

// The larger run has times as much input, and may cost most times as much. Linear work
// costs 16 times as much, quadratic work 256 times. The distances are wide because busy
// neighbours slow the larger run by their use of the caches.
const times, most = 16, 64

// rounds limits how often both are run. The least of all counts: everything else that
// the process does only adds.
const rounds = 8

// Linear fails if n units cost far more than 16 times what a sixteenth of them costs. of
// prepares a run of a number of units, which may run several times; only the run is
// measured, without the garbage collector.
func Linear(t testing.TB, n int, of func(n int) (run func())) {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	run, all := of(n/times), of(n)
	run() // what is prepared once is no part of it
	small, large := min(measureCost(run), measureCost(run)), measureCost(all)
	for i := 1; i < rounds && large > most*small; i++ {
		small, large = min(small, measureCost(run)), min(large, measureCost(all))
	}
	t.Logf("GROWTH %v %v x%.1f", small, large, float64(large)/float64(small))
	if large > most*small {
		t.Errorf("%d take %v of the processor, and %d take %v: more than %d times as much", n/times, small, n, large, most)
	}
}

// measureCost returns the processor time of run; at least some microseconds, because the
// system's account is not exact below that.
func measureCost(run func()) time.Duration {
	from := Used()
	run()
	return max(Used()-from, 20*time.Microsecond)
}

// Used returns the processor time of this process, over all of its threads. The
// difference of two calls is the cost of what lies between them, however busy the
// machine is.
func Used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
