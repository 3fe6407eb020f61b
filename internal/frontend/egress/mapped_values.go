package egress

import (
	"context"
	"crypto/sha256"
	"maps"
	"net/http"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/headerfield"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

// cleanMapped masks or refuses, as the row says, the values of the agent's session that models do not see (D13a):
// that an answer restored a value is no permission to send it elsewhere. In a row of models they are secrets in the
// address and the header. header is what goes out.
func (x *exchange) cleanMapped(header http.Header) (http.Header, *holdfast.Error) {
	searches, failed := x.openMapped(x.r.Context())(x.r.Context())
	if failed != nil {
		return nil, failed
	}
	for _, s := range searches {
		if header, failed = x.cleanBy(s.Engine, s.Rules, header); failed != nil {
			return nil, failed
		}
		if failed = x.cleanBodyBy(s.Engine, s.Rules); failed != nil {
			return nil, failed
		}
	}
	return header, nil
}

// listMapped returns the searches for values of a session.
type listMapped func(ctx context.Context) ([]cleaner.Search, *holdfast.Error)

// openMapped returns what lists the searches for the values that the agent's session has at a time.
func (x *exchange) openMapped(ctx context.Context) listMapped {
	none := func(context.Context) ([]cleaner.Search, *holdfast.Error) { return nil, nil }
	if x.domain.Request == domain.Off {
		return none
	}
	who, _, err := x.p.cfg.Kernel.Asker(ctx, x.s.tokenOf(x.who))
	if err != nil {
		return none // the kernel refuses the request
	}
	owner := mapping.Owner{Tenant: who.Tenant, Agent: who.Agent, Session: who.Session}
	return func(ctx context.Context) ([]cleaner.Search, *holdfast.Error) {
		return x.p.listMapped(ctx, x.domain, owner)
	}
}

// listMapped returns the searches for the values of a session, as the row says.
func (p *Proxy) listMapped(
	ctx context.Context, d *domain.Domain, owner mapping.Owner,
) ([]cleaner.Search, *holdfast.Error) {
	values, err := p.mappings.FindElsewhere(ctx, owner)
	if err != nil {
		return nil, cleaner.AsRedactionError(err)
	}
	return cleaner.ListMapped(d, values), nil
}

// cleanBy masks or refuses what one engine finds in the address and the header of the request.
func (x *exchange) cleanBy(e *redact.Engine, r cleaner.Rules, header http.Header) (http.Header, *holdfast.Error) {
	c, pool := cleaner.New(e), &x.p.out.cleaners
	target, found, err := pool.CleanTarget(c, r, x.ask, false)
	if err != nil {
		return nil, err
	}
	x.masked = append(x.masked, found...)
	if target != x.ask.Target {
		x.ask.Target = target
		if d, err := x.p.table().Decide(x.ask); err != nil || d != x.domain {
			return nil, cleaner.NewTargetError()
		}
	}
	_, own := headerfield.Select(x.domain, x.r.Header)
	searched := maps.Clone(header)
	for name := range own {
		delete(searched, name)
	}
	clean, found, err := pool.CleanHeader(c, r, searched)
	if err != nil {
		return nil, err
	}
	x.masked = append(x.masked, found...)
	maps.Copy(clean, own)
	return clean, nil
}

// cleanBodyBy masks or refuses what one engine finds in the body of the request. Texts of a request to a model have
// placeholders already, and their structure is not searched.
func (x *exchange) cleanBodyBy(e *redact.Engine, r cleaner.Rules) *holdfast.Error {
	if len(x.body.raw) == 0 || x.domain.Request == domain.Placeholder {
		return nil
	}
	raw, found, err := x.p.out.cleaners.CleanBody(cleaner.New(e), r, x.body.contentType, x.body.raw, x.body.share)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		x.body.raw, x.body.size, x.body.sum = raw, int64(len(raw)), sha256.Sum256(raw)
		x.masked = append(x.masked, found...)
	}
	return nil
}
