package cleaner

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/aside"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

const (
	// redactTime bounds the redaction of each redactShare bytes, or part of them.
	redactTime  = 10 * time.Second
	redactShare = 10 << 20
)

// Pool makes the cleaners of rows, and bounds their time. Engine must be set; Stop ends what is kept.
type Pool struct {
	// Engine returns the engine of a row; nil refuses.
	Engine func(d *domain.Domain) *redact.Engine
	// Asides runs what needs a deep stack.
	Asides aside.Pool
	// Limit replaces the time that one redaction may take, in tests.
	Limit  time.Duration
	echoes echoes
}

// Open returns the cleaner of d. The error is a RedactionError: there is no engine.
func (p *Pool) Open(d *domain.Domain) (Cleaner, *holdfast.Error) {
	e := p.Engine(d)
	if e == nil {
		return Cleaner{}, NewEngineError()
	}
	return New(e), nil
}

// OpenAnswer returns the cleaner of d for the answer to a request in which credential was sent.
func (p *Pool) OpenAnswer(d *domain.Domain, credential string) (Cleaner, *holdfast.Error) {
	c, failed := p.Open(d)
	if failed == nil && credential != "" {
		c.echo = p.echoes.findEngine(c.e, credential)
	}
	return c, failed
}

// RunWithin runs f, which redacts n bytes, and returns an error where it panics
// or does not end in its time. One that does not end continues, since nothing
// can stop it; its result is dropped.
func (p *Pool) RunWithin(n int, f func() error) error {
	limit := redactTime * time.Duration(1+n/redactShare)
	if p.Limit > 0 {
		limit = p.Limit
	}
	if n < 1<<10 && p.Limit == 0 {
		return aside.Guard(f)
	}
	begun := time.Now()
	done := p.Asides.Begin(f)
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
