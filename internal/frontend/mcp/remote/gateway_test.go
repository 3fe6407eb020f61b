package remote

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
)

// TestLostCall: behind the gateway, a call whose answer is lost is no result of
// the server's: its act fails, and says whether anything may have been done.
func TestLostCall(t *testing.T) {
	var way atomic.Value
	way.Store("answers")
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch b := body(r); {
		case strings.Contains(b, "tools/list"):
			id := strings.TrimPrefix(b[strings.Index(b, `"id":`):], `"id":`)
			asJSON(w, 200, `{"jsonrpc":"2.0","id":`+id[:strings.IndexAny(id, ",}")]+`,"result":{"resultType":"complete","tools":[{"name":"act","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}]}}`)
		case way.Load() == "dies":
			panic(http.ErrAbortHandler)
		case way.Load() == "refuses":
			asJSON(w, 400, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"no such thing"}}`)
		default:
			id := strings.TrimPrefix(b[strings.Index(b, `"id":`):], `"id":`)
			asJSON(w, 200, `{"jsonrpc":"2.0","id":`+id[:strings.IndexAny(id, ",}")]+`,"result":{"resultType":"complete","content":[{"type":"text","text":"`+r.Header.Get("Mcp-Param-A")+`"}]}}`)
		}
	})
	k := &gatewaytest.Open{Ended: make(chan error, 1)}
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- gateway.Serve(context.Background(), gateway.Lines(theirs), dial(t, s.URL), gateway.Config{Kernel: k, Server: "h",
			Token: gatewaytest.Token})
	}()
	in := bufio.NewReader(ours)
	ask := func(arg string) (string, error) {
		_ = ours.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.WriteString(ours, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"act","arguments":{"a":"`+arg+`"},`+meta+`}}`+"\n"); err != nil {
			t.Fatal(err)
		}
		l, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return l, <-k.Ended
	}
	if l, err := ask("here"); !strings.Contains(l, `"text":"here"`) || err != nil {
		t.Errorf("answers: %s, %v", l, err)
	}
	way.Store("refuses")
	if l, err := ask("x"); !strings.Contains(l, "no such thing") || err != nil {
		t.Errorf("refuses: %s, %v", l, err)
	}
	way.Store("dies")
	if l, err := ask("x"); !strings.Contains(l, "may have been carried out") || !strings.Contains(l, `"error":`) || holdfast.KindOf(err) != holdfast.KindOperation || errors.Is(err, holdfast.ErrNotStarted) {
		t.Errorf("dies: %s, %v", l, err)
	}
	if l, err := ask(strings.Repeat("x", maxParam+1)); !strings.Contains(l, "longer than") || !errors.Is(err, holdfast.ErrNotStarted) {
		t.Errorf("too long: %s, %v", l, err)
	}
	s.CloseClientConnections()
	s.Close()
	if l, err := ask("x"); !strings.Contains(l, "could not be reached") || !errors.Is(err, holdfast.ErrNotStarted) {
		t.Errorf("unreachable: %s, %v", l, err)
	}
	ours.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
