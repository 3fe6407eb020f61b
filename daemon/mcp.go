package daemon

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/bearer"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/router"
	"github.com/holdfast-dev/holdfast/internal/kernel"
)

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

func (d *Daemon) closeConnections() {
	d.conns.mu.Lock()
	defer d.conns.mu.Unlock()
	for c := range d.conns.m {
		_ = c.Close()
	}
}

// openMCP opens what a hello asks for, and returns what serves one connection.
// What it returns must be called once: it owns what was opened.
func (d *Daemon) openMCP(h api.Hello) (func(context.Context, io.ReadWriteCloser) error, error) {
	servers, err := d.servers(h)
	if err != nil {
		return nil, err
	}
	wait, err := d.waitOf(h)
	if err != nil {
		return nil, err
	}
	id := holdfast.Identity{Agent: h.Agent, Kind: h.Kind, Session: h.Session, Intent: h.Intent, Chain: h.Chain}
	e := endpoint{d: d, servers: servers, wait: wait, token: d.tokens(id), caller: bearer.CallerOf(id),
		agent: id.Agent, kind: id.Kind}
	var serve func(context.Context, io.ReadWriteCloser) error
	switch {
	case h.Listen != "":
		serve, err = d.listenMCP(h, e)
	case len(servers) > 1:
		serve = func(ctx context.Context, conn io.ReadWriteCloser) error { return e.route(ctx, gateway.Lines(conn)) }
	default:
		serve, err = e.direct()
	}
	if err != nil {
		return nil, err
	}
	d.sessionsDone.Add(1)
	return func(ctx context.Context, conn io.ReadWriteCloser) error {
		defer d.sessionsDone.Done()
		d.conns.add(conn)
		defer d.conns.remove(conn)
		return serve(ctx, conn)
	}, nil
}

// waitOf is how long a call is kept waiting for a person.
func (d *Daemon) waitOf(h api.Hello) (time.Duration, error) {
	if h.Wait == nil {
		return time.Duration(*d.config().Review.Wait), nil
	}
	if *h.Wait < 0 || *h.Wait > time.Duration(config.MaxWait) {
		return 0, &holdfast.Error{Kind: holdfast.KindUsage, Why: "a call is kept waiting for 0 to 55s, not for " + h.Wait.String()}
	}
	return *h.Wait, nil
}

// endpoint is one or more servers for clients of one identity.
type endpoint struct {
	d       *Daemon
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
	return gateway.Config{Kernel: shownTo{e.d.Kernel, e.agent, e.kind}, Swapped: e.d.Kernel.Swapped, Server: b.name, Token: e.token, TrustedHints: b.trusted, Log: e.d.log,
		Wait: e.wait, Page: e.d.pageURL, Seal: e.d.mcpSeal, Traceparent: kernel.Traceparent, ReviewHint: e.d.decidingCommand, Panicked: e.d.panicked}
}

// shownTo is the kernel as one agent is shown what there is.
type shownTo struct {
	*kernel.Kernel
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
		state := e.d.states.begin(b.name)
		defer state.end()
		state.set(router.StateRunning, nil)
		err := gateway.Serve(ctx, gateway.Lines(conn), server, e.config(b))
		if err != nil {
			e.d.log.Warn("an MCP session ended", "server", b.name, "err", err)
		}
		return err
	}, nil
}

// open opens one server once.
func (e endpoint) open(ctx context.Context, b backend) (gateway.Conn, error) {
	if b.code {
		return e.d.openCode(ctx, b, e.token)
	}
	return e.d.open(ctx, b)
}

// route serves a client that outlives its servers.
func (e endpoint) route(ctx context.Context, client gateway.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var ups []router.Upstream
	for _, b := range e.servers {
		state := e.d.states.begin(b.name)
		defer state.end()
		o := opener{d: e.d, b: b, caller: e.caller}
		next := o.next
		if b.code {
			next = func(ctx context.Context) (gateway.Conn, error) { return e.open(ctx, b) }
		}
		ups = append(ups, router.Upstream{Conn: next, State: state.set, Config: e.config(b)})
	}
	err := router.Serve(ctx, client, ups)
	if err != nil && !errors.Is(err, context.Canceled) {
		e.d.log.Warn("an MCP session ended", "err", err)
	}
	return err
}
