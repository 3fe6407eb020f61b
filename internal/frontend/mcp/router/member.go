package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
)

// member is one server behind a router, over all its lives.
type member struct {
	r    *router
	up   Upstream
	name string

	mu sync.Mutex
	// changed is closed and replaced whenever something below changes.
	changed chan struct{}
	side    *side  // the life at hand, or nil
	over    error  // why there will be none any more
	away    error  // why there is none now
	halted  bool   // there is none because everything is halted
	lives   int    // how many there were
	listed  string // the state that was told
}

// side is the router's side of one life of a server: the Client of its core.
type side struct {
	m    *member
	in   chan mcp.Message
	gone chan struct{} // closed by Close
	once sync.Once
	// again says that a life came before it.
	again bool

	// What follows is guarded by the member's mu.
	asked   bool          // the handshake is under way
	greeted chan struct{} // closed when it has been answered
	hello   mcp.Message   // the answer
	failed  error         // why there is none
	ready   bool          // requests may be sent
	modern  bool          // it has answered without a handshake
	begun   bool          // it was told that the client is ready
	entered bool          // its handshake has been judged
}

func newSide(m *member, again bool) *side {
	return &side{m: m, in: make(chan mcp.Message), gone: make(chan struct{}), greeted: make(chan struct{}), again: again}
}

// Next implements Client.
func (s *side) Next() (mcp.Message, error) {
	select {
	case m := <-s.in:
		return m, nil
	case <-s.gone:
		return mcp.Message{}, io.EOF
	}
}

// Write implements Client.
func (s *side) Write(to string, line []byte) error { return s.m.r.fromCore(s, to, line) }

// Close implements Client.
func (s *side) Close() error {
	s.once.Do(func() { close(s.gone) })
	return nil
}

// Load returns the load of the router's client: a request counts in each core too.
func (s *side) Load() gateway.Load { return s.m.r.load }

// errAway says that a server has ended.
var errAway = errors.New("the MCP server ended")

// send hands the core a message. A core waits for nobody before it reads on,
// but for a client that does not read.
func (s *side) send(ctx context.Context, m mcp.Message) error {
	select {
	case <-s.gone:
		return errAway
	default:
	}
	select {
	case s.in <- m:
		return nil
	case <-s.gone:
		return errAway
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cancel tells the core that a request of ours is not wanted any more. It does
// not wait for the core: the caller may be what the core waits for.
func (s *side) cancel(id []byte) {
	var p mcp.Builder
	p.Add("requestId", id)
	s.tell(mcp.Message{Method: "notifications/cancelled", Params: p.Bytes()})
}

// tell hands the core a message soon, or never where the life ends first.
func (s *side) tell(m mcp.Message) {
	s.m.r.spawn(func() { _ = s.send(context.Background(), m) })
}

// run opens the server and serves it, again and again until ctx ends or it is
// given up.
func (m *member) run(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := m.up.Conn(ctx)
		if ctx.Err() != nil {
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		if holdfast.KindOf(err) == holdfast.KindHalted {
			m.hold(ctx, err)
			continue
		}
		if err != nil {
			m.giveUp(err)
			return
		}
		s := m.attach(ctx)
		err = gateway.Serve(ctx, s, conn, m.up.Config)
		_ = s.Close()
		m.detach(ctx, s, err)
	}
}

// hold waits a while where no server may be opened, because everything is
// halted. That is no failure of the server's, and nobody waits for its end.
func (m *member) hold(ctx context.Context, why error) {
	m.mu.Lock()
	m.away, m.halted = why, true
	m.tell(StateRestarting, why)
	m.signal()
	m.mu.Unlock()
	_ = mcp.Sleep(ctx, m.r.pace.halted) // run looks at ctx
}

// signal wakes everyone who waits. The caller holds mu.
func (m *member) signal() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// tell says what became of the server, where that is new. The caller holds mu.
func (m *member) tell(state string, why error) {
	if m.listed == state && why == nil {
		return
	}
	m.listed = state
	if m.up.State != nil {
		m.up.State(state, why)
	}
}

// attach begins a life. Where the client has made the handshake already, it is
// made with the server at once.
func (m *member) attach(ctx context.Context) *side {
	m.r.mu.Lock()
	stateful := m.r.hello != nil
	m.r.mu.Unlock()
	m.mu.Lock()
	s := newSide(m, m.lives > 0)
	m.lives++
	m.side, m.away, m.halted = s, nil, false
	s.ready = !stateful
	m.tell(StateRunning, nil)
	m.signal()
	m.mu.Unlock()
	// The handshake may have come meanwhile.
	m.r.mu.Lock()
	stateful = m.r.hello != nil
	m.r.mu.Unlock()
	if stateful {
		m.greet(ctx, s)
	} else if s.again {
		m.r.back(m, s)
	}
	return s
}

// detach ends a life. What still waits for it hears so.
func (m *member) detach(ctx context.Context, s *side, why error) {
	if why == nil {
		why = errAway
	}
	m.mu.Lock()
	m.side, m.away = nil, why
	if ctx.Err() == nil {
		m.tell(StateRestarting, why)
	}
	m.signal()
	m.mu.Unlock()
	if ctx.Err() == nil {
		m.r.log.Warn("an MCP server is being started again", "mcp_server", m.name, "why", why)
	}
	m.r.lost(s, m.absent())
}

func (m *member) giveUp(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = why
	m.tell(StateGivenUp, why)
	m.signal()
	m.r.log.Error("an MCP server is given up", "mcp_server", m.name, "why", why)
}

// leaveOut ends a life whose server cannot speak what the others do.
func (m *member) leaveOut(s *side, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.side == s {
		s.ready, s.failed = false, why
		m.tell(StateLeftOut, why)
		m.signal()
		m.r.log.Warn("an MCP server is left out", "mcp_server", m.name, "why", why)
	}
}

// live is the life that takes requests now, or nil.
func (m *member) live() *side {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.side != nil && m.side.ready {
		return m.side
	}
	return nil
}

// absent says why the server takes no requests, for people.
func (m *member) absent() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.over != nil:
		return fmt.Errorf("the MCP server %q is given up: %w", m.name, m.over)
	case m.halted:
		return fmt.Errorf("the MCP server %q is not there: %w", m.name, m.away)
	case m.side == nil && m.away != nil:
		return fmt.Errorf("the MCP server %q is being started again: %w", m.name, m.away)
	case m.side == nil:
		return fmt.Errorf("the MCP server %q is being started", m.name)
	case m.side.failed != nil:
		return fmt.Errorf("the MCP server %q is left out: %w", m.name, m.side.failed)
	}
	return fmt.Errorf("the MCP server %q has not answered the handshake yet", m.name)
}

// until waits until done says so, the server is given up, or ctx ends, and
// returns the life at hand.
func (m *member) until(ctx context.Context, done func(*side) bool) *side {
	for {
		m.mu.Lock()
		s, over, changed := m.side, m.over != nil || m.halted, m.changed
		ok := s != nil && done(s)
		m.mu.Unlock()
		if ok || over {
			return s
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// await waits for a life that takes requests, for as long as ctx lives.
func (m *member) await(ctx context.Context) (*side, error) {
	s := m.until(ctx, func(s *side) bool { return s.ready || s.failed != nil })
	if s == nil || m.live() != s {
		return nil, m.absent()
	}
	return s, nil
}
