package sandbox

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// TestUnbegunOfOtherErrors: only an error of a wall has a result.
func TestUnbegunOfOtherErrors(t *testing.T) {
	at := posture.Instants{Received: time.Now(), Parsed: time.Now()}
	up := posture.Posture{Tier: posture.TierProcess}
	if r := Unbegun(Spec{ID: "r"}, up, at, errors.New("no")); r != nil {
		t.Errorf("%+v", r)
	}
}
