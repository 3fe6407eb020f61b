package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/holdfast-dev/holdfast/internal/feature/survey"
)

// budgets answers how budgets stand, as the address asks: tenant, agent, and live for
// those alone that can refuse next.
func (s *Server) budgets(r *http.Request) (survey.Standings, error) {
	return s.Budgets(r.Context(), survey.Ask{Tenant: asked(r, "tenant"), Agent: asked(r, "agent"), Live: asked(r,
		"live") != ""})
}

// Budgets asks how budgets stand.
func (c *Client) Budgets(ctx context.Context, a survey.Ask) (*survey.Standings, error) {
	q := url.Values{}
	for name, v := range map[string]string{"tenant": a.Tenant, "agent": a.Agent} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if a.Live {
		q.Set("live", "1")
	}
	return ask[survey.Standings](ctx, c, "GET", "/v1/budgets?"+q.Encode(), nil)
}
