package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/errorcode"
)

// relay copies standard input to the connection and the connection to
// standard output, until the connection ends. The end of the input is passed
// on, so that what is still to be answered is answered. Where the daemon ends
// first, the relay answers what the client still waits for.
func (a *app) relay(conn io.ReadWriteCloser, p daemon.Paths) error {
	defer conn.Close()
	// Two goroutines take turns here. On a second processor each turn would
	// first wake that one, which costs more than the turn.
	runtime.GOMAXPROCS(1)
	var asked waiting
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(io.MultiWriter(conn, &lines{each: asked.request, after: asked.caughtUp}), a.in)
		if c, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = c.CloseWrite()
		}
	}()
	stop := context.AfterFunc(a.ctx, func() { _ = conn.Close() })
	defer stop()
	// Both ways a line is looked at after it was passed on.
	answered := &lines{each: asked.response}
	_, err := io.Copy(io.MultiWriter(a.out, answered), conn)
	if a.ctx.Err() != nil {
		return nil
	}
	left := asked.take()
	if len(left) == 0 {
		select {
		case <-over:
			return nil
		case <-a.ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond): // the end of the input may just be under way
		}
	}
	why := "the MCP server or the daemon ended"
	if err != nil {
		why = "the connection to the daemon ended: " + err.Error()
	}
	return errors.Join(a.answerLeft(left, answered.within()), fail("look into "+p.Log, "%s", why))
}

// answerLeft answers each request with an error. within says that the last
// line of the daemon's was cut off, and must be ended first.
func (a *app) answerLeft(ids []json.RawMessage, within bool) error {
	var b bytes.Buffer
	if within {
		b.WriteByte('\n')
	}
	for _, id := range ids {
		b.WriteString(`{"jsonrpc":"2.0","id":`)
		b.Write(id)
		fmt.Fprintf(&b, `,"error":{"code":%d,"message":"holdfast ended; whether the call took effect is recorded as unknown"}}`+"\n",
			errorcode.Refused)
	}
	_, err := a.out.Write(b.Bytes())
	return err
}

// Bounds of what is remembered of requests: more of them, or longer ids, are not
// answered when the daemon ends. As many as a client can have under way fit.
const (
	maxWaiting = 16 << 10
	maxIDs     = 4 << 20 // bytes
)

// waiting is the requests that the client has no answer to.
type waiting struct {
	mu    sync.Mutex
	asked map[string]*request // guarded by mu: by key
	early map[string]int      // guarded by mu: how many answers were seen before their request was
	next  int                 // guarded by mu
	bytes int                 // guarded by mu: of the ids
}

// request is an id that is waited for, once or, where a client gives it twice,
// more often.
type request struct {
	id    json.RawMessage
	at    int
	times int
}

// request remembers the id of a line of the client's. Nobody waits any more for
// what it cancels.
func (w *waiting) request(line []byte) {
	m, err := mcp.Parse(line)
	if err != nil {
		return
	}
	var cancelled struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.Method == "notifications/cancelled" && json.Unmarshal(m.Params, &cancelled) == nil {
		w.forget(mcp.IDKey(cancelled.RequestID))
	}
	if !m.IsRequest() {
		return
	}
	key := m.Key()
	if w.early[key] > 0 {
		if w.early[key]--; w.early[key] == 0 {
			delete(w.early, key)
		}
		return
	}
	if r := w.asked[key]; r != nil {
		r.times++
	} else if len(w.asked) < maxWaiting && w.bytes+len(m.ID) <= maxIDs {
		if w.asked == nil {
			w.asked = map[string]*request{}
		}
		w.next++
		w.bytes += len(m.ID)
		w.asked[key] = &request{bytes.Clone(m.ID), w.next, 1}
	}
}

// response forgets the id of a line of the daemon's.
func (w *waiting) response(line []byte) {
	m, err := mcp.Parse(line)
	if err != nil || !m.IsResponse() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if key := m.Key(); !w.forget(key) && len(w.early) < maxWaiting {
		if w.early == nil {
			w.early = map[string]int{}
		}
		w.early[key]++
	}
}

// caughtUp says that everything that went to the daemon has been looked at: an
// answer that was seen early by then was to a request that is not remembered.
func (w *waiting) caughtUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.early)
}

// forget says whether anybody waited for that key. The caller holds mu.
func (w *waiting) forget(key string) bool {
	r := w.asked[key]
	if r == nil {
		return false
	}
	if r.times--; r.times == 0 {
		w.bytes -= len(r.id)
		delete(w.asked, key)
	}
	return true
}

// take returns what is left, oldest first, and forgets it.
func (w *waiting) take() []json.RawMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := slices.SortedFunc(maps.Values(w.asked), func(a, b *request) int { return a.at - b.at })
	w.asked, w.bytes = nil, 0
	var ids []json.RawMessage
	for _, r := range left {
		for range r.times {
			ids = append(ids, r.id)
		}
	}
	return ids
}

// lines is told of every whole line of what is written to it. It holds one
// line of at most mcp.MaxLine bytes; a longer one is passed over. It never
// fails. One goroutine may write to it.
type lines struct {
	each  func(line []byte)
	after func() // what was written has been looked at; may be nil
	line  []byte
	long  bool // the line so far has been passed over
}

// keepLine is how much room is kept from one line to the next, in bytes.
const keepLine = 64 << 10

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	for part := range bytes.Lines(b) {
		whole := part[len(part)-1] == '\n'
		if l.long = l.long || len(l.line)+len(part) > mcp.MaxLine+2; l.long {
			l.line = nil
		} else {
			l.line = append(l.line, part...)
		}
		if !whole {
			continue
		}
		if !l.long {
			l.each(l.line)
		}
		if l.line, l.long = l.line[:0], false; cap(l.line) > keepLine {
			l.line = nil
		}
	}
	if l.after != nil {
		l.after()
	}
	return len(b), nil
}

// within says whether the last line has not ended.
func (l *lines) within() bool { return l.long || len(l.line) > 0 }
