// Package code is an MCP server within Holdfast, whose one tool runs code in the
// sandbox. It stands behind the gateway like any other server, and each run is
// besides a crossing of exec/LANGUAGE (003 2.1).
package code

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// Tool is the name of the tool.
const Tool = "run_code"

// Request is what the tool is asked. What is not said has the sandbox's
// defaults; the sandbox checks what is.
type Request struct {
	Language string            `json:"language"`
	Code     string            `json:"code"`
	Files    map[string]string `json:"files"`
	Timeout  float64           `json:"timeout_seconds"`
	MemoryMB int64             `json:"memory_mb"`
	// Tier and Evidence are as the sandbox reads them; see sandbox.Evidence.
	Tier     posture.Tier     `json:"tier"`
	Evidence posture.Evidence `json:"evidence"`
}

// Answer is what came of it: Text for a model to read, Structured for programs.
type Answer struct {
	Text       string
	Structured any // an object as JSON, or nil
	Failed     bool
}

// Run runs code until its context ends.
type Run func(ctx context.Context, r Request) Answer

// Config is what a Conn needs. Both are required.
type Config struct {
	Run Run
	// Panicked is told of a panic, and its stack; see mcp.Guard.
	Panicked func(what, stack string)
	Version  string
}

// Conn is one life of the server, seen from the gateway. Read yields its lines,
// Write takes lines for it; Close ends it, and every run of it.
type Conn struct {
	cfg      Config
	in       *io.PipeReader
	toServer *io.PipeWriter
	out      *io.PipeReader
	toClient *io.PipeWriter
	ctx      context.Context
	cancel   context.CancelFunc
	done     chan struct{}

	mu    sync.Mutex
	calls map[string]context.CancelFunc // guarded by mu; by the request's Key
	write sync.Mutex
	busy  sync.WaitGroup
}

// maxCalls bounds the calls of one client that run or wait at once.
const maxCalls = 16

// Connect starts a server for one client. The caller closes it.
func Connect(cfg Config) *Conn {
	c := &Conn{cfg: cfg, done: make(chan struct{}), calls: map[string]context.CancelFunc{}}
	c.in, c.toServer = io.Pipe()
	c.out, c.toClient = io.Pipe()
	c.ctx, c.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(c.done)
		_ = mcp.Guard(cfg.Panicked, c.serve)
		c.cancel()
		c.busy.Wait()
		c.toClient.Close()
	}()
	return c
}

// Read yields the server's lines, and io.EOF once it has ended.
func (c *Conn) Read(b []byte) (int, error) { return c.out.Read(b) }

// Write takes lines for the server.
func (c *Conn) Write(b []byte) (int, error) { return c.toServer.Write(b) }

// Close ends the server and what it runs. A second time is nothing.
func (c *Conn) Close() error {
	c.cancel()
	c.toServer.Close()
	c.out.Close()
	return nil
}

// Contained says that what a call runs touches nothing and is not kept.
func (c *Conn) Contained() {}

// Exit waits for the server's end.
func (c *Conn) Exit(ctx context.Context) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serve reads until nobody writes any more.
func (c *Conn) serve() error {
	r := mcp.NewReader(c.in)
	for {
		m, err := r.Next()
		var fault *mcp.Fault
		switch {
		case err == nil:
			c.take(m)
		case !errors.As(err, &fault): // the gateway writes no faults, but skips none
			return nil
		}
	}
}

func (c *Conn) take(m mcp.Message) {
	switch {
	case m.Method == "notifications/cancelled":
		c.mu.Lock()
		stop := c.calls[mcp.IDKey(mcp.Get(m.Params, "requestId"))]
		c.mu.Unlock()
		if stop != nil {
			stop()
		}
	case !m.IsRequest():
	case m.Method == "tools/call":
		c.begin(m)
	default:
		c.answer(m, c.reply(m))
	}
}

// begin runs a call beside the others.
func (c *Conn) begin(m mcp.Message) {
	id, params := slices.Clone(m.ID), slices.Clone(m.Params)
	ctx, stop := context.WithCancel(c.ctx)
	key := mcp.IDKey(id)
	c.mu.Lock()
	full := len(c.calls) >= maxCalls || c.calls[key] != nil
	if !full {
		c.calls[key] = stop
	}
	c.mu.Unlock()
	m = mcp.Message{ID: id}
	if full {
		stop()
		c.answer(m, failure(mcp.CodeInvalidRequest, "too many calls run at once"))
		return
	}
	c.busy.Go(func() {
		defer stop()
		reply := failure(mcp.CodeInternal, "the call failed")
		_ = mcp.Guard(c.cfg.Panicked, func() error { reply = c.call(ctx, params); return nil })
		c.mu.Lock()
		delete(c.calls, key)
		c.mu.Unlock()
		c.answer(m, reply)
	})
}

func (c *Conn) answer(m mcp.Message, reply map[string]any) {
	reply["jsonrpc"], reply["id"] = "2.0", json.RawMessage(m.ID)
	line, err := json.Marshal(reply)
	if err != nil {
		return // an ID is JSON, and the rest is made here
	}
	c.write.Lock()
	defer c.write.Unlock()
	_, _ = c.toClient.Write(append(line, '\n')) // who does not read any more has gone
}
