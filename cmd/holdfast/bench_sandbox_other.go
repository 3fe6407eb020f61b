//go:build !linux

package main

import (
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
)

// monotonic is 0: there is no sandbox here.
func monotonic(time.Time) int64 { return 0 }

// containerRuns says that there is none here.
func (b *bench) containerRuns() ([]figure, error) {
	return []figure{{Name: "container, python", Note: "there is no container tier on this system"}}, nil
}

// guestRestores says that there is none here.
func (b *bench) guestRestores(daemon.VMConfig) ([]figure, error) {
	return []figure{{Name: "guest", Note: "there is no VM tier on this system"}}, nil
}
