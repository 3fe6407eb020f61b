package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
)

// A person approves a call that a client makes with one answer to the server's
// question; the client then makes it with another.
func TestAttack_approved_with_one_answer_made_with_another(t *testing.T) {
	g := asking(t, open1)
	l := g.answers(t, 1, "", `{"resultType":"input_required","inputRequests":{"much":{"method":"elicitation/create","params":{"message":"how much?"}}}}`)
	state := stateOf(l)
	g.k.mu.Lock()
	g.k.risks["mcp/fs/cat"] = holdfast.High
	g.k.mu.Unlock()
	pay := func(id, much int) {
		g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cat","arguments":{"a":1},"requestState":%q,`+
			`"inputResponses":{"much":{"action":"accept","content":{"n":%d}}},%s}}`, id, state, much, able))
	}
	pay(2, 1)
	l = g.client.Next(t)
	wantText(t, l, `"id":2`, "Holdfast holds mcp/fs/cat")
	g.k.decide("r1", true)
	pay(3, 1_000_000)
	g.notCalled(t, "1000000")
	pay(4, 1)
	wantText(t, g.server.Next(t), `"n":1}`)
}

// The same with what stands beside the arguments, where a contract lets it pass.
func TestAttack_approved_with_one_member_made_with_another(t *testing.T) {
	g := asking(t, map[string]holdfast.Risk{"mcp/fs/tools/call": holdfast.Medium, "mcp/fs/cat": holdfast.High})
	call := func(id int, mode string) {
		g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cat","arguments":{"a":1},"mode":%q,%s}}`, id, mode, modern(`{}`)))
	}
	call(1, "dry-run")
	g.listed(t, reads)
	wantText(t, g.client.Next(t), `"id":1`, "Holdfast holds")
	g.k.decide("r1", true)
	call(2, "for-real")
	g.notCalled(t, "for-real")
	call(3, "dry-run")
	wantText(t, g.server.Next(t), `"mode":"dry-run"`)
}

// notCalled fails where the server gets a call with a word in it; it waits for
// what the client is told of the next request.
func (g *rig) notCalled(t *testing.T, word string) {
	t.Helper()
	select {
	case l := <-g.server.Lines:
		if strings.Contains(l, word) {
			t.Errorf("nobody approved what the server was called with: %s", l)
		}
	case l := <-g.client.Lines:
		wantText(t, l, "Nothing has been done", "Review r2")
	case <-time.After(time.Minute):
		t.Error("nothing came")
	}
}
