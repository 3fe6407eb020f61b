// Package upstream sends requests to servers: it resolves names, checks addresses, keeps
// connections, and bounds how long an answer may take.
package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

const (
	// firstByte is how long an upstream may take to begin its answer where
	// its row says nothing (spec 003 section 3.1, failure 6).
	firstByte = 30 * time.Second
	// maxAnswerHeader bounds an answer's status line and header, in bytes.
	maxAnswerHeader = 256 << 10
)

// Sender sends requests to the servers that rows are for. It is safe for concurrent use.
type Sender struct {
	resolver Resolver
	pools    pools
	// Connected and began observe how long a connection took, and from there to
	// the first byte of the answer; nil does nothing.
	Connected, Began func(time.Duration)
}

// New returns one that finds the addresses of names by r.
func New(r Resolver) *Sender { return &Sender{resolver: r} }

// Stop closes the connections that are kept.
func (p *Sender) Stop() { p.pools.stop() }

// errFirstByte is the cause of a request that the first-byte limit ended.
var errFirstByte = errors.New("the first byte took too long")

// Send sends req to d at o and returns the answer, which is not followed where
// it redirects. req's URL says only path and query; req belongs to send from
// here on. It resolves o's host, checks every address, dials one of them as it
// was checked, and verifies the host's certificate. It asks for an answer that
// is not encoded, and for the whole of it, where answers are inspected.
//
// The error is a *holdfast.Error: DomainBlockedError for an address that may not
// be dialled, TimeoutError past d's first-byte limit, ForwardError for all else;
// holdfast.ErrNotStarted is in its chain where nothing of the request had left.
// A GET or HEAD whose pooled connection died under it may have been sent twice
// (RFC 9110 section 9.2.2); nothing else is.
func (p *Sender) Send(ctx context.Context, d *domain.Domain, o domain.Origin, req *http.Request) (*http.Response, error) {
	limit := d.FirstByte
	if limit <= 0 {
		limit = firstByte
	}
	ctx, cancel := context.WithCancelCause(ctx)
	wait := &wait{}
	wait.timer = time.AfterFunc(limit, func() { wait.over(cancel) })
	resp, err := p.roundTrip(ctx, d, o, req)
	if !wait.timer.Stop() && err == nil {
		// The answer began as the limit ran out: its body is ended already.
		resp.Body.Close()
		err = errFirstByte
	}
	if err != nil {
		cause := context.Cause(ctx)
		cancel(nil)
		return nil, sendError(o, limit, cause, err)
	}
	wait.answered(d, resp, func() { cancel(nil) })
	return resp, nil
}

// roundTrip is send without the limit.
func (p *Sender) roundTrip(ctx context.Context, d *domain.Domain, o domain.Origin, req *http.Request) (*http.Response, error) {
	t, err := p.transport(ctx, d, o)
	if err != nil {
		return nil, &notStarted{err}
	}
	start := time.Now()
	var left atomic.Bool
	var reached atomic.Int64 // nanoseconds from start to a connection, the last where one died; 0 for none
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { reached.Store(max(1, int64(time.Since(start)))) },
		WroteHeaders: func() { left.Store(true) },
	})
	resp, err := t.RoundTrip(addressed(ctx, d, o, req))
	if connect := time.Duration(reached.Load()); connect > 0 {
		if p.Connected != nil {
			p.Connected(connect)
		}
		if err == nil && p.Began != nil {
			p.Began(time.Since(start) - connect)
		}
	}
	if err != nil && ctx.Err() == nil {
		// An upstream that breaks the rules is not listened to any more: over
		// HTTP/2 it could write on.
		t.CloseIdleConnections()
	}
	// Where the wait was ended, a connection may be writing the request still.
	if err != nil && !left.Load() && (ctx.Err() == nil || reached.Load() == 0) {
		err = &notStarted{err}
	}
	return resp, err
}

// addressed is req as it leaves: sent to o by a URL of our own making.
func addressed(ctx context.Context, d *domain.Domain, o domain.Origin, req *http.Request) *http.Request {
	req = req.WithContext(ctx)
	u := *req.URL
	u.Scheme, u.Host, u.User, u.Fragment = "http", authority(o), nil, ""
	if o.TLS {
		u.Scheme = "https"
	}
	req.URL, req.Host = &u, authority(o)
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.RequestURI, req.Close, req.Trailer, req.TransferEncoding = "", false, nil, nil
	if _, said := req.Header["User-Agent"]; !said {
		req.Header["User-Agent"] = nil // or Go would name itself
	}
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		// Under this very key net/http would take them for a leave to send a
		// POST twice. The case of a name says nothing to a server.
		if v, said := req.Header[name]; said {
			delete(req.Header, name)
			req.Header[strings.ToLower(name)] = v
		}
	}
	if d.Response != domain.Off || d.Type == domain.LLM { // what models answer is metered
		req.Header.Set("Accept-Encoding", "identity")
	}
	if d.Response != domain.Off {
		req.Header.Del("Range")
		req.Header.Del("If-Range")
	}
	return req
}

// endingBody ends the request's context with its body, and the waiting for it.
type endingBody struct {
	io.ReadCloser
	wait *wait
	end  func()
}

func (b *endingBody) Read(p []byte) (int, error) { return b.wait.read(b.ReadCloser, p) }

func (b *endingBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// ending wraps b. What was switched to another protocol can be written to, too,
// and has a limit of its own.
func ending(b io.ReadCloser, wait *wait, end func()) io.ReadCloser {
	e := &endingBody{b, wait, end}
	if w, ok := b.(io.Writer); ok {
		wait.limit = 0
		return &struct {
			*endingBody
			io.Writer
		}{e, w}
	}
	return e
}

// notStarted marks an error before which nothing was sent.
type notStarted struct{ err error }

func (e *notStarted) Error() string   { return e.err.Error() }
func (e *notStarted) Unwrap() []error { return []error{e.err, holdfast.ErrNotStarted} }
