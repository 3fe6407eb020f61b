// Package egress is the one way out of a workspace (spec 003 section 3.1): a
// proxy that takes every request apart, holds it against the allowlist, redacts
// it, makes a crossing of it, sends it on as a request of its own, and gives
// back a redacted answer. Nothing that a client sent is relayed as it came.
//
// One request goes through exchange.go. Before it come a listener, a tunnel and TLS
// (listen.go, connect.go, terminate.go), after it the answer (relay.go, events.go).
// The packages below this one:
//
//   - wire, hangup: connections of clients, and how they end
//   - destination, headerfield: where a request goes, and which fields with it
//   - coding, frames: bodies and events, as they are encoded and framed
//   - cleaner: the redaction of a row, applied to headers, URLs and bodies
//   - upstream: names, addresses, connections to servers
//   - authority, sentinel: certificates and DNS for the workspace
//   - refusal, counters: answers to what was refused, and figures
//   - memory, aside: what all requests share
package egress

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/authority"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/counters"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/upstream"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/wire"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/detector"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
)

// Kernel is what the proxy needs of the kernel. Cross is the only way to send.
type Kernel interface {
	// Cross makes one crossing; act is run at most once, and only where the
	// crossing is allowed.
	Cross(ctx context.Context, r holdfast.Request, act func(context.Context) (holdfast.Output, error)) (*holdfast.Outcome, error)
	// Withholds says whether what comes back must be judged before any of it
	// is given to the client.
	Withholds(boundary string) bool
	// Asker returns who asks by a token.
	Asker(ctx context.Context, token holdfast.Secret) (holdfast.Identity, holdfast.Level, error)
	// TurnedAway counts n requests or connections of token's agent that were
	// turned away before a crossing was made of them.
	TurnedAway(ctx context.Context, token holdfast.Secret, n int)
}

// Caller is who speaks through a listener. It is never read from a request.
type Caller struct {
	// Token returns a fresh token of the agent; it is called once for each crossing.
	Token func() (holdfast.Secret, error)
	// Correlation is the flow that the crossings belong to; empty makes one for each.
	Correlation string
	// Trusts says that its clients trust the authority. A name that no row lists is then refused inside of TLS,
	// where clients show why: they do not show what answers a CONNECT.
	Trusts bool
	// Note takes what was replaced in a request to a model, and restored in its answer; nil if it is not needed.
	Note func(holdfast.Placeholders)
}

// Config is what a proxy is made of. Kernel, Table, Engine, Authority and
// Resolver must be given.
type Config struct {
	Kernel Kernel
	// Table is the allowlist in force, asked once for each request. Nil, or a
	// table that is nil, allows nothing.
	Table func() *domain.Table
	// Engine redacts what goes to a domain and what comes back, and what is
	// recorded of a request to no domain, which is nil; nil, or an
	// engine that is not ready, refuses.
	Engine func(d *domain.Domain) *redact.Engine
	// Detector returns the program that a row names (cleaner.Pool.Detector).
	Detector func(spec string) detector.Finder
	// Mappings keeps the values of placeholders; nil makes one whose placeholders end with the proxy.
	Mappings *mapping.Sessions
	// Authority signs the certificates that the proxy shows inside.
	Authority *authority.Authority
	// Credential is the tenant's credential for a domain, asked after the
	// crossing began. Nil is none: a domain that names one is refused.
	Credential func(ctx context.Context, d *domain.Domain) (holdfast.Secret, error)
	Resolver   upstream.Resolver
	// Log is for the operator; nil discards.
	Log *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// MaxBuffered bounds all bodies that are held in memory at one time, in
	// bytes; 0 means 256 MB.
	MaxBuffered int64
	// MaxConns bounds the connections of one listener; 0 means 512.
	MaxConns int
	// Limits are the times of the inbound side; a zero field is its default.
	Limits Limits
}

// Limits are how long a client may take. The zero value of a field is its
// default.
type Limits struct {
	// Header is for a TLS handshake and for a request's line and header: 10 s.
	Header time.Duration
	// Idle is how long a connection may wait for its next request: 2 min.
	Idle time.Duration
	// Body is how long a request's body may go without a byte: 30 s. All of it
	// has four times that, and a second for each KB.
	Body time.Duration
}

func (l Limits) orDefault() Limits {
	if l.Header <= 0 {
		l.Header = 10 * time.Second
	}
	if l.Idle <= 0 {
		l.Idle = 2 * time.Minute
	}
	if l.Body <= 0 {
		l.Body = 30 * time.Second
	}
	return l
}

const (
	defaultBuffered = 256 << 20
	defaultConns    = 512
	// maxPending bounds the crossings that are under way at one time.
	maxPending = 1024
)

// Proxy is the proxy of one runtime. It is safe for concurrent use. The zero
// value is not usable; New makes one.
type Proxy struct {
	cfg      Config
	log      *slog.Logger
	now      func() time.Time
	counters counters.Counters
	// pending has a place for each crossing whose entry may not be written yet.
	pending chan struct{}
	pieces  wire.Lender
	inside  *tls.Config
	out     outbound
	// mappings keeps the values of placeholders of models.
	mappings *mapping.Sessions

	mu      sync.Mutex
	closed  bool              // guarded by mu
	open    map[int]func()    // guarded by mu: what ends each listener
	next    int               // guarded by mu
	owners  map[string]*owner // guarded by mu: of the callers with a flow of their own
	working sync.WaitGroup    // listeners, connections and crossings
}

// New checks c and returns a proxy that listens nowhere yet.
func New(c Config) (*Proxy, error) {
	switch {
	case c.Kernel == nil:
		return nil, errors.New("egress: no kernel: every request is a crossing")
	case c.Table == nil:
		return nil, errors.New("egress: no allowlist")
	case c.Engine == nil:
		return nil, errors.New("egress: no redaction engine")
	case c.Authority == nil:
		return nil, errors.New("egress: no certificate authority")
	case c.Resolver == nil:
		return nil, errors.New("egress: no resolver")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.MaxBuffered <= 0 {
		c.MaxBuffered = defaultBuffered
	}
	if c.MaxConns <= 0 {
		c.MaxConns = defaultConns
	}
	c.Limits = c.Limits.orDefault()
	p := &Proxy{cfg: c, log: c.Log, now: c.Now, open: map[int]func(){}, owners: map[string]*owner{}, pending: make(chan struct{}, maxPending), inside: insideTLS()}
	if p.mappings = c.Mappings; p.mappings == nil {
		p.mappings = mapping.NewSessions([]byte(rand.Text()), c.Now)
	}
	p.out.start(p)
	return p, nil
}

// Snapshot returns what was counted so far; the parts are of nearly one moment.
func (p *Proxy) Snapshot() counters.Snapshot { return p.counters.Snapshot() }
