package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/leaf/netaddr"
)

const (
	maxURL     = 2048     // bytes
	maxHeaders = 64 << 10 // bytes of a response's header
	dialTime   = 10 * time.Second
	// maxDiscard and discardTime are how much of a body, in bytes, and how
	// long is read on for so that its connection can be used again.
	maxDiscard  = 4 << 10
	discardTime = 100 * time.Millisecond
)

// check returns the address that requests go to, and whether it is meant to be
// on this machine.
func (c Config) check() (address string, local bool, err error) {
	bad := func(why, hint string) error {
		return &holdfast.Error{Kind: holdfast.KindUsage, Why: why, Hint: hint}
	}
	if len(c.URL) > maxURL {
		return "", false, bad(fmt.Sprintf("the MCP server's URL is longer than %d bytes", maxURL), "")
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "" {
		return "", false, bad("the MCP server's URL is not one", "give it as https://host/path")
	}
	local = isLocalHost(u.Hostname())
	switch {
	case u.User != nil:
		return "", false, bad("the MCP server's URL holds a user or a password", "give the credential as a header")
	case u.Fragment != "":
		return "", false, bad("the MCP server's URL has a fragment", "leave out what follows #")
	case u.Scheme != "https" && u.Scheme != "http":
		return "", false, bad(fmt.Sprintf("the MCP server's URL has the scheme %.20q", u.Scheme), "use https")
	case u.Scheme == "http" && !local && !c.Plaintext:
		return "", false, bad("the MCP server's URL is without TLS and not on this machine",
			"use https; everyone on the way could read the credential and change the answers")
	}
	for name, value := range c.Header {
		if why := unfitHeader(name, value.Reveal()); why != "" {
			return "", false, bad(fmt.Sprintf("the MCP server's header %.60q %s", name, why), "")
		}
	}
	return u.String(), local && u.Scheme == "http" && !c.Plaintext, nil
}

// unfitHeader says why a header of the configuration cannot be sent, or "".
func unfitHeader(name, value string) string {
	if !mcp.IsToken(name) {
		return "is not a header's name"
	}
	if !isPlain(value) || len(value) > maxHeaders/2 {
		return "has a value that no header can hold"
	}
	lower := strings.ToLower(name)
	switch lower {
	case "host", "accept", "content-type", "content-length", "content-encoding", "transfer-encoding", "connection",
		"keep-alive", "upgrade", "te", "trailer", "expect", "last-event-id":
		return "is the transport's own"
	case "idempotency-key", "x-idempotency-key":
		// The HTTP client would take it for leave to send a request twice.
		return "would let a request be repeated"
	}
	if strings.HasPrefix(lower, "mcp-") || strings.HasPrefix(lower, "proxy-") {
		return "is the transport's own"
	}
	return ""
}

// isLocalHost reports whether host is meant to be this machine; the dialer checks that it is.
func isLocalHost(host string) bool {
	return strings.HasSuffix(host, ".localhost") || netaddr.IsLoopbackHost(host)
}

// httpClient returns a client for this connection alone. Where only is set, it
// connects to this machine alone, whatever a name resolves to.
func (c Config) httpClient(only bool) *http.Client {
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if c.Client != nil {
		return &http.Client{Transport: c.Client.Transport, CheckRedirect: refuse}
	}
	d := &net.Dialer{Timeout: dialTime}
	if only {
		d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			if !netaddr.IsLoopbackAddrPort(address) {
				return errors.New("the name leads away from this machine, and TLS is off")
			}
			return nil
		}
	}
	t := &http.Transport{
		DialContext: d.DialContext, TLSHandshakeTimeout: dialTime, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		MaxResponseHeaderBytes: maxHeaders, DisableCompression: true, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
	}
	if c.EnvironmentProxy {
		t.Proxy = http.ProxyFromEnvironment
	}
	return &http.Client{Transport: t, CheckRedirect: refuse}
}

// do makes one HTTP request with the headers that every one has and those of
// more, whose names are canonical; one without values takes a header away. An
// error names no URL, which may hold a secret.
func (c *Conn) do(ctx context.Context, method string, body io.Reader, more http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.address, body)
	if err != nil {
		return nil, bare(err)
	}
	for name, value := range c.Header {
		req.Header.Set(name, value.Reveal())
	}
	c.mu.Lock()
	if c.version != "" {
		req.Header.Set(mcp.HeaderVersion, c.version)
	}
	if c.session != "" {
		req.Header.Set(mcp.HeaderSession, c.session)
	}
	c.mu.Unlock()
	for name, values := range more {
		if len(values) == 0 {
			delete(req.Header, name)
			continue
		}
		req.Header[name] = values
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, bare(err)
	}
	return resp, nil
}

// bare takes the URL out of an error of the HTTP client.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// discard ends a response of which nobody wants more.
func discard(resp *http.Response) {
	t := time.AfterFunc(discardTime, func() { resp.Body.Close() })
	_, _ = io.CopyN(io.Discard, resp.Body, maxDiscard)
	t.Stop()
	resp.Body.Close()
}
