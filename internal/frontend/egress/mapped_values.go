package egress

import (
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
// that an answer restored a value is no permission to send it elsewhere. header is what goes out.
func (x *exchange) cleanMapped(header http.Header) (http.Header, *holdfast.Error) {
	d := x.domain
	if d.Request == domain.Placeholder || d.Request == domain.Off {
		return header, nil
	}
	who, _, err := x.p.cfg.Kernel.Asker(x.r.Context(), x.s.tokenOf(x.who))
	if err != nil {
		return header, nil // the kernel refuses it
	}
	owner := mapping.Owner{Tenant: who.Tenant, Agent: who.Agent, Session: who.Session}
	values, err := x.p.mappings.FindElsewhere(x.r.Context(), owner)
	if err != nil {
		return nil, cleaner.AsRedactionError(err)
	}
	var failed *holdfast.Error
	for _, e := range values.Secrets {
		if header, failed = x.cleanBy(e, cleaner.RequestRules(d), header); failed != nil {
			return nil, failed
		}
	}
	for _, e := range values.Personal {
		if d.Personal == domain.Off || d.Personal == domain.Pass {
			break
		}
		if header, failed = x.cleanBy(e, cleaner.RequestRules(d), header); failed != nil {
			return nil, failed
		}
	}
	return header, nil
}

// cleanBy masks or refuses what one engine finds in the request.
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
	if len(x.body.raw) == 0 {
		return clean, nil
	}
	raw, found, err := pool.CleanBody(c, r, x.body.contentType, x.body.raw, x.body.share)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		x.body.raw, x.body.size, x.body.sum = raw, int64(len(raw)), sha256.Sum256(raw)
		x.masked = append(x.masked, found...)
	}
	return clean, nil
}
