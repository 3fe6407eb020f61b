package egress

import (
	"bytes"
	"crypto/tls"
	"io"
	"strconv"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2client writes frames by hand, so that it can say what no client says.
type h2client struct {
	t *testing.T
	f *http2.Framer
}

func newH2(t *testing.T, c *tls.Conn) *h2client {
	t.Helper()
	io.WriteString(c, http2.ClientPreface)
	h := &h2client{t, http2.NewFramer(c, c)}
	h.f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := h.f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return h
}

// ended reads until each of the streams has ended, or the connection.
func (h *h2client) ended(streams map[uint32]bool) {
	for len(streams) > 0 {
		f, err := h.f.ReadFrame()
		if err != nil {
			return
		}
		_, over := f.(*http2.RSTStreamFrame)
		if last, ok := f.(interface{ StreamEnded() bool }); ok {
			over = last.StreamEnded()
		}
		if over {
			delete(streams, f.Header().StreamID)
		}
	}
}

// ask sends one request's fields and returns its status; 0 where the stream or
// the connection was ended instead.
func (h *h2client) ask(id uint32, fields ...[2]string) int {
	h.t.Helper()
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, f := range fields {
		e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	if err := h.f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
		return 0
	}
	for {
		f, err := h.f.ReadFrame()
		if err != nil {
			return 0
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				h.f.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			n, _ := strconv.Atoi(f.PseudoValue("status"))
			return n
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return 0
		}
	}
}

func h2get(t *testing.T, c *tls.Conn, authority, host string) int {
	t.Helper()
	fields := [][2]string{{":method", "GET"}, {":scheme", "https"}, {":path", "/"}, {":authority", authority}}
	if host != "" {
		fields = append(fields, [2]string{"host", host})
	}
	return newH2(t, c).ask(1, fields...)
}

func h2connect(t *testing.T, c *tls.Conn, authority string) int {
	t.Helper()
	return newH2(t, c).ask(1, [2]string{":method", "CONNECT"}, [2]string{":authority", authority})
}
