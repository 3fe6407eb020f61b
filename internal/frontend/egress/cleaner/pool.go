package cleaner

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/aside"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
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
	// Detector returns the program that a row names (domain.Domain.Detector). Nil refuses the traffic of such rows.
	Detector func(spec string) detector.Finder
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
	c := New(e)
	c.finder = p.FindDetector(d)
	return c, nil
}

// FindDetector returns the program that searches the traffic of d for names and addresses, nil for none.
func (p *Pool) FindDetector(d *domain.Domain) detector.Finder {
	switch {
	case d == nil || d.Detector == "":
		return nil
	case p.Detector == nil:
		return detector.Failing()
	}
	return p.Detector(d.Detector)
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
func (p *Pool) RunWithin(n int, f func() error) error { return p.RunSearch(nil, n, f) }

// RunSearch is RunWithin for f which has finder search too; finder may be nil.
func (p *Pool) RunSearch(finder detector.Finder, n int, f func() error) error {
	limit := redactTime * time.Duration(1+n/redactShare)
	if finder != nil {
		limit += detector.SearchTime
	}
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
