package service

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// judgeAgent is the agent that asks models for their scores, in the ledger and in limits.
const judgeAgent = "holdfast-judge"

// Client returns the client for models that this process calls. It goes through the proxy:
// the allowlist, the credential, the budgets and the record are those of any request.
func (s *Service) Client() (*http.Client, error) {
	p, err := s.openProxy()
	if err != nil {
		return nil, err
	}
	ca, err := s.openAuthority()
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca.PEM())) {
		return nil, errors.New("the proxy's authority is no certificate")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	l := &pipes{taken: make(chan net.Conn), over: make(chan struct{})}
	go func() {
		if err := p.Explicit(l, s.callerFor(holdfast.Identity{Agent: judgeAgent, Kind: "judge"})); err != nil &&
			!errors.Is(err, net.ErrClosed) {
			s.opt.Log.Error("models cannot be asked", "err", err)
		}
	}()
	s.client = &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "holdfast.invalid:80"}), DialContext: l.dial,
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, IdleConnTimeout: 30 * time.Second, MaxConnsPerHost: 32},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s.client, nil
}

// Gateway returns the handler for clients that ask models and bring a token of Holdfast's. It opens
// the proxy at the first call.
func (s *Service) Gateway() (http.Handler, error) {
	p, err := s.openProxy()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.models == nil {
		s.models, err = p.Models(s.opt.Guest)
	}
	return s.models, err
}

// pipes is a listener inside of this process, which nobody else can reach.
type pipes struct {
	taken chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.taken <- theirs:
		return ours, nil
	case <-p.over:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.taken:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.over) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "inside", Net: "unix"} }
