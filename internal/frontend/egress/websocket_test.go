package egress

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// echoing is an upstream that says what it got, in two frames.
func echoing(t *testing.T, seen chan<- string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			http.Error(w, "not here, "+someMail, http.StatusForbidden)
			return
		}
		seen <- "extensions " + r.Header.Get("Sec-Websocket-Extensions")
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover, Subprotocols: []string{"chat"}})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil {
				return
			}
			seen <- string(data)
			out, _ := c.Writer(r.Context(), kind)
			_, _ = out.Write(append([]byte("write to "), data[:len(data)/2]...))
			_, _ = out.Write(append(bytes.Clone(data[len(data)/2:]), " and "+someMail[:4]...))
			_, _ = io.WriteString(out, someMail[4:])
			_ = out.Close()
		}
	}
}

func TestEgress_Bypass26_WebSocketMessagesAreRedacted(t *testing.T) {
	x := newOutside(t, redact.Options{})
	seen := make(chan string, 10)
	d, o := x.upstream(domain.Domain{WebSocket: true, Request: domain.Mask}, true, echoing(t, seen))
	front := x.front(d, o)
	ctx := t.Context()
	c, _, err := websocket.Dial(ctx, front.URL+"/ws?a=1", &websocket.DialOptions{CompressionMode: websocket.CompressionContextTakeover, Subprotocols: []string{"other", "chat"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if got := <-seen; got != "extensions " {
		t.Errorf("the upstream was offered %q", got)
	}
	if c.Subprotocol() != "chat" {
		t.Errorf("protocol %q", c.Subprotocol())
	}
	// A message whose secret lies across two frames.
	w, _ := c.Writer(ctx, websocket.MessageText)
	_, _ = io.WriteString(w, `{"key":"`+someKey[:20])
	_, _ = io.WriteString(w, someKey[20:]+`"}`)
	_ = w.Close()
	if got := <-seen; got != `{"key":"[secret]"}` {
		t.Errorf("the upstream got %q", got)
	}
	kind, got, err := c.Read(ctx)
	if err != nil || kind != websocket.MessageText || strings.Contains(string(got), someMail) || !strings.Contains(string(got), "[email]") {
		t.Errorf("%v %q", err, got)
	}
	_ = c.Close(websocket.StatusNormalClosure, "bye")
}

func TestEgress_Bypass26_BinaryAndLongMessagesEndTheWebSocket(t *testing.T) {
	x := newOutside(t, redact.Options{})
	seen := make(chan string, 10)
	d, o := x.upstream(domain.Domain{WebSocket: true, MaxRequest: 100_000}, true, echoing(t, seen))
	front := x.front(d, o)
	for name, m := range map[string]struct {
		kind websocket.MessageType
		data []byte
	}{
		"binary": {websocket.MessageBinary, bytes.Repeat([]byte{0, 1, 2, 0xfe, 0x80, 7}, 500)},
		"long":   {websocket.MessageText, bytes.Repeat([]byte("words "), 20_000)},
	} {
		c, _, err := websocket.Dial(t.Context(), front.URL+"/ws", nil)
		if err != nil {
			t.Fatal(err)
		}
		<-seen
		if err := c.Write(t.Context(), m.kind, m.data); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Read(t.Context()); err == nil {
			t.Errorf("%s: it was answered", name)
		}
		c.CloseNow()
		select {
		case got := <-seen:
			t.Errorf("%s: the upstream got %.50q", name, got)
		default:
		}
	}
}

func TestEgress_AWebSocketThatIsRefusedIsAnAnswer(t *testing.T) {
	x := newOutside(t, redact.Options{})
	d, o := x.upstream(domain.Domain{WebSocket: true}, true, echoing(t, make(chan string, 1)))
	_, resp, err := websocket.Dial(t.Context(), x.front(d, o).URL+"/no", nil)
	if err == nil || resp == nil || resp.StatusCode != http.StatusForbidden {
		t.Fatalf("%v %v", resp, err)
	}
	if b, _ := io.ReadAll(resp.Body); string(b) != "not here, [email]\n" {
		t.Errorf("%q", b)
	}
}

func TestEgress_ATunnelIsCappedAndClosesInHalves(t *testing.T) {
	x := newOutside(t, redact.Options{})
	port := serving(t, func(c net.Conn) {
		got, _ := io.ReadAll(c) // until the client's half is closed
		_, _ = c.Write(bytes.ToUpper(got))
	})
	tunnelled := func(d *domain.Domain, send []byte) ([]byte, relayed, error) {
		_, o := x.row(domain.Domain{Name: "example.com", Addresses: d.Addresses, Inspect: domain.Opaque}, true, port)
		pair, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer pair.Close()
		client, err := net.Dial("tcp", pair.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		inside, err := pair.Accept()
		if err != nil {
			t.Fatal(err)
		}
		type end struct {
			got relayed
			err error
		}
		ended := make(chan end, 1)
		go func() {
			got, err := x.p.tunnel(context.WithoutCancel(t.Context()), inside, d, o)
			inside.Close()
			ended <- end{got, err}
		}()
		go func() {
			_, _ = client.Write(send)
			_ = client.(*net.TCPConn).CloseWrite()
		}()
		b, _ := io.ReadAll(client)
		e := <-ended
		return b, e.got, e.err
	}
	loop := loopback()
	d := &domain.Domain{Name: "example.com", Addresses: loop, MaxRequest: 1000, MaxResponse: 1000}
	if b, got, err := tunnelled(d, []byte("hello")); err != nil || string(b) != "HELLO" || got.sent != 5 || got.bytes != 5 || got.sum == [32]byte{} {
		t.Errorf("%q %+v %v", b, got, err)
	}
	if _, got, err := tunnelled(d, make([]byte, 5000)); holdfast.KindOf(err) != holdfast.KindPayloadTooLarge || got.sent > 1000 {
		t.Errorf("out: %+v %v", got, err)
	}
	d.MaxRequest, d.MaxResponse = 9000, 100
	if b, got, err := tunnelled(d, make([]byte, 5000)); holdfast.KindOf(err) != holdfast.KindPayloadTooLarge || got.bytes > 100 || len(b) > 100 {
		t.Errorf("back: %d %+v %v", len(b), got, err)
	}
	d.Addresses = nil
	x.dns.say("example.com.", "10.0.0.1")
	if _, got, err := tunnelled(d, []byte("x")); holdfast.KindOf(err) != holdfast.KindDomainBlocked || got.sent != 0 {
		t.Errorf("private: %v", err)
	}
}
