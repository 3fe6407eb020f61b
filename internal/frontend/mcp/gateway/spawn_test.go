package gateway

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
)

// lostWords are what the panics of these tests say. Nobody but the hook hears
// them.
const lostWords = "lost canary-hunter2"

// mistaken is a kernel, and whatever else the gateway is given, that panics
// where it is told to.
type mistaken struct {
	*table
	at atomic.Pointer[string]
	hook
}

func (k *mistaken) here(at string) {
	if p := k.at.Load(); p != nil && *p == at {
		panic(lostWords)
	}
}

func (k *mistaken) Observe(ctx context.Context, cs []holdfast.Contract) ([]holdfast.Contract, error) {
	k.here("observe")
	return k.table.Observe(ctx, cs)
}

func (k *mistaken) Cross(ctx context.Context, r holdfast.Request, act func(context.Context) (holdfast.Output, error)) (*holdfast.Outcome, error) {
	k.here("cross")
	return k.table.Cross(ctx, r, act)
}

func (k *mistaken) Await(ctx context.Context, review string) error {
	k.here("await")
	return k.table.Await(ctx, review)
}

func (k *mistaken) token(context.Context) (holdfast.Secret, error) {
	k.here("token")
	return holdfast.NewSecret("good"), nil
}

func (k *mistaken) page(string) string { k.here("page"); return "" }

// Next panics for the goroutine that reads the client.
func (k *mistaken) Next() (mcp.Message, error) { panic(lostWords) }

// Write and Close make it a client.
func (k *mistaken) Write(string, []byte) error { return nil }
func (k *mistaken) Close() error               { return nil }

// config is a gateway's on this kernel.
func (k *mistaken) config(c *Config) {
	c.Kernel, c.Token, c.Page, c.Panicked, c.Wait = k, k.token, k.page, k.told, MaxWait
}

// hook keeps what it is told.
type hook struct {
	heard sync.Mutex
	what  []string
}

func (h *hook) told(what, stack string) {
	h.heard.Lock()
	defer h.heard.Unlock()
	if !strings.Contains(stack, "goroutine") {
		what += " without its stack"
	}
	h.what = append(h.what, what)
}

// once fails unless the hook heard the words one time.
func (h *hook) once(t *testing.T) {
	t.Helper()
	h.heard.Lock()
	defer h.heard.Unlock()
	if len(h.what) != 1 || h.what[0] != lostWords {
		t.Errorf("the hook heard %q", h.what)
	}
}

// restOf returns what a peer still gets, until its stream ends.
func restOf(p *gatewaytest.Peer) string {
	var all strings.Builder
	for {
		l, ok := p.Line()
		if !ok {
			return all.String()
		}
		all.WriteString(l)
	}
}

// TestPanicsEndTheSession lets the gateway panic where it listens, calls, asks
// and waits: the session ends with an error, the hook alone hears the words, no
// peer reads them, and nothing is left behind.
func TestPanicsEndTheSession(t *testing.T) {
	const relist = `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`
	for _, c := range []struct {
		at   string
		line string
		held bool
	}{
		{at: "observe", line: relist},
		{at: "token", line: callCat(7)},
		{at: "cross", line: callCat(7)},
		{at: "await", line: callCat(7), held: true},
		{at: "page", line: callCat(7), held: true},
	} {
		t.Run(c.at, func(t *testing.T) {
			before := runtime.NumGoroutine()
			k := &mistaken{table: newTable()}
			if c.held {
				k.risks["mcp/fs/cat"] = holdfast.High
			}
			g := start(t, k.table, k.config, func(cfg *Config) {
				if c.at == "page" { // which the answer to a call that waits no more names
					cfg.Wait = 0
				}
			})
			g.greet(t)
			k.at.Store(&c.at)
			g.client.Send(t, c.line)
			if c.at == "observe" {
				g.server.Next(t)
				g.server.Send(t, `{"jsonrpc":"2.0","id":3,"result":{"tools":[`+reads+`,{"name":"dog","inputSchema":{"type":"object"}}]}}`)
			}
			if err := g.wait(t); !errors.Is(err, mcp.ErrPanicked) {
				t.Errorf("Serve: %v", err)
			}
			k.once(t)
			if got := restOf(g.client) + restOf(g.server) + g.log.String(); strings.Contains(got, "hunter2") {
				t.Errorf("the words went out: %s", got)
			}
			if k.active != 0 {
				t.Error("an act goes on")
			}
			gatewaytest.Eventually(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= before })
		})
	}
}

// TestPanicsOfTheReaderEndTheSession is the same for the goroutine that reads the
// client.
func TestPanicsOfTheReaderEndTheSession(t *testing.T) {
	k := &mistaken{table: newTable()}
	server, _ := gatewaytest.Pair()
	c := Config{Server: "fs"}
	k.config(&c)
	if err := Serve(t.Context(), k, server, c); !errors.Is(err, mcp.ErrPanicked) {
		t.Errorf("Serve: %v", err)
	}
	k.once(t)
}

// TestGoroutinesAreGuarded reads this package, the router and the HTTP front: all
// goroutines run under a guard.
func TestGoroutinesAreGuarded(t *testing.T) {
	var names []string
	for _, pattern := range []string{"*.go", "../router/*.go", "../streamable/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no files in %s: %v", pattern, err)
		}
		names = append(names, found...)
	}
	found := 0
	look := func(n ast.Node) bool {
		var launched *ast.CallExpr
		switch n := n.(type) {
		case *ast.GoStmt:
			launched = n.Call
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "Go" || s.Sel.Name == "AfterFunc") {
				launched = n
			}
		}
		if launched == nil {
			return true
		}
		found++
		guarded := false
		ast.Inspect(launched, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "guard" || s.Sel.Name == "Guard") {
				guarded = true
			}
			return true
		})
		if !guarded {
			t.Errorf("a goroutine without a guard: %#v", launched.Fun)
		}
		return true
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, look)
	}
	if found < 5 {
		t.Errorf("only %d goroutines were found: the package is not read as it should be", found)
	}
}
