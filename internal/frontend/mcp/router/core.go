package router

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// ask sends a core a request of ours for one of the client's, nil for none, and
// waits. What is not waited for any more is cancelled there.
func (r *router) ask(ctx context.Context, s *side, f *routed, m mcp.Message) (mcp.Message, error) {
	return r.wait(ctx, r.expect(s, f, make(chan mcp.Message, 1)), m)
}

// wait sends what has its id, and waits for the answer.
func (r *router) wait(ctx context.Context, p *pending, m mcp.Message) (mcp.Message, error) {
	defer r.forget(p)
	s := p.side
	m.ID = p.id
	if err := s.send(ctx, m); err != nil {
		return mcp.Message{}, err
	}
	select {
	case a := <-p.got:
		return a, nil
	case <-s.gone:
	case <-ctx.Done():
	}
	select {
	case a := <-p.got: // the last words of a core that ended
		return a, nil
	default:
	}
	if ctx.Err() != nil {
		s.cancel(p.id)
		return mcp.Message{}, context.Cause(ctx)
	}
	return mcp.Message{}, s.m.absent()
}

// expect gives a request of ours its id.
func (r *router) expect(s *side, f *routed, got chan mcp.Message) *pending {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &pending{side: s, id: r.id(), f: f, got: got}
	r.pending[mcp.IDKey(p.id)] = p
	return p
}

func (r *router) forget(p *pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, mcp.IDKey(p.id))
}

// direct sends a request of the client to one server, whose answer is the
// client's. Where the server is just being started again, that is waited for.
func (r *router) direct(f *routed, m *member, msg mcp.Message) {
	if s := m.live(); s != nil {
		r.forward(f, s, msg)
		return
	}
	r.spawn(func() {
		wait, cancel := context.WithTimeout(f.ctx, r.pace.ready)
		defer cancel()
		s, err := m.await(wait)
		if err != nil {
			r.refuse(f, errorcode.Refused, err.Error(), "call again in a moment, or look at `holdfast status`")
			return
		}
		r.forward(f, s, msg)
	})
}

func (r *router) forward(f *routed, s *side, m mcp.Message) {
	p := r.expect(s, f, nil)
	m.ID = p.id
	err := s.send(f.ctx, m)
	if err == nil {
		return
	}
	r.forget(p)
	if errors.Is(err, errAway) {
		err = s.m.absent()
	}
	r.refuse(f, errorcode.Refused, err.Error(), "call again in a moment")
}

// lost answers what waits for a life that has ended.
func (r *router) lost(s *side, why error) {
	r.mu.Lock()
	var left []*pending
	for key, p := range r.pending {
		if p.side == s && p.got == nil {
			delete(r.pending, key)
			left = append(left, p)
		}
	}
	for key, q := range r.questions {
		if q.side == s {
			delete(r.questions, key)
		}
	}
	r.mu.Unlock()
	for _, p := range left {
		r.refuse(p.f, errorcode.Refused, why.Error(), "call again in a moment")
	}
}

// fromCore takes a line that a core has for the client.
func (r *router) fromCore(s *side, to string, line []byte) error {
	m, err := mcp.Parse(line)
	switch {
	case err != nil:
		r.log.Error("a core wrote what is no message", "mcp_server", s.m.name, "err", err)
		return nil
	case m.IsResponse():
		return r.responded(s, m)
	case m.IsRequest():
		return r.questioned(s, to, m)
	}
	return r.informed(s, to, m)
}

// responded hands on the answer to a request of ours.
func (r *router) responded(s *side, m mcp.Message) error {
	key := m.Key()
	r.mu.Lock()
	p := r.pending[key]
	if p != nil && p.side == s {
		delete(r.pending, key)
	} else {
		p = nil
	}
	modern := r.hello == nil && m.Error == nil
	r.mu.Unlock()
	if modern {
		s.m.mu.Lock()
		s.modern = true
		s.m.mu.Unlock()
	}
	switch {
	case p == nil:
		return nil // cancelled meanwhile
	case p.got != nil:
		p.got <- m
		return nil
	}
	m.ID = p.f.id
	return r.answer(p.f, m.Line())
}

// theirs returns the client's request that one of ours belongs to, or nil.
func (r *router) theirs(s *side, key string) (*routed, *listening) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pending[key]; p != nil && p.side == s {
		return p.f, p.listen
	}
	return nil, nil
}

// questioned takes a question of a server's to the client, which gets it under
// an id of ours: two servers may use the same.
func (r *router) questioned(s *side, to string, m mcp.Message) error {
	r.mu.Lock()
	if len(r.questions) >= maxQuestions {
		r.mu.Unlock()
		r.odd("too many questions of MCP servers wait for the client", "mcp_server", s.m.name)
		busy, _ := mcp.Parse(mcp.Failure(m.ID, errorcode.Refused, "busy: too many questions wait for the client", ""))
		s.tell(busy)
		return nil
	}
	q := question{side: s, id: m.ID}
	m.ID = r.id()
	r.questions[mcp.IDKey(m.ID)] = q
	r.mu.Unlock()
	key := ""
	if f, _ := r.theirs(s, to); f != nil {
		key = f.key
	}
	return r.write(key, m.Line())
}

// informed takes a notification of a server.
func (r *router) informed(s *side, to string, m mcp.Message) error {
	key := ""
	if f, _ := r.theirs(s, to); f != nil {
		key = f.key
	}
	switch m.Method {
	case "notifications/cancelled":
		id := r.unasked(s, mcp.Get(m.Params, "requestId"))
		if id == nil {
			return nil
		}
		params, err := mcp.Set(m.Params, id, "requestId")
		if err != nil {
			return nil
		}
		m.Params = params
		return r.write(key, m.Line())
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		if mcp.Get(m.Params, "_meta", mcp.MetaSubscription) == nil {
			return r.listChanged(m.Method)
		}
	}
	sub := mcp.Get(m.Params, "_meta", mcp.MetaSubscription)
	if sub == nil {
		return r.write(key, m.Line())
	}
	f, l := r.theirs(s, mcp.IDKey(sub))
	switch {
	case f == nil:
		r.odd("a notification of an MCP server belongs to no request", "mcp_server", s.m.name, "method", m.Method)
		return nil
	case l != nil && m.Method == "notifications/subscriptions/acknowledged":
		l.acknowledged(s, mcp.Get(m.Params, "notifications"))
		return nil
	}
	params, err := mcp.Set(m.Params, f.id, "_meta", mcp.MetaSubscription)
	if err != nil {
		return nil
	}
	m.Params = params
	return r.write(f.key, m.Line())
}

// unasked forgets a question that its server takes back, and returns the id
// under which the client knows it, nil for none.
func (r *router) unasked(s *side, id []byte) []byte {
	key := mcp.IDKey(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	for ours, q := range r.questions {
		if q.side == s && mcp.IDKey(q.id) == key {
			delete(r.questions, ours)
			return []byte(ours[1:])
		}
	}
	return nil
}

// listChanged tells the client of a list that changed, unless it has been told
// and has not looked since.
func (r *router) listChanged(method string) error {
	r.mu.Lock()
	was := r.told[method]
	r.told[method] = true
	r.mu.Unlock()
	if was {
		return nil
	}
	return r.write("", mcp.Message{Method: method}.Line())
}

// looked says that the client asks for a list.
func (r *router) looked(method string) {
	kind, _, _ := mcp.ListShape(method)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.told, "notifications/"+kind+"/list_changed")
}
