package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// flight is one request under way.
type flight struct {
	mcp.Message
	key string
	// version is what a request without a handshake carries, else "".
	version string
	ctx     context.Context
	cancel  context.CancelCauseFunc
	// wrote is closed when the server has the request, or never will;
	// posted is set, under the connection's lock, before any of it leaves.
	wrote  chan struct{}
	once   sync.Once
	posted bool
	// reached is set before the first byte goes to the server.
	reached atomic.Bool
}

func (f *flight) written() { f.once.Do(func() { close(f.wrote) }) }

// errCanceled is why a flight ends whose request was cancelled.
var errCanceled = errors.New("the request was cancelled")

// request starts the POST of one request. One too many is refused with an
// answer; an id that is in flight is the gateway's mistake.
func (c *Conn) request(m mcp.Message) error {
	f := &flight{Message: m, key: m.Key(), version: stateless(m), wrote: make(chan struct{})}
	f.ctx, f.cancel = context.WithCancelCause(c.ctx)
	c.mu.Lock()
	if c.flights[f.key] != nil {
		c.mu.Unlock()
		f.cancel(nil)
		return fmt.Errorf("the id %.40s of a request to the MCP server is in flight", m.ID)
	}
	full := len(c.flights) >= c.MaxPosts
	gate := c.gate
	var opened chan struct{}
	delete(c.own, f.key)
	if !full {
		c.flights[f.key] = f
		if f.version != "" {
			c.modern, gate = f.version, nil
		}
		if m.Method == "initialize" {
			opened = make(chan struct{})
			c.gate = opened
		}
	}
	c.mu.Unlock()
	err := c.start(func() {
		defer f.cancel(nil)
		if full {
			c.fail(f, errorcode.Refused, never, fmt.Sprintf("busy: %d requests of this MCP server are in flight", c.MaxPosts))
			return
		}
		defer c.landed(f, opened)
		if pass(f.ctx, gate) {
			c.ask(f)
		}
	})
	if err != nil {
		c.landed(f, opened)
		f.cancel(nil)
	}
	return err
}

// pass waits for a gate, and says whether it opened before ctx ended. No gate
// is an open one.
func pass(ctx context.Context, gate <-chan struct{}) bool {
	if gate == nil {
		return ctx.Err() == nil
	}
	select {
	case <-gate:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// forget makes a flight's id free again.
func (c *Conn) forget(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flights[f.key] == f {
		delete(c.flights, f.key)
	}
}

// landed ends a flight. opened is the gate that waits for it, if any.
func (c *Conn) landed(f *flight, opened chan struct{}) {
	c.forget(f)
	f.written()
	if opened != nil {
		close(opened)
	}
}

// ask posts a request and carries its answer.
func (c *Conn) ask(f *flight) {
	h, err := c.headers(f.Message, f.version)
	if err != nil {
		c.fail(f, mcp.CodeHeaders, never, err.Error())
		return
	}
	c.mu.Lock()
	f.posted = true
	c.mu.Unlock()
	ctx := httptrace.WithClientTrace(f.ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { f.reached.Store(true) },
		WroteRequest: func(httptrace.WroteRequestInfo) { f.written() },
	})
	resp, err := c.do(ctx, http.MethodPost, bytes.NewReader(f.Raw), h)
	if err != nil {
		how, why := c.lost(f, err)
		c.fail(f, errorcode.Refused, how, why)
		return
	}
	// A body that nobody reads on may hang: it is closed in any case.
	defer resp.Body.Close()
	c.answered(f, resp)
}

// lost says why a POST has no response, and whether it may have been heard.
func (c *Conn) lost(f *flight, err error) (heard, string) {
	if f.reached.Load() {
		return maybe, "the connection to the MCP server broke before it answered, and the request may have been carried out: " + c.said(err.Error())
	}
	return never, "the MCP server could not be reached: " + c.said(err.Error())
}

// answered takes the response to a request.
func (c *Conn) answered(f *flight, resp *http.Response) {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		c.refused(f, resp)
		return
	}
	if f.Method == "initialize" && f.version == "" {
		c.greeted(resp.Header)
	}
	switch kind := mediaType(resp.Header); kind {
	case "application/json":
		c.whole(f, resp.Body)
	case "text/event-stream":
		c.follow(f, resp)
	default:
		c.fail(f, errorcode.Refused, maybe, fmt.Sprintf("the MCP server answered HTTP %d without a JSON-RPC answer", resp.StatusCode))
	}
}

// greeted keeps the session that a handshake's response names.
func (c *Conn) greeted(h http.Header) {
	id := h.Get(mcp.HeaderSession)
	if id != "" && !isSession(id) {
		c.Log.Warn("the MCP server's session id is not one, and is not used")
		id = ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.version = id, ""
}

// whole takes an answer that is the response's body.
func (c *Conn) whole(f *flight, body io.Reader) {
	room := c.room(f.ctx)
	defer room.free()
	raw, err := readBody(body, room.need)
	switch {
	case errors.Is(err, errLong):
		c.fail(f, errorcode.Refused, maybe, fmt.Sprintf("the MCP server's answer is longer than %d bytes", mcp.MaxLine))
	case err != nil:
		c.fail(f, errorcode.Refused, maybe, "the MCP server's answer broke off, and the request may have been carried out: "+c.said(err.Error()))
	default:
		if done, why := c.message(f, raw); !done {
			c.fail(f, errorcode.Refused, maybe, "the MCP server's response does not answer its request: "+why)
		}
	}
}

// message takes one message of the response to a request, f nil for a stream
// of the session. It says whether that was the answer, and else what it was.
func (c *Conn) message(f *flight, raw []byte) (done bool, why string) {
	raw = trimLine(raw)
	m, err := mcp.Parse(raw)
	var fault *mcp.Fault
	switch {
	case errors.As(err, &fault):
		return c.faulty(f, raw, fault), c.said(fault.Why)
	case !m.IsResponse():
		c.told(f, m)
		return false, "it is no answer"
	case f == nil || m.Key() != f.key:
		c.Log.Warn("the MCP server answered under an id that this stream does not have", "id", c.clip(string(m.ID)))
		return false, "it has another id"
	}
	if m.Result != nil {
		c.note(f, m.Result)
	}
	c.answer(f, m)
	return true, ""
}

// answer gives the reader the server's answer.
func (c *Conn) answer(f *flight, m mcp.Message) {
	c.forget(f)
	c.emit(f.ctx, c.clean(m))
}

// faulty takes what is no message. An answer that is refused ends its request:
// one without an id, which servers give to what they cannot read, included.
func (c *Conn) faulty(f *flight, raw []byte, fault *mcp.Fault) bool {
	c.Log.Warn("the MCP server sent a message that was refused", "why", c.said(fault.Why))
	if f == nil {
		return false
	}
	if e := bareError(raw); e != nil {
		c.answer(f, mcp.Message{ID: f.ID, Error: e})
		return true
	}
	if mcp.IDKey(fault.ID) == f.key {
		c.fail(f, errorcode.Refused, maybe, "the MCP server's answer was refused: "+c.said(fault.Why))
		return true
	}
	return false
}

// told passes what a server says beside its answers. Since 2026-07-28 it asks
// nothing this way, and nobody could answer.
func (c *Conn) told(f *flight, m mcp.Message) {
	if m.IsRequest() && f != nil && f.version != "" {
		c.Log.Warn("a request of the MCP server was dropped: this protocol version has none", "method", c.clip(m.Method))
		return
	}
	ctx := c.ctx
	if f != nil {
		ctx = f.ctx
	}
	c.emit(ctx, c.clean(m))
}

// note keeps what the connection itself needs of an answer.
func (c *Conn) note(f *flight, result []byte) {
	switch f.Method {
	case "tools/list":
		c.learn(f.Params, result)
	case "initialize":
		if v, ok := mcp.Text(mcp.Get(result, "protocolVersion")); ok && isVersion(v) && f.version == "" {
			c.mu.Lock()
			c.version = v
			c.mu.Unlock()
		}
	}
}

// refused takes an error status: its JSON-RPC error, or an error of our own
// that names the status. A session that the server does not know is over.
func (c *Conn) refused(f *flight, resp *http.Response) {
	e, own := c.refusal(resp, f.key)
	if c.lapsed(resp.StatusCode, f.version) && !own {
		c.end(errSession)
		return
	}
	if e != nil {
		c.answer(f, mcp.Message{ID: f.ID, Error: e})
		return
	}
	c.fail(f, errorcode.Refused, maybe, "the MCP server "+statusText(resp.StatusCode))
}

// errSession is how a connection ends whose session is gone.
var errSession = errors.New("the MCP server no longer knows the session (HTTP 404)")

// lapsed says whether a status means that the session is gone.
func (c *Conn) lapsed(status int, version string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return status == http.StatusNotFound && c.session != "" && version == ""
}

// refusal reads the JSON-RPC error of an error status, nil where there is none
// for this request; own says that it names the request.
func (c *Conn) refusal(resp *http.Response, key string) (e []byte, own bool) {
	if mediaType(resp.Header) != "application/json" {
		return nil, false
	}
	raw, err := readBody(resp.Body, func(n int) error {
		if n > smallMessage {
			return errLong
		}
		return nil
	})
	if err != nil {
		return nil, false
	}
	raw = trimLine(raw)
	if m, err := mcp.Parse(raw); err == nil {
		if m.Error == nil || m.Key() != key {
			return nil, false
		}
		return m.Error, true
	}
	return bareError(raw), false
}
