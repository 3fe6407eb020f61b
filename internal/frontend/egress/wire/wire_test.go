package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// fed is a connection that says what it was given, in pieces of its own.
type fed struct {
	net.Conn
	r io.Reader
}

func (f fed) Read(p []byte) (int, error)  { return f.r.Read(p) }
func (f fed) SetDeadline(time.Time) error { return nil }

// FuzzWire holds wire against net/http: whatever comes, net/http reads exactly
// the requests that wire found, with the same methods, and no byte more.
func FuzzWire(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: b\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n\x16\x03\x01",
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x00", "GET / HTTP/1.1\nHost: a\n\n", "\r\n\r\n", "G",
		"HEAD / HTTP/1.1\r\nHost: a\r\nX: \xff\r\nContent-Length: 0\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na",
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, byteByByte bool) {
		var r io.Reader = bytes.NewReader(b)
		if byteByByte {
			r = iotest.OneByteReader(r)
		}
		w := New(fed{r: r}, nil, nil)
		handed, err := io.ReadAll(w)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && holdfast.KindOf(err) != holdfast.KindValidation {
			t.Fatalf("ended with %v", err)
		}
		in := bufio.NewReader(bytes.NewReader(handed))
		for {
			req, rerr := http.ReadRequest(in)
			h := w.Take()
			if rerr != nil {
				if h != nil {
					t.Fatalf("net/http says %v of a head that was handed on: %q", rerr, handed)
				}
				break
			}
			if h == nil {
				t.Fatalf("net/http read %s %s, which wire did not see: %q", req.Method, req.RequestURI, handed)
			}
			if h.Mistake != nil {
				break // of wire's own, and the last
			}
			if req.Method != h.method || (req.ContentLength >= 0) != !h.chunked || h.sized && !h.chunked && req.ContentLength != h.length {
				t.Fatalf("net/http read %s of length %d, wire %+v", req.Method, req.ContentLength, h)
			}
			if h.connect || h.Upgrade {
				break
			}
			if _, berr := io.Copy(io.Discard, req.Body); berr != nil && err == nil {
				t.Fatalf("net/http says %v of a body that was handed on whole: %q", berr, handed)
			}
		}
	})
}

func TestWire_ADeadlineInTheMiddleOfAHeadLosesNothing(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	w := New(b, nil, nil)
	go func() {
		a.Write([]byte("GET / HTTP/1.1\r\nHo")) // it returns when all was read
		b.SetReadDeadline(time.Unix(1, 0))
	}()
	buf := make([]byte, 1024)
	if n, err := w.Read(buf); n != 0 || err == nil {
		t.Fatalf("half a head was handed on: %q %v", buf[:n], err)
	}
	b.SetReadDeadline(time.Time{})
	go a.Write([]byte("st: a\r\n\r\n"))
	if _, err := w.Read(buf); err != nil {
		t.Fatal(err)
	}
	if h := w.Take(); h == nil || h.Mistake != nil || h.Host != "a" {
		t.Fatalf("found %+v", h)
	}
}

// TestWire_SmallChunksAreHandedOnTogether: a body of a byte in each chunk costs
// few calls, and what follows it is handed on by itself.
func TestWire_SmallChunksAreHandedOnTogether(t *testing.T) {
	const chunks = 10_000
	body := strings.Repeat("1\r\nx\r\n", chunks) + "0\r\n\r\n"
	next := "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	w := New(fed{r: strings.NewReader("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + body + next)}, nil, nil)
	var handed []byte
	calls, buf := 0, make([]byte, 4<<10)
	for !bytes.HasSuffix(handed, []byte(body)) {
		n, err := w.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		handed = append(handed, buf[:n]...)
		calls++
	}
	if calls > chunks/100 {
		t.Errorf("%d calls for %d chunks", calls, chunks)
	}
	if w.Take() == nil || w.Take() != nil {
		t.Error("not one request was handed on")
	}
	if _, err := w.Read(buf); err != nil || w.Take() == nil {
		t.Errorf("the request after it: %v", err)
	}
}
