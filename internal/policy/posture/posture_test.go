package posture

import "testing"

// TestD20_theLesserContract: it names what stands, but Landlock, of which nobody
// asks anything.
func TestD20_theLesserContract(t *testing.T) {
	p := Posture{Up: []Wall{WallPID, WallNet, WallLandlock}}
	if got, want := p.Lesser("run/*"), `{boundary: run/*, risk: MEDIUM, permissions: ["exec:run"], walls: [pid, net]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
