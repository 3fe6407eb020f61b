//go:build linux && amd64

package process

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestWarm_lastMakesNothingReady: beside a run behind which no other comes no
// process is made, and it is served by one that waited, or cold.
func TestWarm_lastMakesNothingReady(t *testing.T) {
	b := warmed(t, "python3", 2)
	z := b.only(t)
	b.Last()
	seats := len(z.seats)
	for left := 1; left >= 0; left-- {
		if _, path := served(t, b); path != posture.PathParked {
			t.Errorf("it came by %s", path)
		}
		b.making.Wait() // what would be made is begun 10 ms after the request
		if len(z.pool.ready) != left || len(z.seats) != seats {
			t.Errorf("%d and %d wait, want %d and %d", len(z.pool.ready), len(z.seats), left, seats)
		}
	}
	res, err := b.Run(t.Context(), sandbox.Spec{ID: "cold", Language: "python3", Code: []byte("print(1)"), Narrow: []string{"mkdir"}, Need: anyWalls})
	if b.making.Wait(); err != nil || res.Path != posture.PathCold || string(res.Stdout) != "1\n" || len(z.seats) != seats-1 {
		t.Errorf("%+v %v, %d seats", res, err, len(z.seats))
	}
}
