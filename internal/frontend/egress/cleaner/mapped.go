package cleaner

import (
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

// Search is a search for values of one session of an agent, and what happens to those that are found.
type Search struct {
	Engine *redact.Engine
	Rules  Rules
}

// ListMapped returns the searches in what goes to a row for values that models do not see.
func ListMapped(d *domain.Domain, values mapping.Elsewhere) (list []Search) {
	for _, e := range values.Secrets {
		list = append(list, Search{e, RequestRules(d)})
	}
	if d.Personal == domain.Off || d.Personal == domain.Pass || d.Request == domain.Placeholder {
		return list
	}
	for _, e := range values.Personal {
		list = append(list, Search{e, RequestRules(d)})
	}
	return list
}
