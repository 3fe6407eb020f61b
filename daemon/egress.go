package daemon

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/authority"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// egressEnd is how long the entries of what was under way may take at the end.
const egressEnd = 3 * time.Second

// egressSite is the proxy of this runtime, opened by the first listener. Its
// zero value, with d, listens nowhere.
type egressSite struct {
	d      *Daemon
	values credential.Reader

	mu        sync.Mutex
	authority *authority.Authority // guarded by mu; nil until it is needed
	broken    error                // guarded by mu; why there is none, where it was needed
	proxy     *egress.Proxy        // guarded by mu; nil until something listens
	ended     bool                 // guarded by mu
	listening []egressDoor         // guarded by mu
	judges    *http.Client         // guarded by mu; nil until a model is asked
	models    http.Handler         // guarded by mu; nil until a client asks one through the gateway

	engines engineShelf
	runs    atomic.Int64 // whose sockets are served
}

// egressDoor is one listener of the configuration.
type egressDoor struct {
	of      config.EgressListenConfig
	address string
	listen  net.Listener
}

// ca is the authority of this state, which is made where there is none yet.
func (s *egressSite) ca() (*authority.Authority, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.openCA()
}

// openCA is ca for who holds mu. What is broken stays as it is, and is looked at
// again at the next need.
func (s *egressSite) openCA() (*authority.Authority, error) {
	if s.authority != nil {
		return s.authority, nil
	}
	a, err := authority.Open(s.d.Paths.Dir)
	s.authority, s.broken = a, err
	return a, err
}

// troubles are what keeps the proxy from serving.
func (s *egressSite) troubles() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		return nil
	}
	why, _ := usage.Explain(s.broken)
	return []string{why + ": nothing leaves through holdfast"}
}

// SeeAuthority says whether the state in p has an authority for the proxy, and
// whether it can be used, making none.
func SeeAuthority(p Paths) (bool, error) {
	made := false
	for _, name := range authority.Files() {
		if _, err := os.Lstat(filepath.Join(p.Dir, name)); err == nil {
			made = true
		} else if !missing(err) {
			return made, guard.ExplainReadError(p.Dir, err)
		}
	}
	if !made {
		return false, nil
	}
	_, err := authority.Open(p.Dir)
	return true, err
}

// open is the proxy.
func (s *egressSite) open() (*egress.Proxy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, &holdfast.Error{Kind: holdfast.KindHalted, Why: "the daemon is ending"}
	}
	if s.proxy != nil {
		return s.proxy, nil
	}
	ca, err := s.openCA()
	if err != nil {
		return nil, err
	}
	p, err := egress.New(egress.Config{Kernel: s.d.Kernel,
		Table: s.table, Engine: s.engine, Authority: ca, Credential: s.values.Read,
		Resolver: &net.Resolver{PreferGo: true}, Log: s.d.log})
	s.proxy = p
	return p, err
}

// running is the proxy where it was opened, or nil.
func (s *egressSite) running() *egress.Proxy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proxy
}

func (s *egressSite) table() *domain.Table { return s.d.snapshot().Domains }

// listen opens the listeners of the configuration. A daemon that another command
// started goes on without one whose address is taken, and says so.
func (s *egressSite) listen(linger bool) error {
	for _, of := range s.d.config().Egress.Listen {
		if _, err := s.open(); err != nil {
			return err
		}
		l, err := net.Listen("tcp", of.Address)
		if err != nil && linger {
			s.d.log.Warn("the egress proxy is not served", "address", of.Address, "err", err)
			continue
		}
		if err != nil {
			return cannotListen(of.Address, err)
		}
		s.mu.Lock()
		s.listening = append(s.listening, egressDoor{of: of, address: l.Addr().String(), listen: l})
		s.mu.Unlock()
		s.d.log.Info("the egress proxy listens", "address", l.Addr().String(), "agent", of.Agent)
	}
	return nil
}

// serve answers on all listeners until close.
func (s *egressSite) serve() error {
	var all serving
	for _, l := range s.doors() {
		all.run(func() error {
			return s.running().Explicit(l.listen, s.caller(holdfast.Identity{Agent: l.of.Agent, Kind: l.of.Kind}))
		})
	}
	return all.wait()
}

func (s *egressSite) doors() []egressDoor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listening
}

// caller is who speaks through a listener.
func (s *egressSite) caller(id holdfast.Identity) egress.Caller {
	token := s.d.tokens(id)
	return egress.Caller{Token: func() (holdfast.Secret, error) { return token(context.Background()) }}
}

// close ends every listener and exchange, and waits for their entries. A second
// time is nothing.
func (s *egressSite) close() error {
	s.mu.Lock()
	p, ended := s.proxy, s.ended
	s.ended = true
	for _, l := range s.listening {
		_ = l.listen.Close() // the proxy closes it too
	}
	s.mu.Unlock()
	if p == nil || ended {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), egressEnd)
	defer cancel()
	return p.Close(ctx)
}

// engine masks what goes to a row's host and what comes back: with the masks of
// egress, what was registered at the start, and every credential that is known
// by now (003 3.1). Nil, which refuses, where there is none.
func (s *egressSite) engine(d *domain.Domain) *redact.Engine {
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
			s.d.log.Warn("a credential cannot be read", "domain", d.Name, "err", err)
		}
	}
	values, changes := s.values.ListSecrets()
	e, err := s.engines.take(d.Guesses, changes, func() (*redact.Engine, error) {
		return redact.New(redact.Options{Masks: redact.Egress,
			Probable: d.Guesses, Literals: credential.Deduplicate(s.d.secrets, values)})
	})
	if err != nil {
		s.d.log.Error("what goes out and comes back cannot be redacted, and is refused", "err", err)
		return nil
	}
	return e
}

// engineShelf keeps the engines of one state of the credentials, by what they
// guess. The zero value is empty.
type engineShelf struct {
	mu      sync.Mutex
	changes int                                // guarded by mu
	made    map[redact.Probable]*redact.Engine // guarded by mu
}

// take is the engine of a set of guesses, made where there is none of this state.
func (s *engineShelf) take(guesses redact.Probable, changes int, make func() (*redact.Engine, error)) (*redact.Engine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil || changes > s.changes {
		s.made, s.changes = map[redact.Probable]*redact.Engine{}, changes
	}
	if e := s.made[guesses]; e != nil {
		return e, nil
	}
	e, err := make()
	if err != nil {
		return nil, fmt.Errorf("the engine of egress: %w", err)
	}
	s.made[guesses] = e
	return e, nil
}
