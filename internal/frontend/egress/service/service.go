// Package service runs the egress proxy of one state directory: its listeners, the sockets of
// runs, the clients inside of this process, and what `holdfast egress` asks of it.
package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/authority"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/credential"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

// egressEnd is how long the entries of what was under way may take at the end.
const egressEnd = 3 * time.Second

// Options is what a Service is made of.
type Options struct {
	// Dir is the state directory, in which the proxy's authority is.
	Dir string
	// Kernel returns the kernel. It is first called when something is served or asked.
	Kernel func() Kernel
	// Store is read for what is left of rates and budgets.
	Store kernel.Store
	// Table returns the active allowlist.
	Table func() *domain.Table
	// Mint makes a token for an agent of this machine, and returns who it is for.
	Mint func(holdfast.Identity) (holdfast.Secret, holdfast.Identity, error)
	// Tokens returns a source of tokens of an agent that do not expire while it is used.
	Tokens func(holdfast.Identity) func(context.Context) (holdfast.Secret, error)
	// Guest returns who asks a model through the gateway.
	Guest func(*http.Request) (egress.Guest, error)
	// Engine redacts records. Secrets are the registered values, which every row's engine knows as well.
	Engine  *redact.Engine
	Secrets []holdfast.Secret
	// Mappings has the values of placeholders of models.
	Mappings *mapping.Sessions
	// Detectors are the programs that rows name.
	Detectors *detector.Shelf
	Log       *slog.Logger
}

// Kernel is what a Service needs of the kernel.
type Kernel interface {
	egress.Kernel
	Explain(context.Context, holdfast.Request) (*holdfast.Outcome, error)
	Policy() *kernel.Policy
}

// Service is the proxy of one state directory. It is opened when something first needs it.
// It may be used by several goroutines.
type Service struct {
	opt    Options
	values credential.Reader

	mu        sync.Mutex
	authority *authority.Authority // guarded by mu; nil until it is needed
	broken    error                // guarded by mu; why it could not be opened
	proxy     *egress.Proxy        // guarded by mu; nil until something listens
	ended     bool                 // guarded by mu
	listening []openListener       // guarded by mu
	client    *http.Client         // guarded by mu; nil until this process calls a model
	models    http.Handler         // guarded by mu; nil until a client asks one through the gateway

	engines engineShelf
	runs    atomic.Int64 // whose sockets are served
}

// New returns a Service that listens nowhere yet.
func New(opt Options) *Service { return &Service{opt: opt} }

// Listener is an address that the proxy listens on, and the agent that speaks there.
type Listener struct {
	Address, Agent, Kind string
}

// openListener is a Listener that is open. Its address is the one it has.
type openListener struct {
	Listener
	listen net.Listener
}

// openAuthority returns the authority of this state. It makes a missing one.
func (s *Service) openAuthority() (*authority.Authority, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.openAuthorityLocked()
}

// openAuthorityLocked is openAuthority with mu held. A broken authority stays as it is, and is
// read again at the next need.
func (s *Service) openAuthorityLocked() (*authority.Authority, error) {
	if s.authority != nil {
		return s.authority, nil
	}
	a, err := authority.Open(s.opt.Dir)
	s.authority, s.broken = a, err
	return a, err
}

// Health returns what keeps the proxy from serving, nil if nothing does.
func (s *Service) Health() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		return nil
	}
	why, _ := usage.Explain(s.broken)
	return []string{why + ": nothing leaves through holdfast"}
}

// FindAuthority reports whether the state directory dir has an authority for the proxy, and returns an error if
// it cannot be used. It makes none.
func FindAuthority(dir string) (bool, error) {
	made := false
	for _, name := range authority.Files() {
		_, err := os.Lstat(filepath.Join(dir, name))
		switch {
		case err == nil:
			made = true
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return made, guard.ExplainReadError(dir, err)
		}
	}
	if !made {
		return false, nil
	}
	_, err := authority.Open(dir)
	return true, err
}

// openProxy returns the proxy. It makes it at the first call.
func (s *Service) openProxy() (*egress.Proxy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, &holdfast.Error{Kind: holdfast.KindHalted, Why: "the daemon is ending"}
	}
	if s.proxy != nil {
		return s.proxy, nil
	}
	ca, err := s.openAuthorityLocked()
	if err != nil {
		return nil, err
	}
	p, err := egress.New(egress.Config{Kernel: s.opt.Kernel(),
		Table: s.opt.Table, Engine: s.engine, Mappings: s.opt.Mappings, Detector: s.opt.Detectors.FinderOf,
		Authority: ca, Credential: s.values.Read,
		Resolver: &net.Resolver{PreferGo: true}, Log: s.opt.Log})
	s.proxy = p
	return p, err
}

// getOpenProxy returns the proxy, nil if it was not opened.
func (s *Service) getOpenProxy() *egress.Proxy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proxy
}

// ListenError is an address that cannot be listened on.
type ListenError struct {
	Address string
	Err     error
}

// Error implements error.
func (e *ListenError) Error() string { return fmt.Sprintf("cannot listen on %s: %v", e.Address, e.Err) }

// Unwrap returns why.
func (e *ListenError) Unwrap() error { return e.Err }

// Listen opens the listeners. With skipTaken it leaves out an address that cannot be listened
// on, and logs it; without, that is a *ListenError.
func (s *Service) Listen(listeners []Listener, skipTaken bool) error {
	for _, of := range listeners {
		if _, err := s.openProxy(); err != nil {
			return err
		}
		l, err := net.Listen("tcp", of.Address)
		if err != nil && skipTaken {
			s.opt.Log.Warn("the egress proxy is not served", "address", of.Address, "err", err)
			continue
		}
		if err != nil {
			return &ListenError{Address: of.Address, Err: err}
		}
		s.mu.Lock()
		of.Address = l.Addr().String()
		s.listening = append(s.listening, openListener{Listener: of, listen: l})
		s.mu.Unlock()
		s.opt.Log.Info("the egress proxy listens", "address", of.Address, "agent", of.Agent)
	}
	return nil
}

// ServeListeners answers on all open listeners until Close. It returns immediately if there is no listener.
func (s *Service) ServeListeners() error {
	var all serving
	for _, l := range s.copyListeners() {
		all.run(func() error {
			return s.getOpenProxy().Explicit(l.listen, s.callerFor(holdfast.Identity{Agent: l.Agent, Kind: l.Kind}))
		})
	}
	return all.wait()
}

// Listeners returns the open listeners, with the addresses that they have.
func (s *Service) Listeners() []Listener {
	var out []Listener
	for _, l := range s.copyListeners() {
		out = append(out, l.Listener)
	}
	return out
}

func (s *Service) copyListeners() []openListener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.listening)
}

// callerFor returns the caller of the proxy for an agent of this machine.
func (s *Service) callerFor(id holdfast.Identity) egress.Caller {
	token := s.opt.Tokens(id)
	return egress.Caller{Token: func() (holdfast.Secret, error) { return token(context.Background()) }}
}

// Close ends every listener and exchange, and waits for their entries, for egressEnd at most. A second
// call does nothing.
func (s *Service) Close() error {
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
