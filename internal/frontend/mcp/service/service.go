// Package service runs the MCP endpoints of one state: it opens servers, shares their
// keepers among the clients of a caller, and serves clients over connections and HTTP.
package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/bearer"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/redaction"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/router"
	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// Kernel is what the service needs of it.
type Kernel interface {
	Cross(
		ctx context.Context, r holdfast.Request, act func(context.Context) (holdfast.Output, error),
	) (*holdfast.Outcome, error)
	// ObserveFor is gateway.Kernel's Observe for one agent of a kind.
	ObserveFor(ctx context.Context, agent, kind string, cs []holdfast.Contract) ([]holdfast.Contract, error)
	Listed(boundary string) (holdfast.Contract, bool)
	Withholds(boundary string) bool
	Await(ctx context.Context, review string) error
	// Record records an event.
	Record(e kernel.Event) error
	// Swapped returns what is closed at the next change of the configuration.
	Swapped() <-chan struct{}
}

// Config is one version of the configuration.
type Config interface {
	Server(name string) (Server, bool)
	// ServerNames returns the names of all servers, sorted.
	ServerNames() []string
	// AllowsPlainHTTP reports whether servers may be reached without TLS.
	AllowsPlainHTTP() bool
	// ReviewWait returns how long a call waits for a person.
	ReviewWait() time.Duration
}

// Server is one configured server: a command, an address or the sandbox.
type Server struct {
	Command []string
	Dir     string
	Env     []string
	URL     string
	// ReadHeaders returns the headers for URL; nil returns none. It is called for
	// each connection.
	ReadHeaders  func() (map[string]holdfast.Secret, error)
	TrustedHints bool
	Sandbox      bool
}

// Commands runs code in the sandbox.
type Commands interface {
	Enter(ctx context.Context, size int64) (leave func(), err error)
	Execute(ctx context.Context, x api.Execution) (*api.Executed, error)
}

// Options are what a Service is made of. All are required.
type Options struct {
	Kernel Kernel
	// Config returns the configuration that applies now.
	Config func() Config
	Bearer *bearer.Gate
	// Tokens returns a source of tokens for an identity of this machine.
	Tokens func(holdfast.Identity) func(context.Context) (holdfast.Secret, error)
	// Commands is called when a server that runs code is opened.
	Commands func() Commands
	// Halted reports whether no server may be started.
	Halted func() bool
	// Page, ReviewHint, Seal and Panicked are as in gateway.Config.
	Page       func(review string) string
	ReviewHint func(review string) string
	Seal       []byte
	Panicked   func(what, stack string)
	// Engine is as in gateway.Config.
	Engine func() *redaction.Engine
	// Mask removes from a server's words what the log must not hold.
	Mask func([]byte) []byte
	Log  *slog.Logger
	// Person is who starts servers, in events.
	Person  string
	Version string
	// Busy counts the connections of Open.
	Busy *sync.WaitGroup
}

// Service serves MCP clients of one state: over connections of the owner's socket,
// over HTTP listeners and at the pages' address.
type Service struct {
	Options
	conns   connections
	states  states
	keepers keepers

	mu   sync.Mutex
	site *site // guarded by mu; nil while none is served
}

// New returns a service that serves nothing yet.
func New(o Options) *Service { return &Service{Options: o} }

// ListStates describes each configured server, and each that has clients.
func (s *Service) ListStates() map[string]string { return s.states.say(s.Config().ServerNames()) }

// connections are the MCP connections under way, so that an ending daemon can
// close them.
type connections struct {
	mu sync.Mutex
	m  map[io.Closer]bool // guarded by mu
}

func (c *connections) add(x io.Closer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[io.Closer]bool{}
	}
	c.m[x] = true
}

func (c *connections) remove(x io.Closer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.m, x)
}

// CloseConnections closes the connections of Open.
func (s *Service) CloseConnections() {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	for c := range s.conns.m {
		_ = c.Close()
	}
}

// Open opens what a hello asks for, and returns what serves one connection.
// What it returns must be called once: it owns what was opened.
func (s *Service) Open(h api.Hello) (func(context.Context, io.ReadWriteCloser) error, error) {
	servers, err := s.servers(h)
	if err != nil {
		return nil, err
	}
	wait, err := s.waitOf(h)
	if err != nil {
		return nil, err
	}
	id := holdfast.Identity{Agent: h.Agent, Kind: h.Kind, Session: h.Session, Intent: h.Intent, Chain: h.Chain}
	e := endpoint{s: s, servers: servers, wait: wait, token: s.Tokens(id), caller: bearer.CallerOf(id),
		agent: id.Agent, kind: id.Kind}
	var serve func(context.Context, io.ReadWriteCloser) error
	switch {
	case h.Listen != "":
		serve, err = s.listenMCP(h, e)
	case len(servers) > 1:
		serve = func(ctx context.Context, conn io.ReadWriteCloser) error { return e.route(ctx, gateway.Lines(conn)) }
	default:
		serve, err = e.direct()
	}
	if err != nil {
		return nil, err
	}
	s.Busy.Add(1)
	return func(ctx context.Context, conn io.ReadWriteCloser) error {
		defer s.Busy.Done()
		s.conns.add(conn)
		defer s.conns.remove(conn)
		return serve(ctx, conn)
	}, nil
}

// waitOf is how long a call is kept waiting for a person.
func (s *Service) waitOf(h api.Hello) (time.Duration, error) {
	if h.Wait == nil {
		return s.Config().ReviewWait(), nil
	}
	if *h.Wait < 0 || *h.Wait > gateway.MaxWait {
		return 0, &holdfast.Error{Kind: holdfast.KindUsage, Why: "a call is kept waiting for 0 to 55s, not for " +
			h.Wait.String()}
	}
	return *h.Wait, nil
}

// endpoint is one or more servers for clients of one identity.
type endpoint struct {
	s       *Service
	servers []backend
	wait    time.Duration
	// caller is who is served, as bearer.GroupOf names it.
	caller string
	// agent and kind are who lists tools.
	agent, kind string
	// token gives the identity's token for one crossing.
	token func(context.Context) (holdfast.Secret, error)
}

// config is what the gateway needs for one of the servers.
func (e endpoint) config(b backend) gateway.Config {
	return gateway.Config{Kernel: shownTo{e.s.Kernel, e.agent, e.kind}, Swapped: e.s.Kernel.Swapped,
		Server: b.name, Token: e.token, TrustedHints: b.trusted, Log: e.s.Log,
		Wait: e.wait, Page: e.s.Page, Seal: e.s.Seal, Traceparent: kernel.Traceparent, ReviewHint: e.s.ReviewHint,
		Panicked: e.s.Panicked, Engine: e.s.Engine}
}

// shownTo is the kernel as one agent is shown what there is.
type shownTo struct {
	Kernel
	agent, kind string
}

// Observe implements gateway.Kernel.
func (s shownTo) Observe(ctx context.Context, cs []holdfast.Contract) ([]holdfast.Contract, error) {
	return s.ObserveFor(ctx, s.agent, s.kind, cs)
}

// direct opens the one server at once, and ends with it.
func (e endpoint) direct() (func(context.Context, io.ReadWriteCloser) error, error) {
	b := e.servers[0]
	server, err := e.open(context.Background(), b)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, conn io.ReadWriteCloser) error {
		state := e.s.states.begin(b.name)
		defer state.end()
		state.set(router.StateRunning, nil)
		err := gateway.Serve(ctx, gateway.Lines(conn), server, e.config(b))
		if err != nil {
			e.s.Log.Warn("an MCP session ended", "server", b.name, "err", err)
		}
		return err
	}, nil
}

// open opens one server once.
func (e endpoint) open(ctx context.Context, b backend) (gateway.Conn, error) {
	if b.code {
		return e.s.openCode(ctx, b, e.token)
	}
	return e.s.open(ctx, b)
}

// route serves a client that outlives its servers.
func (e endpoint) route(ctx context.Context, client gateway.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ups []router.Upstream
	for _, b := range e.servers {
		state := e.s.states.begin(b.name)
		defer state.end()
		o := opener{s: e.s, b: b, caller: e.caller}
		next := o.next
		if b.code {
			next = func(ctx context.Context) (gateway.Conn, error) { return e.open(ctx, b) }
		}
		ups = append(ups, router.Upstream{Conn: next, State: state.set, Config: e.config(b)})
	}
	err := router.Serve(ctx, client, ups)
	if err != nil && !errors.Is(err, context.Canceled) {
		e.s.Log.Warn("an MCP session ended", "err", err)
	}
	return err
}
