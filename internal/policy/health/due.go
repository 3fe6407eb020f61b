package health

import "time"

// LastDue returns the last time before now that was at that time of day (UTC).
func LastDue(now time.Time, at time.Duration) time.Time {
	t := now.UTC().Truncate(24 * time.Hour).Add(at)
	if t.After(now) {
		t = t.Add(-24 * time.Hour)
	}
	return t
}
