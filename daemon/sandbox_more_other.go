//go:build !linux

package daemon

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// openMore is a SpawnError.
func (s *sandboxes) openMore(_ context.Context, which posture.Tier) (tier, error) {
	return nil, &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("there is no %s tier here: its walls are those of Linux", which), Hint: "run holdfast on Linux"}
}
