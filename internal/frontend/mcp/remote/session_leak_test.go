package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// session is one session's life: greeted, listened to, one call, and over.
func session(url string) error {
	c, err := Dial(context.Background(), Config{URL: url})
	if err != nil {
		return err
	}
	defer c.Close()
	got := make(chan string, 8)
	go func() {
		defer close(got)
		b := make([]byte, 64<<10)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			got <- string(b[:n])
		}
	}()
	for _, step := range []struct{ say, want string }{{hello, `"id":0`}, {ready + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sum","arguments":{"a":2,"b":40}}}`, `"42"`}} {
		if _, err := io.WriteString(c, step.say+"\n"); err != nil {
			return err
		}
		select {
		case l, ok := <-got:
			if !ok || !strings.Contains(l, step.want) {
				return fmt.Errorf("got %q", l)
			}
		case <-time.After(time.Minute):
			return fmt.Errorf("no %s", step.want)
		}
	}
	return nil
}

// TestSessionsLeaveNothing: many sessions with the SDK's server, each with a
// stream of its own open at its end, leave nothing here and none there.
func TestSessionsLeaveNothing(t *testing.T) {
	n := int64(testrepeat.Times(1000, 24))
	server := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "sum"}, func(_ context.Context, _ *sdk.CallToolRequest, in sumIn) (*sdk.CallToolResult, any, error) {
		return words(fmt.Sprint(in.A + in.B)), nil, nil
	})
	var deleted atomic.Int64
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			deleted.Add(1)
		}
		h.ServeHTTP(w, r)
	}))
	s.Config.ConnState = lingerNot
	s.Start()
	defer s.Close()
	if err := session(s.URL); err != nil {
		t.Fatal(err)
	}
	goroutines, files := left(t)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		wg.Go(func() {
			for next.Add(1) <= n {
				if err := session(s.URL); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if deleted.Load() != n+1 {
		t.Errorf("%d of %d sessions were ended", deleted.Load(), n+1)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		g, f := left(t)
		if g <= goroutines && f <= files {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before; %d files, %d before", g, goroutines, f, files)
		}
	}
	for range server.Sessions() {
		t.Error("the server still has a session")
	}
}

// TestCloseIsBounded: a server that does not let a session end is not waited
// for long.
func TestCloseIsBounded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch b := body(r); {
		case strings.Contains(b, "initialize\""):
			w.Header().Set("Mcp-Session-Id", "s-1")
			asJSON(w, 200, greet)
		default: // the stream, the notification and the end
			<-r.Context().Done()
		}
	})
	w := wired(t, s.URL)
	w.send(hello)
	w.want("protocolVersion")
	w.send(ready, `{"jsonrpc":"2.0","id":4,"method":"tools/list"}`)
	start := time.Now()
	w.Close()
	if d := time.Since(start); d > closeTimeout+30*time.Second {
		t.Errorf("it took %v", d)
	}
}
