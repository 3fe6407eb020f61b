package service

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// MissingCredentials returns the rows of t whose credential a service that starts here
// could not read: it reads files and variables, and with ask it runs commands, all concurrently,
// within 5 s.
func MissingCredentials(ctx context.Context, t *domain.Table, ask bool) []api.EgressMissing {
	var c credential.Reader
	return listMissing(ctx, &c, t, ask)
}

// listMissing returns the rows of t whose credential c cannot have now.
func listMissing(ctx context.Context, c *credential.Reader, t *domain.Table, ask bool) []api.EgressMissing {
	var out []api.EgressMissing
	for _, m := range c.ListMissing(ctx, t, ask) {
		out = append(out, api.EgressMissing(m))
	}
	return out
}
