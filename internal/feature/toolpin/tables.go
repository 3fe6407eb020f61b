package toolpin

import (
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

var (
	toolPins   = table.New[string, pinned]("tool_pin", table.Options{Key: "boundary"})
	toolSights = table.New[sightKey, review.Sighting]("tool_sight", table.Options{})
	toolCounts = table.New[string, toolCount]("tool_count", table.Options{Key: "server"})
)

// Tables returns the tables of the feature, for the store.
func Tables() []*table.Def { return []*table.Def{toolPins.Def(), toolSights.Def(), toolCounts.Def()} }

// sightKey is what a tool said of itself: at first sight, or when it was seen changed.
type sightKey struct {
	Boundary string `table:"boundary"`
	Seen     string `table:"seen"` // firstSight or changedSight
}

const (
	firstSight   = "first"
	changedSight = "changed"
)

// toolCount is the number of pinned boundaries of a server.
type toolCount struct {
	Pins int `json:"pins"`
}
