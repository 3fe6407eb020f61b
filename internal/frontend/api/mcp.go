package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// mcp takes the connection over: after the answer 101 both directions are the
// MCP client's own bytes.
func (s *Server) mcp(w http.ResponseWriter, r *http.Request) {
	var h Hello
	raw, err := base64.StdEncoding.DecodeString(r.Header.Get("Holdfast-Hello"))
	if err == nil {
		err = json.Unmarshal(raw, &h)
	}
	if err != nil || r.Header.Get("Upgrade") != upgradeMCP {
		s.answer(w, nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "an MCP connection is opened by `holdfast mcp`"})
		return
	}
	if err := named(h.Agent, h.Kind, h.Session, h.Intent, h.Chain); err != nil {
		s.answer(w, nil, err)
		return
	}
	// Whether the server starts is known before the connection is taken over,
	// so that the client can be told why not.
	serve, err := s.MCP(h)
	if err != nil {
		s.answer(w, nil, err)
		return
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = serve(ended, gone{})
		s.answer(w, nil, err)
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+upgradeMCP+"\r\n\r\n"); err != nil {
		return
	}
	_ = conn.SetDeadline(time.Time{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	if err := serve(ctx, &upgraded{conn, buf.Reader}); err != nil {
		s.Log.Warn("an MCP connection ended", "server", h.Name, "err", err)
	}
}

// gone is a client that is not there any more.
type gone struct{}

func (gone) Read([]byte) (int, error)  { return 0, io.EOF }
func (gone) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (gone) Close() error              { return nil }

const upgradeMCP = "holdfast-mcp"

// upgraded reads what the HTTP server had buffered before the socket itself.
type upgraded struct {
	net.Conn
	in io.Reader
}

func (u *upgraded) Read(b []byte) (int, error) { return u.in.Read(b) }

// Prompt is the socket's descriptor, which never blocks, for who writes what it
// takes at once.
func (u *upgraded) Prompt() (syscall.RawConn, error) {
	if c, ok := u.Conn.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errors.New("the connection is no socket")
}

// CloseWrite ends this side's direction; the other may still answer.
func (u *upgraded) CloseWrite() error {
	if c, ok := u.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return u.Close()
}

// MCP opens a connection whose both directions are an MCP client's own bytes.
// The caller closes it.
func (c *Client) MCP(ctx context.Context, h Hello) (io.ReadWriteCloser, error) {
	if c.dial == nil {
		return nil, errors.New("an MCP connection needs a daemon")
	}
	raw, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return c.upgrade(ctx, "/v1/mcp", upgradeMCP, http.Header{"Holdfast-Hello": {base64.StdEncoding.EncodeToString(raw)}})
}

// upgradeTime bounds the owner's answer to a request for an upgrade.
const upgradeTime = 30 * time.Second

// upgrade takes the client's connection over for another protocol. The caller closes
// it.
func (c *Client) upgrade(ctx context.Context, path, protocol string, header http.Header) (io.ReadWriteCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, upgradeTime)
	defer cancel() // the connection is the caller's by then
	req, err := http.NewRequestWithContext(ctx, "POST", "http://holdfast"+path, nil)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", protocol)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer resp.Body.Close()
		return nil, refusedUpgrade(resp)
	}
	conn, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		return nil, errors.Join(errors.New("the connection cannot be written to"), resp.Body.Close())
	}
	return conn, nil
}
