//go:build !linux

package tiers

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// openStronger is a SpawnError.
func (s *Set) openStronger(_ context.Context, which posture.Tier) (tier, error) {
	return nil, &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("there is no %s tier here: its walls are those of Linux", which), Hint: "run holdfast on Linux"}
}
