package daemon

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// openMore opens a tier that is stronger than the process tier. The error says
// what is missing, and its hint how to have it.
func (s *sandboxes) openMore(_ context.Context, which sandbox.Tier) (tier, error) {
	return nil, &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("this version has no %s tier", which), Hint: "take a version that has one, or let nothing ask for it"}
}
