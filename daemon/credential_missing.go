package daemon

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// missing are the rows whose credential cannot be had now, by row, in the table's
// order. What a command is for is only known once it ran: with ask each that has
// no value runs, all at once, within credentialTime; without, what counts is how
// it ended the last time.
func (c *tenantCredentials) missing(ctx context.Context, t *domain.Table, ask bool) []api.EgressMissing {
	rows := t.Domains()
	errs := make([]error, len(rows))
	ctx, cancel := context.WithTimeout(ctx, credentialTime)
	defer cancel()
	var all sync.WaitGroup
	for i, d := range rows {
		switch {
		case d.Credential == nil:
		case ask || !strings.HasPrefix(d.Credential.Source, "command:"):
			all.Go(func() { _, errs[i] = c.value(ctx, d.Credential.Source) })
		default:
			errs[i] = c.failed(d.Credential.Source)
		}
	}
	all.Wait()
	var out []api.EgressMissing
	for i, d := range rows {
		if errs[i] == nil {
			continue
		}
		why, hint := usage.Explain(errs[i])
		out = append(out, api.EgressMissing{Row: d.Name, Header: d.Credential.Header, Why: why,
			Hint: cmp.Or(hint, "mend "+sourceNamed(d.Credential.Source)+", or ask `holdfast egress check` what it says now")})
	}
	return out
}

// failed is how the last run of a command failed; nil where it did not, or never
// ended.
func (c *tenantCredentials) failed(source string) error {
	c.mu.Lock()
	p := c.printed[source]
	c.mu.Unlock()
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// MissingCredentials are the rows of l whose credential a daemon that starts here
// could not have, looked for as it would: files and variables are read, and with
// ask commands run, all at once within 5 s.
func MissingCredentials(ctx context.Context, l *Loaded, ask bool) []api.EgressMissing {
	var c tenantCredentials
	return c.missing(ctx, l.Domains, ask)
}
