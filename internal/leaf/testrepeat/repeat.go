// Package testrepeat is for tests that show something by doing it thousands of
// times. `make test` does it a few times, which shows the behaviour; `make endure`
// builds the tests with the tag endure and does it in full. A package whose tests import
// this one is in a variable ENDURE_NAME of the Makefile, all on one line.
//
// A test that exists in full only is in a file with the tag endure. A test that
// needs large downloads (a real host, another toolchain) is in a file with the tag
// peers.
package testrepeat

// Times returns the number of repetitions: n with the tag endure, otherwise n/100, and in
// both cases at least least.
func Times(n, least int) int {
	if !Enduring {
		n /= 100
	}
	return max(n, least)
}
