package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// howOften is how often each thing is done.
func howOften() int { return testrepeat.Times(10_000, 100) }

// descriptors is how many this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	es, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("descriptors cannot be counted here")
	}
	return len(es)
}

// leavesNothing runs f and wants every goroutine and descriptor of it gone.
func leavesNothing(t *testing.T, f func(wires)) {
	t.Helper()
	w := newWires(t)
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	f(w)
	gatewaytest.Eventually(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= goroutines })
	gatewaytest.Eventually(t, "descriptors are left", func() bool { return descriptors(t) <= files })
}

// ends is the far end of a connection through the kernel of this machine.
type ends struct {
	net.Conn
	r *mcp.Reader
}

func (e *ends) Exit(context.Context) error { return errors.New("exit status 0") }

func (e *ends) next(t *testing.T) string {
	t.Helper()
	m, err := e.r.Next()
	if err != nil {
		t.Fatal(err)
	}
	return string(m.Raw)
}

func (e *ends) send(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(e, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// wires makes connections of this machine.
type wires struct{ net.Listener }

func newWires(t *testing.T) wires {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	w := wires{l}
	// The first makes what every later one shares.
	a, b := w.pair(t)
	a.Close()
	b.Close()
	return w
}

// pair returns the two ends of a connection.
func (w wires) pair(t *testing.T) (a, b *ends) {
	t.Helper()
	near, err := net.Dial("unix", w.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := w.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return &ends{near, mcp.NewReader(near)}, &ends{far, mcp.NewReader(far)}
}

// endless is a session over descriptors, with both far ends in the test's hands.
type endless struct {
	client, server *ends
	done           chan error
	n              int // the client's last id
}

func openEnds(t *testing.T, w wires) *endless {
	t.Helper()
	near, client := w.pair(t)
	conn, server := w.pair(t)
	g := &endless{client: client, server: server, done: make(chan error, 1), n: 1}
	go func() {
		g.done <- Serve(context.Background(), Lines(near), conn, Config{Kernel: &gatewaytest.Open{}, Server: "fs", Token: goodToken, Log: slog.New(slog.DiscardHandler)})
	}()
	return g
}

// greeted is a session in which "cat" can be called.
func greeted(t *testing.T, w wires) *endless {
	t.Helper()
	g := openEnds(t, w)
	g.client.send(t, hello)
	g.server.next(t)
	g.server.send(t, welcome)
	g.client.next(t)
	g.client.send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	g.list(t)
	g.client.next(t)
	return g
}

// list answers a tools/list.
func (g *endless) list(t *testing.T) {
	t.Helper()
	l := g.server.next(t)
	wantText(t, l, "tools/list")
	g.server.send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{"tools":[`+reads+`]}}`)
}

// call makes a call, and returns the id that the server knows it by.
func (g *endless) call(t *testing.T) string {
	t.Helper()
	g.n++
	g.client.send(t, callCat(g.n))
	return idOf(t, g.server.next(t))
}

// answer answers a call, which the client hears.
func (g *endless) answer(t *testing.T, id string) {
	t.Helper()
	g.server.send(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[]}}`)
	wantText(t, g.client.next(t), fmt.Sprintf(`"id":%d,`, g.n), `"content":[]`)
}

// end ends the session from the client's side.
func (g *endless) end(t *testing.T) {
	t.Helper()
	g.client.Close()
	if err := <-g.done; err != nil {
		t.Errorf("Serve: %v", err)
	}
	g.server.Close()
}

// TestBadLinesTenThousandTimes: a line that is no message is answered by name,
// and the session goes on.
func TestBadLinesTenThousandTimes(t *testing.T) {
	deep := strings.Repeat(`[`, 100) + strings.Repeat(`]`, 100)
	for name, c := range map[string]struct{ line, why string }{
		"truncated":          {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"cat"`, "not JSON at byte"},
		"nested":             {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"cat","arguments":{"a":` + deep + `}}}`, "nested deeper than 64"},
		"duplicate key":      {`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"cat","arguments":{"a":1,"a":2}}}`, "duplicate name at /params/arguments/a"},
		"not UTF-8":          {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"c\xff\"}}", "invalid UTF-8 at byte 65"},
		"two on a line":      {callCat(7) + callCat(8), "something follows the message"},
		"one within another": {`{"jsonrpc":"2.0","id":7,"meth{"jsonrpc":"2.0","id":8,"method":"ping"}od":"ping"}`, "not JSON at byte"},
	} {
		t.Run(name, func(t *testing.T) {
			leavesNothing(t, func(w wires) {
				g := greeted(t, w)
				for range howOften() {
					g.client.send(t, c.line)
					if l := g.client.next(t); !strings.Contains(l, c.why) || !strings.Contains(l, `"error"`) || !strings.Contains(l, `"id":7`) {
						t.Fatal(l)
					}
				}
				g.answer(t, g.call(t))
				g.end(t)
			})
		})
	}
	t.Run("from the server", func(t *testing.T) {
		leavesNothing(t, func(w wires) {
			g := greeted(t, w)
			bad := []struct{ result, why string }{
				{`{"content":[],"a":` + deep + `}`, "nested deeper than 64"},
				{`{"content":[],"content":[]}`, "duplicate name at /result/content"},
				{"{\"content\":[\"\xff\"]}", "invalid UTF-8"},
				{`{"content":[`, "not JSON at byte"},
			}
			for i := range howOften() {
				b, id := bad[i%len(bad)], g.call(t)
				g.server.send(t, `{"jsonrpc":"2.0","id":`+id+`,"result":`+b.result+`}`)
				if l := g.client.next(t); !strings.Contains(l, "failed: the MCP server's answer was refused: "+b.why) || !strings.Contains(l, fmt.Sprintf(`"id":%d,`, g.n)) {
					t.Fatal(l)
				}
			}
			g.answer(t, g.call(t))
			g.end(t)
		})
	})
}

// TestLongLinesAThousandTimes: what is too long is refused by name and kept
// nowhere.
func TestLongLinesAThousandTimes(t *testing.T) {
	leavesNothing(t, func(w wires) {
		g := greeted(t, w)
		line := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":"` + strings.Repeat("x", mcp.MaxLine) + `"}}` + "\n"
		n := testrepeat.Times(1000, 10) // each is ten megabytes
		go func() {
			for range n {
				if _, err := io.WriteString(g.client, line); err != nil {
					return
				}
			}
		}()
		for range n {
			wantText(t, g.client.next(t), `"id":7`, "the line is longer than")
		}
		g.answer(t, g.call(t))
		g.end(t)
	})
}

// TestServersTenThousandTimes: what a server does amiss costs the call that it
// is about, and nothing else.
func TestServersTenThousandTimes(t *testing.T) {
	for name, amiss := range map[string]func(t *testing.T, g *endless){
		"floods": func(t *testing.T, g *endless) {
			id := g.call(t)
			for _, l := range []string{
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":77,"progress":1}}`,
				`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x"}}`,
				`{"jsonrpc":"2.0","id":"r","method":"roots/list"}`,
				`log text`,
			} {
				g.server.send(t, l)
			}
			wantText(t, g.server.next(t), "does not let a server ask the client for roots/list")
			g.answer(t, id)
		},
		"hangs": func(t *testing.T, g *endless) {
			id := g.call(t)
			g.client.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, g.n))
			wantText(t, g.server.next(t), "notifications/cancelled", `"requestId":`+id)
		},
		"lies about ids": func(t *testing.T, g *endless) {
			id := g.call(t)
			for _, other := range []string{`"` + id + `"`, id + "00000", "-" + id, id + ".0", "1"} {
				g.server.send(t, `{"jsonrpc":"2.0","id":`+other+`,"result":{"content":["a lie"]}}`)
			}
			g.answer(t, id)
		},
		"answers twice": func(t *testing.T, g *endless) {
			id := g.call(t)
			g.answer(t, id)
			g.server.send(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":["again"]}}`)
		},
		"changes its tools in mid-call": func(t *testing.T, g *endless) {
			id := g.call(t)
			g.server.send(t, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			wantText(t, g.client.next(t), "list_changed")
			g.answer(t, id)
			g.n++
			g.client.send(t, callCat(g.n))
			g.list(t)
			g.answer(t, idOf(t, g.server.next(t)))
		},
		"asks for input": func(t *testing.T, g *endless) {
			g.server.send(t, `{"jsonrpc":"2.0","id":`+g.call(t)+`,"result":{"resultType":"input_required","inputRequests":{}}}`)
			wantText(t, g.client.next(t), "wants input from the client, which holdfast does not pass")
		},
	} {
		t.Run(name, func(t *testing.T) {
			leavesNothing(t, func(w wires) {
				g := greeted(t, w)
				for range howOften() {
					amiss(t, g)
				}
				g.answer(t, g.call(t))
				g.end(t)
			})
		})
	}
}

// TestEndsTenThousandTimes: a peer that goes, at whatever step, ends the session
// and leaves nothing.
func TestEndsTenThousandTimes(t *testing.T) {
	steps := []func(*testing.T, *endless){
		func(t *testing.T, g *endless) { g.client.send(t, hello) },
		func(t *testing.T, g *endless) { g.server.next(t) },
		func(t *testing.T, g *endless) { g.server.send(t, welcome) },
		func(t *testing.T, g *endless) { g.client.next(t) },
		func(t *testing.T, g *endless) { g.client.send(t, callCat(1)) },
		func(t *testing.T, g *endless) { g.list(t) },
		func(t *testing.T, g *endless) { g.server.next(t) },
		func(t *testing.T, g *endless) {
			g.server.send(t, `{"jsonrpc":"2.0","id":3,"result":{"content":[]}}`)
		},
		func(t *testing.T, g *endless) { g.client.next(t) },
		func(t *testing.T, g *endless) { io.WriteString(g.client, `{"jsonrpc":"2.0","id":9,"meth`) },
		func(t *testing.T, g *endless) { io.WriteString(g.server, `{"jsonrpc":"2.0",`) },
	}
	for _, who := range []string{"the client", "the server"} {
		t.Run(who, func(t *testing.T) {
			leavesNothing(t, func(w wires) {
				for i := range howOften() {
					g := openEnds(t, w)
					for _, step := range steps[:i%(len(steps)+1)] {
						step(t, g)
					}
					first, then := g.client, g.server
					if who == "the server" {
						first, then = then, first
					}
					first.Close()
					if err := <-g.done; (err == nil) != (who == "the client") || err != nil && !errors.Is(err, ErrServerEnded) {
						t.Fatalf("round %d: %v", i, err)
					}
					then.Close()
				}
			})
		})
	}
}
