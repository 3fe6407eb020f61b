package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// How a broken stream of a session is opened again.
const (
	// maxResumes is how often in turn a request's stream is asked for
	// without a new event.
	maxResumes = 5
	minPause   = 50 * time.Millisecond
	firstPause = time.Second
	// calm is how long the session's own stream lives before its pauses
	// start anew.
	calm = time.Minute
)

// follow reads the stream that answers a request until the answer. A session's
// stream that breaks off after an event with an id is resumed there.
func (c *Conn) follow(f *flight, resp *http.Response) {
	last, tries := "", 0
	var retry time.Duration
	for {
		done, ev := c.stream(f.ctx, f, resp, last)
		if done || f.ctx.Err() != nil {
			return
		}
		if ev.lastID == "" || f.version != "" {
			c.fail(f, errorcode.Refused, maybe, "the MCP server's stream ended before the answer, and the request may have been carried out")
			return
		}
		if ev.lastID != last {
			last, tries = ev.lastID, 0
		}
		retry = cmp.Or(ev.retry, retry)
		if resp, tries = c.resume(f, last, retry, tries); resp == nil {
			return
		}
	}
}

// resume asks for a request's stream again. It returns nil, with the request
// answered or over, where that is no use.
func (c *Conn) resume(f *flight, last string, retry time.Duration, tries int) (*http.Response, int) {
	for ; tries < maxResumes; tries++ {
		if !sleep(f.ctx, pause(retry, tries)) {
			return nil, tries
		}
		resp, err := c.get(f.ctx, last)
		if err != nil {
			continue
		}
		if resp.StatusCode == http.StatusOK && mediaType(resp.Header) == "text/event-stream" {
			return resp, tries + 1
		}
		discard(resp)
		if c.lapsed(resp.StatusCode, "") {
			c.end(errSession)
			return nil, tries
		}
		if resp.StatusCode < 500 {
			c.fail(f, errorcode.Refused, maybe, fmt.Sprintf("the MCP server's stream broke off and was not resumed (HTTP %d), and the request may have been carried out", resp.StatusCode))
			return nil, tries
		}
	}
	c.fail(f, errorcode.Refused, maybe, "the MCP server's stream broke off and could not be resumed, and the request may have been carried out")
	return nil, tries
}

// pause is how long to wait before a try: what the server said, or a doubling
// second.
func pause(retry time.Duration, tries int) time.Duration {
	d := firstPause
	if retry > 0 {
		d = retry
	}
	return max(minPause, min(d<<min(tries, 10), maxRetry))
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// stream passes the messages of one response, and closes it. It says whether
// the answer to f was among them, and how far the stream came; an event that
// is no message and too long to be one ends the request.
func (c *Conn) stream(ctx context.Context, f *flight, resp *http.Response, last string) (done bool, ev *events) {
	defer resp.Body.Close()
	room := c.room(ctx)
	defer room.free()
	ev = newEvents(resp.Body, room.need)
	ev.lastID = last
	for {
		e, err := ev.next()
		if errors.Is(err, errLong) {
			c.Log.Warn("the MCP server's stream was closed", "why", err)
			if f != nil {
				c.fail(f, errorcode.Refused, maybe, fmt.Sprintf("the MCP server's answer is longer than %d bytes", mcp.MaxLine))
			}
			return true, ev
		}
		if err != nil {
			return false, ev
		}
		if len(e.data) > 0 && (e.name == "" || e.name == "message") {
			if done, _ = c.message(f, e.data); done {
				discard(resp)
				return true, ev
			}
		}
		room.free()
	}
}

// get opens a stream of the session, after the event last where it is set.
func (c *Conn) get(ctx context.Context, last string) (*http.Response, error) {
	h := http.Header{"Accept": {"text/event-stream"}}
	if last != "" {
		h[headerLastEvent] = []string{last}
	}
	return c.do(ctx, http.MethodGet, nil, h)
}

// listen opens the session's own stream, once, on which the server says what
// belongs to no request.
func (c *Conn) listen() {
	c.mu.Lock()
	again := c.listening || c.version == ""
	c.listening = true
	c.mu.Unlock()
	if again {
		return
	}
	if err := c.start(c.listenOn); err != nil {
		c.Log.Warn("the MCP server's own stream was not opened", "why", err)
	}
}

// listenOn keeps the session's own stream open, where the server has one. The
// session goes on without it.
func (c *Conn) listenOn() {
	last, tries := "", 0
	var retry time.Duration
	for first := true; ; first = false {
		if !first && !sleep(c.ctx, pause(retry, tries)) {
			return
		}
		resp, err := c.get(c.ctx, last)
		if err != nil {
			tries++
			continue
		}
		if !c.streams(resp) {
			return
		}
		since := time.Now()
		done, ev := c.stream(c.ctx, nil, resp, last)
		if done || c.ctx.Err() != nil {
			return
		}
		if tries++; time.Since(since) >= calm {
			tries = 0
		}
		last, retry = ev.lastID, cmp.Or(ev.retry, retry)
	}
}

// streams says whether the response to GET is the session's own stream, or may
// be another time. Everything else is closed.
func (c *Conn) streams(resp *http.Response) bool {
	if resp.StatusCode == http.StatusOK && mediaType(resp.Header) == "text/event-stream" {
		return true
	}
	discard(resp)
	switch {
	case c.lapsed(resp.StatusCode, ""):
		c.end(errSession)
	case resp.StatusCode != http.StatusMethodNotAllowed:
		c.Log.Warn("the MCP server has no stream of its own", "status", resp.StatusCode)
	}
	return false
}
