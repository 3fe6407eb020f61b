package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/mcp"
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
		_, _ = io.Copy(io.MultiWriter(conn, &lines{each: asked.request}), a.in)
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
		b.WriteString(`,"error":{"code":-32000,"message":"holdfast ended; whether the call took effect is recorded as unknown"}}` + "\n")
	}
	_, err := a.out.Write(b.Bytes())
	return err
}

// maxWaiting bounds how many requests are remembered: more are not answered
// when the daemon ends.
const maxWaiting = 1024

// waiting is the requests that the client has no answer to, oldest first.
type waiting struct {
	mu    sync.Mutex
	ids   []json.RawMessage // guarded by mu
	early []string          // guarded by mu: keys whose answer was seen before the request was
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
	if i := slices.Index(w.early, m.Key()); i >= 0 {
		w.early = slices.Delete(w.early, i, i+1)
	} else if len(w.ids) < maxWaiting {
		w.ids = append(w.ids, bytes.Clone(m.ID))
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
		w.early = append(w.early, key)
	}
}

// forget says whether anybody waited for that key. The caller holds mu.
func (w *waiting) forget(key string) bool {
	i := slices.IndexFunc(w.ids, func(id json.RawMessage) bool { return mcp.IDKey(id) == key })
	if i >= 0 {
		w.ids = slices.Delete(w.ids, i, i+1)
	}
	return i >= 0
}

// take returns what is left and forgets it.
func (w *waiting) take() []json.RawMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.ids
	w.ids = nil
	return left
}

// lines is told of every whole line of what is written to it. It holds one
// line of at most mcp.MaxLine bytes; a longer one is passed over. It never
// fails. One goroutine may write to it.
type lines struct {
	each func(line []byte)
	line []byte
	long bool // the line so far has been passed over
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
	return len(b), nil
}

// within says whether the last line has not ended.
func (l *lines) within() bool { return l.long || len(l.line) > 0 }
