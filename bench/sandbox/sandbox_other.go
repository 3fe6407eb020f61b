//go:build !linux

package sandbox

import (
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// monotonic is 0: there is no sandbox here.
func monotonic(time.Time) int64 { return 0 }

// measureContainer says that there is none here.
func measureContainer(*measure.Run) ([]measure.Figure, error) {
	return []measure.Figure{{Name: "container, python", Note: "there is no container tier on this system"}}, nil
}

// measureVM says that there is none here.
func measureVM(*measure.Run) ([]measure.Figure, error) {
	return []measure.Figure{{Name: "guest", Note: "there is no VM tier on this system"}}, nil
}
