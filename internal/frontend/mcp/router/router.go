// Package router joins several MCP servers behind one client. Each server has a session
// of the gateway, so that each call is the same crossing as at that server alone. The
// client outlives its servers: one that ends is opened again.
package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
)

// MaxServers is how many servers can stand behind one endpoint.
const MaxServers = 32

// Bounds of what a router keeps of its client and its servers.
const (
	maxRouted    = 1024 // the client's requests without an answer
	maxQuestions = 1024 // the servers' questions without one
)

// detachFor bounds the wait for the reader of a closed client.
const detachFor = time.Second

// errRequestCanceled ends the context of a request that the client cancelled.
var errRequestCanceled = errors.New("the client cancelled the request")

// patience is how long a router waits; tests hurry it.
type patience struct {
	greet time.Duration // for a server's first answer
	list  time.Duration // for a server's part of a list
	ready time.Duration // for a server that is being started again
	// halted is how long it waits before it asks again whether everything is
	// halted.
	halted time.Duration
}

// The states of a server behind a router, as people read them.
const (
	StateRunning    = "running"
	StateRestarting = "restarting"
	StateGivenUp    = "given up"
	StateLeftOut    = "left out"
)

// Upstream is one of the servers behind an endpoint whose client outlives them.
type Upstream struct {
	// Conn opens the server's side: at first, and again each time after it
	// ended. It waits for as long as it thinks right before it does. An
	// error means that the server is given up, but for one of KindHalted:
	// then it is asked again.
	Conn func(context.Context) (gateway.Conn, error)
	// State hears what became of the server, with the reason where there
	// is one; nil is told nothing. It is called from one goroutine at a
	// time.
	State func(state string, why error)
	// Config is the core's. Server names the server here too.
	gateway.Config
}

// Serve relays between one client and several servers until the client goes
// or ctx ends. It gives each server a core of its own, so that each call is the
// same crossing as at an endpoint of that server alone, and joins what they
// list: tools and prompts are shown as SERVER__NAME, resources by their URI. A
// single server keeps its names, and what passes between it and the client is
// what would pass without the router.
//
// A server that ends takes no other down: it is opened again, the handshake is
// made anew in the client's name, and the client hears that the lists changed.
// A server that hangs is left out of an answer, which says so.
//
// Serve owns the client and what Conn returns, and closes them. When it
// returns, every crossing has been settled.
func Serve(ctx context.Context, client gateway.Client, servers []Upstream) error {
	r, err := newRouter(client, servers)
	if err != nil {
		return errors.Join(err, client.Close())
	}
	return r.run(ctx)
}

// router is one client at several servers.
type router struct {
	client  gateway.Client
	load    gateway.Load
	members []*member // by name
	log     *slog.Logger
	pace    patience
	// work counts what is done beside the reading of the client.
	work   sync.WaitGroup
	life   context.Context // of run
	broken chan struct{}   // closed when the client takes no more
	// mistaken says that something of the router's panicked; panicked is the
	// hook that hears of it.
	mistaken chan error
	panicked func(what, stack string)
	owners   owners
	faults   mcp.FaultCounter
	// surveyed is set when every server was asked what it lists.
	surveyed atomic.Bool

	writing sync.Mutex // held while the client is written to
	failed  bool       // guarded by writing

	mu   sync.Mutex
	last uint64 // the last id we gave; none is given twice
	// flights are the client's requests without an answer, by their key.
	flights map[string]*routed
	// pending are our requests to the cores, by the key of our id.
	pending   map[string]*pending
	questions map[string]question // the servers' to the client, by the key of our id
	listens   map[*listening]bool
	hello     *mcp.Message // the client's handshake, where it made one
	version   string       // what the handshake came to, "" before
	begun     bool         // the client said that it is ready
	told      map[string]bool
	greeted   bool // the client has the answer to its handshake
	shut      bool // no more work is begun
}

// routed is one request of the client without an answer.
type routed struct {
	id  []byte
	key string
	// size is what it counts for in the load.
	size int
	// meta is what it says in place of a handshake, nil where it does not.
	meta []byte
	ctx  context.Context
	end  context.CancelCauseFunc
}

// pending is one request of ours to a core.
type pending struct {
	side *side
	id   []byte
	// f is the client's request that it belongs to, or nil.
	f *routed
	// got takes the answer; where it is nil, the answer is the client's.
	got chan mcp.Message
	// listen is what the request listens for, or nil.
	listen *listening
}

// question is one request of a server to the client.
type question struct {
	side *side
	id   []byte
}

func newRouter(client gateway.Client, servers []Upstream) (*router, error) {
	usage := func(format string, args ...any) error {
		return &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf(format, args...)}
	}
	if len(servers) == 0 || len(servers) > MaxServers {
		return nil, usage("an MCP endpoint has 1 to %d servers, not %d", MaxServers, len(servers))
	}
	r := &router{client: client, load: gateway.LoadOf(client), broken: make(chan struct{}),
		mistaken: make(chan error, 1), pace: patience{greet: 30 * time.Second, list: 10 * time.Second,
			ready: 2 * time.Second, halted: time.Second},
		flights: map[string]*routed{}, pending: map[string]*pending{}, questions: map[string]question{},
		listens: map[*listening]bool{}, told: map[string]bool{}}
	var names []string
	for _, up := range servers {
		c, err := up.Complete()
		if err != nil {
			return nil, err
		}
		if up.Conn == nil {
			return nil, usage("the MCP server %q cannot be opened", c.Server)
		}
		if slices.Contains(names, c.Server) {
			return nil, usage("the MCP server %q is there twice", c.Server)
		}
		up.Config = c
		names = append(names, c.Server)
		r.members = append(r.members, &member{r: r, up: up, name: c.Server, changed: make(chan struct{})})
	}
	if why := FindNameCollision(names); why != "" {
		return nil, usage("%s", why)
	}
	slices.SortFunc(r.members, func(a, b *member) int { return strings.Compare(a.name, b.name) })
	r.log, r.panicked = r.members[0].up.Log, r.members[0].up.Panicked
	return r, nil
}

// solo says that there is one server, whose names and lists are its own.
func (r *router) solo() bool { return len(r.members) == 1 }

func (r *router) run(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	r.life = ctx
	for _, m := range r.members {
		r.spawn(func() { m.run(ctx) })
	}
	ended := make(chan error, 1)
	go func() { ended <- mcp.Guard(r.panicked, func() error { return r.fromClient(ctx) }) }()
	var err error
	select {
	case err = <-ended:
		ended <- nil
	case err = <-r.mistaken:
	case <-r.broken:
	case <-parent.Done():
	}
	if gateway.IsHangUp(err) || parent.Err() != nil {
		err = nil
	}
	cancel(gateway.ErrClientGone)
	closed := r.client.Close()
	r.mu.Lock()
	r.shut = true
	r.mu.Unlock()
	r.work.Wait()
	defer r.dropAll()
	if errors.Is(closed, gateway.ErrNotCloser) {
		return err
	}
	t := time.NewTimer(detachFor)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C:
	}
	return err
}

// spawn does what nobody waits for but the end of the router.
func (r *router) spawn(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shut {
		return
	}
	r.work.Add(1)
	go func() { defer r.work.Done(); r.guard(f) }()
}

// guard runs f, and ends the router with all its servers if it panics.
func (r *router) guard(f func()) {
	if err := mcp.Guard(r.panicked, func() error { f(); return nil }); err != nil {
		select {
		case r.mistaken <- err:
		default:
		}
	}
}

// write gives the client one line.
func (r *router) write(to string, line []byte) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	if r.failed {
		return gateway.ErrPeerGone
	}
	err := r.client.Write(to, line)
	if err != nil {
		r.failed = true
		close(r.broken)
	}
	return err
}

// odd logs what a peer did wrong, as mcp.FaultCounter says.
func (r *router) odd(what string, attrs ...any) {
	if n, logged := r.faults.Add(); logged {
		r.log.Warn(what, append(attrs, "faults", n)...)
	}
}

// id gives an id of ours. The caller holds mu.
func (r *router) id() []byte {
	r.last++
	return strconv.AppendUint(nil, r.last, 10)
}

// take makes a request of the client one in flight, or says why not.
func (r *router) take(ctx context.Context, m mcp.Message) (*routed, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := m.Key()
	switch {
	case r.flights[key] != nil:
		return nil, fmt.Errorf("id %s is already in flight", m.ID)
	case len(r.flights) >= maxRouted:
		return nil, fmt.Errorf("busy: %d requests are in flight", maxRouted)
	}
	if err := r.load.AddRequest(len(m.Raw)); err != nil {
		return nil, err
	}
	f := &routed{id: slices.Clone(m.ID), key: key, size: len(m.Raw), meta: mcp.Get(m.Params, "_meta")}
	f.ctx, f.end = context.WithCancelCause(ctx)
	r.flights[key] = f
	return f, nil
}

// drop says that a request is in flight no more. The caller holds mu.
func (r *router) drop(f *routed) {
	delete(r.flights, f.key)
	r.load.RemoveRequest(f.size)
}

// dropAll is drop of whatever is left.
func (r *router) dropAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.flights {
		r.drop(f)
	}
}

// answer gives the client the answer to a request, once; one that was cancelled
// has none.
func (r *router) answer(f *routed, line []byte) error {
	r.mu.Lock()
	mine := r.flights[f.key] == f
	if mine {
		r.drop(f)
	}
	r.mu.Unlock()
	defer f.end(nil)
	if !mine {
		return nil
	}
	return r.write(f.key, line)
}

// refuse answers a request with an error of ours.
func (r *router) refuse(f *routed, code int, why, hint string) {
	_ = r.answer(f, mcp.Failure(f.id, code, why, hint))
}

// cancel forgets a request of the client. What was asked for it is cancelled
// where it was asked.
func (r *router) cancel(key string) {
	r.mu.Lock()
	f := r.flights[key]
	if f != nil {
		r.drop(f)
	}
	r.mu.Unlock()
	if f == nil {
		return
	}
	f.end(errRequestCanceled)
	r.withdraw(f)
}

// withdraw cancels what was asked of the cores for a request, and is not waited
// for by anybody else.
func (r *router) withdraw(f *routed) {
	r.mu.Lock()
	var left []*pending
	for key, p := range r.pending {
		if p.f == f && p.got == nil {
			delete(r.pending, key)
			left = append(left, p)
		}
	}
	r.mu.Unlock()
	for _, p := range left {
		p.side.cancel(p.id)
	}
}

// fromClient reads the client's messages until it goes. It never waits for a
// server.
func (r *router) fromClient(ctx context.Context) error {
	for {
		m, err := r.client.Next()
		var f *mcp.Fault
		switch {
		case errors.As(err, &f):
			r.odd("the MCP client sent a line that was refused", "why", f.Why)
			if !f.Response {
				err = r.write(mcp.IDKey(f.ID), mcp.Failure(f.ID, f.Code, f.Why, f.Hint))
			} else {
				err = nil
			}
		case err != nil:
			return err
		case m.IsRequest():
			err = r.request(ctx, m)
		case m.IsNotification():
			r.notified(ctx, m)
		default:
			r.answered(ctx, m)
		}
		if err == nil && ctx.Err() != nil {
			err = io.EOF
		}
		if err != nil {
			return err
		}
	}
}

// notified takes a notification of the client.
func (r *router) notified(ctx context.Context, m mcp.Message) {
	switch m.Method {
	case "notifications/cancelled":
		r.cancel(mcp.IDKey(mcp.Get(m.Params, "requestId")))
	case "notifications/initialized":
		r.mu.Lock()
		first := !r.begun
		r.begun = true
		r.mu.Unlock()
		for _, mem := range r.members {
			if s := mem.live(); s != nil && first {
				mem.begin(ctx, s)
			}
		}
	default:
		r.broadcast(ctx, m)
	}
}

// broadcast tells every server that has made the handshake.
func (r *router) broadcast(ctx context.Context, m mcp.Message) {
	for _, mem := range r.members {
		if s := mem.live(); s != nil {
			if err := s.send(ctx, m); err != nil {
				r.log.Debug("a notification found no MCP server", "mcp_server", mem.name, "method", m.Method)
			}
		}
	}
}

// answered takes the client's answer to a question of a server.
func (r *router) answered(ctx context.Context, m mcp.Message) {
	r.mu.Lock()
	q, ok := r.questions[m.Key()]
	delete(r.questions, m.Key())
	r.mu.Unlock()
	if !ok {
		r.odd("the MCP client answered what nobody asked")
		return
	}
	m.ID = q.id
	_ = q.side.send(ctx, m)
}
