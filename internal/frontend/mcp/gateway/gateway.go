// Package gateway is the door for MCP: it sits between one client and one
// server, turns every tools/call into a crossing of mcp/<server>/<tool>, every
// other request that could do or read something into one of
// mcp/<server>/<method>, what the server asks of the client into one of
// client/<server>/<method>, and refuses what nobody judges.
//
// What reaches a peer is written here, from a list of what may: the server gets
// the bytes that were judged and a few bounded words of the protocol, under ids
// and progress tokens of the gateway's own; the client gets the result bytes
// that were judged, under its own id. Payloads and results keep their bytes.
// What a client can be asked is shown to the server only where it may ask, and
// forbidden tools are taken out of the list.
//
// Where a contract says redact, package redaction searches what the server gets before the crossing, which so
// binds what is sent, and the answer before K8 and the record see it.
//
// A call with members that nothing judges is refused. Elsewhere such members
// stay here, as do the server's log messages and the words of its progress
// while a call is under way whose result K8 may withhold.
//
// A call that waits for a person is kept waiting for a bounded time; what a
// client brings back to a hold or to a question is signed by the gateway, and
// carries no authority.
//
// Both peers are hostile here: whatever they send is bounded before it is
// parsed, neither can block the other, and neither can make the gateway keep
// what nobody asked for.
package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/redaction"
)

// Kernel is what the gateway needs of it. Its methods are called from many
// goroutines at once.
type Kernel interface {
	// Cross judges one request and, where all eight gates allow it, calls
	// act, at most once. It returns when the crossing's entry is durable.
	// The context that act gets ends when the crossing must.
	Cross(ctx context.Context, req holdfast.Request, act func(context.Context) (holdfast.Output, error)) (*holdfast.Outcome, error)
	// Observe tells what a server lists, and returns the contract that
	// governs each, found by its Boundary. One that is missing from the
	// answer is taken for PROHIBITED.
	Observe(ctx context.Context, contracts []holdfast.Contract) ([]holdfast.Contract, error)
	// Listed returns what configuration says of a boundary. The contract's
	// Boundary is what lists it there: the name itself, or a pattern.
	Listed(boundary string) (holdfast.Contract, bool)
	// Withholds says whether what comes out of a boundary may be kept from
	// the caller by K8.
	Withholds(boundary string) bool
	// Await returns nil as soon as a review waits for a person no more,
	// and otherwise the context's error.
	Await(ctx context.Context, review string) error
}

// Conn is the server's side: Read yields its lines and io.EOF once it has
// ended, Write is its standard input, Close ends it and makes both return.
type Conn interface {
	io.ReadWriteCloser
	// Exit waits for the server's end and says how it was, for people.
	Exit(ctx context.Context) error
}

// Unanswered is what a Conn may also be: one that ends a request with an answer
// of its own, where the server gave none.
type Unanswered interface {
	// Unanswered returns why the answer with this id is the Conn's own, and
	// nil where it is the server's; holdfast.ErrNotStarted is in its chain
	// where the server has provably not been asked. It is asked once, after
	// the answer.
	Unanswered(id []byte) error
}

// Contained is what a Conn may also be: one whose calls do nothing outside of
// it and leave nothing behind, so that of a call that was cut it is known what
// it came to.
type Contained interface{ Contained() }

// Client is one MCP client: a stream of lines, an HTTP session, all stateless
// HTTP requests of an identity, or a router's side of one server.
type Client interface {
	// Next returns the client's next message; a *mcp.Fault for a line that
	// was refused, after which Next goes on; io.EOF when the client has
	// gone. One goroutine calls it. The message is the caller's to keep.
	Next() (mcp.Message, error)
	// Write gives the client one line, without a newline, which is Write's
	// to change. to is the Key of the client's request that the line
	// answers or belongs to, "" for none. One goroutine calls it.
	Write(to string, line []byte) error
	// Close ends the client and makes both return. It is called once.
	Close() error
}

// Load counts what the requests of a client keep, together with those of other
// clients. Its methods are called from many goroutines.
type Load interface {
	// AddRequest counts a request of n bytes. Its error reports that there is no
	// room, and is for people.
	AddRequest(n int) error
	// RemoveRequest ends what AddRequest counted.
	RemoveRequest(n int)
	// AddAnswer counts n bytes of an answer that came. A negative n removes them.
	AddAnswer(n int)
	// Full returns what to wait for before another answer is read, nil for
	// nothing.
	Full() <-chan struct{}
}

// LoadOf returns the load that the requests of a client count for. A client has
// one of its own, without bounds, unless it has a method Load.
func LoadOf(c Client) Load {
	if shared, ok := c.(interface{ Load() Load }); ok {
		return shared.Load()
	}
	return unbounded{}
}

// unbounded is a Load with room for everything.
type unbounded struct{}

func (unbounded) AddRequest(int) error  { return nil }
func (unbounded) RemoveRequest(int)     {}
func (unbounded) AddAnswer(int)         {}
func (unbounded) Full() <-chan struct{} { return nil }

// Lines is the client at the far end of a stream of lines. Where rw is no
// io.Closer, nothing can end a Next or a Write that waits for it.
func Lines(rw io.ReadWriter) Client { return &stream{Reader: mcp.NewReader(rw), rw: rw} }

// stream is a Client of lines.
type stream struct {
	*mcp.Reader
	rw io.ReadWriter
}

// ErrNotCloser is the error of closing a stream that nothing can close.
var ErrNotCloser = errors.New("the client's stream cannot be closed")

func (c *stream) Write(_ string, line []byte) error {
	_, err := c.rw.Write(append(line, '\n'))
	return err
}

func (c *stream) Close() error {
	if closer, ok := c.rw.(io.Closer); ok {
		return closer.Close()
	}
	return ErrNotCloser
}

// DefaultMaxInFlight is how many requests of one client may wait at once.
const DefaultMaxInFlight = 64

// MaxWait is the longest that a call is kept waiting for a person: clients
// give a call up after a minute.
const MaxWait = 55 * time.Second

// SealSize is the length of Config.Seal in bytes.
const SealSize = 32

// Config is what Serve needs besides the two peers. Kernel, Server and Token
// must be set.
type Config struct {
	// Kernel judges.
	Kernel Kernel
	// Server is the server's name in boundaries; any text of 1 to 128
	// bytes, encoded like a tool's name.
	Server string
	// Token returns the caller's JWT for one crossing. An error refuses it.
	Token func(context.Context) (holdfast.Secret, error)
	// TrustedHints lets readOnlyHint make a tool LOW (D37).
	TrustedHints bool
	// MaxInFlight bounds the client's requests that wait for an answer;
	// 0 means DefaultMaxInFlight. One more is answered "busy".
	MaxInFlight int
	// Wait is how long a call that is held for review is kept waiting for
	// the decision, 0 to MaxWait. A call that waits keeps no connection
	// busy for longer, so that no client gives it up first.
	Wait time.Duration
	// Page returns the address of the page on which a person decides a
	// review, "" where there is none; nil means none. It carries no
	// authority.
	Page func(review string) string
	// Seal is the key, SealSize bytes, under which the gateway signs the
	// state that it hands a client and gets back with a retry. Sessions
	// with one key accept each other's. nil makes one for this session.
	Seal []byte
	// Swapped returns what is closed as soon as other things are
	// configured, and so the client may be shown other tools; nil means
	// that they stay as they are.
	Swapped func() <-chan struct{}
	// Engine returns what searches by the redact of contracts; nil, or a function that returns nil, refuses what
	// is to be searched.
	Engine func() *redaction.Engine
	// Log gets what the peers did wrong; nil discards it.
	Log *slog.Logger
	// ReviewHint returns the command that decides a review; nil means
	// `holdfast review approve ID`.
	ReviewHint func(review string) string
	// Traceparent returns the W3C header of the crossing that act runs in,
	// from act's context; "" or nil leaves what the client sent.
	Traceparent func(context.Context) string
	// Panicked is told of a panic of the gateway's own: with what, and the
	// stack. It masks both, which may quote anybody, before it writes them
	// anywhere. The session has ended then. nil writes them to Log.
	Panicked func(what, stack string)
}

// ErrServerEnded is in the chain of Serve's error when the server went first.
var ErrServerEnded = errors.New("the MCP server ended")

// Serve relays between client and server until one of them ends or ctx does.
// It returns nil when the client went or ctx ended, an error with
// ErrServerEnded when the server did, and otherwise the stream's error.
//
// Serve owns both peers and closes them. When it returns, every crossing has
// been settled and no goroutine is left, except one that reads a client which
// nothing can close.
func Serve(ctx context.Context, client Client, server Conn, c Config) error {
	c, err := c.Complete()
	if err != nil {
		return errors.Join(err, server.Close())
	}
	return newSession(client, server, c).run(ctx)
}

// Complete returns the configuration with its defaults, or why it is invalid.
func (c Config) Complete() (Config, error) {
	usage := func(why string) error {
		return &holdfast.Error{Kind: holdfast.KindUsage, Why: why}
	}
	switch {
	case c.Kernel == nil:
		return c, usage("the MCP gateway has no kernel")
	case c.Token == nil:
		return c, usage("the MCP gateway has no source of tokens")
	case !nameable(c.Server):
		return c, usage(fmt.Sprintf("the MCP server's name %.40q is not 1 to %d bytes of UTF-8", c.Server, maxName))
	case c.MaxInFlight < 0:
		return c, usage("the MCP gateway's limit of requests in flight is negative")
	case c.Wait < 0 || c.Wait > MaxWait:
		return c, usage(fmt.Sprintf("the MCP gateway's wait for a person is not 0 to %s", MaxWait))
	case c.Seal != nil && len(c.Seal) != SealSize:
		return c, usage(fmt.Sprintf("the MCP gateway's sealing key has not %d bytes", SealSize))
	}
	if c.Seal == nil {
		c.Seal = make([]byte, SealSize)
		rand.Read(c.Seal) // never fails
	}
	if c.Page == nil {
		c.Page = func(string) string { return "" }
	}
	if c.Engine == nil {
		c.Engine = func() *redaction.Engine { return nil }
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = DefaultMaxInFlight
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.ReviewHint == nil {
		c.ReviewHint = func(review string) string { return "holdfast review approve " + review }
	}
	if c.Traceparent == nil {
		c.Traceparent = func(context.Context) string { return "" }
	}
	if c.Panicked == nil {
		c.Panicked = mcp.LogPanic(c.Log)
	}
	return c, nil
}
