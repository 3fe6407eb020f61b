package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

const (
	// maxPools bounds how many sets of connections are kept.
	maxPools = 256
	// poolIdle is how long a connection is kept that nobody uses.
	poolIdle = 60 * time.Second
	// poolKept is how many idle connections of one pool are kept: fewer than
	// there are clients at once would begin TLS anew for most requests.
	poolKept = 64
	// maxRoots bounds a file of certificates, in bytes.
	maxRoots = 4 << 20
)

type poolName struct{}

// WithPool says whose connections a request may share: those that one listener's
// requests opened, and so one tenant's, never carry another's. Who must be
// comparable.
func WithPool(ctx context.Context, who any) context.Context {
	return context.WithValue(ctx, poolName{}, who)
}

// poolKey is what two requests must share to share a connection. The row is one
// of a table: a table that was read anew begins new connections.
type poolKey struct {
	row       *domain.Domain
	origin    domain.Origin
	addresses string
	who       any
}

// pools keeps the connections to upstreams.
type pools struct {
	mu   sync.Mutex
	list map[poolKey]*pool // guarded by mu
	tick uint64            // guarded by mu
}

type pool struct {
	t    *http.Transport
	used uint64
}

// transport returns the connections for o at the addresses that it has now.
func (p *Sender) transport(ctx context.Context, d *domain.Domain, o domain.Origin) (*http.Transport, error) {
	list, err := p.addresses(ctx, d, o)
	if err != nil {
		return nil, err
	}
	key := poolKey{d, o, join(list), ctx.Value(poolName{})}
	return p.pools.get(key, func() (*http.Transport, error) { return newTransport(d, o, list) })
}

func join(list []netip.Addr) string {
	var b strings.Builder
	for _, a := range list {
		b.WriteString(a.String())
		b.WriteByte(' ')
	}
	return b.String()
}

// get returns the pool of key, or makes it; the one that was used least lately
// makes room.
func (s *pools) get(key poolKey, make1 func() (*http.Transport, error)) (*http.Transport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick++
	if have := s.list[key]; have != nil {
		have.used = s.tick
		return have.t, nil
	}
	t, err := make1()
	if err != nil {
		return nil, err
	}
	if s.list == nil {
		s.list = map[poolKey]*pool{}
	}
	if len(s.list) >= maxPools {
		s.evict()
	}
	s.list[key] = &pool{t, s.tick}
	return t, nil
}

func (s *pools) evict() {
	var oldest poolKey
	least := s.tick
	for k, have := range s.list {
		if have.used <= least {
			oldest, least = k, have.used
		}
	}
	if have := s.list[oldest]; have != nil {
		// A request that it still carries ends as it would have.
		have.t.CloseIdleConnections()
		delete(s.list, oldest)
	}
}

func (s *pools) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, have := range s.list {
		have.t.CloseIdleConnections()
	}
	s.list = nil
}

// newTransport dials the checked addresses and shows the host's own name,
// whatever the URL says. It knows no proxy, follows nothing and speaks HTTP/1.1,
// or HTTP/2 where the upstream takes it by ALPN; never HTTP/3.
func newTransport(d *domain.Domain, o domain.Origin, list []netip.Addr) (*http.Transport, error) {
	config, err := tlsConfig(d, o)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer(list, o.Port, len(d.Addresses) > 0),
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    10 * time.Second,
		DisableCompression:     true,
		MaxIdleConns:           poolKept,
		MaxIdleConnsPerHost:    poolKept,
		IdleConnTimeout:        poolIdle,
		MaxResponseHeaderBytes: maxAnswerHeader,
		ForceAttemptHTTP2:      true,
		// A connection holds both while nothing is sent and nothing comes. Most
		// requests leave in one piece all the same, and what is longer than a
		// buffer is not copied into it.
		WriteBufferSize: 3 << 9,
		ReadBufferSize:  512,
	}, nil
}

func tlsConfig(d *domain.Domain, o domain.Origin) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.Host.String()}
	if d.Roots == "" {
		return c, nil
	}
	var err error
	c.RootCAs, err = readRoots(d.Roots)
	return c, err
}

// readRoots reads the certificates that alone are trusted for a domain.
func readRoots(path string) (*x509.CertPool, error) {
	f, err := os.Stat(path)
	var text []byte
	if err == nil && f.Mode().IsRegular() && f.Size() <= maxRoots { // no pipe, which would be waited for
		text, err = os.ReadFile(path)
	}
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		return nil, &holdfast.Error{
			Kind: holdfast.KindForward, Why: "the domain's own root certificates cannot be read", Err: err,
			Hint: "the domain's `roots` names a file of PEM certificates that the daemon can read",
		}
	}
	return pool, nil
}
