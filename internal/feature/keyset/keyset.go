// Package keyset keeps the public keys of one token issuer: a JSON Web Key Set
// (RFC 7517) in a file, at an address, or where an OpenID Connect issuer's
// discovery document says it is. It is the token package's KeySource.
//
// A key that is known is answered from memory. The set is read again every 15
// minutes, and when a token names a key that is not in it, but then at most
// once in five seconds however many ask. If it cannot be read, known keys hold
// until the set is an hour old; unknown ones are refused at once, and after
// that hour everything is (K2 failure predicate 9, D8). A key that has gone
// from the set is refused from the next reading on.
package keyset

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/token"
)

// The defaults and limits.
const (
	defaultRefresh = 15 * time.Minute
	defaultMaxAge  = time.Hour
	longestMaxAge  = 24 * time.Hour
	pause          = 5 * time.Second // between two readings
	defaultTimeout = 5 * time.Second // of one reading, discovery included
	maxBody        = 1 << 20         // bytes
	maxKeys        = 100
)

// Options says where the keys are. Exactly one of File, URL and Issuer is set.
type Options struct {
	// File is a JWKS file's path.
	File string
	// URL is a JWKS address: https, or http on loopback.
	URL string
	// Issuer is an OpenID Connect issuer, spelt exactly as in its tokens;
	// the address rules of URL hold for it and for what it points to.
	Issuer string
	// Refresh is how often the set is read again (15 min), MaxAge how old
	// it may be (1 h, at most 24 h), Timeout what one reading may take
	// (5 s, at most that).
	Refresh, MaxAge, Timeout time.Duration
	// Roots are the authorities for https; nil means the system's.
	Roots *x509.CertPool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Warn is told of each reading that failed; nil tells nobody. It must
	// not block.
	Warn func(error)
}

// Set is an issuer's keys. It is safe for concurrent use. Close it to end the
// reading that may be under way.
type Set struct {
	o      Options
	read   func(context.Context) ([]byte, error)
	ctx    context.Context // ends at Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	keys    *keys         // the last good set, nil if there is none; not changed
	fetched time.Time     // when the reading began that brought keys
	tried   time.Time     // when the last reading began
	failed  error         // how it ended
	flight  chan struct{} // closed when the reading under way ends; nil if none
	closed  bool
}

var _ token.KeySource = (*Set)(nil)

// New checks the options. It reads nothing yet: the first Key or Refresh does,
// so that an issuer that is down does not keep Holdfast from starting.
func New(o Options) (*Set, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	read, err := o.reader()
	if err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	s := &Set{o: o, read: read}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

func (o *Options) complete() error {
	set := func(d *time.Duration, def, most time.Duration, name string) error {
		if *d == 0 {
			*d = def
		}
		if *d < 0 || *d > most {
			return fmt.Errorf("%s of %v is not between 0 and %v", name, *d, most)
		}
		return nil
	}
	if err := set(&o.Timeout, defaultTimeout, defaultTimeout, "a timeout"); err != nil {
		return err
	}
	if err := set(&o.MaxAge, defaultMaxAge, longestMaxAge, "a greatest age"); err != nil {
		return err
	}
	if err := set(&o.Refresh, min(defaultRefresh, o.MaxAge), o.MaxAge, "a refresh interval"); err != nil {
		return err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return nil
}

// Key implements token.KeySource. It waits for a reading only when the key is
// not known or the set is too old.
func (s *Set) Key(ctx context.Context, kid string) (crypto.PublicKey, string, error) {
	for waited := false; ; waited = true {
		k, wait, err := s.look(kid, waited)
		if wait == nil {
			return k.public, k.alg, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, "", errors.Join(token.ErrKeysUnavailable, ctx.Err())
		}
	}
}

// look answers from memory, or returns what to wait for.
func (s *Set) look(kid string, waited bool) (key, chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Now()
	fresh := s.fresh(now)
	if fresh {
		if k, ok := s.keys.find(kid); ok {
			if now.Sub(s.fetched) >= s.o.Refresh && s.due(now) {
				s.start(now)
			}
			return k, nil, nil
		}
		if kid == "" {
			return key{}, nil, token.ErrUnknownKey
		}
	}
	if !waited && !s.closed && (s.flight != nil || s.due(now)) {
		return key{}, s.start(now), nil
	}
	if fresh && s.failed == nil {
		return key{}, nil, token.ErrUnknownKey
	}
	return key{}, nil, errors.Join(token.ErrKeysUnavailable, s.failed)
}

// fresh says whether the set may be believed. A clock that went back makes it
// unbelievable. mu is held.
func (s *Set) fresh(now time.Time) bool {
	age := now.Sub(s.fetched)
	return s.keys != nil && age >= 0 && age < s.o.MaxAge
}

// due says whether another reading may begin. mu is held.
func (s *Set) due(now time.Time) bool {
	return s.tried.IsZero() || now.Sub(s.tried) >= pause || now.Before(s.tried)
}

// start begins a reading, or joins the one under way. mu is held.
func (s *Set) start(now time.Time) chan struct{} {
	if s.flight != nil || s.closed {
		return s.flight
	}
	done := make(chan struct{})
	s.flight, s.tried = done, now
	s.wg.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, s.o.Timeout)
		defer cancel()
		k, err := s.load(ctx)
		s.finish(now, k, err)
		close(done)
		if err != nil && s.o.Warn != nil {
			s.o.Warn(err)
		}
	})
	return done
}

func (s *Set) load(ctx context.Context) (*keys, error) {
	doc, err := s.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the key set %s: %w", s.where(), err)
	}
	k, err := parse(doc)
	if err != nil {
		return nil, fmt.Errorf("reading the key set %s: %w", s.where(), err)
	}
	return k, nil
}

// finish takes over what a reading brought. A failure leaves the last good set
// to grow old; a set that shows private keys ends it at once, because whoever
// could read it can sign.
func (s *Set) finish(began time.Time, k *keys, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flight, s.failed = nil, err
	switch {
	case err == nil:
		s.keys, s.fetched = k, began
	case errors.Is(err, errPrivate):
		s.keys = nil
	}
}

// Refresh reads the set now, whatever its age, or joins the reading under way.
func (s *Set) Refresh(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errors.Join(token.ErrKeysUnavailable, errClosed)
	}
	wait := s.start(s.o.Now())
	s.mu.Unlock()
	select {
	case <-wait:
	case <-ctx.Done():
		return errors.Join(token.ErrKeysUnavailable, ctx.Err())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

var errClosed = errors.New("the key set is closed")

// Run refreshes the set at every interval until ctx ends, so that a removed
// key is noticed although nobody asks. Failures go to Warn.
func (s *Set) Run(ctx context.Context) {
	tick := time.NewTicker(s.o.Refresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.ctx.Done():
			return
		case <-tick.C:
			_ = s.Refresh(ctx) // Warn was told
		}
	}
}

// Close ends the reading under way and waits for it. After it every key is
// refused.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
	s.mu.Lock()
	s.keys, s.failed = nil, errClosed
	s.mu.Unlock()
}

// Status is the set as a person may want to see it.
type Status struct {
	Where string `json:"where"`
	// Keys are the ids that can verify, Ignored says why others cannot.
	Keys    []string  `json:"keys"`
	Ignored []string  `json:"ignored,omitempty"`
	Fetched time.Time `json:"fetched_at,omitzero"`
	// Fresh says whether the set may still be believed.
	Fresh bool `json:"fresh"`
	// Failed is why the last reading failed, nil if it did not.
	Failed error `json:"-"`
}

// Status returns the state now, reading nothing.
func (s *Set) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Where: s.where(), Fetched: s.fetched, Fresh: s.fresh(s.o.Now()), Failed: s.failed}
	if s.keys != nil {
		st.Keys, st.Ignored = s.keys.ids(), append([]string(nil), s.keys.ignored...)
	}
	return st
}

func (s *Set) where() string { return s.o.File + s.o.URL + s.o.Issuer }
