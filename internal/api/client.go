package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/review"
	"github.com/holdfast-dev/holdfast/kernel"
)

// Client speaks to the owner of the state: over its socket, or, where the
// command is the owner itself, straight to the handler.
type Client struct {
	http *http.Client
	dial func(ctx context.Context) (net.Conn, error)
}

// callTime bounds every call but backups and MCP: a stopped owner accepts and
// never answers (D48).
const callTime = 90 * time.Second

// Dial returns a client of the owner that listens on the socket, after it has
// answered within two seconds. ErrNobody says that nobody listens there.
func Dial(ctx context.Context, sock string) (*Client, *Status, error) {
	dial := func(ctx context.Context) (net.Conn, error) {
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
	}
	probe, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := dial(probe)
	if err != nil {
		if _, coded := asError(err); coded {
			return nil, nil, err
		}
		return nil, nil, errors.Join(ErrNobody, err)
	}
	conn.Close()
	c := &Client{dial: dial, http: &http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableKeepAlives: true,
	}}}
	st, err := c.Status(probe)
	if err != nil && probe.Err() != nil {
		err = &holdfast.Error{Kind: holdfast.KindTimeout, Why: "the owner of the state accepts and does not answer", Hint: "it may be stopped: `kill -CONT` it, or end it", Err: err}
	} else if _, coded := asError(err); err != nil && !coded {
		err = errors.Join(ErrNobody, err) // it ended between the two connections
	}
	return c, st, err
}

// Stay keeps the owner from ending for want of clients until leave is called.
// ErrNobody says that it has ended already.
func (c *Client) Stay(ctx context.Context) (leave func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, "GET", "http://holdfast/v1/stay", nil)
	if err != nil {
		cancel()
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		cancel()
		return nil, errors.Join(ErrNobody, err)
	}
	return func() { cancel(); resp.Body.Close() }, nil
}

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
func (m *memory) WriteHeader(code int)        { m.code = code }
func (m *memory) Write(b []byte) (int, error) { return m.body.Write(b) }

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
	if err != nil {
		return err
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

// Status asks how the owner is.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	var s Status
	err := c.timed(ctx, "GET", "/v1/status", nil, &s)
	return &s, err
}

// Cross makes a crossing; Check and Explain say what one would come to. The
// error is about the call; a refusal is in the answer.
func (c *Client) Cross(ctx context.Context, a Ask) (*Answer, error) {
	var out Answer
	return &out, c.timed(ctx, "POST", "/v1/cross", a, &out)
}

// Check asks the gates until one denies, recording nothing.
func (c *Client) Check(ctx context.Context, a Ask) (*Answer, error) {
	var out Answer
	return &out, c.timed(ctx, "POST", "/v1/check", a, &out)
}

// Explain asks all eight gates, recording nothing.
func (c *Client) Explain(ctx context.Context, a Ask) (*Answer, error) {
	var out Answer
	return &out, c.timed(ctx, "POST", "/v1/explain", a, &out)
}

// Reviews lists reviews; an empty state lists all.
func (c *Client) Reviews(ctx context.Context, tenant string, state review.State) ([]review.Review, error) {
	var out []review.Review
	q := url.Values{"tenant": {tenant}, "state": {string(state)}}
	err := c.timed(ctx, "GET", "/v1/reviews?"+q.Encode(), nil, &out)
	return out, err
}

// Review returns one review.
func (c *Client) Review(ctx context.Context, id string) (*review.Review, error) {
	var out review.Review
	return &out, c.timed(ctx, "GET", "/v1/reviews/"+url.PathEscape(id), nil, &out)
}

// Decide carries out a person's answer to a review.
func (c *Client) Decide(ctx context.Context, p PersonsWord) (*review.Review, error) {
	var out review.Review
	return &out, c.timed(ctx, "POST", "/v1/decide", p, &out)
}

// Halt stops everything.
func (c *Client) Halt(ctx context.Context, w Word) (*Cutting, error) {
	var out Cutting
	return &out, c.timed(ctx, "POST", "/v1/halt", w, &out)
}

// Poke tells the owner that the latch was written.
func (c *Client) Poke(ctx context.Context) (*Cutting, error) {
	var out Cutting
	return &out, c.timed(ctx, "POST", "/v1/poke", struct{}{}, &out)
}

// Resume lifts the latch.
func (c *Client) Resume(ctx context.Context, p PersonsWord) error {
	return c.timed(ctx, "POST", "/v1/resume", p, &struct{}{})
}

// Agents lists agents.
func (c *Client) Agents(ctx context.Context, tenant string) ([]holdfast.Agent, error) {
	var out []holdfast.Agent
	err := c.timed(ctx, "GET", "/v1/agents?"+url.Values{"tenant": {tenant}}.Encode(), nil, &out)
	return out, err
}

// Pause stops one agent.
func (c *Client) Pause(ctx context.Context, w Word) (*Cutting, error) {
	var out Cutting
	return &out, c.timed(ctx, "POST", "/v1/pause", w, &out)
}

// Unpause lets one agent go on.
func (c *Client) Unpause(ctx context.Context, p PersonsWord) error {
	return c.timed(ctx, "POST", "/v1/unpause", p, &struct{}{})
}

// Trust sets an agent's level.
func (c *Client) Trust(ctx context.Context, p PersonsWord) error {
	return c.timed(ctx, "POST", "/v1/trust", p, &struct{}{})
}

// Erase erases parts of records.
func (c *Client) Erase(ctx context.Context, p PersonsWord) (kernel.Erased, error) {
	var out kernel.Erased
	err := c.timed(ctx, "POST", "/v1/erase", p, &out)
	return out, err
}

// Revoke makes a token id worthless.
func (c *Client) Revoke(ctx context.Context, w Word) error {
	return c.timed(ctx, "POST", "/v1/revoke", w, &struct{}{})
}

// Backup copies the store to a file; it takes as long as it takes.
func (c *Client) Backup(ctx context.Context, file string) error {
	return c.call(ctx, "POST", "/v1/backup", Backup{file}, &Backup{})
}

// Checkpoint signs every tree that has grown, and says how many.
func (c *Client) Checkpoint(ctx context.Context) (int, error) {
	var out map[string]int
	err := c.timed(ctx, "POST", "/v1/checkpoint", struct{}{}, &out)
	return out["signed"], err
}

// Open asks for a one-time link to the pages: to a review, or to the queue where
// it is empty.
func (c *Client) Open(ctx context.Context, review string) (string, error) {
	var out Opened
	err := c.timed(ctx, "POST", "/v1/open", Opened{Review: review}, &out)
	return out.URL, err
}
