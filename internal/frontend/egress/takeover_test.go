package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/refusal"
)

// counting answers /events with two events, /half with one before it breaks off,
// /never with one before it waits for the client to go, and all else at once.
func counting(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" {
		io.WriteString(rw, "hello")
		return
	}
	rw.Header().Set("Content-Type", "text/event-stream")
	rw.Header().Set("X-Said", "so")
	io.WriteString(rw, "data: one\n\n")
	rw.(http.Flusher).Flush()
	switch r.URL.Path {
	case "/half":
		panic(http.ErrAbortHandler)
	case "/never":
		<-r.Context().Done()
		return
	}
	io.WriteString(rw, "data: two\n\n")
}

// lastingWays are the ways on which one connection carries many answers.
func lastingWays(w *world) map[string]func() (c net.Conn, host string) {
	return map[string]func() (net.Conn, string){
		"in clear": func() (net.Conn, string) { return w.dial(w.open), w.plainHost() },
		"over TLS": func() (net.Conn, string) {
			c, err := w.tunnel(w.at("good.test"), "good.test", "http/1.1")
			w.must(err)
			return c, w.at("good.test")
		},
	}
}

// TestEgress_AStreamsConnectionIsUsedAgain: requests before and after a stream
// of events, sent one by one or all at once, are answered on one connection in
// their order, and each is a crossing.
func TestEgress_AStreamsConnectionIsUsedAgain(t *testing.T) {
	w := newEgress(t, setup{})
	w.up.answer(counting)
	w.plain.answer(counting)
	paths, all := []string{"/", "/events", "/events", "/", "/events", "/"}, 0
	for name, way := range lastingWays(w) {
		for _, atOnce := range []bool{false, true} {
			c, host := way()
			b := bufio.NewReader(c)
			if atOnce {
				var text strings.Builder
				for _, p := range paths {
					text.WriteString(get(host, p))
				}
				go io.WriteString(c, text.String())
			}
			for i, p := range paths {
				if !atOnce {
					io.WriteString(c, get(host, p))
				}
				r := hear(b, "GET")
				want := "hello"
				if p == "/events" {
					want = "data: one\n\ndata: two\n\n"
				}
				switch {
				case r == nil || r.StatusCode != 200 || r.Text != want:
					t.Fatalf("%s, at once %v, answer %d: %+v", name, atOnce, i, r)
				case p == "/events" && (r.Header.Get("X-Said") != "so" || r.Header.Get("Date") == "" || r.Header.Get(refusal.HeaderCrossing) == "" || r.Close):
					t.Errorf("%s: the stream's header is %v", name, r.Header)
				}
				all++
			}
		}
	}
	for _, e := range w.entries(all) {
		if e.ErrorKind != "" {
			t.Errorf("%s is recorded as %s", e.Boundary, e.ErrorKind)
		}
	}
}

// TestEgress_AStreamsPlaceIsGivenBack: more streams than one caller has places
// for are answered one after the other.
func TestEgress_AStreamsPlaceIsGivenBack(t *testing.T) {
	w := newEgress(t, setup{})
	w.plain.answer(counting)
	c := w.dial(w.open)
	b := bufio.NewReader(c)
	for i := range maxAtOnce + 10 {
		io.WriteString(c, get(w.plainHost(), "/events"))
		if r := hear(b, "GET"); r == nil || r.StatusCode != 200 {
			t.Fatalf("stream %d: %+v", i, r)
		}
	}
}

// TestEgress_AStreamThatBreaksOffIsSeenTo: the connection ends before the
// answer does, and the crossing failed.
func TestEgress_AStreamThatBreaksOffIsSeenTo(t *testing.T) {
	w := newEgress(t, setup{})
	w.up.answer(counting)
	w.plain.answer(counting)
	n := 0
	for name, way := range lastingWays(w) {
		c, host := way()
		go io.WriteString(c, get(host, "/half"))
		b := bufio.NewReader(c)
		resp, err := http.ReadResponse(b, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		if text, err := io.ReadAll(resp.Body); err != io.ErrUnexpectedEOF || !strings.HasPrefix("data: one\n\n", string(text)) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		n++
		if e := w.entries(n)[n-1]; e.ErrorKind != holdfast.KindForward {
			t.Errorf("%s is recorded as %q", name, e.ErrorKind)
		}
	}
}

// TestEgress_AStreamEndsWithItsClient: what the client of a stream asked for is
// ended when it goes, and recorded as that.
func TestEgress_AStreamEndsWithItsClient(t *testing.T) {
	w := newEgress(t, setup{})
	w.up.answer(counting)
	w.plain.answer(counting)
	n := 0
	for name, way := range lastingWays(w) {
		c, host := way()
		go io.WriteString(c, get(host, "/never"))
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
			t.Fatal(name, resp, err)
		}
		c.Close()
		n++
		if e := w.entries(n)[n-1]; e.ErrorKind != holdfast.KindCanceled {
			t.Errorf("%s is recorded as %q", name, e.ErrorKind)
		}
	}
	w.until("no connection is open", func() bool { return w.p.Snapshot().Open == 0 })
}

// TestEgress_TheLastStreamOfAConnectionEndsIt: where the client says so, and
// where it speaks HTTP/1.0.
func TestEgress_TheLastStreamOfAConnectionEndsIt(t *testing.T) {
	w := newEgress(t, setup{})
	w.plain.answer(counting)
	for _, text := range []string{
		"GET /events HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
		"GET /events HTTP/1.0\r\nHost: %s\r\n\r\n",
	} {
		c := w.dial(w.open)
		go fmt.Fprintf(c, text, w.plainHost())
		b := bufio.NewReader(c)
		if r := hear(b, "GET"); r == nil || r.Text != "data: one\n\ndata: two\n\n" || !r.Close {
			t.Errorf("%q: %+v", text, r)
		}
		if _, err := b.ReadByte(); err != io.EOF {
			t.Errorf("%q: after it comes %v", text, err)
		}
	}
}
