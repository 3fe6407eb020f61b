package constitution

import (
	"github.com/holdfast-dev/holdfast/internal/leaf/suggest"
)

// Nearest is the id of the rule that a typing error most likely meant, or "".
func (s *Set) Nearest(id string) string {
	var known []string
	for _, r := range s.Rules() {
		known = append(known, r.ID)
	}
	return suggest.FindName(id, known)
}
