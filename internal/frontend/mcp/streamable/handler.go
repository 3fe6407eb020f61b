// Package streamable serves MCP over streamable HTTP: it brings the requests of clients
// to sessions of the gateway, and bounds what all clients together use.
package streamable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// Bounds of the HTTP front that are nobody's choice.
const (
	// maxExchanges is how many HTTP requests are served at once, and
	// maxOwn how many of them may be of one group.
	maxExchanges = 1024
	maxOwn       = 256
	// maxReading is how many bytes of bodies are kept while they are read.
	maxReading = 256 << 20
	// endFor bounds the wait for a core that ends, and for a reader while the
	// front ends.
	endFor = time.Second
)

// Defaults of Config.
const (
	// DefaultMaxSessions is how many cores run at once.
	DefaultMaxSessions = 256
	// DefaultIdle is how long a session lives without an HTTP request.
	DefaultIdle = time.Hour
)

// Config is what NewHandler needs. Enter must be set.
type Config struct {
	// Enter says whose request it is, by its listener or its bearer token.
	// It is called for every request, before its body is read. who is the
	// key under which sessions are guarded and stateless requests share
	// one core; it is never empty. run serves one client until it ends,
	// and closes it. An error whose kind speaks of a token is answered
	// with 401, every other with 403.
	Enter func(*http.Request) (who string, run func(context.Context, gateway.Client) error, err error)
	// Group returns whom a who belongs to: what one group may have of the
	// front is counted together, however many names it comes under. nil
	// means that each is a group of its own. It must be a pure function.
	Group func(who string) string
	// Hosts are the names under which this endpoint may be addressed, and
	// the hosts of the web pages that may, beside the names of loopback;
	// without a port. Everything else gets 403, so that no foreign page
	// reaches the endpoint through a name of its own.
	Hosts []string
	// MaxSessions bounds the cores that run at once; 0 means
	// DefaultMaxSessions.
	MaxSessions int
	// Idle is how long a core lives without an HTTP request of its own
	// being open; 0 means DefaultIdle.
	Idle time.Duration
	// MaxBody bounds a request's body in bytes; 0 means mcp.MaxLine, which
	// is also the most.
	MaxBody int64
	// Log gets what clients did wrong; nil discards it.
	Log *slog.Logger
	// Panicked is as in Config. What panics here and belongs to no one
	// session ends the front.
	Panicked func(what, stack string)
}

// Handler is the door for MCP over streamable Handler: of 2026-07-28, where every
// POST stands for itself, and of the revisions before, where a session begins
// with initialize. It is an http.Handler for one endpoint at any path, safe
// for concurrent use.
//
// The server around it must bound the time and size of request headers; the
// time of bodies and of answers is bounded here.
type Handler struct {
	Config
	pace pace
	// life ends when the front does; end ends it.
	life context.Context
	end  context.CancelFunc
	// work counts runs and exchanges.
	work    sync.WaitGroup
	reading atomic.Int64
	faults  mcp.FaultCounter
	meter   *meter // what waits for readers

	mu       sync.Mutex
	closed   bool
	sessions map[string]*seat // by session id
	shared   map[string]*seat // by who
	running  int              // cores, those that are ending among them
	all      *loads
	loads    map[string]*load // by group
	open     int              // exchanges
	own      map[string]int   // exchanges, by group
}

// pace is what the front waits for; tests hurry it.
type pace struct {
	body  time.Duration // a request's body
	write time.Duration // a client, to take what is written
	beat  time.Duration // between signs of life on a quiet stream
}

// NewHandler returns a front whose cores run until Close, or until ctx ends.
func NewHandler(ctx context.Context, c Config) *Handler {
	if c.MaxSessions <= 0 {
		c.MaxSessions = DefaultMaxSessions
	}
	if c.Idle <= 0 {
		c.Idle = DefaultIdle
	}
	if c.MaxBody <= 0 || c.MaxBody > mcp.MaxLine {
		c.MaxBody = mcp.MaxLine
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Panicked == nil {
		c.Panicked = mcp.LogPanic(c.Log)
	}
	h := &Handler{Config: c, pace: pace{body: 30 * time.Second, write: 30 * time.Second, beat: 15 * time.Second},
		meter:    &meter{most: maxFront},
		sessions: map[string]*seat{}, shared: map[string]*seat{}, own: map[string]int{}, loads: map[string]*load{}}
	h.all = newLoads(h.meter)
	h.life, h.end = context.WithCancel(ctx)
	return h
}

// guard runs f, and ends the whole front if it panics: its state is shared by all.
func (h *Handler) guard(f func()) {
	if mcp.Guard(h.Panicked, func() error { f(); return nil }) != nil {
		h.end()
	}
}

// Close takes no more requests, ends every stream and every core, and waits
// until they are gone. Its error is ctx's, where that ended first.
func (h *Handler) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	for _, s := range h.seats() {
		s.client.Close()
	}
	done := make(chan struct{})
	go func() { h.guard(h.work.Wait); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the HTTP front of the MCP gateway: %w", ctx.Err())
	}
}

// ServeHTTP answers one HTTP request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body time.Time // for a request without one, none: who hears a stream says nothing
	if r.ContentLength != 0 {
		// It stands until the body has been read whole, also where it is
		// refused unread: the server reads on to use the connection again.
		body = time.Now().Add(h.pace.body)
	}
	_ = http.NewResponseController(w).SetReadDeadline(body)
	if err := h.expected(r); err != nil {
		h.refuse(w, nil, err)
		return
	}
	who, run, err := h.Enter(r)
	if err == nil && (who == "" || run == nil) {
		err = errors.New("an identity without a name was let in")
	}
	if err != nil {
		h.refuse(w, nil, h.unwelcome(err))
		return
	}
	group := h.group(who)
	l, err := h.begin(group)
	if err != nil {
		h.refuse(w, nil, err)
		return
	}
	defer h.finish(group)
	g := guest{h: h, w: w, r: r, who: who, run: run, load: l}
	switch r.Method {
	case http.MethodPost:
		err = g.post()
	case http.MethodGet:
		err = g.listen()
	case http.MethodDelete:
		err = g.leave()
	default:
		err = g.noMethod("GET, POST, DELETE")
	}
	if err != nil {
		h.refuse(w, nil, err)
	}
}

// guest is one HTTP request that has been let in.
type guest struct {
	h   *Handler
	w   http.ResponseWriter
	r   *http.Request
	who string
	run func(context.Context, gateway.Client) error
	// load is its group's.
	load *load
}

// begin counts an exchange, or says why there is no room for it.
func (h *Handler) begin(group string) (*load, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed || h.life.Err() != nil:
		return nil, &httpError{status: http.StatusServiceUnavailable, why: "holdfast is going down"}
	case h.open >= maxExchanges || h.own[group] >= maxOwn:
		return nil, &httpError{status: http.StatusServiceUnavailable, why: "busy: too many requests are open", hint: "close streams, then try again", later: true}
	}
	h.open++
	h.own[group]++
	h.work.Add(1)
	return h.enlist(group), nil
}

func (h *Handler) finish(group string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open--
	if h.own[group]--; h.own[group] == 0 {
		delete(h.own, group)
	}
	h.dismiss(group)
	h.work.Done()
}

// odd logs what went wrong, as mcp.FaultCounter says.
func (h *Handler) odd(what string, err error) {
	if n, logged := h.faults.Add(); logged {
		h.Log.Warn(what, "err", err, "times", n)
	}
}

// unwelcome turns Enter's error into an answer. What was not written for
// people goes to the log.
func (h *Handler) unwelcome(err error) error {
	status := errorcode.Lookup(holdfast.KindOf(err)).MCP
	var e *holdfast.Error
	if errors.As(err, &e) {
		return &httpError{status: status, why: e.Error(), hint: e.Hint}
	}
	h.odd("an MCP request could not be let in", err)
	return &httpError{status: status, why: "internal error", hint: "see holdfast's log"}
}
