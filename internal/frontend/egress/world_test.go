package egress

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/feature/modelvalue"
	"github.com/holdfast-dev/holdfast/internal/feature/subagent"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/authority"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/latch"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/redact/mapping"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
	"github.com/holdfast-dev/holdfast/ledger"
)

// longest is how long anything is waited for that must come: long, since
// nothing waits so long but where something is wrong.
const longest = 2 * time.Minute

// world is the proxy in front of a kernel on a real store and latch, with real
// servers behind it on the loopback address.
type world struct {
	t      testing.TB
	k      *kernel.Kernel
	store  *sqlite.Store
	latch  *latch.Latch
	mint   *token.Minter
	p      *Proxy
	roots  *x509.CertPool // the proxy's authority, as a workspace trusts it
	policy *kernel.Policy
	values *modelvalue.Values
	eraser kernel.Eraser
	db     string // the store's file
	trusts bool

	// up is the server behind every allowed name: its port is TLS, plain's is
	// not.
	up, plain *server
	explicit  string // the proxy port
	clear     string // transparent, for the TLS server's port
	open      string // transparent, for the plain server's port

	found map[string][]*ledger.Entry // by tenant, what read has found
	next  map[string]int64           // by tenant, the first leaf that read has not seen

	mu     sync.Mutex
	offset time.Duration // guarded by mu
	still  time.Time     // guarded by mu; what the clock shows since it was stopped
	fault  func(string) error
}

// server is an upstream that keeps what reached it.
type server struct {
	port    uint16
	handler http.HandlerFunc // nil answers "hello"

	mu   sync.Mutex
	seen []seenRequest // guarded by mu
}

type seenRequest struct {
	Method, Host, URI, Body string
	Header                  http.Header
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.seen = append(s.seen, seenRequest{r.Method, r.Host, r.RequestURI, string(b), r.Header.Clone()})
	h := s.handler
	s.mu.Unlock()
	if h != nil {
		h(w, r)
		return
	}
	io.WriteString(w, "hello from "+r.Host)
}

func (s *server) requests() []seenRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seenRequest(nil), s.seen...)
}

func (s *server) answer(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = h
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.still.IsZero() {
		return w.still.Add(w.offset)
	}
	return time.Now().Add(w.offset)
}

// stopClock keeps what is counted in a minute within one, however long it takes.
func (w *world) stopClock() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.still = time.Now()
}

// until waits for what must come to be.
func (w *world) until(what string, f func() bool) {
	w.t.Helper()
	for end := time.Now().Add(longest); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("still not: %s", what)
		}
	}
}

func (w *world) breakStore(f func(string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
}

type gcm struct{ cipher.AEAD }

func (g gcm) Seal(plain, bound []byte) ([]byte, error) {
	return g.AEAD.Seal(nil, nil, plain, bound), nil
}
func (g gcm) Open(sealed, bound []byte) ([]byte, error) { return g.AEAD.Open(nil, nil, sealed, bound) }

// setup changes what a world is made of; rows get the ports of the servers.
type setup struct {
	rows   func(tls, plain uint16) []domain.Domain
	config func(*Config)
	policy func(*kernel.Policy)
	trusts bool // the clients of the proxy port trust the authority
}

// names of the world: good.test and other.test are listed, everything else is
// not. Every row leads to the loopback address.
func usualRows(tls, plain uint16) []domain.Domain {
	return []domain.Domain{
		{Name: "good.test", Ports: []uint16{tls}},
		{Name: "other.test", Ports: []uint16{tls}},
		{Name: "*.wild.test", Ports: []uint16{tls}},
		{Name: "plain.test", Ports: []uint16{plain}, Plain: true},
		{Name: "blind.test", Ports: []uint16{tls}, Inspect: domain.Opaque},
		{Name: "127.0.0.1", Ports: []uint16{tls}},
	}
}

func newEgress(t testing.TB, set setup) *world {
	t.Helper()
	w := &world{t: t, trusts: set.trusts, found: map[string][]*ledger.Entry{}, next: map[string]int64{}}
	dir := t.TempDir()
	roots := w.upstreams(dir)
	if set.rows == nil {
		set.rows = usualRows
	}
	rows := set.rows(w.up.port, w.plain.port)
	for i := range rows {
		rows[i].Source = fmt.Sprintf("test:%d", i+1)
		if rows[i].Inspect != domain.Opaque && !rows[i].Plain && rows[i].Roots == "" {
			rows[i].Roots = roots
		}
		if rows[i].Addresses == nil {
			rows[i].Addresses = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		}
	}
	table, err := domain.NewTable(rows)
	w.must(err)
	w.kernel(dir, table, set.policy)
	authority, err := authority.Open(filepath.Join(dir, "ca"))
	w.must(err)
	w.roots = x509.NewCertPool()
	w.roots.AppendCertsFromPEM(authority.PEM())
	engine, err := redact.New(redact.Options{Masks: redact.Egress})
	w.must(err)
	c := Config{Kernel: w.k, Table: func() *domain.Table { return table }, Engine: func(*domain.Domain) *redact.Engine { return engine },
		Authority: authority, Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no name is looked up in this test")
		}}, Now: w.now}
	c.Mappings = w.newMappings()
	if set.config != nil {
		set.config(&c)
	}
	w.p, err = New(c)
	w.must(err)
	w.listen()
	return w
}

// newMappings returns the mappings of a daemon that has just begun with this store.
func (w *world) newMappings() *mapping.Sessions {
	m := mapping.NewSessions([]byte("key of the state"), w.now)
	m.UseKeeper(w.values)
	return m
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) kernel(dir string, table *domain.Table, change func(*kernel.Policy)) {
	w.t.Helper()
	var err error
	w.db = filepath.Join(dir, "holdfast.db")
	w.store, err = sqlite.Open(context.Background(), sqlite.Options{Path: w.db,
		Now: w.now, Tables: feature.Tables(), Fault: func(step string) error {
			w.mu.Lock()
			f := w.fault
			w.mu.Unlock()
			if f == nil {
				return nil
			}
			return f(step)
		}})
	w.must(err)
	w.t.Cleanup(func() { w.store.Close() })
	w.latch, err = latch.New(filepath.Join(dir, "HALT"))
	w.must(err)
	w.mint, err = token.NewMinter(mintKey(), "test", "holdfast")
	w.must(err)
	issuer := w.mint.Issuer()
	issuer.Tenants = append(issuer.Tenants, "red", "blue")
	verifier, err := token.NewVerifier(issuer)
	w.must(err)
	engine, err := redact.New(redact.Options{})
	w.must(err)
	rules, err := constitution.Load(nil)
	w.must(err)
	block, err := aes.NewCipher([]byte("0123456789abcdef0123456789abcdef"))
	w.must(err)
	aead, err := cipher.NewGCMWithRandomNonce(block)
	w.must(err)
	w.policy = &kernel.Policy{Version: strings.Repeat("1", 64), Rules: rules, Roles: map[string][]string{"agent": {"egress:send"}}}
	for _, r := range []holdfast.Resource{holdfast.HTTPRequests, holdfast.Messages, holdfast.BytesOut, holdfast.LLMTokens} {
		w.policy.Limits = append(w.policy.Limits, budget.Limit{Scope: budget.Tenant, Resource: r, Amount: 1 << 40, Source: "test"})
	}
	for _, d := range table.Domains() {
		c := d.Contract()
		c.Permissions = []string{"egress:send"}
		w.policy.Contracts = append(w.policy.Contracts, c)
		if d.Rate > 0 {
			w.policy.Rates = append(w.policy.Rates, budget.RateLimit{Scope: budget.Tenant, Boundary: d.Boundary(), PerMinute: d.Rate, Source: d.Source})
		}
	}
	if change != nil {
		change(w.policy)
	}
	w.values = modelvalue.New(gcm{aead}, func(tenant, agent, session string) {
		w.p.mappings.Forget(tenant, agent, session)
	})
	w.k, err = kernel.New(kernel.Config{Store: w.store, Features: append(feature.All(), w.values.Feature),
		Eraser:  &w.eraser,
		Lineage: subagent.New(engine), Latch: w.latch,
		Verifier: verifier, Redact: engine, Sealer: gcm{aead}, Policy: w.policy,
		Runtime: "11111111-2222-4333-8444-555555555555", Now: w.now})
	w.must(err)
	_, err = w.k.Recover(0)
	w.must(err)
}

// upstreams starts the two servers and returns the file of the roots that they
// are known by.
func (w *world) upstreams(dir string) string {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.must(err)
	t := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "upstream"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"good.test", "other.test", "*.wild.test", "blind.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	w.must(err)
	file := filepath.Join(dir, "upstream.pem")
	w.must(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	w.up, w.plain = &server{}, &server{}
	serve := func(s *server, c *tls.Config) {
		l := w.port()
		s.port = uint16(l.Addr().(*net.TCPAddr).Port)
		h := &http.Server{Handler: s, TLSConfig: c, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
		go func() {
			if c != nil {
				h.ServeTLS(l, "", "")
				return
			}
			h.Serve(l)
		}()
		w.t.Cleanup(func() { h.Close() })
	}
	serve(w.up, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	serve(w.plain, nil)
	return file
}

func (w *world) port() net.Listener {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	return l
}

// redirected is a listener whose connections were made to another port.
type redirected struct {
	net.Listener
	port uint16
}

type redirectedConn struct {
	*net.TCPConn
	port uint16
}

func (c redirectedConn) OriginalPort() uint16 { return c.port }

func (l redirected) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return redirectedConn{c.(*net.TCPConn), l.port}, nil
}

func (w *world) listen() {
	w.t.Helper()
	serve := func(f func(net.Listener, Caller) error, wrap func(net.Listener) net.Listener) string {
		l := w.port()
		done := make(chan error, 1)
		go func() {
			done <- f(wrap(l), Caller{Token: func() (holdfast.Secret, error) { return w.who("alice") }, Trusts: w.trusts})
		}()
		w.t.Cleanup(func() {
			l.Close()
			select {
			case err := <-done:
				if err != nil && !errors.Is(err, errClosed) { // the test closed the proxy before this began
					w.t.Errorf("the listener ended with %v", err)
				}
			case <-time.After(longest):
				w.t.Error("a listener that was closed did not end")
			}
		})
		return l.Addr().String()
	}
	tls, plain := w.up.port, w.plain.port
	w.explicit = serve(w.p.Explicit, func(l net.Listener) net.Listener { return l })
	w.clear = serve(w.p.Transparent, func(l net.Listener) net.Listener { return redirected{l, tls} })
	w.open = serve(w.p.Transparent, func(l net.Listener) net.Listener { return redirected{l, plain} })
}

// listenFor opens another proxy port, for another agent.
func (w *world) listenFor(agent string) string {
	l := w.port()
	go w.p.Explicit(l, Caller{Token: func() (holdfast.Secret, error) { return w.who(agent) }})
	w.t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func (w *world) who(name string) (holdfast.Secret, error) {
	tok, _, err := w.mint.Mint(holdfast.Identity{Tenant: holdfast.Local, Principal: "user:" + name, Roles: []string{"agent"}, Agent: name, Session: name + "-s1"}, 15*time.Minute, w.now())
	return tok, err
}

func mintKey() ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, "a seed for tests only, thirty-two")
	return ed25519.NewKeyFromSeed(seed)
}

// of signs a token for an agent of a tenant that the daemon mints none for.
func (w *world) of(tenant string) (holdfast.Secret, error) {
	kid, err := token.Thumbprint(mintKey().Public().(ed25519.PublicKey))
	w.must(err)
	now := w.now()
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"iss": "test", "aud": "holdfast", "jti": rand.Text(), "iat": now.Unix(), "nbf": now.Unix(),
		"exp": now.Add(time.Minute).Unix(), "sub": "user:x", "tenant_id": tenant, "roles": []string{"agent"}, "agent": "x", "session": "s"})
	t.Header["kid"] = kid
	text, err := t.SignedString(mintKey())
	return holdfast.NewSecret(text), err
}

// entries are the crossings that the ledger holds, in order; it waits until
// there are want of them.
func (w *world) entries(want int) []*ledger.Entry {
	w.t.Helper()
	var out []*ledger.Entry
	for end := time.Now().Add(longest); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if out = w.read(); len(out) >= want {
			break
		}
	}
	if len(out) != want {
		var all []string
		for _, e := range out {
			all = append(all, e.Boundary+" "+string(e.ErrorKind))
		}
		w.t.Fatalf("the ledger holds %d crossings, want %d: %v", len(out), want, all)
	}
	return out
}

// read returns the crossings that the ledger holds, by tenant and in order. It parses
// each record once, and is called by the test's goroutine alone.
func (w *world) read() []*ledger.Entry {
	var out []*ledger.Entry
	err := w.store.View(context.Background(), func(tx kernel.Tx) error {
		heads, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range heads {
			var more []*ledger.Entry
			err := tx.Leaves(h.Tenant, w.next[h.Tenant], h.Size, func(s ledger.Stored) error {
				if s.Kind != ledger.KindEntry {
					return nil
				}
				e, err := ledger.ParseEntry(s.Record)
				more = append(more, e)
				return err
			})
			if err != nil {
				return err
			}
			w.found[h.Tenant] = append(w.found[h.Tenant], more...)
			w.next[h.Tenant] = h.Size
			out = append(out, w.found[h.Tenant]...)
		}
		return nil
	})
	w.must(err)
	return out
}

// at is name with the TLS server's port.
func (w *world) at(name string) string { return fmt.Sprintf("%s:%d", name, w.up.port) }
