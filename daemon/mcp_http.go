package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/streamable"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/netaddr"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
)

// maxMCPSessions bounds the clients of one HTTP endpoint, each of which has
// servers of its own.
const maxMCPSessions = 64

// listenMCP listens for MCP clients over HTTP, and returns what serves them for
// as long as a connection lasts.
func (d *Daemon) listenMCP(h api.Hello, e endpoint) (func(context.Context, io.ReadWriteCloser) error, error) {
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
		return nil, cannotListen(h.Listen, err)
	}
	return func(ctx context.Context, conn io.ReadWriteCloser) error { return d.serveHTTP(ctx, h, e, host, l, conn) }, nil
}

func cannotListen(addr string, err error) error {
	why, hint := err.Error(), ""
	if errors.Is(err, syscall.EADDRINUSE) {
		why, hint = "something listens there already", "name another port, or port 0 for a free one"
	} else if sys := (*os.SyscallError)(nil); errors.As(err, &sys) {
		why = sys.Err.Error()
	}
	return &holdfast.Error{Kind: holdfast.KindConflict,
		Why: fmt.Sprintf("cannot listen at %s: %s", excerpt.Word(addr), why), Hint: hint, Err: err}
}

// serveHTTP serves clients until the connection ends, and takes everything down
// before it returns.
func (d *Daemon) serveHTTP(ctx context.Context, h api.Hello, e endpoint, host string, l net.Listener, conn io.ReadWriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	b := bearers{d: d, what: "mcp"}
	enter := func(*http.Request) (string, func(context.Context, gateway.Client) error, error) {
		return "the listener", e.route, nil
	}
	if h.Bearer {
		enter = b.enter(func(v visitor) func(context.Context, gateway.Client) error {
			own := e
			own.token, own.caller, own.agent, own.kind = v.token, v.group, v.agent, v.kind
			return own.route
		})
	}
	front := streamable.NewHandler(ctx, streamable.Config{Enter: enter, Group: groupOf, Hosts: hosts(host),
		MaxSessions: maxMCPSessions, Log: d.log, Panicked: d.panicked})
	mux := http.NewServeMux()
	mux.Handle("/mcp", front)
	site := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: crowdRead, WriteTimeout: crowdWrite,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: d.errorLog()}
	served, in := make(chan error, 1), newCrowd(l, site)
	go func() { served <- site.Serve(in) }()
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
	return errors.Join(err, site.Close(), front.Close(closing))
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

// mcpSite is what the pages' address serves of MCP: the configured servers
// together under /mcp, and each under /mcp/NAME, for clients that bring a token.
type mcpSite struct {
	d   *Daemon
	ctx context.Context

	fronts fronts
}

// mountMCP adds the endpoints to the pages' address.
func (d *Daemon) mountMCP(mux *http.ServeMux) {
	host, _, _ := net.SplitHostPort(d.config().Listen.Pages)
	ctx, cancel := context.WithCancel(context.Background())
	s := &mcpSite{d: d, ctx: ctx, fronts: fronts{host: host, end: cancel}}
	d.mu.Lock()
	d.mcp = s
	d.mu.Unlock()
	mux.Handle("/mcp", s)
	mux.Handle("/mcp/{name}", s)
}

// closeMCP ends every client of the pages' address.
func (d *Daemon) closeMCP() error {
	d.mu.Lock()
	s := d.mcp
	d.mcp = nil
	d.mu.Unlock()
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	return s.fronts.close(ctx)
}

// ServeHTTP answers one request. Who brings no good token learns nothing of
// what is configured.
func (s *mcpSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if _, ok := s.d.config().MCP.Servers[name]; !ok && name != "" {
		s.unknown(w, r, name)
		return
	}
	front, err := s.fronts.of(name, func() *streamable.Handler { return s.front(name) })
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	front.ServeHTTP(w, r)
}

// unknown answers who asks for a server that is not configured.
func (s *mcpSite) unknown(w http.ResponseWriter, r *http.Request, name string) {
	if _, _, err := (bearers{d: s.d, what: "mcp"}).verify(r.Context(), r.Header.Values("Authorization")); err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		why, _ := usage.Explain(err)
		http.Error(w, why, http.StatusUnauthorized)
		return
	}
	why, hint := usage.Explain(unknownServer(name, s.d.config().MCP.Servers))
	http.Error(w, why+" ("+hint+")", http.StatusNotFound)
}

// front makes the endpoint of one configured server, or of all of them. Which
// servers that are is asked when a client comes.
func (s *mcpSite) front(name string) *streamable.Handler {
	d, h := s.d, api.Hello{All: true}
	what := "mcp"
	if name != "" {
		what, h = gateway.Endpoint(name), api.Hello{Names: []string{name}}
	}
	b := bearers{d: d, what: what}
	enter := b.enter(func(v visitor) func(context.Context, gateway.Client) error {
		return func(ctx context.Context, client gateway.Client) error {
			servers, err := d.servers(h)
			if err != nil {
				return errors.Join(err, client.Close())
			}
			return endpoint{d: d, servers: servers, wait: time.Duration(*d.config().Review.Wait), token: v.token, caller: v.group, agent: v.agent, kind: v.kind}.route(ctx, client)
		}
	})
	known := func(r *http.Request) (string, func(context.Context, gateway.Client) error, error) {
		who, run, err := enter(r)
		if err == nil {
			_, err = d.servers(h)
		}
		return who, run, err
	}
	return streamable.NewHandler(s.ctx, streamable.Config{Enter: known, Group: groupOf,
		Hosts: hosts(s.fronts.host), MaxSessions: maxMCPSessions, Log: d.log, Panicked: d.panicked})
}
