package daemon

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

// TestAttackWebhook_a_receiver_that_is_an_enemy: whatever the receiver does, a
// question is put, a halt is in force and the daemon ends as fast as without one,
// and what is signed goes to no other place.
func TestAttackWebhook_a_receiver_that_is_an_enemy(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	flow := func(w http.ResponseWriter, r *http.Request, part []byte, pause time.Duration) {
		for r.Context().Err() == nil {
			if _, err := w.Write(part); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			time.Sleep(pause)
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"never answers":     func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() },
		"a byte at a time":  func(w http.ResponseWriter, r *http.Request) { flow(w, r, []byte("x"), 100*time.Millisecond) },
		"answers for ever":  func(w http.ResponseWriter, r *http.Request) { flow(w, r, make([]byte, 1<<20), 0) },
		"an endless header": func(w http.ResponseWriter, _ *http.Request) { endlessHeader(w) },
		"500":               func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"301": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusMovedPermanently)
		},
		"307": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
		"308 and refresh": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Refresh", "0; url="+other.URL)
			http.Redirect(w, r, other.URL, http.StatusPermanentRedirect)
		},
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			var tried atomic.Int64
			r := &receiver{t: t, srv: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				tried.Add(1)
				answer(w, req)
			}))}
			defer r.srv.Close()
			defer r.srv.CloseClientConnections()
			d, c, down := hooked(t, r)
			quick := func(what string, f func()) {
				t.Helper()
				start := time.Now()
				if f(); time.Since(start) > 8*time.Second {
					t.Errorf("%s took %v", what, time.Since(start))
				}
			}
			for i := range 5 {
				quick("a question", func() { asks(t, c, fmt.Sprintf(`{"action":"%d"}`, i)) })
			}
			for start := time.Now(); tried.Load() == 0 && time.Since(start) < time.Minute; time.Sleep(time.Millisecond) {
			}
			quick("a halt", func() {
				if _, err := c.Halt(t.Context(), api.Word{Who: "ann", Why: "enough"}); err != nil {
					t.Error(err)
				}
			})
			if !d.latch.Halted() || tried.Load() == 0 {
				t.Errorf("halted %v, tried %d", d.latch.Halted(), tried.Load())
			}
			quick("the end", down)
			if n := elsewhere.Load(); n > 0 {
				t.Errorf("%d calls went elsewhere", n)
			}
		})
	}
}

// endlessHeader answers with a header that has no end.
func endlessHeader(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
	for i := 0; err == nil; i++ {
		_, err = fmt.Fprintf(conn, "X-%d: %0100d\r\n", i, i)
	}
}

// TestAttackWebhook_told_to_the_daemon_itself: a webhook that names Holdfast's own
// address makes no call beget another.
func TestAttackWebhook_told_to_the_daemon_itself(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d, c, down := hooked(t, &receiver{t: t, srv: &httptest.Server{URL: "http://" + l.Addr().String()}})
	defer down()
	at, _ := d.pagesAt()
	for _, path := range []string{"/mcp", "/healthz", "/", "/mcp/none"} {
		next := *d.snapshot()
		config := *next.Config
		config.Review.Webhook.URL = at + path
		next.Config = &config
		d.mu.Lock()
		d.loaded = &next
		d.mu.Unlock()
		d.alerts.Reload(config.AlertSettings())
		asks(t, c, `{"action":"`+path+`"}`)
	}
	time.Sleep(time.Second)
	if n := d.alerts.Waiting(); n > 8 {
		t.Errorf("%d wait", n)
	}
}
