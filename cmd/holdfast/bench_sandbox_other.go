//go:build !linux

package main

import "time"

// monotonic is 0: there is no sandbox here.
func monotonic(time.Time) int64 { return 0 }

// containerRuns says that there is none here.
func (b *bench) containerRuns() ([]figure, error) {
	return []figure{{Name: "container, python", Note: "there is no container tier on this system"}}, nil
}
