package egress

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// half says that no more comes: TLS's word for it, and TCP's.
func half(t *testing.T, c net.Conn) {
	t.Helper()
	over := c.(*tls.Conn)
	if err := over.CloseWrite(); err != nil {
		t.Error(err)
	}
	if err := over.NetConn().(*net.TCPConn).CloseWrite(); err != nil {
		t.Error(err)
	}
}

// through is a client's TLS with the upstream itself, in an opaque tunnel.
func (w *world) through() *tls.Conn {
	w.t.Helper()
	c := tls.Client(w.connect(fmt.Sprintf("good.test:%d", w.up.port)), &tls.Config{ServerName: "good.test", InsecureSkipVerify: true})
	w.must(c.Handshake())
	return c
}

// TestBad_AHalfClosedTunnel: an end that has said its last still hears the
// other, in both directions; and one that never closes is ended by the limit.
func TestBad_AHalfClosedTunnel(t *testing.T) {
	cert, _ := minted(t, nil)
	conf := &tls.Config{Certificates: []tls.Certificate{cert}}
	opaque := domain.Domain{Inspect: domain.Opaque}
	t.Run("the client ends first", func(t *testing.T) {
		w := badUp(t, opaque, conf, func(c net.Conn) {
			got, err := io.ReadAll(c)
			if err != nil {
				t.Error(err)
			}
			time.Sleep(50 * time.Millisecond)
			io.WriteString(c, "after your end: "+string(got))
			half(t, c)
		})
		c := w.through()
		io.WriteString(c, "hello")
		half(t, c)
		if b, err := io.ReadAll(c); err != nil || string(b) != "after your end: hello" {
			t.Errorf("%q, %v", b, err)
		}
		w.last(1, "egress/good.test", "")
	})
	t.Run("the upstream ends first", func(t *testing.T) {
		came := make(chan string, 1)
		w := badUp(t, opaque, conf, func(c net.Conn) {
			io.WriteString(c, "the last of me")
			half(t, c)
			got, _ := io.ReadAll(c)
			came <- string(got)
		})
		c := w.through()
		if b, err := io.ReadAll(c); err != nil || string(b) != "the last of me" {
			t.Errorf("%q, %v", b, err)
		}
		io.WriteString(c, "after your end")
		half(t, c)
		if got := <-came; got != "after your end" {
			t.Errorf("the upstream got %q", got)
		}
		w.last(1, "egress/good.test", "")
	})
	never := opaque
	never.Idle = 2 * time.Second // the handshakes within have time enough, also on a machine that is slow
	for name, c := range map[string]struct{ client, up bool }{"the client ends, the upstream never": {true, false}, "the upstream ends, the client never": {false, true}, "neither ends": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := badUp(t, never, conf, func(conn net.Conn) {
				if c.up {
					half(t, conn)
				}
				<-t.Context().Done()
			})
			conn := w.through()
			if c.client {
				half(t, conn)
			}
			raw := conn.NetConn()
			if _, err := io.Copy(io.Discard, raw); isTimeout(err) {
				t.Error("it is still open")
			}
			w.wrong(1, "egress/good.test", holdfast.KindTimeout, true)
		})
	}
}

// TestBad_AHalfClosedExchange: where what is inside is looked into, an upstream
// that ends with its answer ends no more than that, and a client that has ended
// has left: what it asked is ended and recorded.
func TestBad_AHalfClosedExchange(t *testing.T) {
	cert, roots := minted(t, nil)
	conf := &tls.Config{Certificates: []tls.Certificate{cert}}
	w := badUp(t, domain.Domain{Roots: roots}, conf, func(c net.Conn) {
		if !askedOf(c) {
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello to the end")
		half(t, c)
		stayOpen(c)
	})
	c, err := w.tunnel(fmt.Sprintf("good.test:%d", w.up.port), "good.test")
	w.must(err)
	for n := range 2 { // the client's connection goes on
		r := say(c, get(fmt.Sprintf("good.test:%d", w.up.port), "/"))
		if r == nil || r.Text != "hello to the end" {
			t.Fatalf("%d: %+v", n, r)
		}
		w.last(n+1, "egress/good.test", "")
	}
	asked, left := make(chan struct{}), make(chan struct{})
	v := badUp(t, domain.Domain{Roots: roots}, conf, func(c net.Conn) {
		if !askedOf(c) {
			return
		}
		close(asked)
		stayOpen(c)
		close(left)
	})
	c, err = v.tunnel(fmt.Sprintf("good.test:%d", v.up.port), "good.test")
	v.must(err)
	io.WriteString(c, get(fmt.Sprintf("good.test:%d", v.up.port), "/"))
	<-asked
	half(t, c)
	select {
	case <-left:
	case <-time.After(longest):
		t.Error("the upstream still works for nobody")
	}
	v.wrong(1, "egress/good.test", holdfast.KindCanceled, true)
	for n := range 8 { // who has left before it was sent is recorded, too
		quick := newEgress(t, setup{})
		c, err := quick.tunnel(quick.at("good.test"), "good.test")
		quick.must(err)
		io.WriteString(c, get(quick.at("good.test"), "/"))
		half(t, c)
		if e := quick.entries(1)[0]; e.BeginSeq == nil && (e.ErrorKind == "" || len(quick.up.requests()) > 0) {
			t.Errorf("%d: the ledger says %s %q", n, e.Outcome, e.ErrorKind)
		}
	}
}

// TestBad_ASilentWebSocket: a WebSocket in which neither end says anything is
// ended by the limit, and one in which something is said is not.
func TestBad_ASilentWebSocket(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	w := newEgress(t, setup{rows: func(tls, _ uint16) []domain.Domain {
		return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}, WebSocket: true, Idle: limit}}
	}})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(rw, r, nil)
		if err != nil {
			return
		}
		for {
			kind, b, err := c.Read(r.Context())
			if err != nil {
				return
			}
			c.Write(r.Context(), kind, b)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	client := w.client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	c, _, err := websocket.Dial(ctx, strings.Replace(w.url("good.test"), "https", "wss", 1), &websocket.DialOptions{HTTPClient: client})
	w.must(err)
	defer c.CloseNow()
	for start := time.Now(); time.Since(start) < limit*5/4; { // each pause far shorter than the limit, all of them longer
		w.must(c.Write(ctx, websocket.MessageText, []byte("words")))
		if _, b, err := c.Read(ctx); err != nil || string(b) != "words" {
			t.Fatalf("%q, %v", b, err)
		}
		time.Sleep(limit / 40)
	}
	if _, _, err := c.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("after the silence: %v", err)
	}
	w.wrong(1, "egress/good.test", holdfast.KindTimeout, true)
}
