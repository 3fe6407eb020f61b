package egress

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// beside opens one more proxy port, of another agent.
func (w *world) beside(name string) string {
	l := w.port()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.p.Explicit(l, Caller{Token: func() (holdfast.Secret, error) { return w.who(name) }})
	}()
	w.t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func (w *world) plainHost() string { return fmt.Sprintf("plain.test:%d", w.plain.port) }

// TestAttack_OneAgentHoldsTheMemoryOfAll: bodies that never end, of one agent,
// leave room for another's.
func TestAttack_OneAgentHoldsTheMemoryOfAll(t *testing.T) {
	w := newEgress(t, setup{config: func(c *Config) { c.MaxBuffered = 32 << 20 }})
	bob := w.beside("bob")
	piece := strings.Repeat("x", 2<<20)
	for range 40 {
		c := w.dial(w.explicit)
		go fmt.Fprintf(c, "POST http://%s/ HTTP/1.1\r\nHost: %s\r\nContent-Length: 9000000\r\n\r\n%s", w.plainHost(), w.plainHost(), piece)
	}
	w.until("the agent holds memory", func() bool { return w.p.out.memory.Used.Load() >= 12<<20 })
	time.Sleep(100 * time.Millisecond)
	for range 5 {
		r := say(w.dial(bob), fmt.Sprintf("POST http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n%s", w.plainHost(), w.plainHost(), piece[:100000]))
		w.passed(r)
	}
}

// TestAttack_OneAgentHoldsEveryPlace: answers that never end, of one agent,
// leave places for another's requests; its own next are turned away in words.
func TestAttack_OneAgentHoldsEveryPlace(t *testing.T) {
	w := newEgress(t, setup{})
	bob := w.beside("bob")
	never := make(chan struct{})
	w.plain.answer(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/never" {
			rw.(http.Flusher).Flush()
			select {
			case <-never:
			case <-r.Context().Done():
			}
			return
		}
		io.WriteString(rw, "hello")
	})
	defer close(never)
	for range maxAtOnce {
		io.WriteString(w.dial(w.open), get(w.plainHost(), "/never"))
	}
	// The open listener and the proxy port have no flow in common here; the
	// connections of one listener do.
	w.until("all places are taken", func() bool { return len(w.plain.requests()) >= maxAtOnce })
	if r := say(w.dial(w.open), get(w.plainHost(), "/")); r == nil || r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("one too many: %+v", r)
	}
	w.passed(say(w.dial(bob), fmt.Sprintf("GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", w.plainHost(), w.plainHost())))
}

// TestAttack_ARateIsNotExceededAtOnce: many more requests at once than may be, over
// HTTP/1, HTTP/2 and with clients that leave at once, get the ten that the row
// allows.
func TestAttack_ARateIsNotExceededAtOnce(t *testing.T) {
	w := newEgress(t, setup{rows: func(tls, plain uint16) []domain.Domain {
		return []domain.Domain{{Name: "good.test", Ports: []uint16{tls}, Rate: 10}, {Name: "plain.test", Ports: []uint16{plain}, Plain: true, Rate: 10}}
	}})
	w.stopClock()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			c, err := w.tunnel(w.at("good.test"), "good.test", "h2")
			if err != nil {
				t.Error(err)
				return
			}
			h, waiting := newH2(t, c), map[uint32]bool{}
			var b bytes.Buffer
			e := hpack.NewEncoder(&b)
			for i := range testrepeat.Times(60, 20) {
				b.Reset()
				for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":path", fmt.Sprintf("/%d", i)}, {":authority", w.at("good.test")}} {
					e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
				}
				id := uint32(1 + 2*i)
				if h.f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b.Bytes(), EndStream: true, EndHeaders: true}) != nil {
					return
				}
				if i%3 == 0 {
					h.f.WriteRSTStream(id, http2.ErrCodeCancel)
					continue
				}
				waiting[id] = true
			}
			h.ended(waiting)
		})
	}
	for i := range testrepeat.Times(200, 60) {
		all.Go(func() {
			c := w.dial(w.open)
			io.WriteString(c, get(w.plainHost(), "/"))
			if i%2 == 0 {
				c.Close()
				return
			}
			c.Read(make([]byte, 100))
		})
	}
	all.Wait()
	if n := len(w.up.requests()); n == 0 || n > 10 {
		t.Errorf("over TLS %d requests got through, 10 may", n)
	}
	if n := len(w.plain.requests()); n == 0 || n > 10 {
		t.Errorf("in clear %d requests got through, 10 may", n)
	}
}

// TestAttack_FramesWithoutEnd: what is cheap to send and dear to take ends the
// connection that sends it, and nothing else.
func TestAttack_FramesWithoutEnd(t *testing.T) {
	field := func(name, value string) []byte {
		var b bytes.Buffer
		hpack.NewEncoder(&b).WriteField(hpack.HeaderField{Name: name, Value: value})
		return b.Bytes()
	}
	for name, flood := range map[string]func(w *world, h *h2client, i int) error{
		"resets": func(w *world, h *h2client, i int) error {
			id := uint32(1 + 2*i)
			block := append(append(append(field(":method", "GET"), field(":scheme", "https")...), field(":path", "/")...), field(":authority", w.at("good.test"))...)
			if err := h.f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: true, EndHeaders: true}); err != nil {
				return err
			}
			return h.f.WriteRSTStream(id, http2.ErrCodeCancel)
		},
		"continuations": func(w *world, h *h2client, i int) error {
			if i == 0 {
				return h.f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: field(":method", "GET")})
			}
			return h.f.WriteContinuation(1, false, field(fmt.Sprintf("x-%d", i), strings.Repeat("v", 1000)))
		},
		"empty continuations": func(w *world, h *h2client, i int) error {
			if i == 0 {
				return h.f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: field(":method", "GET")})
			}
			return h.f.WriteContinuation(1, false, nil)
		},
		"settings": func(w *world, h *h2client, i int) error {
			return h.f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(i)})
		},
		"pings": func(w *world, h *h2client, i int) error { return h.f.WritePing(false, [8]byte{byte(i)}) },
		"priorities": func(w *world, h *h2client, i int) error {
			return h.f.WritePriority(uint32(1+2*i), http2.PriorityParam{Weight: 1})
		},
		"small windows": func(w *world, h *h2client, i int) error {
			if i == 0 {
				return h.f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: append(append(append(field(":method", "POST"), field(":scheme", "https")...), field(":path", "/")...), field(":authority", w.at("good.test"))...), EndHeaders: true})
			}
			return h.f.WriteData(1, false, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEgress(t, setup{})
			c, err := w.tunnel(w.at("good.test"), "good.test", "h2")
			if err != nil {
				t.Fatal(err)
			}
			h := newH2(t, c)
			go io.Copy(io.Discard, c)
			for i := range testrepeat.Times(100_000, 0) {
				if flood(w, h, i) != nil {
					break
				}
			}
			c.Close()
			// Who is refused 600 times in a minute is refused altogether: the
			// others are not.
			w.explicit = w.listenFor("bob")
			w.passed(w.send("GET", w.url("good.test"), ""))
			w.until("the connection is let go", func() bool { return w.p.Snapshot().Open <= 10 })
			if n := len(w.p.pending); n > 10 {
				t.Errorf("%d crossings are still under way", n)
			}
		})
	}
}
