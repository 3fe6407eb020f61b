package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/egress/coding"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// drip gives one byte of text at a time, for ever.
type drip struct{ pause time.Duration }

func (d drip) Read(p []byte) (int, error) {
	time.Sleep(d.pause)
	p[0] = 'x'
	return 1, nil
}

// TestBad_ASlowClient: who sends slowly, or stops, is let go at every stage, and
// nothing of what came is sent; what was asked by then is recorded.
func TestBad_ASlowClient(t *testing.T) {
	const step = 50 * time.Millisecond
	// What a client does say has time enough, also on a machine that is slow.
	slow := Limits{Header: 2 * time.Second, Idle: 2 * time.Second, Body: 500 * time.Millisecond}
	dripped := func(c io.Writer, text string) {
		for i := range len(text) {
			if _, err := io.WriteString(c, text[i:i+1]); err != nil {
				return
			}
			time.Sleep(step)
		}
	}
	// Nothing was asked: the connection ends without an answer or a record.
	for name, f := range map[string]func(w *world) net.Conn{
		"nothing": func(w *world) net.Conn { return w.dial(w.explicit) },
		"a header that drips": func(w *world) net.Conn {
			c := w.dial(w.explicit)
			go dripped(c, "GET http://"+w.plainHost()+"/ HTTP/1.1\r\nX-A: "+strings.Repeat("a", 1000))
			return c
		},
		"half a header": func(w *world) net.Conn {
			c := w.dial(w.explicit)
			io.WriteString(c, "GET http://"+w.plainHost()+"/ HTTP/1.1\r\nX-A: ")
			return c
		},
		"a CONNECT and nothing": func(w *world) net.Conn { return w.connect(w.at("good.test")) },
		"TLS, and a header that drips": func(w *world) net.Conn {
			c, err := w.tunnel(w.at("good.test"), "good.test")
			w.must(err)
			go dripped(c, "GET / HTTP/1.1\r\nX-A: "+strings.Repeat("a", 1000))
			return c
		},
		"HTTP/2, and nothing": func(w *world) net.Conn {
			c, err := w.tunnel(w.at("good.test"), "good.test", "h2")
			w.must(err)
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEgress(t, setup{config: func(c *Config) { c.Limits = slow }})
			if b, err := io.ReadAll(f(w)); isTimeout(err) {
				t.Fatalf("it is still open, and said %q", b)
			}
			w.untouched()
			w.entries(0)
		})
	}
	for name, f := range map[string]func(w *world) net.Conn{
		"a ClientHello that drips": func(w *world) net.Conn {
			c := w.connect(w.at("good.test"))
			go dripped(c, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"+strings.Repeat("a", 500))
			return c
		},
		"a handshake without an end": func(w *world) net.Conn {
			c := w.connect(w.at("good.test"))
			w.must(sayHello(c, "good.test", w.roots))
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEgress(t, setup{config: func(c *Config) { c.Limits = slow }})
			if b, err := io.ReadAll(f(w)); isTimeout(err) {
				t.Fatalf("it is still open, and said %q", b)
			}
			w.untouched()
			w.wrong(1, "egress/good.test", holdfast.KindValidation, false)
		})
	}
	for name, f := range map[string]func(w *world) *reply{
		"a body that stops": func(w *world) *reply {
			return say(w.dial(w.explicit), fmt.Sprintf("POST http://%s/ HTTP/1.1\r\nHost: %[1]s\r\nContent-Length: 10\r\n\r\nabc", w.plainHost()))
		},
		"a body that drips": func(w *world) *reply {
			c := w.dial(w.explicit)
			fmt.Fprintf(c, "POST http://%s/ HTTP/1.1\r\nHost: %[1]s\r\nContent-Length: 100000\r\n\r\n", w.plainHost())
			go dripped(c, strings.Repeat("x", 100_000))
			return hear(bufio.NewReader(c), "POST")
		},
		"chunks that drip": func(w *world) *reply {
			c := w.dial(w.explicit)
			fmt.Fprintf(c, "POST http://%s/ HTTP/1.1\r\nHost: %[1]s\r\nTransfer-Encoding: chunked\r\n\r\n", w.plainHost())
			go dripped(c, strings.Repeat("1\r\nx\r\n", 10_000))
			return hear(bufio.NewReader(c), "POST")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEgress(t, setup{config: func(c *Config) { c.Limits = slow }})
			r := f(w)
			w.refused(r, http.StatusBadRequest)
			if !strings.Contains(r.Text, "did not arrive in time") {
				t.Errorf("%q", r.Text)
			}
			w.untouched()
			w.wrong(1, "egress/plain.test", holdfast.KindValidation, false)
		})
	}
	t.Run("a body that drips over HTTP/2", func(t *testing.T) {
		t.Parallel()
		w := newEgress(t, setup{config: func(c *Config) { c.Limits = slow }})
		resp, err := w.client().Post(w.url("good.test"), "text/plain", drip{step})
		w.must(err)
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		w.refused(&reply{resp, string(text)}, http.StatusBadRequest)
		if resp.ProtoMajor != 2 {
			t.Errorf("spoken was %s", resp.Proto)
		}
		w.untouched()
		w.wrong(1, "egress/good.test", holdfast.KindValidation, false)
	})
}

func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}

// sayHello sends the ClientHello of a handshake that does not go on.
func sayHello(c net.Conn, name string, roots *x509.CertPool) error {
	err := tls.Client(helloOnly{c}, &tls.Config{ServerName: name, RootCAs: roots}).Handshake()
	if errors.Is(err, errHelloSaid) {
		return nil
	}
	return fmt.Errorf("the handshake ended with %w", err)
}

// helloOnly sends, and hears nothing of the answer.
type helloOnly struct{ net.Conn }

var errHelloSaid = errors.New("the ClientHello was said")

func (helloOnly) Read([]byte) (int, error) { return 0, errHelloSaid }

// Write lets no alert follow the ClientHello.
func (c helloOnly) Write(p []byte) (int, error) {
	if p[0] != recordHandshake {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// TestBad_ARequestWithoutEnd: a head, a line of a chunk or a trailer that does
// not end is refused at its bound.
func TestBad_ARequestWithoutEnd(t *testing.T) {
	head := func(w *world) string {
		return fmt.Sprintf("POST http://%s/ HTTP/1.1\r\nHost: %[1]s\r\n", w.plainHost())
	}
	chunked := func(w *world) string { return head(w) + "Transfer-Encoding: chunked\r\n\r\n" }
	w := newEgress(t, setup{rows: func(_, plain uint16) []domain.Domain {
		return []domain.Domain{{Name: "plain.test", Ports: []uint16{plain}, Plain: true, MaxRequest: 256 << 10}}
	}})
	asked := 0
	for name, c := range map[string]struct {
		first  func(w *world) string
		rest   string
		status int
		kind   holdfast.Kind
		host   string
	}{
		"header fields":       {head, "X-A: " + strings.Repeat("b", 1000) + "\r\n", 413, holdfast.KindPayloadTooLarge, "unknown"},
		"small fields":        {head, "a:b\r\n", 413, holdfast.KindPayloadTooLarge, "unknown"},
		"a header field":      {func(w *world) string { return head(w) + "X-A: " }, strings.Repeat("b", 4<<10), 413, holdfast.KindPayloadTooLarge, "unknown"},
		"a target":            {func(w *world) string { return "GET http://" + w.plainHost() + "/" }, strings.Repeat("b", 4<<10), 413, holdfast.KindPayloadTooLarge, "unknown"},
		"a trailer":           {func(w *world) string { return chunked(w) + "2\r\nok\r\n0\r\nX-A: " }, strings.Repeat("b", 4<<10), 400, holdfast.KindValidation, "plain.test"},
		"trailers":            {func(w *world) string { return chunked(w) + "2\r\nok\r\n0\r\n" }, "X-A: b\r\n", 400, holdfast.KindValidation, "plain.test"},
		"a chunk's extension": {func(w *world) string { return chunked(w) + "2;a=" }, strings.Repeat("b", 4<<10), 400, holdfast.KindValidation, "plain.test"},
		"chunks' extensions":  {chunked, "1;a=b\r\nx\r\n", 400, holdfast.KindValidation, "plain.test"},
		"a chunk's size":      {chunked, strings.Repeat("0", 4<<10), 400, holdfast.KindValidation, "plain.test"},
		"small chunks":        {chunked, strings.Repeat("1\r\nx\r\n", 1<<10), 413, holdfast.KindPayloadTooLarge, "plain.test"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := w.dial(w.explicit)
			took := make(chan int64, 1)
			go func() {
				next := c.first(w)
				took <- untilCut(conn, func() string { s := next; next = c.rest; return s })
			}()
			w.refused(hear(bufio.NewReader(conn), "POST"), c.status)
			conn.Close()
			if n := <-took; n > 32<<20 {
				t.Errorf("%d bytes were taken", n)
			}
			w.untouched()
			asked++
			w.wrong(asked, "egress/"+c.host, c.kind, false)
		})
	}
}

// TestBad_ARequestThatIsABomb: what expands too far is refused, in each encoding
// and in one in another, and nothing of it is sent.
func TestBad_ARequestThatIsABomb(t *testing.T) {
	w := newEgress(t, setup{rows: func(tls, _ uint16) []domain.Domain {
		return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}, MaxRequest: 256 << 20}}
	}})
	n := 0
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		bomb := packed(t, coding, bombText)
		for said, body := range map[string][]byte{coding: bomb, coding + ", gzip": packed(t, "gzip", string(bomb)), coding + ", zstd, br": packed(t, "br", string(packed(t, "zstd", string(bomb))))} {
			r := w.send("POST", w.url("good.test"), string(body), "Content-Type", "text/plain", "Content-Encoding", said)
			w.refused(r, http.StatusBadRequest)
			if !strings.Contains(r.Text, "expands to more than") {
				t.Errorf("%s: %s", said, r.Text)
			}
			n++
			w.wrong(n, "egress/good.test", holdfast.KindValidation, false)
		}
	}
	w.untouched()
	if used := w.p.out.memory.Used.Load(); used != 0 {
		t.Errorf("%d bytes are still counted", used)
	}
}

// TestBad_WindowsOfDecodersAreCounted: what decoders keep is of the memory that
// all bodies share, also where little comes out of them.
func TestBad_WindowsOfDecodersAreCounted(t *testing.T) {
	x := newOutside(t, redact.Options{})
	x.p.out.memory.Most = 12 << 20
	// 8 MB of window each, and 2^24 bytes, as their first bytes say.
	zstdHead := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 13 << 3}
	brotliHead := []byte{0x0f}
	for name, c := range map[string]struct {
		list []string
		head []byte
		fits bool
	}{
		"zstd":                 {[]string{"zstd"}, zstdHead, true},
		"br":                   {[]string{"br"}, brotliHead, false},
		"gzip":                 {[]string{"gzip"}, packed(t, "gzip", "words"), true},
		"zstd of a small body": {[]string{"zstd"}, packed(t, "zstd", "words"), true},
	} {
		var held []io.Closer
		for range 2 {
			in, err := coding.Decode(bytes.NewReader(c.head), c.list, x.p.out.memory.NewShare(nil))
			if err != nil {
				if err != coding.ErrNoMemory {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
			held = append(held, in)
		}
		want := 2
		if name == "zstd" {
			want = 1
		}
		if !c.fits {
			want = 0
		}
		if len(held) != want {
			t.Errorf("%s: %d at a time, want %d", name, len(held), want)
		}
		for _, in := range held {
			in.Close()
		}
		if used := x.p.out.memory.Used.Load(); used != 0 {
			t.Fatalf("%s: %d bytes are still counted", name, used)
		}
	}
	// The window of a frame after the first is not larger than it.
	small := packed(t, "zstd", "words")
	in, err := coding.Decode(io.MultiReader(bytes.NewReader(small), bytes.NewReader(append(zstdHead, 0, 0, 0))), []string{"zstd"}, x.p.out.memory.NewShare(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if b, err := io.ReadAll(in); err == nil {
		t.Errorf("a second frame with a larger window: %q", b)
	}
}

// TestBad_NoRoomForADecoder: over the wire a body for whose decoder there is no
// room is turned away by name, and one that fits passes.
func TestBad_NoRoomForADecoder(t *testing.T) {
	w := newEgress(t, setup{config: func(c *Config) { c.MaxBuffered = 12 << 20 }})
	big := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 13 << 3}, 1, 0, 0) // an empty last block
	r := w.send("POST", w.url("good.test"), string(big), "Content-Type", "text/plain", "Content-Encoding", "zstd")
	w.refused(r, http.StatusServiceUnavailable)
	w.wrong(1, "egress/good.test", holdfast.KindBounds, false)
	w.untouched()
	w.passed(w.send("POST", w.url("good.test"), string(packed(t, "zstd", "words")), "Content-Type", "text/plain", "Content-Encoding", "zstd"))
}

// TestBad_AScannerThatExceedsItsTime: what cannot be redacted in time is not
// sent, and not shown.
func TestBad_AScannerThatExceedsItsTime(t *testing.T) {
	t.Run("a request", func(t *testing.T) {
		w := newEgress(t, setup{})
		w.p.out.cleaners.Limit = time.Nanosecond
		r := w.send("POST", w.url("good.test"), bigText(1<<20), "Content-Type", "text/plain")
		w.refused(r, http.StatusInternalServerError)
		w.untouched()
		w.wrong(1, "egress/good.test", holdfast.KindRedaction, false)
	})
	t.Run("an answer", func(t *testing.T) {
		w := newEgress(t, setup{})
		w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
			w.p.out.cleaners.Limit = time.Nanosecond // what was sent had more
			text := bigText(1 << 19)
			rw.Header().Set("Content-Type", "text/plain")
			rw.Header().Set("Content-Length", itoa(len(text)))
			io.WriteString(rw, text)
		})
		r := w.send("GET", w.url("good.test"), "")
		w.refused(r, http.StatusInternalServerError)
		if strings.Contains(r.Text, "words and words") {
			t.Error("what was not read is shown")
		}
		w.wrong(1, "egress/good.test", holdfast.KindRedaction, true)
	})
}

// TestBad_AnEmptyAllowlist: nothing is listed, and so nothing passes, whatever
// way it is asked.
func TestBad_AnEmptyAllowlist(t *testing.T) {
	for name, table := range map[string]*domain.Table{"none": nil, "empty": {}} {
		t.Run(name, func(t *testing.T) {
			w := newEgress(t, setup{config: func(c *Config) { c.Table = func() *domain.Table { return table } }})
			inside := func(host string) *tls.Conn {
				return tls.Client(w.dial(w.clear), &tls.Config{ServerName: host, RootCAs: w.roots})
			}
			n := 0
			refused := func(r *reply, boundary string) {
				t.Helper()
				w.refused(r, http.StatusForbidden)
				n++
				w.wrong(n, "egress/"+boundary, holdfast.KindDomainBlocked, false)
			}
			at := w.plainHost()
			refused(say(w.dial(w.explicit), fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", w.at("good.test"))), "good.test")
			refused(say(w.dial(w.explicit), fmt.Sprintf("CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%[1]d\r\n\r\n", w.up.port)), "127.0.0.1")
			refused(say(w.dial(w.explicit), fmt.Sprintf("GET http://%s/ HTTP/1.1\r\nHost: %[1]s\r\n\r\n", at)), "plain.test")
			refused(say(w.dial(w.open), get(at, "/")), "plain.test")
			refused(say(inside("good.test"), get(w.at("good.test"), "/")), "good.test")
			refused(say(inside("blind.test"), get(w.at("blind.test"), "/")), "blind.test")
			c := tls.Client(w.dial(w.clear), &tls.Config{ServerName: "good.test", RootCAs: w.roots, NextProtos: []string{"h2"}})
			w.must(c.Handshake())
			if status := h2get(t, c, w.at("good.test"), ""); status != http.StatusForbidden {
				t.Errorf("over HTTP/2: %d", status)
			}
			w.entries(n + 1)
			w.untouched()
		})
	}
}
