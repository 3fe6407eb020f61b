// Package gateway is the door for MCP over standard input and output: it sits
// between one client and one server, turns every tools/call into a crossing of
// mcp/<server>/<tool>, and refuses what nobody judges yet.
//
// What reaches a peer is written here, from a list of what may: the server gets
// the tool's name, the argument bytes that were judged and a few bounded words
// of the protocol, under an id of the gateway's own; the client gets the result
// bytes that were judged, under its own id. Arguments and results keep their
// bytes. Capabilities that the gateway would refuse are taken out of the
// handshake, and forbidden tools out of the list.
//
// A call with members that nothing judges is refused. Elsewhere such members
// stay here, as do the server's log messages and the words of its progress, in
// which it could say what K8 withheld.
//
// Both peers are hostile here: whatever they send is bounded before it is
// parsed, neither can block the other, and neither can make the gateway keep
// what nobody asked for.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/holdfast-dev/holdfast"
)

// Kernel is what the gateway needs of it. Both methods are called from many
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
}

// Conn is the server's side: Read yields its lines and io.EOF once it has
// ended, Write is its standard input, Close ends it and makes both return.
type Conn interface {
	io.ReadWriteCloser
	// Exit waits for the server's end and says how it was, for people.
	Exit(ctx context.Context) error
}

// DefaultMaxInFlight is how many requests of one client may wait at once.
const DefaultMaxInFlight = 64

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
	// Log gets what the peers did wrong; nil discards it.
	Log *slog.Logger
	// ReviewHint returns the command that decides a review; nil means
	// `holdfast review approve ID`.
	ReviewHint func(review string) string
	// Traceparent returns the W3C header of the crossing that act runs in,
	// from act's context; "" or nil leaves what the client sent.
	Traceparent func(context.Context) string
}

// ErrServerEnded is in the chain of Serve's error when the server went first.
var ErrServerEnded = errors.New("the MCP server ended")

// Serve relays between client and server until one of them ends or ctx does.
// It returns nil when the client went or ctx ended, an error with
// ErrServerEnded when the server did, and otherwise the stream's error.
//
// Serve owns both peers and closes them: the server always, the client where
// it is an io.Closer. When it returns, every crossing has been settled and no
// goroutine is left, except one that reads a client which nothing can close.
func Serve(ctx context.Context, client io.ReadWriter, server Conn, c Config) error {
	c, err := c.complete()
	if err != nil {
		return errors.Join(err, server.Close())
	}
	return newSession(client, server, c).run(ctx)
}

func (c Config) complete() (Config, error) {
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
	return c, nil
}
