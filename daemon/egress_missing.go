package daemon

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// MissingCredentials are the rows of l whose credential a daemon that starts here
// could not have, looked for as it would: files and variables are read, and with
// ask commands run, all at once within 5 s.
func MissingCredentials(ctx context.Context, l *config.Loaded, ask bool) []api.EgressMissing {
	var c credential.Reader
	return listMissing(ctx, &c, l.Domains, ask)
}

// listMissing returns the rows of t whose credential c cannot have now.
func listMissing(ctx context.Context, c *credential.Reader, t *domain.Table, ask bool) []api.EgressMissing {
	var out []api.EgressMissing
	for _, m := range c.ListMissing(ctx, t, ask) {
		out = append(out, api.EgressMissing(m))
	}
	return out
}
