package egress

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/aside"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/cleaner"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/memory"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

const (
	// redactTime is how long the redaction of each redactShare bytes, or part
	// of them, may take.
	redactTime  = 10 * time.Second
	redactShare = 10 << 20
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
	err := p.fill(ctx, b, share, d, r)
	if err != nil {
		share.Done()
		return nil, err
	}
	b.size, b.sum = int64(len(b.raw)), sha256.Sum256(b.raw)
	return b, nil
}

func (p *Proxy) fill(ctx context.Context, b *body, share *memory.Share, d *domain.Domain, r *http.Request) *holdfast.Error {
	most := maxRequest(d)
	if r.ContentLength > most {
		return tooLarge("request", most)
	}
	list, err := coding.Parse(r.Header["Content-Encoding"])
	if err != nil {
		// A coding that is not known has to stay on, and then nobody could
		// tell the upstream of it: the field is ours to write.
		return undecodable(err)
	}
	in, err := coding.Decode(coding.UpTo(r.Body, most), list, p.out.memory.NewShare(heldBy(ctx)))
	if err != nil {
		return bodyError(most, err)
	}
	defer in.Close()
	raw, err := coding.ReadWhole(in, most, max(r.ContentLength, 0), share.Grow)
	if err != nil {
		return bodyError(most, err)
	}
	if ctx.Err() != nil {
		return bodyError(most, ctx.Err())
	}
	b.raw = raw
	if d.Request == domain.Placeholder {
		b.masks = func() *holdfast.Error { return p.maskBody(b, d) }
		return nil
	}
	return p.maskBody(b, d)
}

// maskBody redacts the body as d says.
func (p *Proxy) maskBody(b *body, d *domain.Domain) *holdfast.Error {
	most := maxRequest(d)
	var failed *holdfast.Error
	b.masks = nil
	b.raw, b.findings, failed = p.cleanRequest(d, b.contentType, b.raw, b.share)
	if failed == nil && int64(len(b.raw)) > most {
		failed = tooLarge("redacted request", most)
	}
	b.size, b.sum = int64(len(b.raw)), sha256.Sum256(b.raw)
	return failed
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

// cleanRequest redacts a request's body as d says.
func (p *Proxy) cleanRequest(d *domain.Domain, contentType string, raw []byte, share *memory.Share) ([]byte, []redact.Finding, *holdfast.Error) {
	if d.Request == domain.Off || len(raw) == 0 {
		return raw, nil, nil
	}
	c, failed := p.cleaner(d)
	if failed != nil {
		return nil, nil, failed
	}
	return p.bodyBy(c, d, d.Request, contentType, raw, share)
}

// bodyBy redacts a whole body. One is left alone where d lets binary bodies pass
// and it is one.
func (p *Proxy) bodyBy(c cleaner.Cleaner, d *domain.Domain, mode domain.Redaction, contentType string, raw []byte, share *memory.Share) ([]byte, []redact.Finding, *holdfast.Error) {
	if !share.Grow(3 * int64(len(raw))) {
		return nil, nil, memory.Busy()
	}
	var r redact.Result
	err := p.within(len(raw), func() (err error) {
		if d.Binary && coding.IsPackets(contentType, raw) {
			r, err = passBinary(c, raw)
			return err
		}
		r, err = c.Body(contentType, raw)
		if err != nil && d.Binary && coding.IsBinary(raw) && unscannable(err) {
			r, err = passBinary(c, raw)
		}
		return err
	})
	if err != nil {
		return nil, nil, redactionFailed(err)
	}
	if r.Found() && mode == domain.Refuse {
		return nil, nil, foundRefused(d, "the body", r.Findings)
	}
	return r.Out, r.Findings, nil
}

// passBinary lets a binary body pass in which no registered secret stands.
func passBinary(c cleaner.Cleaner, raw []byte) (redact.Result, error) {
	for _, f := range c.Text(raw).Findings {
		if f.Rule == "secret.literal" || f.Rule == "fault" {
			return redact.Result{}, &holdfast.Error{
				Kind: holdfast.KindRedaction, Gate: holdfast.K6, Rule: "redact/unscannable",
				Why: "a registered secret stands in a binary body, where it cannot be redacted", Hint: "nothing was sent",
			}
		}
	}
	return redact.Result{Out: raw}, nil
}

func unscannable(err error) bool {
	var e *holdfast.Error
	return errors.As(err, &e) && e.Rule == "redact/unscannable"
}

// within runs f, which redacts n bytes, and is a RedactionError where it panics
// or does not end in its time. One that does not end goes on to its own end,
// since nothing can stop it; its result is dropped.
func (p *Proxy) within(n int, f func() error) error {
	limit := redactTime * time.Duration(1+n/redactShare)
	if p.out.redactTime > 0 {
		limit = p.out.redactTime
	}
	if n < 1<<10 && p.out.redactTime == 0 {
		return aside.Guard(f)
	}
	begun := time.Now()
	done := p.out.asides.Begin(f)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		// Of a timer and a result that are both there, either may be taken.
		if time.Since(begun) <= limit {
			return err
		}
	case <-timer.C:
	}
	return fmt.Errorf("it took longer than %s", limit)
}

func noEngine() *holdfast.Error { return redactionFailed(errors.New("there is no redaction engine")) }

// redactionFailed is err as a RedactionError: an engine's own error already is
// one.
func redactionFailed(err error) *holdfast.Error {
	var e *holdfast.Error
	if errors.As(err, &e) && e.Kind == holdfast.KindRedaction {
		return e
	}
	return &holdfast.Error{
		Kind: holdfast.KindRedaction, Gate: holdfast.K6, Rule: "redact", Err: err,
		Why: "what was to be sent or shown could not be redacted", Hint: "nothing of it went on",
	}
}

func foundRefused(d *domain.Domain, where string, found []redact.Finding) *holdfast.Error {
	return &holdfast.Error{
		Kind: holdfast.KindDomainBlocked, Gate: holdfast.K2, Rule: "egress/found",
		Why:  fmt.Sprintf("%s holds what %s may not have: %v", where, d.Name, redact.Result{Findings: found}.Rules()),
		Hint: "leave it out; the domain says `refuse` where others redact",
	}
}

func tooLarge(what string, most int64) *holdfast.Error {
	return &holdfast.Error{
		Kind: holdfast.KindPayloadTooLarge, Gate: holdfast.K1, Rule: "egress/size",
		Why: fmt.Sprintf("the %s's body has more than %d bytes", what, most), Hint: "the domain's `max_request` and `max_response` set the limits",
	}
}

func undecodable(err error) *holdfast.Error {
	return &holdfast.Error{
		Kind: holdfast.KindValidation, Gate: holdfast.K1, Rule: "egress/encoding", Err: err,
		Why:  "the body could not be read: " + decodeWhy(err),
		Hint: "send it whole, and as it is or in gzip, deflate, br or zstd",
	}
}

func decodeWhy(err error) string {
	switch {
	case errors.Is(err, coding.ErrUnknownCoding), errors.Is(err, coding.ErrManyCodings), errors.Is(err, coding.ErrBomb):
		return err.Error()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it broke off"
	}
	return "it is not what its header says"
}

func bodyError(most int64, err error) *holdfast.Error {
	var tooBig *http.MaxBytesError
	switch {
	case errors.Is(err, coding.ErrTooLarge), errors.As(err, &tooBig):
		return tooLarge("request", most)
	case errors.Is(err, coding.ErrNoMemory):
		return memory.Busy()
	}
	return undecodable(err)
}

// cleaner is d's. The error is a RedactionError: there is no engine.
func (p *Proxy) cleaner(d *domain.Domain) (cleaner.Cleaner, *holdfast.Error) {
	e := p.cfg.Engine(d)
	if e == nil {
		return cleaner.Cleaner{}, noEngine()
	}
	return cleaner.New(e), nil
}

// answerCleaner is that for the answer to a request in which credential stood.
func (p *Proxy) answerCleaner(d *domain.Domain, credential string) (cleaner.Cleaner, *holdfast.Error) {
	c, failed := p.cleaner(d)
	if failed == nil && credential != "" {
		c = p.out.echoes.Cover(c, credential)
	}
	return c, failed
}
