package egress

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/upstream"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Values that the engine masks by their form alone.
const (
	someKey  = "sk-ant-api03-" + "Zk3vQ9xL2mT8rW5yB7nC4dF6gH1jK0pS-" + "aA3bB5cC7dD9eE1fF2gG4hH6iI8jJ0kK"
	someMail = "jane.doe@customer-corp.com"
)

// outside is an outbound half with real upstreams, and a front server that does
// what one exchange does, without the kernel.
type outside struct {
	t      *testing.T
	p      *Proxy
	engine *redact.Engine
	dns    *nameServer
	pairs  map[string]*pair // by row; of the test's goroutine

	mu   sync.Mutex
	last relayed
	err  error
}

func newOutside(t *testing.T, o redact.Options) *outside {
	t.Helper()
	o.Masks = redact.Egress
	e, err := redact.New(o)
	if err != nil {
		t.Fatal(err)
	}
	x := &outside{t: t, engine: e, dns: newNameServer(t), pairs: map[string]*pair{}}
	x.p = &Proxy{
		cfg: Config{
			Engine:   func(*domain.Domain) *redact.Engine { return x.engine },
			Resolver: x.dns.resolver(), MaxBuffered: 64 << 20,
		},
		log: slog.New(slog.DiscardHandler), now: time.Now,
	}
	x.p.out.start(x.p)
	t.Cleanup(x.p.out.stop)
	return x
}

// row is d as a table holds it, and the origin that it is asked for.
func (x *outside) row(d domain.Domain, tls bool, port uint16) (*domain.Domain, domain.Origin) {
	x.t.Helper()
	d.Plain, d.Ports, d.Source = !tls, []uint16{port}, "test:1"
	table, err := domain.NewTable([]domain.Domain{d})
	if err != nil {
		x.t.Fatal(err)
	}
	h, err := domain.ParseHost(strings.TrimPrefix(d.Name, "*."))
	if err != nil {
		x.t.Fatal(err)
	}
	return table.Domains()[0], domain.Origin{TLS: tls, Host: h, Port: port}
}

// upstream starts a server and returns its row and origin: example.com at the
// loopback address, trusted by its own certificate.
func (x *outside) upstream(d domain.Domain, tls bool, h http.HandlerFunc) (*domain.Domain, domain.Origin) {
	x.t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.EnableHTTP2 = true
	if tls {
		s.StartTLS()
		d.Roots = rootsOf(x.t, s)
	} else {
		s.Start()
	}
	x.t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	if d.Name == "" {
		d.Name = "example.com"
	}
	if d.Addresses == nil {
		d.Addresses = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	}
	return x.row(d, tls, portOf(x.t, s.Listener.Addr()))
}

func rootsOf(t *testing.T, s *httptest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func portOf(t testing.TB, a net.Addr) uint16 {
	t.Helper()
	return netip.MustParseAddrPort(a.String()).Port()
}

// serving answers every connection to a port by f, and returns the port.
func serving(t testing.TB, f func(net.Conn)) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); f(c) }()
		}
	}()
	return portOf(t, l.Addr())
}

// raw starts an upstream that answers every connection by f.
func (x *outside) raw(d domain.Domain, f func(net.Conn)) (*domain.Domain, domain.Origin) {
	x.t.Helper()
	d.Name, d.Addresses = "example.com", []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	return x.row(d, false, serving(x.t, f))
}

// answering reads a request's head and writes text.
func answering(text string) func(net.Conn) {
	return func(c net.Conn) {
		buf := make([]byte, 64<<10)
		n := 0
		for !bytes.Contains(buf[:n], []byte("\r\n\r\n")) {
			k, err := c.Read(buf[n:])
			if err != nil {
				return
			}
			n += k
		}
		_, _ = io.WriteString(c, text)
	}
}

// front serves one exchange with d at o for each request.
func (x *outside) front(d *domain.Domain, o domain.Origin) *httptest.Server {
	x.t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { x.exchange(w, r, d, o) }))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Start()
	x.t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (x *outside) exchange(w http.ResponseWriter, r *http.Request, d *domain.Domain, o domain.Origin) {
	got, err := x.pass(w, r, d, o)
	x.mu.Lock()
	x.last, x.err = got, err
	x.mu.Unlock()
	switch {
	case err == nil:
	case got.began:
		panic(http.ErrAbortHandler)
	default:
		var e *holdfast.Error
		if !errors.As(err, &e) {
			x.t.Errorf("the error is no holdfast.Error: %v", err)
			return
		}
		w.Header().Set("X-Kind", string(e.Kind))
		w.Header().Set("X-Rule", e.Rule)
		w.WriteHeader(599)
		_, _ = io.WriteString(w, e.Why+"\nhint: "+e.Hint)
	}
}

func (x *outside) pass(w http.ResponseWriter, r *http.Request, d *domain.Domain, o domain.Origin) (relayed, error) {
	h, _, failed := x.p.outgoing(d, r.Header)
	if failed != nil {
		return relayed{}, failed
	}
	up := &http.Request{Method: r.Method, URL: &url.URL{Opaque: "", Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}, Header: h}
	if r.Header.Get("Upgrade") != "" {
		if err := x.p.credential(r.Context(), d, up.Header); err != nil {
			return relayed{}, err
		}
		return x.p.webSocket(r.Context(), w, r, up, d, o, nil, nil)
	}
	b, failed := x.p.readBody(r.Context(), d, r)
	if failed != nil {
		return relayed{}, failed
	}
	defer b.done()
	if len(b.raw) > 0 {
		up.Body, up.ContentLength = io.NopCloser(bytes.NewReader(b.raw)), b.size
	}
	if err := x.p.credential(r.Context(), d, up.Header); err != nil {
		return relayed{}, err
	}
	resp, err := x.p.out.upstreams.Send(r.Context(), d, o, up)
	if err != nil {
		return relayed{}, err
	}
	return x.p.relayAnswer(r.Context(), w, d, resp, nil, nil)
}

// measured is what the last exchange said.
func (x *outside) measured() (relayed, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.last, x.err
}

// do sends a request to the front and returns the answer with its body.
func do(t *testing.T, method, to string, h http.Header, sent io.Reader) (*http.Response, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, to, sent)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range h {
		r.Header[k] = v
	}
	tr := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

// mustRefuse wants the kind, and no word of the leak in the answer.
func mustRefuse(t *testing.T, resp *http.Response, text string, err error, kind holdfast.Kind) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 599 || resp.Header.Get("X-Kind") != string(kind) {
		t.Fatalf("status %d, kind %q, %q; want %s", resp.StatusCode, resp.Header.Get("X-Kind"), text, kind)
	}
	if !strings.Contains(text, "hint: ") || strings.HasSuffix(text, "hint: ") {
		t.Errorf("no hint in %q", text)
	}
}

// nameServer is a DNS server on the loopback address.
type nameServer struct {
	pc net.PacketConn

	mu    sync.Mutex
	twice map[string]int
	names map[string][][]netip.Addr // successive answers; the last one stays
	asked []string                  // "A name." and the like
}

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{pc: pc, names: map[string][][]netip.Addr{}, twice: map[string]int{}}
	t.Cleanup(func() { pc.Close() })
	go s.serve()
	return s
}

// say sets the successive answers for name, addresses apart by blanks.
func (s *nameServer) say(name string, answers ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[name] = nil
	for _, line := range answers {
		var list []netip.Addr
		for a := range strings.FieldsSeq(line) {
			list = append(list, netip.MustParseAddr(a))
		}
		s.names[name] = append(s.names[name], list)
	}
}

func (s *nameServer) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

func (s *nameServer) resolver() upstream.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", s.pc.LocalAddr().String())
	}}
}

func (s *nameServer) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := s.pc.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		s.answer(&m)
		if b, err := m.Pack(); err == nil {
			_, _ = s.pc.WriteTo(b, from)
		}
	}
}

func (s *nameServer) answer(m *dnsmessage.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := m.Questions[0]
	name := q.Name.String()
	s.asked = append(s.asked, strings.TrimPrefix(q.Type.String(), "Type")+" "+name)
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true, RecursionDesired: true}
	m.Additionals = nil
	answers, known := s.names[name]
	if !known {
		m.RCode = dnsmessage.RCodeNameError
		return
	}
	for _, a := range answers[0] {
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			h.Type = dnsmessage.TypeA
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case !a.Is4() && q.Type == dnsmessage.TypeAAAA:
			h.Type = dnsmessage.TypeAAAA
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	if s.twice[name]++; s.twice[name]%2 == 0 && len(answers) > 1 {
		s.names[name] = answers[1:] // both types were asked for
	}
}

func loopback() []netip.Addr { return []netip.Addr{netip.MustParseAddr("127.0.0.1")} }

func itoa(n int) string { return strconv.Itoa(n) }
