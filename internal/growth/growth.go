// Package growth is for tests of what hostile input costs: it fails where the
// work grows faster than the input. No clock decides, and no figure of one
// machine: a run is held against one of the same process with a quarter of the
// input, in processor time, which other processes do not lengthen.
package growth

import (
	"syscall"
	"testing"
	"time"
)

// times is how much more the larger run is given, most how many times as much
// it may cost: what is linear takes four times as much, a multiplication of
// long numbers nine times, what is quadratic sixteen.
const times, most = 4, 11

// rounds is how often both are run at most. The least of all counts: whatever
// else the process does only adds.
const rounds = 8

// Linear fails where n units cost far more than four times what a quarter of
// them costs. of prepares a run of so many units, which may run several times;
// only the run is measured.
func Linear(t testing.TB, n int, of func(n int) (run func())) {
	t.Helper()
	run, all := of(n/times), of(n)
	run() // what is prepared once is no part of it
	small, large := cost(run), cost(all)
	for i := 0; i < rounds && (i < 2 || large > most*small); i++ {
		small, large = min(small, cost(run)), min(large, cost(all))
	}
	if large > most*small {
		t.Errorf("%d take %v of the processor, and %d take %v: more than %d times as much", n/times, small, n, large, most)
	}
}

// cost is what run takes of the processors' time; at least some microseconds,
// below which the system's account tells nothing.
func cost(run func()) time.Duration {
	from := Used()
	run()
	return max(Used()-from, 50*time.Microsecond)
}

// Used is what this process has taken of the processors' time, over all of its
// threads; a difference of two says what lay between them cost, however busy
// the machine is.
func Used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
