package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/judge"
	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// judgeAgent is who asks models for their scores, by which the ledger and the
// limits know it.
const judgeAgent = "holdfast-judge"

// waysOut gives the policy's models their way out, which is the daemon's own
// proxy: the allowlist, the credential, the budgets and the record are those of
// any request.
func (d *Daemon) waysOut(p *kernel.Policy) {
	all := judge.FromPolicy(p)
	if len(all) == 0 {
		return
	}
	made := judge.Judges{}
	for name, j := range all {
		if m, ok := j.Judge.(judge.LLM); ok {
			m.Client = d.egress.judgeClient
			j.Judge = m
		}
		made[name] = j
	}
	p.Sections = maps.Clone(p.Sections)
	p.Sections[judge.Name] = made
}

// judgeClient is the client of the proxy inside of this process, made at the
// first need.
func (s *egressSite) judgeClient() (*http.Client, error) {
	p, err := s.open()
	if err != nil {
		return nil, err
	}
	ca, err := s.ca()
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca.PEM())) {
		return nil, errors.New("the proxy's authority is no certificate")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.judges != nil {
		return s.judges, nil
	}
	l := &pipes{taken: make(chan net.Conn), over: make(chan struct{})}
	go func() {
		if err := p.Explicit(l, s.caller(holdfast.Identity{Agent: judgeAgent, Kind: "judge"})); err != nil && !errors.Is(err, net.ErrClosed) {
			s.d.log.Error("models cannot be asked", "err", err)
		}
	}()
	s.judges = &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "holdfast.invalid:80"}), DialContext: l.dial,
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, IdleConnTimeout: 30 * time.Second, MaxConnsPerHost: 32},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s.judges, nil
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
