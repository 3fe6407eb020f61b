package service

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// engine returns the engine for what goes to a row's host and what comes back: it knows the masks of
// egress, the registered values, and every credential that was read by now (003 3.1). Nil, which
// refuses, if it cannot be made.
func (s *Service) engine(d *domain.Domain) *redact.Engine {
	if d == nil {
		d = &domain.Domain{}
	}
	if d.Credential != nil && !s.values.HasRead(d.Credential.Source) {
		// So that neither direction shows it from the first request on. What
		// cannot be read now is not added either.
		ctx, cancel := context.WithTimeout(context.Background(), credential.CommandTimeout)
		_, err := s.values.Read(ctx, d)
		cancel()
		if err != nil {
			s.opt.Log.Warn("a credential cannot be read", "domain", d.Name, "err", err)
		}
	}
	values, changes := s.values.ListSecrets()
	e, err := s.engines.getOrMake(changes, func() (*redact.Engine, error) {
		return redact.New(redact.Options{Masks: redact.Egress,
			Literals: credential.Deduplicate(s.opt.Secrets, values)})
	})
	if err != nil {
		s.opt.Log.Error("what goes out and comes back cannot be redacted, and is refused", "err", err)
		return nil
	}
	return e
}

// engineShelf keeps the engine of one state of the credentials. The zero value is empty.
type engineShelf struct {
	mu      sync.Mutex
	changes int            // guarded by mu
	made    *redact.Engine // guarded by mu
}

// getOrMake returns the engine for this state of the credentials.
func (s *engineShelf) getOrMake(changes int, make func() (*redact.Engine, error)) (*redact.Engine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made != nil && changes <= s.changes {
		return s.made, nil
	}
	e, err := make()
	if err != nil {
		return nil, fmt.Errorf("the engine of egress: %w", err)
	}
	s.made, s.changes = e, changes
	return e, nil
}
