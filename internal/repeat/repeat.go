// Package repeat is for tests that show something by doing it thousands of
// times. What a repetition finds and what the race detector finds are different
// things, and the detector makes each time ten times as dear: `make test` runs
// such a test with the detector a few times, and in full without it.
package repeat

import "testing"

// Times is how often a test does what it does n times in full: n, a tenth of it
// under the race detector, a hundredth in a short run, and at least least.
func Times(n, least int) int {
	switch {
	case testing.Short():
		n /= 100
	case watched:
		n /= 10
	}
	return max(n, least)
}

// Heavy is Times for what moves megabytes each time, where the detector looks at
// each byte: a fiftieth under it.
func Heavy(n, least int) int {
	switch {
	case testing.Short():
		n /= 100
	case watched:
		n /= 50
	}
	return max(n, least)
}
