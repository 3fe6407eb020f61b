package egress

import (
	"context"
	"crypto/sha256"
	"net/http"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// readBody reads the body of r to its end, decodes it, and redacts it as d says.
// The size is bounded as it comes, as it is decoded, and once more when it is
// redacted. Where d says `binary: allow`, what cannot be decoded or read is left
// as it is, hashed and capped. The caller must call done.
//
// The error is a ValidationError (it cannot be decoded, or broke off), a
// PayloadTooLargeError, a RedactionError, a DomainBlockedError where d refuses
// what would be masked, or refusal.RuleBusy.
func (p *Proxy) readBody(ctx context.Context, d *domain.Domain, r *http.Request) (*body, *holdfast.Error) {
	share := p.out.memory.NewShare(heldBy(ctx))
	b := &body{contentType: r.Header.Get("Content-Type"), share: share, done: share.Done}
	if r.Body == nil || r.Body == http.NoBody {
		b.sum = sha256.Sum256(nil)
		return b, nil
	}
	raw, err := coding.ReadRequest(ctx, r, maxRequest(d), share, p.out.memory.NewShare(heldBy(ctx)))
	b.raw = raw
	if err == nil && d.Request == domain.Placeholder {
		b.masks = func() *holdfast.Error { return p.maskBody(b, d) }
	} else if err == nil {
		err = p.maskBody(b, d)
	}
	if err != nil {
		share.Done()
		return nil, err
	}
	b.size, b.sum = int64(len(b.raw)), sha256.Sum256(b.raw)
	return b, nil
}

// maskBody redacts the body as d says.
func (p *Proxy) maskBody(b *body, d *domain.Domain) *holdfast.Error {
	b.masks = nil
	if d.Request != domain.Off && len(b.raw) > 0 {
		c, failed := p.out.cleaners.Open(d)
		if failed == nil {
			b.raw, b.findings, failed = p.out.cleaners.CleanBody(c, cleaner.RequestRules(d), b.contentType, b.raw, b.share)
		}
		if most := maxRequest(d); failed == nil && int64(len(b.raw)) > most {
			failed = coding.NewSizeError("redacted request", most)
		}
		if failed != nil {
			return failed
		}
	}
	b.size, b.sum = int64(len(b.raw)), sha256.Sum256(b.raw)
	return nil
}

func maxRequest(d *domain.Domain) int64 {
	if d.MaxRequest > 0 {
		return d.MaxRequest
	}
	return domain.DefaultMaxRequest
}

func maxResponse(d *domain.Domain) int64 {
	if d.MaxResponse > 0 {
		return d.MaxResponse
	}
	return domain.DefaultMaxResponse
}
