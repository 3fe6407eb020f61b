package streamable

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// maxBatch is how many messages one request of 2025-03-26 may hold.
const maxBatch = 64

// post takes the messages of one POST.
func (g *guest) post() error {
	if err := typed(g.r); err != nil {
		return err
	}
	version, twice := single(g.r, mcp.HeaderVersion)
	l := &loan{h: g.h, group: g.load}
	defer l.back()
	body, err := g.body(l)
	if err != nil {
		return err
	}
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' && twice == nil {
		return g.batch(version, body, l)
	}
	m, err := parseBody(body)
	if err != nil {
		return err
	}
	said := saidVersion(m)
	switch {
	case twice != nil:
		return aboutID(twice, m.ID)
	case version == mcp.StatelessSince:
		return aboutID(g.stateless(m, said, l), m.ID)
	case said != "" && said != version && (version != "" || said >= mcp.StatelessSince):
		return aboutID(bad(mcp.CodeHeaders, fmt.Sprintf("the header %s does not say %.40q, as the body does",
			mcp.HeaderVersion, said), ""), m.ID)
	case version != "" && !hasSession(version):
		return aboutID(unspoken(version), m.ID)
	}
	return aboutID(g.stateful(version, []mcp.Message{m}, l), m.ID)
}

// parseBody reads one message. What the server will get must fit into one
// line, so that line ends, which are only white space here, become blanks.
func parseBody(body []byte) (mcp.Message, error) {
	m, err := mcp.Parse(body)
	var f *mcp.Fault
	if errors.As(err, &f) {
		return m, aboutID(bad(f.Code, f.Why, f.Hint), f.ID)
	}
	mcp.ReplaceLineEnds(m.Raw)
	return m, err
}

// saidVersion is the protocol version that a message itself names, or "".
func saidVersion(m mcp.Message) string {
	if m.Method == "" || m.Params == nil {
		return ""
	}
	v, _ := mcp.Text(mcp.Get(m.Params, "_meta", mcp.MetaProtocol))
	return v
}

// batch takes an array of messages, as 2025-03-26 has them.
func (g *guest) batch(version string, body []byte, l *loan) error {
	if version != "" && version >= batchBefore {
		return bad(mcp.CodeInvalidRequest, "a batch is not accepted", "send one message with each request (batches left MCP with 2025-06-18)")
	}
	if version != "" && !hasSession(version) {
		return unspoken(version)
	}
	// The whole is checked as one message would be, before its parts are.
	if _, err := mcp.Parse(append(append([]byte(`{"jsonrpc":"2.0","id":0,"result":`), body...), '}')); err != nil {
		return bad(mcp.CodeParse, err.Error(), "")
	}
	parts, err := mcp.Elements(body)
	if err != nil || len(parts) == 0 || len(parts) > maxBatch {
		return bad(mcp.CodeInvalidRequest, fmt.Sprintf("a batch has not 1 to %d messages", maxBatch), "")
	}
	ms := make([]mcp.Message, len(parts))
	for i, p := range parts {
		if ms[i], err = parseBody(p); err != nil {
			return err
		}
		if ms[i].Method == "initialize" {
			return aboutID(bad(mcp.CodeInvalidRequest, "initialize stands in a batch", "send it alone"), ms[i].ID)
		}
	}
	return g.stateful(version, ms, l)
}

// stateless takes a message of 2026-07-28, which knows no session.
func (g *guest) stateless(m mcp.Message, said string, l *loan) error {
	if m.IsResponse() {
		return bad(mcp.CodeInvalidRequest, "an answer is not taken: no server asks by itself since 2026-07-28", "")
	}
	header, err := statelessHeaders(g.r, m)
	if err != nil {
		return err
	}
	if m.IsNotification() {
		// Whoever takes a request back closes its stream, and nothing else
		// is told to a server of many clients.
		g.w.WriteHeader(http.StatusAccepted)
		return nil
	}
	if err := statelessMeta(m, said); err != nil {
		return err
	}
	m.Header = header
	x, s, err := g.askShared(m)
	if err != nil {
		return err
	}
	defer g.h.release(s)
	l.back()
	send := g.sender()
	send.status = demanded
	g.deliver(s, x, send, true)
	return nil
}

// askShared gives a request to the identity's core. Where that has just ended,
// nothing has been asked, and the next one is tried.
func (g *guest) askShared(m mcp.Message) (*exchange, *seat, error) {
	for try := 0; ; try++ {
		s, err := g.share()
		if err != nil {
			return nil, nil, err
		}
		x := newExchange(s.client.meter)
		ms := []mcp.Message{m}
		if err = s.client.ask(x, ms); err == nil {
			if err = s.client.push(ms[0]); err == nil {
				return x, s, nil
			}
		}
		x.discard()
		g.h.release(s)
		if try > 0 || !errors.Is(err, errEnded) {
			return nil, nil, s.gone(err)
		}
		select {
		case <-s.done: // it is found no more
		case <-g.r.Context().Done():
			return nil, nil, s.gone(err)
		}
	}
}

// deliver sends an exchange, and says whether it came to its end. Where its
// reader goes before, what it waits for is taken back, if cancel says so.
func (g *guest) deliver(s *seat, x *exchange, send *sender, cancel bool) (whole bool) {
	defer x.discard()
	whole = send.send(x, g.r.Context().Done())
	left := s.client.leave(x)
	if whole || !cancel {
		return whole
	}
	for _, id := range left {
		var p mcp.Builder
		p.Add("requestId", id)
		if s.client.push(mcp.Message{Method: "notifications/cancelled", Params: p.Bytes()}) != nil {
			break
		}
	}
	return false
}

// stateful takes the messages of a session.
func (g *guest) stateful(version string, ms []mcp.Message, l *loan) error {
	id, err := single(g.r, mcp.HeaderSession)
	if err != nil {
		return err
	}
	first := ms[0]
	if id == "" {
		if first.Method != "initialize" || !first.IsRequest() {
			return bad(mcp.CodeInvalidRequest, "the header "+mcp.HeaderSession+" is missing",
				"begin a session with initialize")
		}
		return g.initialize(first, l)
	}
	s, err := g.find(id)
	if err != nil {
		return err
	}
	defer g.h.release(s)
	if first.Method == "initialize" {
		return bad(mcp.CodeInvalidRequest, "the session is initialized already",
			"leave the header "+mcp.HeaderSession+" out to begin another")
	}
	if agreed := s.version.Load(); len(ms) > 1 && agreed != nil && *agreed >= batchBefore {
		return bad(mcp.CodeInvalidRequest, "a batch is not accepted", "send one message with each request (batches left MCP with 2025-06-18)")
	}
	return s.gone(g.converse(s, ms, l))
}

// converse hands a session's messages to its core and sends the answers.
func (g *guest) converse(s *seat, ms []mcp.Message, l *loan) error {
	x := newExchange(s.client.meter)
	if err := s.client.ask(x, ms); err != nil {
		return err
	}
	waits := false
	for _, m := range ms {
		waits = waits || m.IsRequest()
		if m.Method == "notifications/cancelled" {
			if m = s.client.cancelled(m); m.Method == "" {
				continue
			}
		}
		if err := s.client.push(m); err != nil {
			s.client.leave(x)
			x.discard()
			return err
		}
	}
	l.back()
	if !waits {
		g.w.WriteHeader(http.StatusAccepted)
		return nil
	}
	send := g.sender()
	send.retry = true
	// In a session a lost connection takes nothing back.
	g.deliver(s, x, send, false)
	return nil
}

// cancelled puts our id into a cancellation; the zero message where what it
// takes back is not in flight.
func (c *httpClient) cancelled(m mcp.Message) mcp.Message {
	own := c.ownID(mcp.Get(m.Params, "requestId"))
	if own == nil {
		return mcp.Message{}
	}
	p, err := mcp.Set(m.Params, own, "requestId")
	if err != nil {
		return mcp.Message{}
	}
	m.Params = p
	return m
}

// initialize begins a session. It is the client's from the moment in which its
// id is told, which is with the answer; where that is an error there is none.
func (g *guest) initialize(m mcp.Message, l *loan) error {
	s, err := g.create()
	if err != nil {
		return err
	}
	defer g.h.release(s)
	settled, agreed := false, false
	defer func() {
		if !settled {
			g.h.remove(s)
			s.client.Close()
		}
	}()
	x := newExchange(s.client.meter)
	ms := []mcp.Message{m}
	if err := s.client.ask(x, ms); err != nil {
		return s.gone(err)
	}
	if err := s.client.push(ms[0]); err != nil {
		x.discard()
		return s.gone(err)
	}
	l.back()
	send := g.sender()
	send.head = func(first event, header http.Header) {
		if !first.final || mcp.Get(first.line, "result") != nil {
			header.Set(mcp.HeaderSession, s.id)
		}
	}
	send.told = func(e event) {
		if v, ok := mcp.Text(mcp.Get(e.line, "result", "protocolVersion")); ok && e.final {
			s.version.Store(&v)
			agreed = true
		}
	}
	settled = g.deliver(s, x, send, false) && agreed
	return nil
}

// listen opens the stream for what a session's server says by itself.
func (g *guest) listen() error {
	s, err := g.seated("POST")
	if err != nil {
		return err
	}
	defer g.h.release(s)
	if !accepts(g.r, "text/event-stream") {
		return &httpError{status: http.StatusNotAcceptable, why: "Accept does not name text/event-stream"}
	}
	if g.r.Header.Get("Last-Event-Id") != "" {
		return bad(mcp.CodeInvalidRequest, "streams are not resumed here", "leave Last-Event-ID out")
	}
	x := newExchange(s.client.meter)
	if err := s.client.hear(x); err != nil {
		return s.gone(err)
	}
	send := g.sender()
	send.retry = true
	if send.alive() != nil {
		s.client.leave(x)
		x.discard()
		return nil
	}
	g.deliver(s, x, send, false)
	return nil
}

// leave ends a session.
func (g *guest) leave() error {
	s, err := g.seated("POST")
	if err != nil {
		return err
	}
	defer g.h.release(s)
	g.h.remove(s)
	s.client.Close()
	g.w.WriteHeader(http.StatusNoContent)
	return nil
}

// seated returns the session of a request that is no POST. Since 2026-07-28
// there is none.
func (g *guest) seated(instead string) (*seat, error) {
	version, err := single(g.r, mcp.HeaderVersion)
	if err != nil {
		return nil, err
	}
	id, err := single(g.r, mcp.HeaderSession)
	switch {
	case err != nil:
		return nil, err
	case version == mcp.StatelessSince:
		return nil, g.noMethod(instead)
	case version != "" && !hasSession(version):
		return nil, unspoken(version)
	case id == "":
		return nil, bad(mcp.CodeInvalidRequest, "the header "+mcp.HeaderSession+" is missing",
			"begin a session with initialize")
	}
	return g.find(id)
}

// noMethod answers an HTTP method that is not served.
func (g *guest) noMethod(allow string) error {
	g.w.Header().Set("Allow", allow)
	return &httpError{status: http.StatusMethodNotAllowed, why: fmt.Sprintf("the HTTP method %.20q is not served", g.r.Method)}
}
