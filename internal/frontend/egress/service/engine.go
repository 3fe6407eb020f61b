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
	passes := d.Personal == domain.Pass
	e, err := s.engines.getOrMake(passes, changes, func() (*redact.Engine, error) {
		return redact.New(redact.Options{Masks: redact.Egress, PassPersonal: passes,
			Literals: credential.Deduplicate(s.opt.Secrets, values)})
	})
	if err != nil {
		s.opt.Log.Error("what goes out and comes back cannot be redacted, and is refused", "err", err)
		return nil
	}
	return e
}

// engineShelf keeps the engines of one state of the credentials: one for rows that pass personal data, and one for
// all others. The zero value is empty.
type engineShelf struct {
	mu      sync.Mutex
	changes int                     // guarded by mu
	made    map[bool]*redact.Engine // guarded by mu
}

// getOrMake returns the engine for this state of the credentials.
func (s *engineShelf) getOrMake(
	passes bool, changes int, make func() (*redact.Engine, error),
) (*redact.Engine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil || changes > s.changes {
		s.made, s.changes = map[bool]*redact.Engine{}, changes
	}
	if e := s.made[passes]; e != nil {
		return e, nil
	}
	e, err := make()
	if err != nil {
		return nil, fmt.Errorf("the engine of egress: %w", err)
	}
	s.made[passes] = e
	return e, nil
}
