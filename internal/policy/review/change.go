package review

import (
	"slices"
	"time"
)

// Said is one thing that a tool says of itself: its hash, and the redacted text
// where it is short.
type Said struct {
	Hash string `json:"sha256"`
	Text string `json:"text,omitempty"`
}

// Sighting is a tool as it was seen once (D37).
type Sighting struct {
	Pin string    `json:"pin"`
	At  time.Time `json:"at,omitzero"`
	// Says holds the description, the hints, the two schemas and the rest, by
	// these names; it is nil where only the pin is known.
	Says map[string]Said `json:"says,omitempty"`
}

// Change is a tool that was seen to be another than at first sight: Now is the
// last text of it that is not First.
type Change struct {
	Boundary string   `json:"boundary"`
	First    Sighting `json:"first"`
	Now      Sighting `json:"now"`
	// Shows is the pin that it was last seen with: of Now, of First again, or
	// of a text that is not kept; empty where it was not seen since the start.
	Shows string `json:"shows,omitempty"`
	// What names the parts that differ; nil where that is not known.
	What []string `json:"what,omitempty"`
}

// Differs names what one sighting says that the other does not, in order.
func (c *Change) Differs() []string {
	if c.First.Says == nil || c.Now.Says == nil {
		return nil
	}
	out := []string{}
	for _, a := range []map[string]Said{c.First.Says, c.Now.Says} {
		for name := range a {
			if c.First.Says[name].Hash != c.Now.Says[name].Hash && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}
