package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// left is what a test may not leave behind.
func left(t *testing.T) (goroutines, files int) {
	t.Helper()
	goroutines = runtime.NumGoroutine()
	if runtime.GOOS == "linux" {
		es, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		files = len(es)
	}
	return goroutines, files
}

// hostile is every way in which a server is bad to one connection.
func hostile() map[string]http.HandlerFunc {
	noise := `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"x":"` + strings.Repeat("y", 4000) + `"}}` + "\n\n"
	return map[string]http.HandlerFunc{
		"floods": func(w http.ResponseWriter, r *http.Request) {
			asEvents(w)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, noise); err != nil {
					return
				}
			}
		},
		"floods comments": func(w http.ResponseWriter, r *http.Request) {
			asEvents(w)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, ":"+noise); err != nil {
					return
				}
			}
		},
		"hangs":           func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"hangs in answer": func(w http.ResponseWriter, r *http.Request) { asEvents(w, `data: {"jsonrpc"`); <-r.Context().Done() },
		"hangs after":     func(w http.ResponseWriter, r *http.Request) { asEvents(w, "data: "+fine); <-r.Context().Done() },
		"lies about ids": func(w http.ResponseWriter, _ *http.Request) {
			asEvents(w, `data: {"jsonrpc":"2.0","id":2,"result":{}}`, `data: {"jsonrpc":"2.0","id":null,"result":{}}`)
		},
		"answers twice": func(w http.ResponseWriter, _ *http.Request) { asEvents(w, "data: "+fine, "data: "+fine) },
		"dies":          func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"dies in mid-call": func(w http.ResponseWriter, _ *http.Request) {
			asEvents(w, "id: 1\ndata: {\"jsonrpc\"")
			panic(http.ErrAbortHandler)
		},
		"half a message": func(w http.ResponseWriter, _ *http.Request) { asJSON(w, 200, `{"jsonrpc":"2.0","id":1,"res`) },
		"answers":        func(w http.ResponseWriter, _ *http.Request) { asJSON(w, 200, fine) },
	}
}

// suffer is one client's life with a server: it asks, gets an answer or cancels,
// and goes.
// there is closed once the server has the request.
func suffer(url string, there <-chan struct{}, wait time.Duration) error {
	c, err := Dial(context.Background(), Config{URL: url})
	if err != nil {
		return err
	}
	got := make(chan error, 1)
	go func() {
		b := make([]byte, 4<<10)
		for {
			n, err := c.Read(b)
			if err != nil || strings.Contains(string(b[:n]), `"id":1`) {
				got <- err
				return
			}
		}
	}()
	if _, err := io.WriteString(c, list+"\n"); err != nil {
		return err
	}
	select {
	case err = <-got:
		return errors.Join(err, c.Close())
	case <-there:
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case err = <-got:
	case <-t.C:
		_, err = io.WriteString(c, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`+"\n")
	}
	if err := c.Close(); err != nil {
		return err
	}
	return err
}

// TestNothingIsLeft: after many connections to each hostile server no
// goroutine and no descriptor is left.
func TestNothingIsLeft(t *testing.T) {
	n := testrepeat.Times(10_000, 32)
	for name, h := range hostile() {
		t.Run(name, func(t *testing.T) {
			n := n
			if strings.HasPrefix(name, "floods") { // each costs ten of the others
				n = max(n/10, 32)
			}
			var asked atomic.Int64
			var theres sync.Map // by path
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if there, ok := theres.Load(r.URL.Path); ok {
					close(there.(chan struct{}))
				}
				_, _ = io.Copy(io.Discard, r.Body)
				h(w, r)
			}))
			s.Config.ConnState = lingerNot
			s.Start()
			defer s.Close()
			goroutines, files := left(t)
			wait := time.Minute
			if endless := strings.HasPrefix(name, "hangs") || strings.HasPrefix(name, "floods") || name == "lies about ids"; endless {
				wait = 2 * time.Millisecond
			}
			var wg sync.WaitGroup
			var next atomic.Int64
			for range 16 {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(n); i = next.Add(1) {
						there, path := make(chan struct{}), fmt.Sprintf("/%d", i)
						theres.Store(path, there)
						err := suffer(s.URL+path, there, wait)
						theres.Delete(path)
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			if asked.Load() != int64(n) {
				t.Errorf("%d of %d were asked", asked.Load(), n)
			}
			for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
				g, f := left(t)
				if g <= goroutines && f <= files {
					return
				}
				if time.Now().After(end) {
					b := make([]byte, 1<<20)
					t.Fatalf("%d goroutines, %d before; %d files, %d before\n%s", g, goroutines, f, files, b[:min(20_000, runtime.Stack(b, true))])
				}
			}
		})
	}
}

// lingerNot lets a closed socket's port be used again at once, so that many
// connections do not use all of them up.
func lingerNot(c net.Conn, s http.ConnState) {
	if tc, ok := c.(*net.TCPConn); ok && s == http.StateNew {
		_ = tc.SetLinger(0)
	}
}

// TestServerGone: a whole server that goes takes each request with it by name,
// and leaves nothing.
func TestServerGone(t *testing.T) {
	there := make(chan struct{}, 64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = body(r)
		asEvents(w)
		there <- struct{}{}
		<-r.Context().Done()
	}))
	defer s.Close()
	w := wired(t, s.URL)
	const n = 20
	for i := range n {
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{%s}}`, i, meta))
	}
	for range n {
		<-there
	}
	s.CloseClientConnections()
	for range n {
		w.want("stream ended before the answer")
	}
}
