package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// h2ups is badUps over HTTP/2: each of fs writes frames by hand and answers the first
// request of a connection, which is stream 1.
func h2ups(t *testing.T, row domain.Domain, fs map[string]func(h *http2.Framer)) (*world, map[string]uint16) {
	t.Helper()
	cert, roots := minted(t, nil)
	row.Roots = roots
	raw := map[string]func(net.Conn){}
	for name, f := range fs {
		raw[name] = answerFrames(f)
	}
	return badUps(t, row, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}, raw)
}

// answerFrames answers the first request of a connection by f.
func answerFrames(f func(h *http2.Framer)) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		h := http2.NewFramer(c, c)
		if h.WriteSettings() != nil {
			return
		}
		for {
			frame, err := h.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					h.WriteSettingsAck()
				}
			case *http2.HeadersFrame:
				go io.Copy(io.Discard, c)
				f(h)
				time.Sleep(100 * time.Millisecond)
				return
			}
		}
	}
}

// fields are a block of a header: name, value, name, value.
func fields(list ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(list); i += 2 {
		e.WriteField(hpack.HeaderField{Name: list[i], Value: list[i+1]})
	}
	return b.Bytes()
}

func h2headers(h *http2.Framer, ends bool, list ...string) error {
	return h.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields(list...), EndHeaders: true, EndStream: ends})
}

// TestBad_AnUpstreamThatLiesAboutLength: an answer that is shorter than it says
// is never whole; of one that is longer the client gets what was said, or
// nothing; where two lengths are said, or one that is none, there is no answer.
func TestBad_AnUpstreamThatLiesAboutLength(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	type want struct {
		kind holdfast.Kind // "" passes with the body ok
		cut  bool          // the client has a part by then
	}
	refused, cut := want{holdfast.KindForward, false}, want{holdfast.KindForward, true}
	asked := map[*world]int{}
	check := func(t *testing.T, w *world, port uint16, name string, want want) {
		t.Helper()
		w.turnTo(port)
		asked[w]++
		r, err := w.fetch(name, "/")
		switch {
		case want.kind == "":
			if err != nil || r.StatusCode != 200 || r.Text != "ok" {
				t.Fatalf("%v %+v", err, r)
			}
			w.last(asked[w], "egress/"+name, "")
			return
		case want.cut:
			if err == nil {
				t.Fatalf("it looks whole: %+v", r)
			}
		default:
			if err != nil {
				t.Fatal(err)
			}
			w.refused(r, 502)
		}
		w.wrong(asked[w], "egress/"+name, want.kind, true)
	}
	texts := map[string]struct {
		text string
		want want
	}{
		"shorter":               {head + "Content-Length: 5\r\n\r\nok", refused},
		"shorter, and long":     {head + "Content-Length: 3000000\r\n\r\n" + bigText(2<<20), cut},
		"longer":                {head + "Content-Length: 2\r\n\r\nok, and more than was said", want{}},
		"both, agreed":          {head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", want{}},
		"both, longer":          {head + "Content-Length: 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", want{}},
		"both, never in chunks": {head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok", refused},
		"two lengths":           {head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!", refused},
		"two in one field":      {head + "Content-Length: 2, 3\r\n\r\nok!", refused},
		"negative":              {head + "Content-Length: -2\r\n\r\nok", refused},
		"beyond 64 bits":        {head + "Content-Length: 99999999999999999999\r\n\r\nok", refused},
		"no number":             {head + "Content-Length: two\r\n\r\nok", refused},
		"a shorter chunk":       {head + "Transfer-Encoding: chunked\r\n\r\n5\r\nok", refused},
		"a longer chunk":        {head + "Transfer-Encoding: chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n", refused},
		"no last chunk":         {head + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", refused},
		"another encoding":      {head + "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", refused},
	}
	fs := map[string]func(net.Conn){}
	for name, c := range texts {
		fs[name] = func(conn net.Conn) { askedOf(conn); io.WriteString(conn, c.text) }
	}
	w, ports := badUps(t, domain.Domain{}, nil, fs)
	for name, c := range texts {
		t.Run("HTTP/1 "+name, func(t *testing.T) { check(t, w, ports[name], "plain.test", c.want) })
	}
	frames := map[string]struct {
		f    func(*http2.Framer)
		want want
	}{
		"shorter": {func(h *http2.Framer) {
			h2headers(h, false, ":status", "200", "content-type", "text/plain", "content-length", "5")
			h.WriteData(1, true, []byte("ok"))
		}, refused},
		"shorter, and nothing": {func(h *http2.Framer) {
			h2headers(h, true, ":status", "200", "content-type", "text/plain", "content-length", "5")
		}, refused},
		"longer": {func(h *http2.Framer) {
			h2headers(h, false, ":status", "200", "content-type", "text/plain", "content-length", "2")
			h.WriteData(1, true, []byte("ok, and more than was said"))
		}, refused},
		"longer, in pieces": {func(h *http2.Framer) {
			h2headers(h, false, ":status", "200", "content-type", "text/plain", "content-length", "2")
			h.WriteData(1, false, []byte("ok"))
			h.WriteData(1, true, []byte(", and more"))
		}, refused},
		"two lengths": {func(h *http2.Framer) {
			h2headers(h, false, ":status", "200", "content-type", "text/plain", "content-length", "2", "content-length", "3")
			h.WriteData(1, true, []byte("ok"))
		}, refused},
		"negative": {func(h *http2.Framer) {
			h2headers(h, false, ":status", "200", "content-type", "text/plain", "content-length", "-2")
			h.WriteData(1, true, []byte("ok"))
		}, refused},
		"a length and chunks": {func(h *http2.Framer) {
			h2headers(h, false, ":status", "200", "content-type", "text/plain", "content-length", "2", "transfer-encoding", "chunked")
			h.WriteData(1, true, []byte("2\r\nok\r\n0\r\n\r\n"))
		}, refused},
		"reset in the middle": {func(h *http2.Framer) {
			h2headers(h, false, ":status", "200", "content-type", "text/plain")
			h.WriteData(1, false, []byte(bigText(10_000)))
			time.Sleep(50 * time.Millisecond)
			h.WriteRSTStream(1, http2.ErrCodeInternal)
		}, cut},
		"no end": {func(h *http2.Framer) {
			h2headers(h, false, ":status", "200", "content-type", "text/plain")
			h.WriteData(1, false, []byte(bigText(10_000)))
		}, cut},
	}
	byFrames := map[string]func(*http2.Framer){}
	for name, c := range frames {
		byFrames[name] = c.f
	}
	w, ports = h2ups(t, domain.Domain{}, byFrames)
	for name, c := range frames {
		t.Run("HTTP/2 "+name, func(t *testing.T) { check(t, w, ports[name], "good.test", c.want) })
	}
}

// TestBad_AnswersWithoutEnd: what has no end before its body ends the answer
// long before it has taken what would be felt.
func TestBad_AnswersWithoutEnd(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	const chunked = head + "Transfer-Encoding: chunked\r\n\r\n"
	same := func(first, rest string) func() func() string {
		return func() func() string {
			next := first
			return func() string { s := next; next = rest; return s }
		}
	}
	asked := map[*world]int{}
	bounded := func(t *testing.T, w *world, port uint16, name string, kind holdfast.Kind, answered func(), took *atomic.Int64) {
		t.Helper()
		w.turnTo(port)
		asked[w]++
		r, err := w.fetch(name, "/")
		answered()
		if err == nil && r.StatusCode == 200 {
			t.Fatalf("it has an end: %d bytes", len(r.Text))
		}
		if err == nil {
			w.refused(r, map[holdfast.Kind]int{holdfast.KindForward: 502, holdfast.KindTimeout: 504}[kind])
		}
		w.wrong(asked[w], "egress/"+name, kind, true)
		w.until("the upstream has stopped", func() bool { return took.Load() >= 0 })
		// What the sockets hold of it is not the proxy's.
		if n := took.Load(); n > 32<<20 {
			t.Errorf("%d bytes were taken", n)
		}
	}
	took := map[string]*atomic.Int64{} // by how it has no end; below zero until it has stopped
	begun := func(name string) *atomic.Int64 {
		took[name] = &atomic.Int64{}
		took[name].Store(-1)
		return took[name]
	}
	fs := map[string]func(net.Conn){}
	for name, text := range map[string]func() func() string{
		"a status line":       same("HTTP/1.1 200 ", strings.Repeat("O", 4<<10)),
		"a header":            same(head, "X-A: "+strings.Repeat("b", 1000)+"\r\n"),
		"a header field":      same(head+"X-A: ", strings.Repeat("b", 4<<10)),
		"early answers":       same("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
		"long early answers":  same("", "HTTP/1.1 103 Early Hints\r\nLink: "+strings.Repeat("b", 10_000)+"\r\n\r\n"),
		"continues":           same("", "HTTP/1.1 100 Continue\r\n\r\n"),
		"trailers":            same(chunked+chunk("ok")+"0\r\n", "X-A: "+strings.Repeat("b", 1000)+"\r\n"),
		"a trailer":           same(chunked+chunk("ok")+"0\r\nX-A: ", strings.Repeat("b", 4<<10)),
		"a chunk's extension": same(chunked+"2;a=", strings.Repeat("b", 4<<10)),
		"chunks' extensions":  same(chunked, "1;a="+strings.Repeat("b", 3000)+"\r\nx\r\n"),
		"a chunk's size":      same(chunked, strings.Repeat("0", 4<<10)),
	} {
		n := begun("HTTP/1 " + name)
		fs["HTTP/1 "+name] = func(c net.Conn) {
			askedOf(c)
			n.Store(untilCut(c, text()))
		}
	}
	w, ports := badUps(t, domain.Domain{}, nil, fs)
	for name := range fs {
		t.Run(name, func(t *testing.T) {
			bounded(t, w, ports[name], "plain.test", holdfast.KindForward, func() {}, took[name])
		})
	}
	byFrames := map[string]func(*http2.Framer){}
	long := strings.Repeat("b", 1000)
	for name, c := range map[string]struct {
		f    func(h *http2.Framer, i int) error
		size int64 // of a frame, at most
	}{
		"a header": {func(h *http2.Framer, i int) error {
			if i == 0 {
				return h.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields(":status", "200")})
			}
			return h.WriteContinuation(1, false, fields(fmt.Sprintf("x-%d", i), long))
		}, 1100},
		"early answers": {func(h *http2.Framer, i int) error { return h2headers(h, false, ":status", "103", "link", "</a>") }, 50},
		"long early answers": {func(h *http2.Framer, i int) error {
			return h2headers(h, false, ":status", "103", "link", long)
		}, 1100},
		"trailers": {func(h *http2.Framer, i int) error {
			switch i {
			case 0:
				return h2headers(h, false, ":status", "200", "content-type", "text/plain")
			case 1:
				return h.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields("x-a", "b"), EndStream: true})
			}
			return h.WriteContinuation(1, false, fields(fmt.Sprintf("x-%d", i), long))
		}, 1100},
	} {
		sum := begun("HTTP/2 " + name)
		byFrames["HTTP/2 "+name] = func(h *http2.Framer) {
			n := int64(0)
			for i := 0; c.f(h, i) == nil && n < 1<<30; i++ {
				n += c.size
			}
			sum.Store(n)
		}
	}
	over, framePorts := h2ups(t, domain.Domain{}, byFrames)
	for name := range byFrames {
		t.Run(name, func(t *testing.T) {
			bounded(t, over, framePorts[name], "good.test", holdfast.KindForward, func() {}, took[name])
		})
	}
	// A header of empty pieces never becomes too large: the wait for the first
	// byte ends it.
	t.Run("HTTP/2 empty pieces of a header", func(t *testing.T) {
		var took atomic.Int64
		took.Store(-1)
		answered := make(chan struct{})
		w, ports := h2ups(t, domain.Domain{FirstByte: time.Second}, map[string]func(*http2.Framer){"": func(h *http2.Framer) {
			err := h.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields(":status", "200")})
			n := int64(0)
			for err == nil {
				select {
				case <-answered:
					took.Store(n)
					return
				default:
					err = h.WriteContinuation(1, false, nil)
					n += 9
				}
			}
			took.Store(n)
		}})
		bounded(t, w, ports[""], "good.test", holdfast.KindTimeout, func() { close(answered) }, &took)
	})
}

// TestBad_AnAnswerThatIsABomb: what expands too far is ended, in each encoding,
// in one in another, and whatever it says to be; nobody gets much of it, and
// nothing is held.
func TestBad_AnAnswerThatIsABomb(t *testing.T) {
	type answer struct {
		coding, kind string
		body         []byte
	}
	answers := map[string]answer{}
	w := badUp(t, domain.Domain{}, nil, func(conn net.Conn) {
		if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			c := answers[r.URL.Path]
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s",
				c.kind, c.coding, len(c.body), c.body)
		}
	})
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		bomb := packed(t, coding, bombText)
		for name, c := range map[string]struct {
			coding string
			body   []byte
		}{coding: {coding, bomb}, "gzip of " + coding: {coding + ", gzip", packed(t, "gzip", string(bomb))}, "br of zstd of " + coding: {coding + ", zstd, br", packed(t, "br", string(packed(t, "zstd", string(bomb))))}} {
			for _, kind := range []string{"text/plain", "application/json", "text/event-stream"} {
				t.Run(name+", "+kind, func(t *testing.T) {
					path := fmt.Sprintf("/%d", len(answers))
					answers[path] = answer{c.coding, kind, c.body}
					r, err := w.fetch("plain.test", path)
					if r == nil || err == nil && r.StatusCode == 200 || len(r.Text) > 4<<20 {
						t.Fatalf("%v: %d bytes came", err, len(r.Text))
					}
					w.wrong(len(answers), "egress/plain.test", holdfast.KindForward, true)
					if n := w.p.out.memory.Used.Load(); n != 0 {
						t.Errorf("%d bytes are still counted", n)
					}
				})
			}
		}
	}
}
