package gateway

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gatewaytest"
)

const moves = `{"name":"mv","inputSchema":{"type":"object"}}`

// modern is the _meta of a request since 2026-07-28.
func modern(elicitation string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":` + elicitation + `}}`
}

// waiting is a configuration in which people decide on a page, within d.
func waiting(d time.Duration) func(*Config) {
	return func(c *Config) {
		c.Wait = d
		c.Page = func(review string) string { return "http://127.0.0.1:7411/review/" + review }
		c.Seal = []byte(strings.Repeat("k", SealSize))
	}
}

// listed answers the gateway's own tools/list.
func (g *rig) listed(t *testing.T, tools string) {
	t.Helper()
	l := g.server.Next(t)
	wantText(t, l, `"method":"tools/list"`)
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{"tools":[`+tools+`]}}`)
}

// holdByURL brings a rig to a call that is pointed to its page, and returns the
// state.
func holdByURL(t *testing.T, g *rig, id int, args string) string {
	t.Helper()
	g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"mv","arguments":%s,%s}}`, id, args, modern(`{"url":{}}`)))
	if id == 1 {
		g.listed(t, moves)
	}
	l := g.client.Next(t)
	wantText(t, l, fmt.Sprintf(`"id":%d`, id), `"resultType":"input_required"`, `"method":"elicitation/create"`, `"mode":"url"`,
		`"url":"http://127.0.0.1:7411/review/r`, "opening it decides nothing", `"dev.holdfast/review":"r`)
	if strings.Contains(l, "secret-argument") {
		t.Errorf("the question says what the call would do: %s", l)
	}
	state, _ := mcp.Text(mcp.Get([]byte(l), "result", "requestState"))
	return state
}

func retry(id int, args, state, responses string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"mv","arguments":%s,"requestState":%q,"inputResponses":%s,%s}}`,
		id, args, state, responses, modern(`{"url":{}}`))
}

const (
	args     = `{"a":"secret-argument"}`
	accepted = `{"approval":{"action":"accept"}}`
)

// waits waits until n crossings were asked for.
func (k *table) waits(t *testing.T, n int) {
	t.Helper()
	gatewaytest.Eventually(t, fmt.Sprintf("no %d crossings", n),
		func() bool { k.mu.Lock(); defer k.mu.Unlock(); return k.crossings >= n })
}

// TestHold_D11_by_url: the client is pointed to the page, comes back, waits, and
// the call is made once a person has decided. The server sees nothing of it.
func TestHold_D11_by_url(t *testing.T) {
	g := start(t, newTable(), waiting(MaxWait))
	state := holdByURL(t, g, 1, args)
	g.client.Send(t, retry(2, args, state, accepted))
	g.k.waits(t, 2)
	g.k.decide("r1", true)
	l := g.server.Next(t)
	wantText(t, l, `"method":"tools/call","params":{"name":"mv","arguments":{"a":"secret-argument"},"_meta":`)
	if strings.Contains(l, "requestState") || strings.Contains(l, "inputResponses") {
		t.Errorf("the server learns of the hold: %s", l)
	}
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{"content":[]}}`)
	wantText(t, g.client.Next(t), `"id":2`, `"content":[]`)
	// The same state again is another request, and is held anew.
	g.client.Send(t, retry(3, args, state, accepted))
	g.k.waits(t, 4)
	g.client.Input.Close()
	g.wait(t)
	if len(g.k.outputs) != 1 {
		t.Errorf("%d acts under one approval", len(g.k.outputs))
	}
}

// TestHold_D11_yes_decides_nothing: whatever the client answers, only a person
// lets the call through.
func TestHold_D11_yes_decides_nothing(t *testing.T) {
	for name, c := range map[string]struct {
		responses string
		wait      time.Duration
	}{
		"accept":  {accepted, 50 * time.Millisecond},
		"no wait": {accepted, 0},
		"decline": {`{"approval":{"action":"decline"}}`, MaxWait},
		"cancel":  {`{"approval":{"action":"cancel"}}`, MaxWait},
		"nothing": {`{}`, MaxWait},
		"shouts":  {`{"approval":{"action":"accept","content":{"approved":true,"APPROVED":"APPROVED"}},"verdict":"allow"}`, 50 * time.Millisecond},
	} {
		t.Run(name, bubbled(func(t *testing.T) {
			g := start(t, newTable(), waiting(c.wait))
			state := holdByURL(t, g, 1, args)
			began := time.Now()
			g.client.Send(t, retry(2, args, state, c.responses))
			wantText(t, g.client.Next(t), `"id":2`, "held for review, nothing has been done",
				"a person decides at: http://127.0.0.1:7411/review/r1",
				"holdfast review approve r1", `"dev.holdfast/page":"http://127.0.0.1:7411/review/r1"`, `"isError":true`)
			if d := time.Since(began); d >= MaxWait {
				t.Errorf("it took %s", d)
			}
			if len(g.k.outputs) != 0 {
				t.Error("something was done")
			}
		}))
	}
}

// TestHold_D11_states_that_are_refused: a state is good for the request that it
// was given out for, for its time, unchanged.
func TestHold_D11_states_that_are_refused(t *testing.T) {
	g := start(t, newTable(), waiting(0))
	state := holdByURL(t, g, 1, args)
	foreign := start(t, newTable(), waiting(0), func(c *Config) { c.Seal = []byte(strings.Repeat("x", SealSize)) })
	other := holdByURL(t, foreign, 1, args)
	s := newSession(nil, nil, Config{Seal: []byte(strings.Repeat("k", SealSize))})
	st, err := s.unseal(state, &call{boundary: "mcp/fs/mv", asked: fingerprint([]byte(args), nil)}, time.Now())
	if err != nil || st.Review != "r1" {
		t.Fatalf("%+v %v", st, err)
	}
	st.Until = time.Now().Unix() - 1
	expired, err := s.seal(st)
	if err != nil {
		t.Fatal(err)
	}
	id := 10
	refused := func(what, args, state string, why string) {
		t.Helper()
		id++
		g.client.Send(t, retry(id, args, state, accepted))
		if l := g.client.Next(t); !strings.Contains(l, `"code":-32602`) || !strings.Contains(l, why) ||
			!strings.Contains(l, fmt.Sprintf(`"id":%d`, id)) {
			t.Errorf("%s: %s", what, l)
		}
	}
	refused("other arguments", `{"a":"other"}`, state, "given out for another request")
	refused("the same arguments in other bytes", `{"a": "secret-argument"}`, state, "given out for another request")
	id++
	g.client.Send(t, strings.Replace(retry(id, args, state, accepted), `"name":"mv"`, `"name":"cat"`, 1))
	wantText(t, g.client.Next(t), `"code":-32602`, "given out for another request")
	id++
	g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"a":"secret-argument","requestState":%q,%s}}`, id, state, modern(`{"url":{}}`)))
	wantText(t, g.client.Next(t), `"code":-32602`, "given out for another request")
	refused("another key", args, other, "not given out here, or was changed")
	refused("expired", args, expired, "has expired")
	refused("empty", args, "", "not given out here")
	refused("no mac", args, strings.SplitN(state, ".", 2)[0]+".", "not given out here")
	for i := range state {
		b := []byte(state)
		b[i] ^= 1
		if b[i] == '"' || b[i] == '\\' || b[i] < ' ' || b[i] > '~' {
			continue
		}
		refused(fmt.Sprintf("character %d", i), args, string(b), "not given out here, or was changed")
	}
	if g.k.crossings != 1 {
		t.Errorf("%d crossings were made", g.k.crossings)
	}
	g.client.Send(t, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"mv","requestState":7,`+modern(`{}`)+`}}`)
	wantText(t, g.client.Next(t), `"code":-32602`, "requestState is not the string")
}

// TestHold_D11_by_form: a client that cannot open addresses confirms that a
// person has decided, which is a no where nobody has.
func TestHold_D11_by_form(t *testing.T) {
	for elicitation, mode := range map[string]string{`{}`: "form", `{"form":{}}`: "form", `{"form":{},"url":{}}`: "url", `{"url":{}}`: "url", `7`: ""} {
		g := start(t, newTable(), waiting(0))
		g.client.Send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mv",`+modern(elicitation)+`}}`)
		g.listed(t, moves)
		l := g.client.Next(t)
		if mode == "" {
			wantText(t, l, "held for review, nothing has been done")
			continue
		}
		wantText(t, l, `"mode":"`+mode+`"`)
		if mode == "form" {
			wantText(t, l, `"requestedSchema":{"type":"object","properties":{}}`, "What you answer here decides nothing", "at http://127.0.0.1:7411/review/r1, or with: holdfast review approve r1")
		}
	}
	// Without a page there is nothing to open.
	g := start(t, newTable(), waiting(0), func(c *Config) { c.Page = nil })
	g.client.Send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mv",`+modern(`{"url":{}}`)+`}}`)
	g.listed(t, moves)
	wantText(t, g.client.Next(t), "held for review, nothing has been done")
}

// session brings a rig to a session of 2025-11-25 with a tool that is held.
func (g *rig) session(t *testing.T, capabilities string) {
	t.Helper()
	g.client.Send(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`}}`)
	g.server.Next(t)
	g.server.Send(t, welcome)
	g.client.Next(t)
	g.client.Send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mv","arguments":`+args+`,"_meta":{"progressToken":"p"}}}`)
	g.listed(t, moves)
}

// TestHold_D11_in_a_session: the client is asked while the call waits.
func TestHold_D11_in_a_session(t *testing.T) {
	const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1e-06,"message":"waiting for a person to decide review r1"}}`
	sorted := func(t *testing.T, g *rig) (question string) {
		a, b := g.client.Next(t), g.client.Next(t)
		if a != progress {
			a, b = b, a
		}
		if a != progress {
			t.Errorf("no progress: %s", a)
		}
		wantText(t, b, `"id":"holdfast-1","method":"elicitation/create"`, "Holdfast holds mcp/fs/mv for a person")
		return b
	}
	t.Run("url, decided meanwhile", func(t *testing.T) {
		g := start(t, newTable(), waiting(MaxWait))
		g.session(t, `{"elicitation":{"url":{}}}`)
		wantText(t, sorted(t, g), `"mode":"url"`, `"url":"http://127.0.0.1:7411/review/r1","elicitationId":"r1"`)
		g.k.decide("r1", true)
		wantText(t, g.client.Next(t), `"method":"notifications/cancelled","params":{"requestId":"holdfast-1"}`)
		wantText(t, g.client.Next(t), `"method":"notifications/elicitation/complete","params":{"elicitationId":"r1"}`)
		l := g.server.Next(t)
		g.server.Send(t, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0}}`)
		g.server.Send(t, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
		g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{"content":[]}}`)
		wantText(t, g.client.Next(t), `"progress":1}`)
		wantText(t, g.client.Next(t), `"id":1`, `"content":[]`)
	})
	t.Run("form, accepted before", bubbled(func(t *testing.T) {
		g := start(t, newTable(), waiting(MaxWait))
		g.session(t, `{"elicitation":{}}`)
		if l := sorted(t, g); strings.Contains(l, `"mode"`) {
			t.Errorf("an old client reads a mode: %s", l)
		}
		g.client.Send(t, `{"jsonrpc":"2.0","id":"holdfast-1","result":{"action":"accept","content":{}}}`)
		time.Sleep(20 * time.Millisecond)
		if len(g.k.outputs) != 0 {
			t.Error("the client decided")
		}
		g.k.decide("r1", true)
		g.server.Next(t)
	}))
	t.Run("declined", func(t *testing.T) {
		g := start(t, newTable(), waiting(MaxWait))
		g.session(t, `{"elicitation":{}}`)
		sorted(t, g)
		g.client.Send(t, `{"jsonrpc":"2.0","id":"holdfast-1","result":{"action":"decline"}}`)
		wantText(t, g.client.Next(t), `"id":1`, "held for review, nothing has been done")
	})
	t.Run("in vain", bubbled(func(t *testing.T) {
		g := start(t, newTable(), waiting(50*time.Millisecond))
		g.session(t, `{}`)
		if l := g.client.Next(t); l != progress {
			t.Errorf("no progress: %s", l)
		}
		wantText(t, g.client.Next(t), `"id":1`, "held for review, nothing has been done")
	}))
	t.Run("cancelled", func(t *testing.T) {
		g := start(t, newTable(), waiting(MaxWait))
		g.session(t, `{}`)
		g.client.Next(t)
		g.client.Send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		g.client.Send(t, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		wantText(t, g.server.Next(t), `"method":"ping"`)
		if g.k.reviews["mcp/fs/mv\x00"+args] != "r1" {
			t.Error("the review is gone")
		}
	})
	t.Run("the client goes", bubbled(func(t *testing.T) {
		g := start(t, newTable(), waiting(MaxWait))
		g.session(t, `{"elicitation":{}}`)
		sorted(t, g)
		g.client.Input.Close()
		began := time.Now()
		if err := g.wait(t); err != nil || time.Since(began) >= MaxWait {
			t.Errorf("Serve took %s: %v", time.Since(began), err)
		}
	}))
}

// TestHold_D11_two_wait_for_one_approval: identical calls attach to one review,
// and one approval lets one of them through.
func TestHold_D11_two_wait_for_one_approval(t *testing.T) { synctest.Test(t, holdTwo) }

func holdTwo(t *testing.T) {
	g := start(t, newTable(), waiting(500*time.Millisecond))
	g.session(t, `{}`)
	g.client.Next(t)
	g.client.Send(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mv","arguments":`+args+`}}`)
	g.k.waits(t, 2)
	g.k.decide("r1", true)
	l := g.server.Next(t)
	wantText(t, g.client.Next(t), "held for review, nothing has been done")
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{"content":[]}}`)
	wantText(t, g.client.Next(t), `"content":[]`)
	g.client.Input.Close()
	for l := range g.server.Lines {
		t.Errorf("more to the server: %s", l)
	}
}

// TestHold_D11_what_stands_beside_waits_too: a hold of a crossing that the call
// needs is a hold of the call.
func TestHold_D11_what_stands_beside_waits_too(t *testing.T) {
	g := start(t, newTable(), waiting(MaxWait))
	g.k.listed["mcp/fs/tools/call"] = holdfast.Contract{Boundary: "mcp/fs/tools/call", Risk: holdfast.High}
	g.client.Send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cat","x":1,`+modern(`7`)+`}}`)
	g.listed(t, reads)
	g.k.waits(t, 1)
	if r := g.k.requests[0]; r.Boundary != "mcp/fs/tools/call" || string(r.Payload) != `{"x":1}` {
		t.Errorf("the kernel was asked %s %s", r.Boundary, r.Payload)
	}
	g.k.decide("r1", true)
	wantText(t, g.server.Next(t), `"name":"cat","arguments":{},"x":1`)
}

// TestWaitIsBounded: no call waits longer than clients do.
func TestWaitIsBounded(t *testing.T) {
	for _, d := range []time.Duration{-1, MaxWait + 1} {
		c, _ := gatewaytest.Pair()
		s, _ := gatewaytest.Pair()
		err := Serve(t.Context(), Lines(struct{ io.ReadWriter }{c}), s, Config{Kernel: newTable(), Server: "fs", Token: goodToken, Wait: d})
		if holdfast.KindOf(err) != holdfast.KindUsage {
			t.Errorf("%s: %v", d, err)
		}
	}
	c, _ := gatewaytest.Pair()
	s, _ := gatewaytest.Pair()
	if err := Serve(t.Context(), Lines(c), s, Config{Kernel: newTable(), Server: "fs", Token: goodToken, Seal: []byte("short")}); holdfast.KindOf(err) != holdfast.KindUsage {
		t.Errorf("a short key: %v", err)
	}
}
