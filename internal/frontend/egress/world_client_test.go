package egress

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
)

// dial opens a raw connection.
func (w *world) dial(addr string) net.Conn {
	w.t.Helper()
	c, err := net.Dial("tcp", addr)
	w.must(err)
	w.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(longest))
	return c
}

// reply is an answer, read whole.
type reply struct {
	*http.Response
	Text string
}

// say writes bytes as they are and reads one answer; nil where the connection
// ended without one.
func say(c net.Conn, text string) *reply {
	go io.WriteString(c, text)
	return hear(bufio.NewReader(c), "GET")
}

func hear(b *bufio.Reader, method string) *reply {
	resp, err := http.ReadResponse(b, &http.Request{Method: method})
	if err != nil {
		return nil
	}
	text, _ := io.ReadAll(resp.Body)
	return &reply{resp, string(text)}
}

// tunnel makes a CONNECT and TLS inside it, as name and sni say.
func (w *world) tunnel(connect, sni string, protos ...string) (*tls.Conn, error) {
	w.t.Helper()
	c := w.connect(connect)
	t := tls.Client(c, &tls.Config{ServerName: sni, RootCAs: w.roots, NextProtos: protos})
	return t, t.Handshake()
}

// connect makes a CONNECT that must succeed.
func (w *world) connect(to string) net.Conn {
	w.t.Helper()
	c := w.dial(w.explicit)
	io.WriteString(c, "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n\r\n")
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
	if err != nil || r.StatusCode != 200 {
		w.t.Fatalf("CONNECT %s: %v %v", to, r, err)
	}
	return c
}

// get is a GET as raw text.
func get(host, path string) string { return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n" }

// refused fails unless r is a refusal with the status, with a crossing and a
// reason.
func (w *world) refused(r *reply, status int) {
	w.t.Helper()
	switch {
	case r == nil:
		w.t.Fatalf("no answer, want %d", status)
	case r.StatusCode != status:
		w.t.Fatalf("status %d (%s), want %d", r.StatusCode, r.Text, status)
	case r.Header.Get(refusal.HeaderCrossing) == "":
		w.t.Fatalf("the refusal names no crossing: %v %s", r.Header, r.Text)
	case !strings.Contains(r.Text, "holdfast: ") && !strings.Contains(r.Text, `"why"`):
		w.t.Fatalf("the refusal gives no reason: %q", r.Text)
	}
}

// passed fails unless r is the server's own answer.
func (w *world) passed(r *reply) {
	w.t.Helper()
	if r == nil || r.StatusCode != 200 || !strings.HasPrefix(r.Text, "hello") {
		w.t.Fatalf("want the server's answer, got %+v", r)
	}
}

// untouched fails if anything reached a server.
func (w *world) untouched() {
	w.t.Helper()
	if a, b := w.up.requests(), w.plain.requests(); len(a)+len(b) > 0 {
		w.t.Fatalf("a server was reached: %+v %+v", a, b)
	}
}

// client speaks through the proxy port as programs do.
func (w *world) client() *http.Client {
	t := &http.Transport{Proxy: http.ProxyURL(mustURL("http://" + w.explicit)), TLSClientConfig: &tls.Config{RootCAs: w.roots}, ForceAttemptHTTP2: true}
	w.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, Timeout: longest}
}
