package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// Client speaks to the owner of the state: over its socket, or, where the
// command is the owner itself, straight to the handler. Calls that follow one
// another share one connection.
type Client struct {
	http *http.Client
	dial func(ctx context.Context) (net.Conn, error)
}

// callTime bounds every call but backups, MCP, and code that runs: a stopped owner
// accepts and never answers (D48).
const callTime = 90 * time.Second

const (
	// answerTime is within what an owner that is not stopped says anything at all (D48).
	answerTime = 2 * time.Second
	// statusTime bounds the whole of its first answer: a busy machine takes its time.
	statusTime = 15 * time.Second
)

// NewClient returns a client of the owner that listens on the socket. It connects at
// the first call.
func NewClient(sock string) *Client {
	return newClient(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", sock)
		if err != nil {
			return nil, err
		}
		if err := CheckPeer(conn); err != nil {
			conn.Close()
			return nil, err
		}
		return conn, nil
	})
}

// newClient returns a client whose connections dial makes.
func newClient(dial func(context.Context) (net.Conn, error)) *Client {
	return &Client{dial: dial, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}}}
}

// Dial returns a client of the owner that listens on the socket, and its Probe.
func Dial(ctx context.Context, sock string) (*Client, *Status, error) {
	c := NewClient(sock)
	st, err := c.Probe(ctx)
	if err != nil {
		c.Close()
	}
	return c, st, err
}

// Probe asks how the owner is. The owner must begin to answer within two seconds.
// ErrNobody means that no owner listens.
func (c *Client) Probe(ctx context.Context) (*Status, error) {
	probe, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	silent := time.AfterFunc(answerTime, cancel)
	defer silent.Stop()
	heard := &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error { silent.Stop(); return nil }}
	st, err := c.Status(httptrace.WithClientTrace(probe, heard))
	if err == nil {
		return st, nil
	}
	if coded, ok := asError(err); ok {
		return nil, coded
	}
	if probe.Err() != nil {
		return nil, unanswered(err)
	}
	return nil, errors.Join(ErrNobody, err)
}

// Close ends the connection if no call uses it. A later call connects again.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ErrNobody says that no owner listens on the socket.
var ErrNobody = errors.New("nobody owns the state")

// Direct returns a client of a handler in this very process.
func Direct(h http.Handler) *Client {
	return &Client{http: &http.Client{Transport: direct{h}}}
}

// direct is a round trip without a network.
type direct struct{ h http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := &memory{header: http.Header{}, code: http.StatusOK}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	d.h.ServeHTTP(w, r)
	return &http.Response{StatusCode: w.code, Header: w.header, Body: io.NopCloser(&w.body), Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

type memory struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (m *memory) Header() http.Header         { return m.header }
func (m *memory) Write(b []byte) (int, error) { return m.body.Write(b) }

func (m *memory) WriteHeader(code int) {
	if code >= http.StatusOK {
		m.code = code
	}
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 256 << 20

func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://holdfast"+path, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil { // as of an answer that did not begin
		return &url.Error{Op: method, URL: req.URL.String(), Err: err}
	}
	if resp.StatusCode != http.StatusOK {
		var a Answer
		if json.Unmarshal(b, &a) == nil && a.Failure != nil {
			return a.Failure.Err()
		}
		return &holdfast.Error{Kind: holdfast.KindInternal, Why: "the owner answered " + resp.Status}
	}
	return json.Unmarshal(b, out)
}

func (c *Client) timed(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return c.call(ctx, method, path, in, out)
}

// patient waits for an answer that may take an hour, as long as the owner answers
// at all: it is asked how it is each time that so much time has passed.
func (c *Client) patient(ctx context.Context, every time.Duration, method, path string, in, out any) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(every):
			}
			asking, enough := context.WithTimeout(ctx, every)
			_, err := c.Status(asking)
			late := asking.Err() != nil
			if enough(); err != nil && late && ctx.Err() == nil {
				stop(unanswered(err))
			}
		}
	}()
	err := c.call(ctx, method, path, in, out)
	if why := context.Cause(ctx); err != nil && why != nil && holdfast.KindOf(why) == holdfast.KindTimeout {
		return why
	}
	return err
}

// unanswered is the error of an owner that is there and says nothing.
func unanswered(err error) error {
	return &holdfast.Error{Kind: holdfast.KindTimeout, Why: "the owner of the state accepts and does not answer", Hint: "it may be stopped: `kill -CONT` it, or end it", Err: err}
}
