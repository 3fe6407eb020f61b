package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// What a person approved is asked for in an envelope that a server could read
// in another way, or that leads elsewhere: none of it reaches the server, and the
// approval is still there afterwards.
func TestAttack_envelopes_around_an_approval(t *testing.T) {
	k := newTable()
	k.risks["mcp/fs/cat"] = holdfast.High
	g := start(t, k).greet(t)
	call := func(id int) {
		g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cat","arguments":{"a":1}}}`, id))
	}
	call(5)
	wantText(t, g.client.Next(t), `"id":5`, "held for review")
	g.k.decide("r1", true)
	const a = `"name":"cat","arguments":{"a":1}`
	for _, m := range []string{
		`"id":"w","method":"tools/call","params":{` + a + `,"Arguments":{"a":9}}`,
		`"id":"w","method":"tools/call","params":{` + a + `,"arguments":{"a":9}}`,
		`"id":"w","method":"tools/call","params":{` + a + `,"\u0061rguments":{"a":9}}`,
		`"id":"w","method":"tools/call","params":{` + a + `,"Name":"rm"}`,
		`"id":"w","method":"tools/call","params":{` + a + `},"Params":{"name":"rm"}`,
		`"id":"w","method":"tools/call","params":{` + a + `},"params":{"name":"rm"}`,
		`"id":"w","method":"tools/call","params":{` + a + `,"task":{"ttl":1}}`,
		`"id":"w","method":"tools/call","params":{` + a + `,"x":1}`,
		`"id":"w","method":"tools/call","x":{"evil":1},"params":{` + a + `}`,
		`"id":"w","Id":"v","method":"tools/call","params":{` + a + `}`,
		`"id":null,"method":"tools/call","params":{` + a + `}`,
		`"id":"w","method":"tools/Call","params":{` + a + `}`,
		`"id":"w","method":" tools/call","params":{` + a + `}`,
		`"id":"w","method":"tasks/result","params":{` + a + `}`,
		`"id":"w","method":"tools/call","params":{"name":"Cat","arguments":{"a":1}}`,
		`"id":"w","method":"tools/call","params":{"name":"cat ","arguments":{"a":1}}`,
		`"id":"w","method":"tools/call","params":{"name":"../fs/cat","arguments":{"a":1}}`,
		`"id":"w","method":"tools/call","params":{"name":"c\u0430t","arguments":{"a":1}}`,
		`"id":"w","method":"tools/call","params":{"name":"cat","arguments":[{"a":1}]}`,
		`"id":"w","method":"tools/call","params":{` + a + `,"requestState":"x","inputResponses":{"approval":{"action":"accept"}}}`,
		`"id":"w","result":{},"method":"tools/call","params":{` + a + `}`,
	} {
		g.client.Send(t, `{"jsonrpc":"2.0",`+m+`}`)
		select {
		case l := <-g.client.Lines:
			if !strings.Contains(l, `"error"`) && !strings.Contains(l, `"isError":true`) {
				t.Errorf("%s: %s", m, l)
			}
		case l := <-g.server.Lines:
			t.Errorf("%s reached the server: %s", m, l)
		}
	}
	g.client.Send(t, `[{"jsonrpc":"2.0","id":"w","method":"tools/call","params":{`+a+`}}]`)
	wantText(t, g.client.Next(t), "a batch is not accepted")
	g.client.Send(t, `{"jsonrpc":"2.0","method":"tools/call","params":{`+a+`}}`) // asks for no answer
	call(6)
	l := g.server.Next(t)
	wantText(t, l, `"method":"tools/call"`)
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{"content":[]}}`)
	wantText(t, g.client.Next(t), `"id":6`, `"content":[]`)
	call(7)
	wantText(t, g.client.Next(t), `"id":7`, "held for review")
}
