package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/bearer"
	"github.com/holdfast-dev/holdfast/internal/frontend/listener"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/streamable"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/netaddr"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
)

// maxFronts bounds the endpoints of single servers on the pages' address.
const maxFronts = 256

// maxMCPSessions bounds the clients of one HTTP endpoint, each of which has
// servers of its own.
const maxMCPSessions = 64

// listenMCP listens for MCP clients over HTTP, and returns what serves them for
// as long as a connection lasts.
func (s *Service) listenMCP(h api.Hello, e endpoint) (func(context.Context, io.ReadWriteCloser) error, error) {
	host, _, err := net.SplitHostPort(h.Listen)
	if err != nil {
		return nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf("%q is not an address to listen at",
			excerpt.Word(h.Listen)), Hint: "write host:port, such as 127.0.0.1:8811; port 0 takes a free one"}
	}
	if !netaddr.IsLoopbackHost(host) && !h.Bearer {
		return nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf(
			"%q can be reached from other machines, and would let anybody in", excerpt.Word(h.Listen),
		),
			Hint: "listen on 127.0.0.1, or give --token, which demands a bearer token of every request (`holdfast agent token AGENT` makes one)"}
	}
	l, err := net.Listen("tcp", h.Listen)
	if err != nil {
		return nil, listener.NewError(h.Listen, err)
	}
	return func(ctx context.Context, conn io.ReadWriteCloser) error {
		return s.serveHTTP(ctx, h, e, host, l,
			conn)
	}, nil
}

// serveHTTP serves clients until the connection ends, and takes everything down
// before it returns.
func (s *Service) serveHTTP(ctx context.Context, h api.Hello, e endpoint, host string, l net.Listener,
	conn io.ReadWriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	enter := func(*http.Request) (string, func(context.Context, gateway.Client) error, error) {
		return "the listener", e.route, nil
	}
	if h.Bearer {
		enter = func(r *http.Request) (string, func(context.Context, gateway.Client) error, error) {
			v, err := s.Bearer.Enter(r.Context(), "mcp", r.Header.Values("Authorization"))
			own := e
			own.token, own.caller, own.agent, own.kind = v.Token, v.Group, v.Agent, v.Kind
			return v.Name, own.route, err
		}
	}
	front := streamable.NewHandler(ctx, streamable.Config{Enter: enter, Group: bearer.GroupOf, Hosts: hosts(host),
		MaxSessions: maxMCPSessions, Log: s.Log, Panicked: s.Panicked})
	mux := http.NewServeMux()
	mux.Handle("/mcp", front)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: listener.ReadTimeout,
		WriteTimeout: listener.WriteTimeout,
		IdleTimeout:  2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(s.Log.Handler(),
			slog.LevelError)}
	served, in := make(chan error, 1), listener.ForServer(l, web)
	go func() { served <- web.Serve(in) }()
	line, err := json.Marshal(api.Listening{URL: "http://" + l.Addr().String() + "/mcp"})
	if err == nil {
		_, err = conn.Write(append(line, '\n'))
	}
	if err == nil {
		gone := make(chan struct{})
		go func() { defer close(gone); _, _ = io.Copy(io.Discard, conn) }()
		select {
		case <-gone:
		case err = <-served:
		case <-ctx.Done():
		}
	}
	cancel()
	closing, end := context.WithTimeout(context.Background(), 15*time.Second)
	defer end()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	_ = conn.Close() // it may have ended already
	return errors.Join(err, web.Close(), front.Close(closing))
}

// hosts are the names under which a listener may be addressed beside those of
// loopback. One that listens everywhere is addressed by any, and then a token is
// demanded of every request.
func hosts(host string) []string {
	if host == "" || netaddr.IsUnspecifiedHost(host) {
		return everyHost()
	}
	return []string{host}
}

// everyHost is the addresses of this machine, and its name.
func everyHost() []string {
	var out []string
	if name, err := os.Hostname(); err == nil {
		out = append(out, name)
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return out
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			out = append(out, n.IP.String())
		}
	}
	return out
}

// site is what the pages' address serves of MCP: the configured servers
// together under /mcp, and each under /mcp/NAME, for clients that bring a token.
type site struct {
	s   *Service
	ctx context.Context

	fronts fronts
}

// Mount adds the endpoints to the pages' address, a host and a port.
func (s *Service) Mount(mux *http.ServeMux, address string) {
	host, _, _ := net.SplitHostPort(address)
	ctx, cancel := context.WithCancel(context.Background())
	p := &site{s: s, ctx: ctx, fronts: fronts{host: host, end: cancel}}
	s.mu.Lock()
	s.site = p
	s.mu.Unlock()
	mux.Handle("/mcp", p)
	mux.Handle("/mcp/{name}", p)
}

// Close ends every client of the pages' address.
func (s *Service) Close() error {
	s.mu.Lock()
	p := s.site
	s.site = nil
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	return p.fronts.close(ctx)
}

// ServeHTTP answers one request. Who brings no good token learns nothing of
// what is configured.
func (p *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if _, ok := p.s.Config().Server(name); !ok && name != "" {
		p.unknown(w, r, name)
		return
	}
	front, err := p.fronts.of(name, func() *streamable.Handler { return p.front(name) })
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	front.ServeHTTP(w, r)
}

// unknown answers who asks for a server that is not configured.
func (p *site) unknown(w http.ResponseWriter, r *http.Request, name string) {
	if _, _, err := p.s.Bearer.Verify(r.Context(), "mcp", r.Header.Values("Authorization")); err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		why, _ := usage.Explain(err)
		http.Error(w, why, http.StatusUnauthorized)
		return
	}
	why, hint := usage.Explain(unknownServer(name, p.s.Config().ServerNames()))
	http.Error(w, why+" ("+hint+")", http.StatusNotFound)
}

// front makes the endpoint of one configured server, or of all of them. Which
// servers that are is asked when a client comes.
func (p *site) front(name string) *streamable.Handler {
	s, h := p.s, api.Hello{All: true}
	what := "mcp"
	if name != "" {
		what, h = gateway.Endpoint(name), api.Hello{Names: []string{name}}
	}
	enter := func(r *http.Request) (string, func(context.Context, gateway.Client) error, error) {
		v, err := s.Bearer.Enter(r.Context(), what, r.Header.Values("Authorization"))
		if err == nil {
			_, err = s.servers(h)
		}
		return v.Name, func(ctx context.Context, client gateway.Client) error {
			servers, err := s.servers(h)
			if err != nil {
				return errors.Join(err, client.Close())
			}
			return endpoint{s: s, servers: servers, wait: s.Config().ReviewWait(), token: v.Token,
				caller: v.Group, agent: v.Agent, kind: v.Kind}.route(ctx, client)
		}, err
	}
	return streamable.NewHandler(p.ctx, streamable.Config{Enter: enter, Group: bearer.GroupOf,
		Hosts: hosts(p.fronts.host), MaxSessions: maxMCPSessions, Log: s.Log, Panicked: s.Panicked})
}

// fronts are the endpoints of the pages' address by their name.
type fronts struct {
	host string
	end  context.CancelFunc

	mu     sync.Mutex
	m      map[string]*streamable.Handler // guarded by mu
	closed bool                           // guarded by mu
}

func (f *fronts) of(name string, fresh func() *streamable.Handler) (*streamable.Handler, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.m[name]; h != nil {
		return h, nil
	}
	if f.closed || len(f.m) >= maxFronts {
		return nil, errors.New("busy: there are too many endpoints")
	}
	if f.m == nil {
		f.m = map[string]*streamable.Handler{}
	}
	f.m[name] = fresh()
	return f.m[name], nil
}

func (f *fronts) close(ctx context.Context) error {
	f.mu.Lock()
	f.closed = true
	all := f.m
	f.mu.Unlock()
	f.end()
	var errs []error
	for _, h := range all {
		errs = append(errs, h.Close(ctx))
	}
	return errors.Join(errs...)
}
