package stream

import "github.com/holdfast-dev/holdfast/internal/redact/certain"

const (
	// maxLooks is how many triggers one search for a place to send up to asks.
	maxLooks = 2 * certain.MaxAhead
	// freeLooks is how many of them ordinary text takes at most.
	freeLooks = 1024
	// minPause and maxPause bound how many bytes come before the next search
	// after one that failed; looksPaid is the number of the triggers that it
	// asked for which each of them pays.
	minPause, maxPause = 8, 64 << 10
	looksPaid          = 2
)

// thrift keeps a stage from searching again and again for a place up to which
// text can be sent, where triggers stand so close that each reads over the
// next: while it waits, certain.MaxAhead more bytes are held instead.
type thrift struct {
	looks int // what the search in hand has cost
	wait  int // how many bytes must come before the next
	pause int // how many those were after the last that failed
}

// came says that n bytes have come.
func (t *thrift) came(n int) { t.wait = max(0, t.wait-n) }

// found says that the search found a place: one that was dear is not repeated
// for each byte.
func (t *thrift) found() { t.wait, t.pause = max(0, t.looks-freeLooks)/16, 0 }

// failed says that it found none: what cost little is soon tried again, and each time
// that it fails once more half as often.
func (t *thrift) failed() {
	t.pause = min(max(2*t.pause, t.looks/looksPaid, minPause), maxPause)
	t.wait = t.pause
}
