package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
)

// TestServerGetsWhatWasJudged: what the kernel judges is the arguments, so a
// call that says more is refused or loses it, and an approval covers all.
func TestServerGetsWhatWasJudged(t *testing.T) {
	const hidden = "/etc/shadow"
	for name, c := range map[string]struct{ call, refused string }{
		"envelope":   {`"method":"tools/call","x":"` + hidden + `","params":{"name":"cat"}`, `member \"x\" is not passed`},
		"no name":    {`"method":"tools/call","":"` + hidden + `","params":{"name":"cat"}`, `member \"\" is not passed`},
		"params":     {`"method":"tools/call","params":{"name":"cat","path":"` + hidden + `"}`, `params member \"path\" is not passed`},
		"token":      {`"method":"tools/call","params":{"name":"cat","_meta":{"progressToken":["` + hidden + `"]}}`, "params._meta.progressToken is not a string"},
		"long token": {`"method":"tools/call","params":{"name":"cat","_meta":{"progressToken":"` + hidden + strings.Repeat("x", mcp.MaxID) + `"}}`, "params._meta.progressToken is not a string"},
		"meta":       {`"method":"tools/call","params":{"name":"cat","_meta":{"com.example/confirm":"` + hidden + `"}}`, ""},
		"own meta":   {`"method":"tools/call","params":{"name":"cat","_meta":{"dev.holdfast/x":"` + hidden + `","io.modelcontextprotocol/x":"` + hidden + `"}}`, ""},
		"the client": {`"method":"tools/call","params":{"name":"cat","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"c","x":"` + hidden + `"}}}`, ""},
		"capability": {`"method":"tools/call","params":{"name":"cat","_meta":{"io.modelcontextprotocol/clientCapabilities":{"x":"` + hidden + `"}}}`, ""},
		"long trace": {`"method":"tools/call","params":{"name":"cat","_meta":{"tracestate":"` + hidden + strings.Repeat("x", maxState) + `","baggage":["` + hidden + `"]}}`, ""},
		"our trace":  {`"method":"tools/call","params":{"name":"cat","_meta":{"traceparent":"` + hidden + `"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t, newTable()).greet(t)
			g.client.Send(t, `{"jsonrpc":"2.0","id":7,`+c.call+`}`)
			if c.refused != "" {
				wantText(t, g.client.Next(t), `"id":7`, `"isError":true`, "refused: ", c.refused)
				if len(g.k.requests) != 0 {
					t.Error("a crossing was made")
				}
				g.client.Send(t, callCat(8))
				wantText(t, g.server.Next(t), `"id":3,"method":"tools/call"`, `"arguments":{"n":8}`)
				return
			}
			line := g.server.Next(t)
			wantText(t, line, `"name":"cat","arguments":{}`, `"traceparent":"00-c1"`)
			if strings.Contains(line, hidden) {
				t.Errorf("the server gets what nothing judged: %s", line)
			}
		})
	}
}

// TestClientGetsWhatWasJudged: K8 judges the result, so nothing stands beside it.
func TestClientGetsWhatWasJudged(t *testing.T) {
	g := start(t, newTable()).greet(t)
	for i, answer := range []string{`"result":{"content":[]}`, `"error":{"code":1,"message":"m"}`} {
		g.client.Send(t, callCat(7+i))
		id := idOf(t, g.server.Next(t))
		g.server.Send(t, `{"leak":"ssn 078-05-1120","jsonrpc":"2.0","id":`+id+`,`+answer+`,"params":{"leak":"ssn"}}`)
		if got, want := g.client.Next(t), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, 7+i, answer); got != want {
			t.Errorf("got %s", got)
		}
	}
}

// TestWithheldIsNotSaidOtherwise: what K8 withholds does not reach the client
// in a notification either.
func TestWithheldIsNotSaidOtherwise(t *testing.T) {
	k := newTable()
	k.withhold["mcp/fs/cat"] = true
	g := start(t, k).greet(t)
	g.client.Send(t, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"cat","_meta":{"progressToken":"t"}}}`)
	id := idOf(t, g.server.Next(t))
	for _, l := range []string{
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"the withheld secret"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"the withheld secret","progress":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":"the withheld secret"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1` + strings.Repeat("0", maxProgress) + `}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"the withheld secret","total":"the withheld secret"}}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"a":"the withheld secret"}}`,
		`{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"the withheld secret"}]}}`,
	} {
		g.server.Send(t, l)
	}
	for _, want := range []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, `withheld: `,
	} {
		l := g.client.Next(t)
		wantText(t, l, want)
		if strings.Contains(l, "the withheld secret") {
			t.Errorf("the client reads what K8 withheld: %s", l)
		}
	}
}

// TestNoWayAroundCalls: requests and notifications that are no crossings carry
// nothing of the agent's own to the server.
func TestNoWayAroundCalls(t *testing.T) {
	const secret = "sk-live-secret"
	g := start(t, newTable()).greet(t)
	for _, l := range []string{
		`"id":7,"method":"logging/setLevel","params":{"level":"debug","a":"sk-live-secret"}`,
		`"method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"sk-live-secret"}`,
		`"method":"notifications/initialized","params":{"a":"sk-live-secret","_meta":{"a":"sk-live-secret"}}`,
		`"method":"notifications/cancelled","params":{"requestId":7,"reason":"sk-live-secret"}`,
		`"id":8,"method":"ping","params":{"a":"sk-live-secret"},"sk-live-secret":1`,
		`"id":"sk-live-secret","method":"tools/list","params":{"a":"sk-live-secret","_meta":{"progressToken":"sk-live-secret"}}`,
		`"id":9,"method":"server/discover","params":{"a":"sk-live-secret"}`,
	} {
		g.client.Send(t, `{"jsonrpc":"2.0",`+l+`}`)
	}
	got := ""
	for !strings.Contains(got, "server/discover") {
		if got = g.server.Next(t); strings.Contains(got, secret) {
			t.Errorf("reached the server without a crossing: %s", got)
		}
	}
}

// slow is a session whose server reads when the test does.
type slow struct {
	k      *table
	s      *session
	client *gatewaytest.Peer
	reads  *mcp.Reader
	says   io.WriteCloser
	done   chan error
}

func startSlow(t *testing.T) *slow {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c, client := gatewaytest.Pair()
	g := &slow{k: newTable(), client: client, reads: mcp.NewReader(outR), says: inW, done: make(chan error, 1)}
	server := &gatewaytest.Stream{Reader: inR, Writer: outW, OnClose: func() { inR.Close(); outW.Close() }}
	config, err := Config{Kernel: g.k, Server: "fs",
		Token: func(context.Context) (holdfast.Secret, error) { return holdfast.NewSecret("good"), nil }}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	g.s = newSession(Lines(c), server, config)
	go func() { g.done <- g.s.run(context.Background()) }()
	t.Cleanup(func() { client.Input.Close(); inW.Close(); outR.Close() })
	client.Send(t, hello)
	g.next(t)
	fmt.Fprintln(inW, welcome)
	client.Next(t)
	client.Send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	g.next(t)
	fmt.Fprintln(inW, `{"jsonrpc":"2.0","id":2,"result":{"tools":[`+reads+`]}}`)
	client.Next(t)
	return g
}

// next is the next line that the server reads.
func (g *slow) next(t *testing.T) string {
	t.Helper()
	m, err := g.reads.Next()
	if err != nil {
		t.Fatal(err)
	}
	return string(m.Raw)
}

// queue makes a ping leave, which blocks the way, and calls wait behind it in the outbox.
func (g *slow) queue(t *testing.T, ids ...int) {
	t.Helper()
	g.client.Send(t, `{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	for i, id := range ids {
		g.client.Send(t, callCat(id))
		o := g.s.toServer
		gatewaytest.Eventually(t, "the call is not queued",
			func() bool { o.mu.Lock(); defer o.mu.Unlock(); return len(o.lines) == i+2 })
	}
}

// TestQueuedCallIsNotSent: a call whose crossing ended before the server took
// it is never sent, and its crossing says so.
func TestQueuedCallIsNotSent(t *testing.T) {
	t.Run("cancelled", func(t *testing.T) {
		g := startSlow(t)
		g.queue(t, 7, 6)
		g.client.Send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		gatewaytest.Eventually(t, "the crossing goes on",
			func() bool { g.k.mu.Lock(); defer g.k.mu.Unlock(); return len(g.k.actErrs) == 1 })
		if err := g.k.actErrs[0]; holdfast.KindOf(err) != holdfast.KindCanceled || !errors.Is(err, errUnsent) || !errors.Is(err, holdfast.ErrNotStarted) {
			t.Errorf("the act gave %v", err)
		}
		wantText(t, g.next(t), `"method":"ping"`)
		wantText(t, g.next(t), `"method":"tools/call"`, `"arguments":{"n":6}`)
		g.client.Send(t, `{"jsonrpc":"2.0","id":8,"method":"ping"}`)
		wantText(t, g.next(t), `"method":"ping"`)
	})
	t.Run("the server ends", func(t *testing.T) {
		g := startSlow(t)
		g.queue(t, 7)
		g.says.Close()
		for range 2 {
			if l := g.client.Next(t); strings.Contains(l, `"id":7`) {
				wantText(t, l, "refused: the MCP server ended", "has not been asked", `"isError":true`)
			}
		}
		if err := <-g.done; !errors.Is(err, ErrServerEnded) {
			t.Error(err)
		}
	})
	t.Run("answered before it was asked", func(t *testing.T) {
		g := startSlow(t)
		g.queue(t, 7)
		fmt.Fprintln(g.says, `{"jsonrpc":"2.0","id":4,"result":{"content":[]}}`)
		wantText(t, g.client.Next(t), `"id":7`, "refused: the MCP server answered before it was asked",
			`"isError":true`)
		wantText(t, g.next(t), `"method":"ping"`)
		g.client.Send(t, callCat(6))
		wantText(t, g.next(t), `"arguments":{"n":6}`)
	})
}

// TestOutboxUrged: what stops something is written though nothing else has room.
func TestOutboxUrged(t *testing.T) {
	o := newOutbox(nil)
	for o.offer("", []byte("a")) {
	}
	o.urge("", []byte("stop"))
	if o.offer("", []byte("b")) {
		t.Error("there was room after all")
	}
	o.end(false)
	last := ""
	if err := o.run(func(_ string, line []byte) error { last = string(line); return nil }); err != nil || last != "stop" || o.bytes != 0 {
		t.Errorf("%v, wrote %q last, and %d bytes are counted", err, last, o.bytes)
	}
	o.urge("", []byte("late"))
	if len(o.lines) != 0 {
		t.Error("a line was taken after the end")
	}
}

func TestOutbox(t *testing.T) {
	o, ctx := newOutbox(nil), context.Background()
	ended, end := context.WithCancelCause(ctx)
	put := func(ctx context.Context, line string) *queued {
		q, err := o.put(ctx, "", []byte(line))
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	put(ctx, "a")
	b, c := put(ended, "b"), put(ctx, "c")
	put(ctx, "d")
	e := put(ended, "e")
	end(errCanceled)
	if q, err := o.put(ended, "", []byte("f")); !errors.Is(err, errCanceled) || q != nil {
		t.Errorf("taken after its end: %v", err)
	}
	if !o.withdraw(c) || !o.withdraw(e) || o.withdraw(nil) {
		t.Error("a line that waits was not taken back, or no line was")
	}
	o.end(false)
	var w strings.Builder
	if err := o.run(func(_ string, line []byte) error { w.Write(append(line, '\n')); return nil }); err != nil || w.String() != "a\nd\n" {
		t.Errorf("%v, wrote %q", err, w.String())
	}
	if !o.withdraw(b) || o.bytes != 0 || len(o.lines) != 0 {
		t.Errorf("a dropped line left, or %d bytes are counted", o.bytes)
	}
}
