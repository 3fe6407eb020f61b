package gateway

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// line makes something that a peer might send: a message of the protocol, or
// one that was bent.
func randomLine(r *rand.Rand, server bool) string {
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	id := pick("0", "1", "2", "3", "4", "5", "1.5", `"1"`, `"x"`, "-1", "9007199254740993", "null", "{}")
	meta := pick("", `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`, `,"_meta":7`,
		`,"_meta":{"dev.holdfast/idempotency-key":"k","traceparent":3}`)
	l := pick(
		`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":`+pick(`"cat"`, `"rm"`, `"a/b"`, `""`, "1")+`,"arguments":`+pick(`{}`, `{"a":[1]}`, `[]`, `null`)+meta+`}}`,
		`{"jsonrpc":"2.0","id":`+id+`,"method":"`+pick("tools/list", "ping", "initialize", "server/discover", "resources/list", "sampling/createMessage", "roots/list")+`","params":{"cursor":"c"`+meta+`}}`,
		`{"jsonrpc":"2.0","method":"notifications/`+pick("cancelled", "initialized", "progress", "message", "tools/list_changed", "x")+`","params":{"requestId":`+id+`}}`,
		`{"jsonrpc":"2.0","id":`+id+`,"result":`+pick(`{}`, `null`, `{"capabilities":{"tools":{},"prompts":{}}}`, `{"content":[],"_meta":{"dev.holdfast/review":"r"}}`, `{"resultType":"input_required"}`)+`}`,
		`{"jsonrpc":"2.0","id":`+id+`,"error":`+pick(`{"code":1,"message":"m"}`, `1`)+`}`,
	)
	if server && r.IntN(3) == 0 {
		l = `{"jsonrpc":"2.0","id":` + id + `,"result":{"tools":[` + reads + `,{"name":"rm","inputSchema":{}},{"name":7}]` + pick("", `,"nextCursor":"n"`) + `}}`
	}
	if r.IntN(8) == 0 {
		b := []byte(l)
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] = byte(32 + r.IntN(95))
		}
		l = string(b)
	}
	return l
}

// never is a kernel that allows nothing.
type never struct{ *table }

func (n never) Cross(ctx context.Context, r holdfast.Request, _ func(context.Context) (holdfast.Output, error)) (*holdfast.Outcome, error) {
	op := deny(holdfast.K2, holdfast.KindPermission, "no", "")
	return &holdfast.Outcome{Crossing: "c", Opinions: []holdfast.Opinion{op}}, op.Err()
}

// TestRandomPeers lets both sides say anything in any order. Whatever they do:
// Serve returns, nothing is left, each line that leaves is one message, and no
// call reaches the server that the kernel did not allow.
func TestRandomPeers(t *testing.T) {
	before := runtime.NumGoroutine()
	for seed := range uint64(testrepeat.Times(300, 40)) {
		r := rand.New(rand.NewPCG(seed, 1))
		k, allowed := newTable(), seed%2 == 0
		g := start(t, k, func(c *Config) {
			c.MaxInFlight = 1 + r.IntN(8)
			if !allowed {
				c.Kernel = never{k}
			}
		})
		for range 120 {
			if r.IntN(2) == 0 {
				io.WriteString(g.client.Input, randomLine(r, false)+"\n")
			} else {
				io.WriteString(g.server.Input, randomLine(r, true)+"\n")
			}
		}
		g.client.Input.Close()
		if err := g.wait(t); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkLines(t, fmt.Sprintf("seed %d to client", seed), g.client, true)
		checkLines(t, fmt.Sprintf("seed %d to server", seed), g.server, allowed)
		if k.active != 0 {
			t.Fatalf("seed %d: an act goes on", seed)
		}
	}
	gatewaytest.Eventually(t, "goroutines are left", func() bool { return runtime.NumGoroutine() <= before })
}

func checkLines(t *testing.T, who string, p *gatewaytest.Peer, calls bool) {
	for l := range p.Lines {
		// The gateway answers what has no id with null, as JSON-RPC says.
		m, err := mcp.Parse([]byte(strings.Replace(l, `"id":null`, `"id":0`, 1)))
		if err != nil {
			t.Errorf("%s: %v in %s", who, err, l)
		}
		if !calls {
			checkForServer(t, m, false)
		}
	}
}

// TestForgedMeta: what only the gateway may say, a server cannot.
func TestForgedMeta(t *testing.T) {
	g := start(t, newTable()).greet(t)
	g.client.Send(t, callCat(5))
	g.server.Next(t)
	g.server.Send(t, `{"jsonrpc":"2.0","id":3,"result":{"content":[],"_meta":{"dev.holdfast/review":"r9", "a":1.50,"Dev.Holdfast/crossing":"c9"},"x":1}}`)
	if got, want := g.client.Next(t),
		`{"jsonrpc":"2.0","id":5,"result":{"content":[],"_meta":{"a":1.50},"x":1}}`; got != want {
		t.Errorf("got %s", got)
	}
}

// BenchmarkCall is one relayed call with a payload of 1 KB, both peers in
// process and a kernel that does nothing.
func BenchmarkCall(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) { benchmarkCall(b, size) })
	}
}

func benchmarkCall(b *testing.B, size int) {
	c, client := gatewaytest.Pair()
	s, server := gatewaytest.Pair()
	done := make(chan error, 1)
	go func() {
		done <- Serve(context.Background(), Lines(c), s, Config{Kernel: &gatewaytest.Open{}, Server: "fs",
			Token: func(context.Context) (holdfast.Secret, error) { return holdfast.NewSecret("good"), nil }})
	}()
	io.WriteString(client.Input, hello+"\n")
	<-server.Lines
	io.WriteString(server.Input, welcome+"\n")
	<-client.Lines
	io.WriteString(client.Input, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`+"\n")
	<-server.Lines
	io.WriteString(server.Input, `{"jsonrpc":"2.0","id":2,"result":{"tools":[`+reads+`]}}`+"\n")
	<-client.Lines
	call := `,"method":"tools/call","params":{"name":"cat","arguments":{"a":"` + strings.Repeat("x", size) + `"}}}` + "\n"
	b.SetBytes(int64(len(call)))
	b.ReportAllocs()
	for n := 3; b.Loop(); n++ {
		fmt.Fprintf(client.Input, `{"jsonrpc":"2.0","id":%d%s`, n, call)
		<-server.Lines
		fmt.Fprintf(server.Input, `{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`+"\n", n)
		<-client.Lines
	}
	client.Input.Close()
	if err := <-done; err != nil {
		b.Error(err)
	}
}
