package egress

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// TestBad_AnUpstreamsCertificate: whoever shows a certificate that is not right
// is asked nothing.
func TestBad_AnUpstreamsCertificate(t *testing.T) {
	_, others := minted(t, nil)
	for name, c := range map[string]struct {
		change func(*x509.Certificate)
		roots  string // in place of its own
		why    string
	}{
		"expired":        {func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, "", "has expired"},
		"not yet valid":  {func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }, "", "does not hold yet"},
		"wrong name":     {func(c *x509.Certificate) { c.DNSNames = []string{"other.test"} }, "", "for another name"},
		"no name":        {func(c *x509.Certificate) { c.DNSNames = nil }, "", "for another name"},
		"self-signed":    {nil, others, "not trusted"},
		"for clients":    {func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, "", "for another use"},
		"for mail alone": {func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection} }, "", "for another use"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cert, roots := minted(t, c.change)
			if c.roots != "" {
				roots = c.roots
			}
			var got atomic.Int64
			w := badUp(t, domain.Domain{Roots: roots}, &tls.Config{Certificates: []tls.Certificate{cert}}, func(c net.Conn) {
				n, _ := io.Copy(io.Discard, c)
				got.Add(n)
			})
			r, err := w.fetch("good.test", "/secret-path")
			if err != nil || !strings.Contains(r.Text, c.why) {
				t.Fatalf("%v %+v, want %q", err, r, c.why)
			}
			w.refused(r, http.StatusBadGateway)
			w.wrong(1, "egress/good.test", holdfast.KindForward, true)
			if n := got.Load(); n > 0 {
				t.Errorf("%d bytes reached it", n)
			}
		})
	}
}

// TestUpstreamsOldTLSIsRefused: an upstream that speaks nothing newer than TLS 1.1 is
// sent no request.
func TestUpstreamsOldTLSIsRefused(t *testing.T) {
	cert, roots := minted(t, nil)
	old := &tls.Config{Certificates: []tls.Certificate{cert},
		MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	var got atomic.Int64
	w := badUp(t, domain.Domain{Roots: roots}, old, func(c net.Conn) {
		n, _ := io.Copy(io.Discard, c)
		got.Add(n)
	})
	r, err := w.fetch("good.test", "/secret-path")
	if err != nil {
		t.Fatal(err)
	}
	w.refused(r, http.StatusBadGateway)
	if n := got.Load(); n > 0 {
		t.Errorf("%d bytes reached it", n)
	}
}

// TestClientsOldTLSIsRefused: the proxy ends no connection of TLS 1.1.
func TestClientsOldTLSIsRefused(t *testing.T) {
	w := newEgress(t, setup{})
	old := &tls.Config{ServerName: "good.test", RootCAs: w.roots,
		MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if err := tls.Client(w.connect(w.at("good.test")), old).Handshake(); err == nil {
		t.Error("the handshake succeeded")
	}
	w.untouched()
}

// reset ends a connection by a reset.
func reset(c net.Conn) {
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

// blackHole is a port that takes no connection and refuses none: its queue is
// full.
func blackHole(t *testing.T) uint16 {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port := at.(*unix.SockaddrInet4).Port
	for range 10 {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err != nil {
			return uint16(port)
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("the queue does not fill")
	return 0
}

// TestBad_AnUpstreamThatIsDown: each way of being down is told, and of those in
// which nothing was sent this is.
func TestBad_AnUpstreamThatIsDown(t *testing.T) {
	for name, c := range map[string]struct {
		f      func(net.Conn) // nil: nobody listens
		first  time.Duration
		status int
		kind   holdfast.Kind
		why    string
	}{
		"refused":                  {nil, 0, 502, holdfast.KindForward, "refused the connection"},
		"reset as it is accepted":  {reset, 0, 502, holdfast.KindForward, "plain.test"},
		"closed as it is accepted": {func(c net.Conn) { c.Close() }, 0, 502, holdfast.KindForward, "plain.test"},
		"reset after the request":  {func(c net.Conn) { askedOf(c); reset(c) }, 0, 502, holdfast.KindForward, "broke the connection off"},
		"closed after the request": {func(c net.Conn) { askedOf(c) }, 0, 502, holdfast.KindForward, "closed the connection without an answer"},
		"a header without end": {func(c net.Conn) {
			askedOf(c)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nX-A: "+strings.Repeat("a", 300<<10))
			stayOpen(c)
		},
			0, 502, holdfast.KindForward, "answered with a header that is too long"},
		"reset in the header": {func(c net.Conn) {
			askedOf(c)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nX-A")
			time.Sleep(50 * time.Millisecond)
			reset(c)
		},
			0, 502, holdfast.KindForward, "plain.test"},
		"silent":               {func(c net.Conn) { askedOf(c); stayOpen(c) }, 500 * time.Millisecond, 504, holdfast.KindTimeout, "did not begin to answer"},
		"silent in the header": {func(c net.Conn) { askedOf(c); io.WriteString(c, "HTTP/1.1 200 OK\r\n"); stayOpen(c) }, 500 * time.Millisecond, 504, holdfast.KindTimeout, "did not begin to answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *world
			if c.f != nil {
				w = badUp(t, domain.Domain{FirstByte: c.first}, nil, c.f)
			} else {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				l.Close()
				w = badRow(t, domain.Domain{}, false, portOf(t, l.Addr()))
			}
			r, err := w.fetch("plain.test", "/")
			if err != nil || !strings.Contains(r.Text, c.why) || !strings.Contains(r.Text, "kind: "+string(c.kind)) {
				t.Fatalf("%v %+v, want %q", err, r, c.why)
			}
			w.refused(r, c.status)
			w.wrong(1, "egress/plain.test", c.kind, true)
		})
	}
	for name, c := range map[string]struct {
		first  time.Duration
		status int
		kind   holdfast.Kind
		why    string
	}{
		"a black hole":          {0, 502, holdfast.KindForward, "did not answer to the connection"},
		"a black hole, briefly": {500 * time.Millisecond, 504, holdfast.KindTimeout, "did not begin to answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := badRow(t, domain.Domain{FirstByte: c.first}, false, blackHole(t))
			r, err := w.fetch("plain.test", "/")
			if err != nil || !strings.Contains(r.Text, c.why) {
				t.Fatalf("%v %+v, want %q", err, r, c.why)
			}
			w.refused(r, c.status)
			w.wrong(1, "egress/plain.test", c.kind, true)
		})
	}
}

// chunk is one of a chunked body.
func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// TestBad_AnAnswerThatEndsInTheMiddle: a reset or silence in the middle of an
// answer of any kind is an error by name; who has a part of it sees that it is
// not whole.
func TestBad_AnAnswerThatEndsInTheMiddle(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: "
	for name, c := range map[string]struct {
		text  string
		row   domain.Domain
		begun bool // the client has a part by then
	}{
		"text":              {head + "text/plain\r\n\r\n" + chunk(bigText(1<<16)), domain.Domain{}, true},
		"events":            {head + "text/event-stream\r\n\r\n" + chunk("data: one\n\n"), domain.Domain{}, true},
		"lines":             {head + "application/jsonl\r\n\r\n" + chunk("{\"a\":1}\n"), domain.Domain{}, true},
		"JSON":              {head + "application/json\r\n\r\n" + chunk("{\"a\":"), domain.Domain{}, false},
		"a document":        {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nhalf of", domain.Domain{}, false},
		"gzip":              {head + "text/plain\r\nContent-Encoding: gzip\r\n\r\n" + chunk(string(packed(t, "gzip", "words"))[:12]), domain.Domain{}, false},
		"zstd":              {head + "text/plain\r\nContent-Encoding: zstd\r\n\r\n" + chunk(string(packed(t, "zstd", bigText(1000)))[:14]), domain.Domain{}, false},
		"br":                {head + "text/plain\r\nContent-Encoding: br\r\n\r\n" + chunk(string(packed(t, "br", "words and words"))[:6]), domain.Domain{}, false},
		"binary":            {head + "application/octet-stream\r\n\r\n" + chunk(strings.Repeat("\x00\x01", 1<<16)), domain.Domain{Binary: true}, true},
		"what nobody reads": {head + "text/plain\r\n\r\n" + chunk("words"), domain.Domain{Response: domain.Off}, true},
		"nothing yet":       {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", domain.Domain{}, false},
	} {
		for how, end := range map[string]struct {
			f      func(net.Conn)
			kind   holdfast.Kind
			status int
		}{
			"reset":  {func(c net.Conn) { time.Sleep(200 * time.Millisecond); reset(c) }, holdfast.KindForward, 502},
			"silent": {stayOpen, holdfast.KindTimeout, 504},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				row := c.row
				row.Idle = time.Second
				w := badUp(t, row, nil, func(conn net.Conn) {
					askedOf(conn)
					io.WriteString(conn, c.text)
					end.f(conn)
				})
				r, err := w.fetch("plain.test", "/")
				switch {
				case c.begun && (r == nil || err == nil || r.StatusCode != 200):
					t.Fatalf("the client does not see that it broke off: %+v", r)
				case !c.begun && err != nil:
					t.Fatal(err)
				case !c.begun:
					w.refused(r, end.status)
				}
				e := w.wrong(1, "egress/plain.test", end.kind, true)
				if how == "silent" && !strings.Contains(e.Why, "nothing more came") {
					t.Errorf("the ledger says %q", e.Why)
				}
			})
		}
	}
}

// TestBad_SilenceOverHTTP2: the limit is of HTTP/2 too, and of each answer of a
// connection for itself: beside one that has fallen silent another goes on.
func TestBad_SilenceOverHTTP2(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	w := newEgress(t, setup{rows: func(tls, _ uint16) []domain.Domain {
		return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}, Idle: limit}}
	}})
	over := make(chan struct{})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the upstream is asked by %s", r.Proto)
		}
		io.WriteString(rw, bigText(1<<16))
		rw.(http.Flusher).Flush()
		if r.URL.Path == "/silent" {
			<-r.Context().Done()
			return
		}
		for { // each pause far shorter than the limit, all of them longer
			select {
			case <-r.Context().Done():
				return
			case <-over:
				io.WriteString(rw, "the end")
				return
			case <-time.After(limit / 40):
				io.WriteString(rw, "more ")
				rw.(http.Flusher).Flush()
			}
		}
	})
	var slow *reply
	var failed error
	done := make(chan struct{})
	go func() { defer close(done); slow, failed = w.fetch("good.test", "/slow") }()
	w.until("the slow answer has begun", func() bool { return len(w.up.requests()) == 1 })
	if r, err := w.fetch("good.test", "/silent"); err == nil {
		t.Errorf("a silent answer looks whole: %+v", r)
	}
	close(over)
	<-done
	if failed != nil || !strings.HasSuffix(slow.Text, "the end") {
		t.Errorf("an answer that goes on slowly: %v", failed)
	}
	kinds := map[holdfast.Kind]int{}
	for _, e := range w.entries(2) {
		kinds[e.ErrorKind]++
	}
	if kinds[""] != 1 || kinds[holdfast.KindTimeout] != 1 {
		t.Errorf("the ledger holds %v", kinds)
	}
}
