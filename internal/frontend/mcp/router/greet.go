package router

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// greet makes the handshake with one life of a server, in the client's name.
func (m *member) greet(ctx context.Context, s *side) {
	hello, ok := m.r.handshake()
	m.mu.Lock()
	was := s.asked
	if ok {
		s.asked, s.ready = true, false
	}
	m.mu.Unlock()
	if was || !ok {
		return
	}
	m.r.spawn(func() {
		a, err := m.r.ask(ctx, s, nil, hello)
		if err == nil && a.Error != nil {
			message, _ := mcp.Text(mcp.Get(a.Error, "message"))
			err = fmt.Errorf("it answered the handshake with an error: %.200s", message)
		}
		m.mu.Lock()
		s.hello, s.failed = a, err
		close(s.greeted)
		m.signal()
		m.mu.Unlock()
		if !s.over() && ctx.Err() == nil {
			m.r.judge(ctx, s)
		}
	})
}

// handshake is the client's, with the version that has been agreed on; false
// where it made none.
func (r *router) handshake() (mcp.Message, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hello == nil {
		return mcp.Message{}, false
	}
	m := mcp.Message{Method: "initialize", Params: r.hello.Params}
	if r.version != "" {
		if p, err := mcp.Set(m.Params, mcp.Quote(r.version), "protocolVersion"); err == nil {
			m.Params = p
		}
	}
	return m, true
}

func (s *side) hasGreeted() bool {
	select {
	case <-s.greeted:
		return true
	default:
		return false
	}
}

// over says that the life has ended.
func (s *side) over() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// speaks is the version that a server answered the handshake with.
func (s *side) speaks() string {
	v, _ := mcp.Text(mcp.Get(s.hello.Result, "protocolVersion"))
	return v
}

// judge lets a server take requests once its handshake came to the version that
// was agreed on. Before there is one it does nothing.
func (r *router) judge(ctx context.Context, s *side) {
	r.mu.Lock()
	version, begun := r.version, r.begun
	r.mu.Unlock()
	m := s.m
	m.mu.Lock()
	if version == "" || s.entered || !s.hasGreeted() {
		m.mu.Unlock()
		return
	}
	s.entered = true
	failed, speaks := s.failed, s.speaks()
	m.mu.Unlock()
	if failed == nil && speaks != version {
		failed = fmt.Errorf("it speaks MCP %.32q, and the others %s", speaks, version)
	}
	if failed != nil {
		m.leaveOut(s, failed)
		return
	}
	if begun {
		m.begin(ctx, s)
	}
	m.mu.Lock()
	s.ready = true
	m.signal()
	m.mu.Unlock()
	// What the client said meanwhile is said here too.
	r.mu.Lock()
	begun = r.begun
	r.mu.Unlock()
	if begun {
		m.begin(ctx, s)
	}
	r.back(m, s)
}

// begin tells a server, once, that the client is ready.
func (m *member) begin(ctx context.Context, s *side) {
	m.mu.Lock()
	was := s.begun
	s.begun = true
	m.mu.Unlock()
	if !was {
		_ = s.send(ctx, mcp.Message{Method: "notifications/initialized"})
	}
}

// back tells the client that a server is there again, or late: what it lists
// may be new.
func (r *router) back(m *member, s *side) {
	r.mu.Lock()
	greeted := r.greeted
	var listens []*listening
	for l := range r.listens {
		listens = append(listens, l)
	}
	r.mu.Unlock()
	if greeted {
		for _, kind := range []string{"tools", "prompts", "resources"} {
			if s.offers(kind) {
				_ = r.listChanged("notifications/" + kind + "/list_changed")
			}
		}
	}
	for _, l := range listens {
		r.spawn(func() { l.join(m, s) })
	}
}

// offers says whether a server has a capability, as far as is known.
func (s *side) offers(kind string) bool {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return s.hello.Result == nil || mcp.Get(s.hello.Result, "capabilities", kind) != nil
}

// initialize makes the client's handshake with every server, agrees on the
// lowest version that they answer, and answers with what they can do together.
func (r *router) initialize(ctx context.Context, f *routed, m mcp.Message) {
	r.mu.Lock()
	if r.hello != nil {
		r.mu.Unlock()
		r.refuse(f, mcp.CodeInvalidRequest, "the session is initialized already", "")
		return
	}
	r.hello = &m
	r.mu.Unlock()
	wait, cancel := context.WithTimeoutCause(f.ctx, r.pace.greet, fmt.Errorf("it did not answer within %s", r.pace.greet))
	defer cancel()
	for _, mem := range r.members {
		mem.welcome(ctx)
	}
	answered := r.greetings(wait)
	version := lowest(answered)
	if version == "" {
		r.unanswered(f)
		return
	}
	r.mu.Lock()
	r.version = version
	r.mu.Unlock()
	for mem, s := range answered {
		if s.speaks() != version {
			// A session is initialized once, so that it takes a new one.
			_ = s.Close()
			mem.until(wait, func(now *side) bool { return now != s })
		}
	}
	for m, s := range r.greetings(wait) {
		r.judge(ctx, s)
		m.until(wait, func(s *side) bool { return s.ready || s.failed != nil })
	}
	r.introduce(f, version)
}

// welcome begins the handshake with the life at hand; one that has already
// spoken without a handshake ends, because servers take that for one.
func (m *member) welcome(ctx context.Context) {
	m.mu.Lock()
	s := m.side
	modern := s != nil && s.modern
	m.mu.Unlock()
	switch {
	case s == nil: // it will be made when the life begins
	case modern:
		m.mu.Lock()
		s.ready = false
		m.mu.Unlock()
		_ = s.Close()
	default:
		m.greet(ctx, s)
	}
}

// greetings waits for the servers' answers to the handshake, and returns those
// that came.
func (r *router) greetings(ctx context.Context) map[*member]*side {
	out := map[*member]*side{}
	for _, m := range r.members {
		s := m.until(ctx, func(s *side) bool { return s.hasGreeted() })
		m.mu.Lock()
		if s != nil && s.hasGreeted() && s.failed == nil {
			out[m] = s
		}
		m.mu.Unlock()
	}
	return out
}

func lowest(answered map[*member]*side) string {
	low := ""
	for _, s := range answered {
		if v := s.speaks(); v != "" && (low == "" || v < low) {
			low = v
		}
	}
	return low
}

// unanswered tells the client that no server could be greeted, and lets it try
// again. A single server's own error is the client's.
func (r *router) unanswered(f *routed) {
	why := error(nil)
	var theirs []byte
	for _, m := range r.members {
		why = errors.Join(why, m.absent())
		m.mu.Lock()
		if s := m.side; s != nil && s.hasGreeted() {
			theirs = s.hello.Error
			s.asked, s.ready, s.greeted, s.failed = false, true, make(chan struct{}), nil
		}
		m.mu.Unlock()
	}
	r.mu.Lock()
	r.hello = nil
	r.mu.Unlock()
	if r.solo() && theirs != nil {
		_ = r.answer(f, mcp.Message{ID: f.id, Error: theirs}.Line())
		return
	}
	r.refuse(f, errorcode.Refused, "no MCP server answered the handshake: "+inOne(why), "look at `holdfast status` and the log")
}

// introduce answers the client's handshake.
func (r *router) introduce(f *routed, version string) {
	var in []*side
	left := leftOut{}
	for _, m := range r.members {
		if s := m.live(); s != nil {
			in = append(in, s)
		} else {
			left[m.name] = m.absent().Error()
			r.log.Warn("an MCP server is not part of the handshake", "mcp_server", m.name, "why", left[m.name])
		}
	}
	var result []byte
	if r.solo() && len(in) == 1 {
		result = in[0].hello.Result
	} else {
		result = merged(in, version, left)
	}
	_ = r.answer(f, mcp.Respond(f.id, result))
	r.mu.Lock()
	r.greeted = true
	r.mu.Unlock()
	// Who came in just now is not part of the answer.
	for _, m := range r.members {
		if s := m.live(); s != nil && left[m.name] != "" {
			r.back(m, s)
		}
	}
}
