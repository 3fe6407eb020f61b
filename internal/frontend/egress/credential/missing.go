package credential

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// Missing is a row whose credential cannot be had.
type Missing struct {
	Row    string
	Header string
	Why    string
	Hint   string
}

// ListMissing are the rows whose credential cannot be had now, by row, in the table's
// order. What a command is for is only known once it ran: with ask each that has
// no value runs, all at once, within credentialTime; without, what counts is how
// it ended the last time.
func (c *Reader) ListMissing(ctx context.Context, t *domain.Table, ask bool) []Missing {
	rows := t.Domains()
	errs := make([]error, len(rows))
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	var all sync.WaitGroup
	for i, d := range rows {
		switch {
		case d.Credential == nil:
		case ask || !strings.HasPrefix(d.Credential.Source, "command:"):
			all.Go(func() { _, errs[i] = c.Value(ctx, d.Credential.Source) })
		default:
			errs[i] = c.failed(d.Credential.Source)
		}
	}
	all.Wait()
	var out []Missing
	for i, d := range rows {
		if errs[i] == nil {
			continue
		}
		why, hint := usage.Explain(errs[i])
		out = append(out, Missing{Row: d.Name, Header: d.Credential.Header, Why: why,
			Hint: cmp.Or(hint,
				"mend "+DescribeSource(d.Credential.Source)+", or ask `holdfast egress check` what it says now")})
	}
	return out
}

// failed is how the last run of a command failed; nil where it did not, or never
// ended.
func (c *Reader) failed(source string) error {
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
