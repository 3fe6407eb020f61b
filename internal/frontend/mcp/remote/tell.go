package remote

import (
	"bytes"
	"context"
	"net/http"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// cancelled ends a request. Since 2026-07-28 closing its response says so;
// before, a notification does, once the request is with the server, and the
// response is closed after it.
func (c *Conn) cancelled(m mcp.Message) error {
	key := mcp.IDKey(mcp.Get(m.Params, "requestId"))
	c.mu.Lock()
	f := c.flights[key]
	quiet := f != nil && (f.version != "" || !f.posted)
	if quiet {
		// Its id may be used again, and nothing leaves under it.
		f.cancel(errCanceled)
	}
	c.mu.Unlock()
	if f == nil || quiet {
		return nil
	}
	return c.start(func() {
		defer f.cancel(errCanceled)
		ctx, cancel := context.WithTimeout(c.ctx, tellTimeout)
		defer cancel()
		if pass(ctx, f.wrote) && f.ctx.Err() == nil {
			c.post(ctx, m)
		}
	})
}

// tell starts the POST of what wants no answer. Lines written later, except
// cancellations, leave after the server has taken it.
func (c *Conn) tell(m mcp.Message) error {
	taken := make(chan struct{})
	c.mu.Lock()
	before := c.gate
	c.gate = taken
	modern := c.version == "" && c.modern != ""
	c.mu.Unlock()
	if modern && m.IsResponse() {
		close(taken)
		c.Log.Warn("an answer to the MCP server was dropped: this protocol version has none")
		return nil
	}
	err := c.start(func() {
		defer close(taken)
		if pass(c.ctx, before) {
			c.tellNow(m)
		}
	})
	if err != nil {
		close(taken)
	}
	return err
}

func (c *Conn) tellNow(m mcp.Message) {
	ctx, cancel := context.WithTimeout(c.ctx, tellTimeout)
	defer cancel()
	if c.post(ctx, m) && m.Method == "notifications/initialized" {
		c.listen()
	}
}

// post sends what wants no answer, and says whether the server took it.
func (c *Conn) post(ctx context.Context, m mcp.Message) bool {
	c.mu.Lock()
	version := ""
	if c.version == "" {
		version = c.modern
	}
	c.mu.Unlock()
	h, err := c.headers(m, version)
	if err != nil {
		c.Log.Warn("a message for the MCP server was dropped", "method", m.Method, "why", err)
		return false
	}
	resp, err := c.do(ctx, http.MethodPost, bytes.NewReader(m.Raw), h)
	if err != nil {
		c.Log.Warn("a message did not reach the MCP server", "method", m.Method, "why", c.said(err.Error()))
		return false
	}
	defer discard(resp)
	if c.lapsed(resp.StatusCode, version) {
		c.end(errSession)
		return false
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		c.Log.Warn("the MCP server refused a message", "method", m.Method, "status", resp.StatusCode)
		return false
	}
	return true
}
