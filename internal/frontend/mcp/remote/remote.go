// Package remote reaches an MCP server by streamable HTTP and presents it as a
// connection of lines. It is a hand: it carries what the gateway has judged,
// and judges nothing.
//
// Each line that is written is one POST, its headers made from its body; each
// answer, and each message of the server's event streams, is a line to read.
// Both shapes of the transport are spoken: since 2026-07-28 a request carries
// its protocol version itself, and closing its response cancels it; before,
// there is a handshake, often a session, and a stream that GET opens.
//
// The server is hostile here. Every answer belongs to one request and is
// passed once, under its id; whatever is longer, deeper or more than the
// bounds below ends that request with an error that says so. No redirect is
// followed, no cookie kept, no proxy of the environment used unasked, and
// nothing but TLS spoken to anywhere but this machine. A request is sent once:
// where its answer is lost, the error says that it may have been carried out.
package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// Bounds of one connection. Those of a line are mcp's.
const (
	// DefaultMaxPosts is how many POSTs run at once.
	DefaultMaxPosts = 256
	// maxWork times MaxPosts is how many lines may be under way, refused
	// ones included, before Write fails.
	maxWork = 4
	// maxBig is how many messages above smallMessage are held at once; the
	// others wait for their turn.
	maxBig = 4
	// smallMessage is what every stream may hold, in bytes.
	smallMessage = 256 << 10
	// tellTimeout bounds the POST of a line that wants no answer.
	tellTimeout = 30 * time.Second
	// closeTimeout bounds the DELETE of a session.
	closeTimeout = 2 * time.Second
)

// Config says which server is meant and how it is reached. URL must be set.
type Config struct {
	// Name is the server's name in the log.
	Name string
	// URL is the server's MCP endpoint: https, or http on a loopback
	// address. It holds no user and no password.
	URL string
	// Header is sent with every request, credentials among it. Names that
	// the transport sets itself are refused. The values appear in no log
	// and no error, and are taken out of what the server sends back.
	Header map[string]holdfast.Secret
	// Plaintext allows http to an address that is not loopback. Whoever is
	// on the way then reads and changes everything: a weakening, for the
	// configuration's list of them.
	Plaintext bool
	// EnvironmentProxy uses the proxy that the environment names.
	EnvironmentProxy bool
	// Client replaces the HTTP client, for a caller with roots of its own.
	// Its transport is used; redirects stay refused, cookies and its
	// timeout are not used. The caller owns it.
	Client *http.Client
	// MaxPosts replaces DefaultMaxPosts where it is positive.
	MaxPosts int
	// Log gets what the server did wrong; nil discards it.
	Log *slog.Logger
	// Mask returns a text of the server's errors without what must not be
	// seen. It may change and keep what it gets; nil leaves texts alone.
	Mask func(text []byte) []byte
}

// Conn is a server reached by HTTP. Read and Write may each be used by one
// goroutine at a time, and beside Close. Whoever dialed it owns it and must
// call Close.
type Conn struct {
	Config
	address string
	client  *http.Client
	secrets [][]byte          // as JSON has them
	hidden  *strings.Replacer // takes them out of texts
	big     chan struct{}
	lines   chan []byte
	rest    []byte // of the line that Read returns in parts

	ctx    context.Context // ends with the connection; its cause says why
	cancel context.CancelCauseFunc
	work   sync.WaitGroup
	close  sync.Once
	closed chan struct{} // closed when nothing is left

	mu      sync.Mutex
	flights map[string]*flight
	under   int // lines under way
	// gate is closed when the handshake or notification that was written
	// last has been taken by the server; later lines wait for it.
	gate chan struct{}
	// session and version are what the handshake gave, each "" without one;
	// modern is the version that a request without a handshake said last.
	session, version, modern string
	listening                bool
	tools                    map[string][]param
	// own says of the answers that were made here why; order is theirs.
	own   map[string]error
	order []string
}

// errClosed is how a connection ends that its owner closes.
var errClosed = errors.New("the connection was closed")

// Dial makes a connection. It reaches for nobody: HTTP does with the first
// line that is written. It fails with KindUsage where the configuration cannot
// be used; then nothing is left.
func Dial(ctx context.Context, c Config) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	address, local, err := c.check()
	if err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.MaxPosts <= 0 {
		c.MaxPosts = DefaultMaxPosts
	}
	conn := &Conn{Config: c, address: address, client: c.httpClient(local), secrets: inJSON(secretsOf(c.Header)), hidden: inText(secretsOf(c.Header)),
		big: make(chan struct{}, maxBig), lines: make(chan []byte), closed: make(chan struct{}),
		flights: map[string]*flight{}, tools: map[string][]param{}, own: map[string]error{}, gate: make(chan struct{})}
	conn.Log = c.Log.With("mcp_server", c.Name)
	close(conn.gate)
	conn.ctx, conn.cancel = context.WithCancelCause(context.Background())
	return conn, nil
}

// Read reads the server's lines. It returns io.EOF once the connection has
// ended, of itself or by Close.
func (c *Conn) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		if c.ctx.Err() != nil {
			return 0, io.EOF
		}
		select {
		case c.rest = <-c.lines:
		case <-c.ctx.Done():
			return 0, io.EOF
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write takes whole lines, each one message, and returns before they are
// answered. It fails once the connection has ended, or for what is no message.
func (c *Conn) Write(b []byte) (int, error) {
	if len(b) == 0 || b[len(b)-1] != '\n' {
		return 0, errors.New("not whole lines")
	}
	for line := range bytes.Lines(b) {
		if c.ctx.Err() != nil {
			return 0, fmt.Errorf("the MCP connection has ended: %w", context.Cause(c.ctx))
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		m, err := mcp.Parse(bytes.Clone(line))
		if err != nil {
			return 0, fmt.Errorf("a line for the MCP server is no message: %w", err)
		}
		if err := c.send(m); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// send starts the way of one message.
func (c *Conn) send(m mcp.Message) error {
	switch {
	case m.IsRequest():
		return c.request(m)
	case m.Method == "notifications/cancelled":
		return c.cancelled(m)
	}
	return c.tell(m)
}

// start runs f as one line under way. It fails where too many are.
func (c *Conn) start(f func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if c.under >= maxWork*c.MaxPosts {
		return fmt.Errorf("%d lines for the MCP server are under way", c.under)
	}
	c.under++
	c.work.Go(func() {
		defer func() {
			c.mu.Lock()
			c.under--
			c.mu.Unlock()
		}()
		if err := mcp.Guard(c.panicked, func() error { f(); return nil }); err != nil {
			c.end(err)
		}
	})
	return nil
}

func (c *Conn) panicked(what, stack string) {
	c.Log.Error("a connection to an MCP server panicked", "panic", what, "stack", stack)
}

// emit gives one line to the reader. It waits for it, which slows the server
// down, until ctx or the connection ends.
func (c *Conn) emit(ctx context.Context, line []byte) {
	line = append(line, '\n')
	select {
	case c.lines <- line:
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
}

// end ends the connection for a reason of its own.
func (c *Conn) end(why error) { c.cancel(why) }

// Exit waits until the connection has ended, and says why. It returns ctx's
// error if that ends first.
func (c *Conn) Exit(ctx context.Context) error {
	select {
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends the connection: it closes every response, which cancels the
// requests, and then the session where the server gave one. When it returns,
// no goroutine and no socket of its own is left. It may be called again.
func (c *Conn) Close() error {
	c.close.Do(func() {
		c.mu.Lock()
		gone := c.ctx.Err() != nil
		c.cancel(errClosed)
		session := c.session
		c.mu.Unlock()
		if session != "" && !gone {
			c.leave()
		}
		c.work.Wait()
		if c.Config.Client == nil {
			c.client.CloseIdleConnections()
		}
		close(c.closed)
	})
	<-c.closed
	return nil
}

// leave tells the server that the session is over. A server may refuse that.
func (c *Conn) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	resp, err := c.do(ctx, http.MethodDelete, nil, nil)
	if err != nil {
		c.Log.Debug("an MCP session was not ended", "err", err)
		return
	}
	discard(resp)
}
