package kernel

import (
	"sort"
	"time"
)

// FirstSince is the place of a leaf before which none is as young as since.
// Leaves stand nearly in the order of their times: what was sealed a moment
// before another may stand behind it, so that a minute is gone back.
func FirstSince(tx Reader, tenant string, size int64, since time.Time) (int64, error) {
	since = since.Add(-time.Minute)
	var failed error
	at := sort.Search(int(size), func(i int) bool {
		l, err := tx.Leaf(tenant, int64(i))
		if err != nil {
			failed = err
			return true
		}
		return !l.At.Before(since)
	})
	return int64(at), failed
}
