package constitution

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/leaf/suggest"
)

// nearest returns the known name that a typing error most likely meant, or "".
func nearest(name string, known []string) string {
	return suggest.FindNearest(name, slices.Sorted(slices.Values(known)), max(1, len(name)/3))
}

// Nearest is the id of the rule that a typing error most likely meant, or "".
func (s *Set) Nearest(id string) string {
	var known []string
	for _, r := range s.Rules() {
		known = append(known, r.ID)
	}
	return nearest(id, known)
}
