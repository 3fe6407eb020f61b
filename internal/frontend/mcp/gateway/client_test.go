package gateway

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
)

// front is a client that keeps what each line belongs to.
type front struct {
	in   chan mcp.Message
	out  chan string // the key and the line
	once sync.Once
	gone chan struct{}
}

func (c *front) Next() (mcp.Message, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.gone:
		return mcp.Message{}, io.EOF
	}
}

func (c *front) Write(to string, line []byte) error {
	select {
	case c.out <- to + " " + string(line):
		return nil
	case <-c.gone:
		return io.ErrClosedPipe
	}
}

func (c *front) Close() error { c.once.Do(func() { close(c.gone) }); return nil }

// says sends a line with headers, nil for none.
func (c *front) says(t *testing.T, line string, header map[string]string) {
	t.Helper()
	m, err := mcp.Parse([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	m.Header = header
	c.in <- m
}

func (c *front) hears(t *testing.T, want ...string) {
	t.Helper()
	select {
	case l := <-c.out:
		if !strings.HasPrefix(l, want[0]+" ") {
			t.Errorf("belongs to %.10q, want %q: %s", l, want[0], l)
		}
		wantText(t, l, want[1:]...)
	case <-time.After(time.Minute):
		t.Fatalf("nothing came for %s", want)
	}
}

// TestLinesSayWhatTheyBelongTo: a front with many clients learns whose each line
// is, where one request alone can be meant.
func TestLinesSayWhatTheyBelongTo(t *testing.T) {
	c := &front{in: make(chan mcp.Message), out: make(chan string, 100), gone: make(chan struct{})}
	s, server := gatewaytest.Pair()
	k, done := newTable(), make(chan error, 1)
	k.listed["client/fs/*"] = holdfast.Contract{Boundary: "client/fs/*", Risk: holdfast.Medium}
	cfg := Config{Kernel: k, Server: "fs", Token: goodToken}
	waiting(5 * time.Second)(&cfg)
	go func() { done <- Serve(t.Context(), c, s, cfg) }()
	c.says(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"elicitation":{},"roots":{}}}}`, nil)
	server.Next(t)
	server.Send(t, welcome)
	c.hears(t, "n0", `"id":0`)
	call := func(id int, name string) string {
		c.says(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"_meta":{"progressToken":"same"}}}`, id, name), nil)
		if id == 1 {
			l := server.Next(t)
			server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{"tools":[`+reads+`,`+moves+`,`+
				`{"name":"at","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"}}}}]}}`)
		}
		if name == "mv" {
			return ""
		}
		return idOf(t, server.Next(t))
	}
	one := call(1, "cat")
	const log = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`
	server.Send(t, log)
	c.hears(t, "n1", "notifications/message")
	server.Send(t, `{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
	c.hears(t, "n1", `"method":"roots/list"`)
	two := call(2, "cat")
	server.Send(t, log)
	c.hears(t, "", "notifications/message")
	// Two calls with one token of the client's are told apart.
	server.Send(t, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}`)
	c.hears(t, "n2", `"progressToken":"same"`)
	server.Send(t, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
	c.hears(t, "n1", `"progressToken":"same"`)
	for i, id := range []string{one, two} {
		server.Send(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[]}}`)
		c.hears(t, fmt.Sprintf("n%d", i+1), `"content":[]`)
	}
	call(3, "mv")
	c.hears(t, "n3", "") // its progress and its question, in either order
	c.hears(t, "n3", "")
	k.decide("r1", true)
	c.hears(t, "n3", "notifications/cancelled")
	server.Next(t)
	// What a header says is what the tool gets.
	for id, h := range map[int]map[string]string{10: {}, 11: {"mcp-param-r": "us"}, 12: {"mcp-param-r": "eu"}} {
		c.says(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"at","arguments":{"r":"eu"}}}`, id), h)
		if id != 12 {
			c.hears(t, fmt.Sprintf("n%d", id), `"code":-32020`, "mcp-param-r")
			continue
		}
		wantText(t, server.Next(t), `"name":"at"`)
	}
	c.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
