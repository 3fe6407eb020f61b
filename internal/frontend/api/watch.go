package api

import "github.com/holdfast-dev/holdfast/internal/observe/story"

// Watched is what is known of agents' behaviour (spec 001, layer 5).
type Watched struct {
	// Unknown is why what is usual of agents is not known; empty where it is.
	Unknown string `json:"unknown,omitempty"`
	// Holds are the conditions that hold, the worst first, at most MaxHolds; More is
	// how many others do.
	Holds []story.Anomaly `json:"holds"`
	More  int             `json:"more,omitempty"`
	// Agents is how many are watched, Forgotten how many made room for others.
	Agents    int   `json:"agents"`
	Forgotten int64 `json:"forgotten,omitempty"`
	// Waiting is how many findings wait for their answer, Lost for how many there was
	// no room.
	Waiting int   `json:"waiting,omitempty"`
	Lost    int64 `json:"lost,omitempty"`
}

// MaxHolds bounds the conditions in one answer.
const MaxHolds = 200
