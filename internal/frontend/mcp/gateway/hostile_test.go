package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

const (
	hello   = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{}}}`
	welcome = `{"jsonrpc":"2.0","id":1,"result":{"capabilities":{"tools":{}}}}`
	reads   = `{"name":"cat","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
)

// greet brings a rig to where "cat" is known; the server's next id is 3.
func (g *rig) greet(t *testing.T) *rig {
	t.Helper()
	g.client.Send(t, hello)
	g.server.Next(t)
	g.server.Send(t, welcome)
	g.client.Next(t)
	g.client.Send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	g.server.Next(t)
	g.server.Send(t, `{"jsonrpc":"2.0","id":2,"result":{"tools":[`+reads+`]}}`)
	g.client.Next(t)
	return g
}

func callCat(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cat","arguments":{"n":%d}}}`, id, id)
}

// idOf returns the id of a line that reached the server.
func idOf(t *testing.T, line string) string {
	t.Helper()
	m, err := mcp.Parse([]byte(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return string(m.ID)
}

// bubbled returns f as a test whose time passes only while everything in it waits.
func bubbled(f func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { synctest.Test(t, f) }
}

func wantText(t *testing.T, line string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(line, p) {
			t.Errorf("no %q in %s", p, line)
		}
	}
}

// TestDisconnects breaks a session off at every step, from either side or from
// above, again and again: Serve returns, crossings end, nothing is left.
func TestDisconnects(t *testing.T) {
	before := runtime.NumGoroutine()
	steps := []func(*rig){
		func(g *rig) { g.client.Send(t, hello) },
		func(g *rig) { g.server.Next(t) },
		func(g *rig) { g.server.Send(t, welcome) },
		func(g *rig) { g.client.Next(t) },
		func(g *rig) { g.client.Send(t, callCat(1)) },
		func(g *rig) { g.server.Next(t) },
		func(g *rig) { g.server.Send(t, `{"jsonrpc":"2.0","id":2,"result":{"tools":[`+reads+`]}}`) },
		func(g *rig) { g.server.Next(t) },
		func(g *rig) { g.client.Send(t, callCat(2)) },
		func(g *rig) { g.server.Send(t, `{"jsonrpc":"2.0","id":3,"result":{"content":[]}}`) },
		func(g *rig) { g.client.Next(t) },
		func(g *rig) { io.WriteString(g.client.Input, `{"jsonrpc":"2.0","id":9,"meth`) },
		func(g *rig) { io.WriteString(g.server.Input, `{"jsonrpc":"2.0",`) },
	}
	each := 3 * (len(steps) + 1)
	for i := range testrepeat.Times(24*each, each) {
		g := start(t, newTable())
		for _, step := range steps[:i%(len(steps)+1)] {
			step(g)
		}
		switch i / (len(steps) + 1) % 3 {
		case 0:
			g.client.Input.Close()
		case 1:
			g.server.Input.Close()
		case 2:
			g.cancel()
		}
		if err := g.wait(t); err != nil && !errors.Is(err, ErrServerEnded) {
			t.Fatalf("round %d: %v", i, err)
		}
		if g.k.active != 0 {
			t.Fatalf("round %d: an act goes on", i)
		}
	}
	gatewaytest.Eventually(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= before })
}

func TestServerDiesMidCall(t *testing.T) {
	g := start(t, newTable()).greet(t)
	g.serverEnd.ExitErr = errors.New("exit status 3")
	g.client.Send(t, callCat(5))
	g.client.Send(t, `{"jsonrpc":"2.0","id":6,"method":"ping"}`)
	g.server.Next(t)
	g.server.Next(t)
	g.server.Input.Close()
	a, b := g.client.Next(t), g.client.Next(t)
	if !strings.Contains(a, `"id":5`) {
		a, b = b, a
	}
	wantText(t, a, `"id":5`, "failed: the MCP server ended: exit status 3", "whether it took effect is not known", `"isError":true`, "c1")
	wantText(t, b, `"id":6`, "the MCP server ended: exit status 3", `"error"`)
	if err := g.wait(t); !errors.Is(err, ErrServerEnded) || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("Serve: %v", err)
	}
}

// TestClientGoesMidCall: the act's context ends, the server is told, and
// nothing is relayed any more.
func TestClientGoesMidCall(t *testing.T) {
	g := start(t, newTable()).greet(t)
	g.client.Send(t, callCat(5))
	g.server.Next(t)
	g.client.Input.Close()
	wantText(t, g.server.Next(t), "notifications/cancelled", `"requestId":3`)
	if err := g.wait(t); err != nil {
		t.Errorf("Serve: %v", err)
	}
	for l := range g.client.Lines {
		t.Errorf("more to the client: %s", l)
	}
	if holdfast.KindOf(g.k.actErrs[0]) != holdfast.KindCanceled {
		t.Errorf("the act gave %v", g.k.actErrs[0])
	}
}

func TestBusy(t *testing.T) {
	g := start(t, newTable(), func(c *Config) { c.MaxInFlight = 3 }).greet(t)
	for i := range 3 {
		g.client.Send(t, callCat(10+i))
		g.server.Next(t)
	}
	g.client.Send(t, callCat(13))
	wantText(t, g.client.Next(t), `"id":13`, "busy: 3 requests are in flight", `"hint"`)
	g.server.Send(t, `{"jsonrpc":"2.0","id":4,"result":{"content":[]}}`)
	g.client.Next(t)
	g.client.Send(t, callCat(12))
	wantText(t, g.client.Next(t), `"id":12`, "already in flight")
	gatewaytest.Eventually(t, "no room after an answer", func() bool {
		g.client.Send(t, callCat(14))
		select {
		case <-g.server.Lines:
			return true
		case <-g.client.Lines:
			return false
		}
	})
}

// TestParallelCalls answers many calls in another order than they came.
func TestParallelCalls(t *testing.T) {
	g := start(t, newTable()).greet(t)
	const n = 60
	var ids []string
	for i := range n {
		g.client.Send(t, callCat(100+i))
	}
	for range n {
		l := g.server.Next(t)
		ids = append(ids, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"for":%s}}`,
			idOf(t, l), mcp.Get([]byte(l), "params", "arguments", "n")))
	}
	rand.Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, l := range ids {
		g.server.Send(t, l)
	}
	for range n {
		l := []byte(g.client.Next(t))
		if id, for_ := mcp.Get(l, "id"), mcp.Get(l, "result", "for"); string(id) != string(for_) {
			t.Errorf("the answer to %s went to %s", for_, id)
		}
	}
}

// deaf makes the client's side not read, before anything is sent to it.
func deaf(t *testing.T) (client io.WriteCloser, server *gatewaytest.Peer, k *table, done chan error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s, server := gatewaytest.Pair()
	k, done = newTable(), make(chan error, 1)
	c := &gatewaytest.Stream{Reader: inR, Writer: outW, OnClose: func() { inR.Close(); outW.Close() }}
	go func() {
		done <- Serve(context.Background(), Lines(c), s, Config{Kernel: k, Server: "fs",
			Token: func(context.Context) (holdfast.Secret, error) { return holdfast.NewSecret("good"), nil }})
	}()
	t.Cleanup(func() { inW.Close(); outR.Close(); server.Input.Close() })
	return inW, server, k, done
}

// TestClientThatDoesNotRead: a server that floods it is slowed down, nothing
// piles up, and what the client says still arrives.
func TestClientThatDoesNotRead(t *testing.T) { synctest.Test(t, floodDeafClient) }

func floodDeafClient(t *testing.T) {
	client, server, _, done := deaf(t)
	const note = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"data":"`
	sent := make(chan int, 1)
	go func() {
		n := 0
		for ; n < 100_000; n++ {
			if _, err := io.WriteString(server.Input, note+strings.Repeat("x", 100<<10)+"\"}}\n"); err != nil {
				break
			}
		}
		sent <- n
	}()
	synctest.Wait()
	for i := range 10 {
		fmt.Fprintf(client, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", i)
		wantText(t, server.Next(t), `"method":"ping"`)
	}
	client.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := <-sent; n > 2*maxQueued { // the queue, and a few on their way
		t.Errorf("%d messages were taken for a client that does not read", n)
	}
}

// TestAnswersToAClientThatDoesNotRead: large answers wait at the server, and
// none is lost when the client reads on; large requests are told "busy".
func TestAnswersToAClientThatDoesNotRead(t *testing.T) { synctest.Test(t, answerDeafClient) }

func answerDeafClient(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s, server := gatewaytest.Pair()
	done := make(chan error, 1)
	c := &gatewaytest.Stream{Reader: inR, Writer: outW, OnClose: func() { inR.Close(); outW.Close() }}
	go func() {
		done <- Serve(context.Background(), Lines(c), s, Config{Kernel: newTable(), Server: "fs",
			Token: func(context.Context) (holdfast.Secret, error) { return holdfast.NewSecret("good"), nil }})
	}()
	const size = 4 << 20
	const bound = maxHeld + maxQueuedBytes + 4*size
	const n = bound/size + 2
	for i := range n {
		fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":"c%d","method":"ping"}`+"\n", i+1)
		server.Next(t)
	}
	var taken atomic.Int64
	text := strings.Repeat("x", size)
	go func() {
		for i := range n {
			io.WriteString(server.Input, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"a":"`, i+1)+text+`"}}`+"\n")
			taken.Add(1)
		}
	}()
	synctest.Wait()
	if got := taken.Load() * size; got > bound {
		t.Errorf("%d bytes were taken for a client that does not read", got)
	}
	r := mcp.NewReader(outR)
	for range n {
		if m, err := r.Next(); err != nil || len(m.Raw) < size {
			t.Fatalf("an answer was lost: %v", err)
		}
	}
	fill := strings.Repeat("x", 9<<20)
	go func() {
		for i := range 8 {
			fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":"d%d","method":"ping","params":{"a":"%s"}}`+"\n", i, fill)
		}
	}()
	m, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, string(m.Raw), `"error"`, "busy: ")
	inW.Close()
	outR.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestServerThatDoesNotRead: the client hears "busy" instead of nothing, is
// refused what is refused, and a cancellation is heard.
func TestServerThatDoesNotRead(t *testing.T) {
	c, client := gatewaytest.Pair()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s := &gatewaytest.Stream{Reader: inR, Writer: outW, OnClose: func() { inR.Close(); outW.Close(); outR.Close() }}
	done := make(chan error, 1)
	go func() {
		done <- Serve(context.Background(), Lines(c), s, Config{Kernel: newTable(), Server: "fs", MaxInFlight: 500,
			Token: func(context.Context) (holdfast.Secret, error) { return holdfast.NewSecret("good"), nil }})
	}()
	for i := range 200 {
		client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
	}
	busy := 0
	for range 200 - maxQueued {
		wantText(t, client.Next(t), "does not read its input")
		busy++
	}
	client.Send(t, `{"jsonrpc":"2.0","id":"x","method":"x/y"}`)
	wantText(t, client.Next(t), `"id":"x"`, "does not pass")
	// The server asks and asks and does not read the refusals.
	for i := range 300 {
		fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`+"\n", i)
	}
	client.Input.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestLongLines(t *testing.T) {
	g := start(t, newTable()).greet(t)
	fill := strings.Repeat("x", mcp.MaxLine)
	g.client.Send(t, `{"method":"tools/call","params":{"name":"cat","arguments":{"a":"`+fill+`"}},"jsonrpc":"2.0","id":"big"}`)
	wantText(t, g.client.Next(t), `"id":"big"`, fmt.Sprintf("longer than %d bytes", mcp.MaxLine), `"hint"`)
	g.client.Send(t, callCat(5))
	g.server.Next(t)
	g.server.Send(t, `{"result":{"content":[{"type":"text","text":"`+fill+`"}]},"jsonrpc":"2.0","id":3}`)
	wantText(t, g.client.Next(t), `"id":5`, "failed: the MCP server's answer was refused",
		fmt.Sprintf("longer than %d bytes", mcp.MaxLine))
	g.client.Send(t, callCat(6))
	g.server.Next(t)
	g.server.Send(t, `{"result":{"content":[]},"jsonrpc":"2.0","id":4}`)
	wantText(t, g.client.Next(t), `"id":6`, `"content":[]`)
}

// TestListsThatDoNotEnd: pages that lead nowhere and lists that are too long
// end in an error, and in no crossing.
func TestListsThatDoNotEnd(t *testing.T) {
	t.Run("pages", func(t *testing.T) {
		g := start(t, newTable())
		g.client.Send(t, hello)
		g.server.Next(t)
		g.server.Send(t, welcome)
		g.client.Next(t)
		g.client.Send(t, callCat(1))
		for range maxPages {
			l := g.server.Next(t)
			g.server.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[],"nextCursor":"again"}}`,
				idOf(t, l)))
		}
		wantText(t, g.client.Next(t), `"id":1`, "more than 64 pages")
		if len(g.k.requests) != 0 {
			t.Error("a crossing was made")
		}
	})
	t.Run("tools", func(t *testing.T) {
		var b strings.Builder
		for i := range maxTools + 1 {
			fmt.Fprintf(&b, `,{"name":"t%d","inputSchema":{}}`, i)
		}
		g := start(t, newTable())
		g.client.Send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		g.server.Next(t)
		g.server.Send(t, `{"jsonrpc":"2.0","id":1,"result":{"tools":[`+b.String()[1:]+`]}}`)
		wantText(t, g.client.Next(t), `"id":1`, "more than 1000 tools")
	})
	t.Run("tools of many lists", func(t *testing.T) {
		g := start(t, newTable())
		list := func(id, from int) string {
			var b strings.Builder
			for i := range maxTools / 2 {
				fmt.Fprintf(&b, `,{"name":"t%d","inputSchema":{}}`, from+i)
			}
			g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id))
			g.server.Next(t)
			g.server.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"tools":[%s]}}`, id, b.String()[1:]))
			return g.client.Next(t)
		}
		for i, from := range []int{0, maxTools / 2, 0} {
			wantText(t, list(i+1, from), `"result"`)
		}
		wantText(t, list(4, maxTools/2+1), "more than 1000 tools")
		wantText(t, list(5, maxTools/2), `"result"`)
		if n := len(g.k.contracts); n != maxTools {
			t.Errorf("the kernel was told of %d tools", n)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		g := start(t, newTable())
		g.client.Send(t, hello)
		g.server.Next(t)
		g.server.Send(t, welcome)
		g.client.Next(t)
		g.client.Send(t, callCat(1))
		g.server.Next(t)
		g.client.Send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		wantText(t, g.server.Next(t), "notifications/cancelled", `"requestId":2`)
	})
}

// TestToolsThatAreNone: what cannot be a boundary, or is listed twice, is not
// shown, and the rest is.
func TestToolsThatAreNone(t *testing.T) {
	g := start(t, newTable())
	g.client.Send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	g.server.Next(t)
	g.server.Send(t, `{"jsonrpc":"2.0","id":1,"result":{"tools":[`+strings.Join([]string{
		reads, `{"name":"cat","inputSchema":{}}`, `{"name":""}`, `{}`, `7`, `{"name":7,"inputSchema":{}}`,
		`{"name":"` + strings.Repeat("n", maxName+1) + `","inputSchema":{}}`, `{"name":"noschema"}`,
		`{"name":"s","inputSchema":true}`, `{"name":"o","inputSchema":{},"outputSchema":[]}`, `{"name":"..","inputSchema":{}}`,
	}, ",")+`]}}`)
	if got, want := g.client.Next(t),
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"..","inputSchema":{}},`+reads+`]}}`; got != want {
		t.Errorf("got %s", got)
	}
	// The second cat differs from the first: the kernel hears of it as well.
	if len(g.k.seen) != 3 || g.k.seen[1].Boundary != "mcp/fs/%2E%2E" || g.k.seen[2].Boundary != "mcp/fs/cat" || g.k.seen[2].Pin == g.k.seen[0].Pin {
		t.Errorf("the kernel saw %+v", g.k.seen)
	}
}

// TestResultsThatLie: what was judged must be what the client reads.
func TestResultsThatLie(t *testing.T) {
	for name, result := range map[string]string{
		"two contents":    `{"content":[],"Content":[{"type":"text","text":"x"}]}`,
		"array":           `[]`,
		"isError as text": `{"content":[],"isError":"false"}`,
		"unknown kind":    `{"content":[],"resultType":"later"}`,
		"kind as number":  `{"content":[],"resultType":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t, newTable()).greet(t)
			g.client.Send(t, callCat(5))
			g.server.Next(t)
			g.server.Send(t, `{"jsonrpc":"2.0","id":3,"result":`+result+`}`)
			wantText(t, g.client.Next(t), `"id":5`, "failed: ", `"isError":true`, "c1")
			if o := g.k.outputs[0]; o.ExitCode != 1 {
				t.Errorf("settled as %+v", o)
			}
		})
	}
}

// TestGroundsStayInside: an error that was not written for people does not
// reach the agent, and a missing token refuses.
func TestGroundsStayInside(t *testing.T) {
	g := start(t, newTable(), func(c *Config) {
		c.Token = func(context.Context) (holdfast.Secret, error) {
			return holdfast.Secret{}, errors.New("open /secret/path")
		}
	}).greet(t)
	g.client.Send(t, callCat(5))
	l := g.client.Next(t)
	wantText(t, l, "refused: internal error", "see holdfast's log", `"isError":true`)
	if strings.Contains(l, "/secret/path") {
		t.Errorf("leaked: %s", l)
	}
	g.client.Input.Close()
	g.wait(t)
	wantText(t, g.log.String(), "/secret/path")
}

func TestServeWantsAllItNeeds(t *testing.T) {
	token := func(context.Context) (holdfast.Secret, error) { return holdfast.Secret{}, nil }
	for name, c := range map[string]Config{
		"zero":      {},
		"no kernel": {Server: "fs", Token: token},
		"no token":  {Server: "fs", Kernel: newTable()},
		"no name":   {Kernel: newTable(), Token: token},
		"long name": {Server: strings.Repeat("x", 200), Kernel: newTable(), Token: token},
		"negative":  {Server: "fs", Kernel: newTable(), Token: token, MaxInFlight: -1},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := gatewaytest.Pair()
			server, far := gatewaytest.Pair()
			if err := Serve(context.Background(), Lines(client), server, c); holdfast.KindOf(err) != holdfast.KindUsage {
				t.Errorf("got %v", err)
			}
			if _, ok := <-far.Lines; ok {
				t.Error("the server is still open")
			}
			client.Close()
		})
	}
}
