package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"time"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

// guard carries one try's requests. It bounds what others' clients leave open:
// time, answers, redirects - which could take a credential to another host - and
// the way in clear.
type guard struct {
	ctx   context.Context
	base  *http.Transport
	plain bool // http may cross the network
	// last is why the last request failed; nil once one was taken.
	last error
}

// guarded is a client for one try; done gives back what it holds.
func guarded(ctx context.Context) (client *http.Client, g *guard, done func()) {
	g = &guard{ctx: ctx, base: &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: tryTime, MaxResponseHeaderBytes: maxAnswer, DisableKeepAlives: true}}
	return &http.Client{Transport: g}, g, g.base.CloseIdleConnections
}

// RoundTrip implements http.RoundTripper. Anything but a 2xx is a failure.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.trip(req)
	g.last = err
	return resp, err
}

func (g *guard) trip(req *http.Request) (*http.Response, error) {
	if err := reachable(req.URL); err != nil && !g.plain {
		return nil, err
	}
	resp, err := g.base.RoundTrip(req.WithContext(g.ctx))
	if err != nil {
		return nil, plainly(err)
	}
	if resp.StatusCode/100 != 2 {
		_ = resp.Body.Close() // it is not read
		if resp.StatusCode/100 == 3 {
			return nil, failed("it answered %d, and redirects are not followed", resp.StatusCode)
		}
		return nil, failed("it answered %d", resp.StatusCode)
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	return resp, nil
}

// post sends one request, and returns what was answered of a 2xx.
func post(ctx context.Context, url string, header http.Header, body []byte) ([]byte, error) {
	header.Set("User-Agent", "holdfast")
	return postOver(ctx, false, url, header, body)
}

// postOver is post with its own User-Agent, and over http beyond this machine if plain is true.
func postOver(ctx context.Context, plain bool, url string, header http.Header, body []byte) ([]byte, error) {
	client, g, done := guarded(ctx)
	defer done()
	g.plain = plain
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, ErrAddress
	}
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		if g.last != nil {
			return nil, g.last
		}
		return nil, err
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body) // it took the message, however its answer ends
	return answer, nil
}

// postJSON is post of a value.
func postJSON(ctx context.Context, url string, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return post(ctx, url, http.Header{"Content-Type": {"application/json"}}, body)
}
