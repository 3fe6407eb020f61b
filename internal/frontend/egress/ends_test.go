package egress

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// heard is five bytes of c.
func heard(c net.Conn) error {
	_, err := io.ReadFull(c, make([]byte, 5))
	return err
}

// howItEnds reads a connection below its TLS to its end, which was in order (nil) or not.
func howItEnds(c net.Conn) error {
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	_, err := io.Copy(io.Discard, c)
	return err
}

// TestBad_ACutTunnelIsNoEnd: whatever cuts a tunnel between two records of the TLS
// inside, each end sees that it was cut. It would take an end of the connection for
// the end of what the other had to say: crypto/tls does.
func TestBad_ACutTunnelIsNoEnd(t *testing.T) {
	cert, _ := minted(t, nil)
	conf := &tls.Config{Certificates: []tls.Certificate{cert}}
	much := bigText(16 << 10)
	sayMuch := func(c net.Conn, _ *world) error { _, err := io.WriteString(c, much); return err }
	cut := func(c net.Conn, _ *world) error { reset(c); return nil }
	most := int64(8 << 10)
	for name, c := range map[string]struct {
		row        domain.Domain
		client, up func(c net.Conn, w *world) error // an error is how it ended for that end, which is told once
		kind       holdfast.Kind
	}{
		"the bound of the way back": {row: domain.Domain{MaxResponse: most}, kind: holdfast.KindPayloadTooLarge, up: sayMuch},
		"the bound of the way out":  {row: domain.Domain{MaxRequest: most}, kind: holdfast.KindPayloadTooLarge, client: sayMuch},
		"the limit of silence":      {row: domain.Domain{Idle: 2 * time.Second}, kind: holdfast.KindTimeout},
		"the upstream":              {kind: holdfast.KindForward, up: cut},
		"the client":                {client: cut},
		"the end of the proxy":      {kind: holdfast.KindForward, client: func(_ net.Conn, w *world) error { w.must(w.p.Close(context.Background())); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.row.Inspect = domain.Opaque
			ended := make(chan error, 1)
			w := badUp(t, c.row, conf, func(conn net.Conn) {
				io.WriteString(conn, "words")
				if err := heard(conn); err != nil { // it was cut before it came, which is told once
					ended <- err
					return
				}
				if c.up != nil {
					if err := c.up(conn, nil); err != nil {
						ended <- err
						return
					}
				}
				ended <- howItEnds(conn)
			})
			conn := w.through()
			w.must(heard(conn))
			io.WriteString(conn, "heard")
			var err error
			if c.client != nil {
				err = c.client(conn, w)
			}
			if err == nil {
				err = howItEnds(conn)
			}
			if name != "the client" && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("to the client it ended with %v", err)
			}
			if err := <-ended; name != "the upstream" && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("to the upstream it ended with %v", err)
			}
			if c.kind == "" {
				w.last(1, "egress/good.test", "")
			} else {
				w.wrong(1, "egress/good.test", c.kind, true)
			}
		})
	}
}

// refusing tells when a write to it fails.
type refusing struct {
	*net.TCPConn
	failed chan struct{}
	once   *sync.Once
}

func (r refusing) Write(b []byte) (int, error) {
	n, err := r.TCPConn.Write(b)
	if err != nil {
		r.once.Do(func() { close(r.failed) })
	}
	return n, err
}

// refusedAfter makes a connection whose other end has said its last, and closed.
func refusedAfter(t *testing.T, last func(net.Conn)) refusing {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	last(other)
	return refusing{c.(*net.TCPConn), make(chan struct{}), new(sync.Once)}
}

// TestTunnelsTailIsCarried: an upstream that has said its last and closed takes
// nothing more of the client, which is still to hear all of it. In an order that is
// forced: the write to it has failed before the client reads.
func TestTunnelsTailIsCarried(t *testing.T) {
	said := strings.Repeat("the last of me. ", 4<<10) // two pieces, one of which waits in the system
	up := refusedAfter(t, func(c net.Conn) {
		io.WriteString(c, said)
		c.Close()
	})
	client, inside := net.Pipe() // which holds nothing
	ended := make(chan error, 1)
	go func() {
		got, err := (&carrier{client: inside, up: up}).run(t.Context(), &domain.Domain{}, domain.Origin{})
		if err == nil && got.bytes != int64(len(said)) {
			err = fmt.Errorf("%d bytes came", got.bytes)
		}
		inside.Close()
		ended <- err
	}()
	go func() {
		for range 1000 { // of which one must fail
			if _, err := io.WriteString(client, "more"); err != nil {
				return
			}
		}
	}()
	<-up.failed
	if got, err := io.ReadAll(client); err != nil || string(got) != said {
		t.Errorf("%d bytes came of %d, %v", len(got), len(said), err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestTunnelsEndBehindAResetIsNone: a write finds that the upstream has cut the
// connection, and what is read after that looks like an end.
func TestTunnelsEndBehindAResetIsNone(t *testing.T) {
	up := refusedAfter(t, reset)
	client, inside := net.Pipe()
	defer client.Close()
	tr := &carrier{client: inside, up: up, busy: func() {}}
	go io.WriteString(client, "more")
	if out := tr.carry(up, inside, &tr.sent, 100, nil); !errors.Is(out.write, syscall.ECONNRESET) {
		t.Fatalf("%+v", out)
	}
	if b, err := up.TCPConn.Read(make([]byte, 1)); b != 0 || err != io.EOF {
		t.Fatalf("%d bytes, %v: nothing is shown", b, err)
	}
	if back := tr.carry(inside, up, &tr.came, 100, nil); back.read != errReset {
		t.Errorf("%+v", back)
	}
}

// lone is a listener that has one connection.
type lone struct{ conns chan net.Conn }

func (l lone) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (l lone) Close() error   { return nil }
func (l lone) Addr() net.Addr { return &net.TCPAddr{} }

// socketOver is both ends of a WebSocket over a connection.
func socketOver(t *testing.T, client, server net.Conn) (c, s *websocket.Conn) {
	t.Helper()
	l, met := lone{make(chan net.Conn, 1)}, make(chan *websocket.Conn, 1)
	l.conns <- server
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
		}
		met <- s
	})}
	go srv.Serve(l)
	t.Cleanup(func() { close(l.conns); srv.Close() })
	c, _, err := websocket.Dial(t.Context(), "ws://good.test/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return client, nil },
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return c, <-met
}

// TestWebSocketsTailIsCarried is TestTunnelsTailIsCarried of messages: the last, and
// why the upstream closed, reach a client that still speaks.
func TestWebSocketsTailIsCarried(t *testing.T) {
	var far net.Conn
	up := refusedAfter(t, func(c net.Conn) { far = c })
	there, upstream := socketOver(t, up, far)
	a, b := net.Pipe()
	client, here := socketOver(t, a, b)
	for n := range 3 {
		if err := upstream.Write(t.Context(), websocket.MessageText, fmt.Append(nil, n)); err != nil {
			t.Fatal(err)
		}
	}
	far.Write([]byte("\x88\x06\x03\xf3over")) // a frame that closes, with 1011 and why
	far.Close()
	ended := make(chan error, 1)
	s := &socket{p: newEgress(t, setup{}).p, d: &domain.Domain{Request: domain.Off, Response: domain.Off}, sum: sha256.New()}
	go func() { ended <- s.carry(t.Context(), here, there) }()
	go func() {
		for range 1000 {
			if client.Write(t.Context(), websocket.MessageText, []byte("more")) != nil {
				return
			}
		}
	}()
	<-up.failed
	for n := range 3 {
		if _, got, err := client.Read(t.Context()); err != nil || string(got) != fmt.Sprint(n) {
			t.Fatalf("%q, %v, want %d", got, err, n)
		}
	}
	var why websocket.CloseError
	if _, _, err := client.Read(t.Context()); !errors.As(err, &why) || why.Code != websocket.StatusInternalError || why.Reason != "over" {
		t.Errorf("it closed with %v", err)
	}
	client.CloseNow()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestBad_HalfAnAnswerOfHTTP10: its end is the end of the connection, so that one
// that breaks off ends by a cut, without TLS's word that it is all.
func TestBad_HalfAnAnswerOfHTTP10(t *testing.T) {
	w := newEgress(t, setup{})
	answer := func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(rw, "data: one\n\n")
		http.NewResponseController(rw).Flush()
		if r.URL.Path == "/half" {
			panic(http.ErrAbortHandler)
		}
	}
	w.up.answer(answer)
	w.plain.answer(answer)
	n := 0
	for _, path := range []string{"/whole", "/half"} {
		over, err := w.tunnel(w.at("good.test"), "good.test")
		w.must(err)
		for host, c := range map[string]net.Conn{w.at("good.test"): over, w.plainHost(): w.dial(w.open)} {
			fmt.Fprintf(c, "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", path, host)
			halfIsSeen(t, c, path == "/half", "data: one")
			n++
			if kind := w.entries(n)[n-1].ErrorKind; (kind == holdfast.KindForward) != (path == "/half") {
				t.Errorf("%s%s is recorded as %q", host, path, kind)
			}
		}
	}
}

// halfIsSeen reads c, which is cut where it has half an answer, and else has all.
func halfIsSeen(t *testing.T, c net.Conn, half bool, all string) {
	t.Helper()
	text, err := io.ReadAll(c)
	if half && !errors.Is(err, syscall.ECONNRESET) || !half && (err != nil || !strings.Contains(string(text), all)) {
		t.Errorf("half %v: %v after %q", half, err, text)
	}
}

// TestBad_HalfAnAnswerOfHTTP10FromAModel is that of the gateway, whose connections
// are another server's.
func TestBad_HalfAnAnswerOfHTTP10FromAModel(t *testing.T) {
	w := newModels(t, setup{})
	gate := strings.TrimPrefix(w.gatewayFor(), "http://")
	for _, half := range []bool{false, true} {
		w.up.answer(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(rw, anthropicStream)
			http.NewResponseController(rw).Flush()
			if half {
				panic(http.ErrAbortHandler)
			}
			io.WriteString(rw, anthropicEnd)
		})
		c := w.dial(gate)
		fmt.Fprintf(c, "POST /llm/anthropic/v1/messages HTTP/1.0\r\nHost: %s\r\nX-Api-Key: good\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", gate, len(anthropicAsk), anthropicAsk)
		halfIsSeen(t, c, half, "message_stop")
	}
}
