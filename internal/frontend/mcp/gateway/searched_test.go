package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/redaction"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

const plantedKey = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"

// startSearching returns a rig whose contract for "cat" says redact.
func startSearching(t *testing.T, r *holdfast.Redaction, change ...func(*Config)) *rig {
	t.Helper()
	k := newTable()
	k.listed["mcp/fs/*"] = holdfast.Contract{Boundary: "mcp/fs/*", Risk: holdfast.Medium, Redact: r}
	e, err := redact.New(redact.Options{Masks: redact.Egress})
	if err != nil {
		t.Fatal(err)
	}
	with := func(c *Config) { c.Engine = func() *redaction.Engine { return &redaction.Engine{Engine: e} } }
	return start(t, k, append([]func(*Config){with}, change...)...)
}

func defaultRedact() *holdfast.Redaction {
	return &holdfast.Redaction{Request: "refuse", Response: "mask", Personal: "mask"}
}

func callWith(id int, args, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cat","arguments":%s%s}}`,
		id, args, more)
}

// TestCallBindsWhatIsSent: the crossing is of the masked arguments, which the server gets byte for byte, and the client
// learns it.
func TestCallBindsWhatIsSent(t *testing.T) {
	g := startSearching(t, defaultRedact()).greet(t)
	g.client.Send(t, callWith(1, `{ "to":"ann@example.com", "n" : 9223372036854775807 }`, ""))
	const sent = `{ "to":"[email]", "n" : 9223372036854775807 }`
	l := g.server.Next(t)
	wantText(t, l, `"arguments":`+sent+`,"_meta"`)
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t,
		l)+`,"result":{"content":[{"type":"text","text":"wrote to bob@example.com"}]}}`)
	l = g.client.Next(t)
	wantText(t, l, `"content":[{"type":"text","text":"wrote to [email]"},`+
		`{"type":"text","text":"[holdfast] masked=2; kinds=email\n`+
		`masked before the server got it: arguments.to\nmasked in this answer: result.content[0].text\n`)
	if strings.Contains(l, "dev.holdfast") {
		t.Errorf("the client gets what is for the record: %s", l)
	}
	if r := g.k.requests[0]; string(r.Payload) != sent || r.Denials != nil {
		t.Errorf("the crossing is of %s, %v", r.Payload, r.Denials)
	}
	if body := string(g.k.outputs[0].Body); !strings.HasPrefix(body,
		`{"_meta":{"dev.holdfast/redacted":"masked=2; kinds=email"},`) ||
		strings.Contains(body, "bob@") {
		t.Errorf("K8 and the record get %s", body)
	}
	// Nothing found: the bytes are the peers' own.
	g.client.Send(t, callWith(2, `{ "a" : 1.0 }`, ""))
	l = g.server.Next(t)
	wantText(t, l, `"arguments":{ "a" : 1.0 },"_meta"`)
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{ "content":[], "n":9223372036854775807 }}`)
	wantText(t, g.client.Next(t), `"result":{ "content":[], "n":9223372036854775807 }`)
}

// TestCallWithSecretIsDenied: the one crossing is denied with the place, nothing is sent, the value
// appears nowhere.
func TestCallWithSecretIsDenied(t *testing.T) {
	g := startSearching(t, defaultRedact()).greet(t)
	g.client.Send(t, callWith(1, `{"env":{"GH":["`+plantedKey+`"]}}`, ""))
	l := g.client.Next(t)
	wantText(t, l, `"isError":true`, "refused: arguments.env.GH[0]: what is there (secret) may not pass",
		"hint: leave it out",
		"gate K1, rule contract/redact, ValidationError")
	if strings.Contains(l+g.log.String(), plantedKey[4:]) {
		t.Errorf("the value is shown: %s", l)
	}
	if len(g.k.requests) != 1 || len(g.k.requests[0].Denials) != 1 || len(g.k.outputs) != 0 {
		t.Errorf("%d crossings, %d acts", len(g.k.requests), len(g.k.outputs))
	}
	g.client.Send(t, callCat(2))
	wantText(t, g.server.Next(t), `"arguments":{"n":2}`) // the first that it gets
}

// TestCallsWithoutRedactPassAsTheyAre: an absent redact changes nothing, and asks for no engine.
func TestCallsWithoutRedactPassAsTheyAre(t *testing.T) {
	g := startSearching(t, nil, func(c *Config) { c.Engine = func() *redaction.Engine { panic("asked") } }).greet(t)
	g.client.Send(t, callWith(1, `{"a":"`+plantedKey+` ann@example.com"}`, ""))
	l := g.server.Next(t)
	wantText(t, l, `"arguments":{"a":"`+plantedKey+` ann@example.com"}`)
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t,
		l)+`,"result":{"content":[{"type":"text","text":"[holdfast] `+plantedKey+`"}]}}`)
	wantText(t, g.client.Next(t), `"result":{"content":[{"type":"text","text":"[holdfast] `+plantedKey+`"}]}`)
}

// TestCallWithoutEngineIsDenied: what is to be searched and cannot be goes nowhere.
func TestCallWithoutEngineIsDenied(t *testing.T) {
	g := startSearching(t, defaultRedact(), func(c *Config) { c.Engine = nil }).greet(t)
	g.client.Send(t, callCat(1))
	wantText(t, g.client.Next(t), "refused: cannot search arguments", "gate K6", "RedactionError")
}

// TestReplayGivesTheToldResult: a replay is the first answer, told part and all, and asks the server nothing.
func TestReplayGivesTheToldResult(t *testing.T) {
	for name, answer := range map[string]string{
		"result": `"result":{"content":[{"type":"text","text":"bob@example.com"},{"type":"image","data":"AA=="}]}`,
		"error":  `"error":{"code":-32000,"message":"no bob@example.com"}`} {
		t.Run(name, func(t *testing.T) {
			g := startSearching(t, defaultRedact()).greet(t)
			const more = `,"_meta":{"dev.holdfast/idempotency-key":"k"}`
			g.client.Send(t, callWith(1, `{"to":"ann@example.com"}`, more))
			g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, g.server.Next(t))+`,`+answer+`}`)
			first := g.client.Next(t)
			wantText(t, first, `[holdfast] masked=2; kinds=email`)
			g.client.Send(t, callWith(1, `{"to":"ann@example.com"}`, more))
			again := g.client.Next(t)
			for _, path := range [][]string{{"result", "content"}, {"error"}} {
				if a, b := mcp.Get([]byte(first), path...), mcp.Get([]byte(again), path...); string(a) != string(b) {
					t.Errorf("%s, then %s", a, b)
				}
			}
			if len(g.k.outputs) != 1 {
				t.Errorf("%d acts", len(g.k.outputs))
			}
		})
	}
}

// TestReplayIsSearched: a result that was settled before the contract said redact is searched.
func TestReplayIsSearched(t *testing.T) {
	g := startSearching(t, nil).greet(t)
	const more = `,"_meta":{"dev.holdfast/idempotency-key":"k"}`
	g.client.Send(t, callWith(1, `{}`, more))
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t,
		g.server.Next(t))+`,"result":{"content":[{"type":"text","text":"bob@example.com"}]}}`)
	wantText(t, g.client.Next(t), "bob@example.com")
	for response, want := range map[string]string{
		"mask":   `"text":"[email]"},{"type":"text","text":"[holdfast] masked=1`,
		"refuse": "withheld: result.content[0].text"} {
		r := defaultRedact()
		if r.Response = response; response == "refuse" {
			r.Personal = "refuse"
		}
		g.k.mu.Lock()
		g.k.listed["mcp/fs/*"] = holdfast.Contract{Boundary: "mcp/fs/*", Risk: holdfast.Medium, Redact: r}
		g.k.mu.Unlock()
		g.client.Send(t, callWith(2, `{}`, more))
		l := g.client.Next(t)
		wantText(t, l, want)
		if strings.Contains(l, "bob@") {
			t.Errorf("%s: %s", response, l)
		}
	}
}

// TestResultIsWithheld: a refused result is not given, the act is kept, and the server's later words are not passed on.
func TestResultIsWithheld(t *testing.T) {
	r := defaultRedact()
	r.Response = "refuse"
	g := startSearching(t, r).greet(t)
	g.client.Send(t, callCat(1))
	l := g.server.Next(t)
	const log = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` +
		plantedKey + `"}}`
	g.server.Send(t, log)
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t,
		l)+`,"result":{"content":[{"type":"text","text":"`+plantedKey+`"}]}}`)
	l = g.client.Next(t)
	wantText(t, l, `"isError":true`, "withheld: result.content[0].text: what is there (secret) may not pass",
		"the call was made")
	g.server.Send(t, log)
	g.client.Send(t, callCat(2))
	l = g.server.Next(t)
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{"content":[]}}`)
	wantText(t, g.client.Next(t), `"id":2`, `"content":[]`)
	if strings.Contains(g.log.String(), plantedKey[4:]) {
		t.Error("the log has the value")
	}
}

// TestWordsOfASearchedCallStayHere: progress and log messages could say what is masked in the result.
func TestWordsOfASearchedCallStayHere(t *testing.T) {
	g := startSearching(t, defaultRedact()).greet(t)
	g.client.Send(t, callWith(1, `{}`, `,"_meta":{"progressToken":"p"}`))
	l := g.server.Next(t)
	g.server.Send(t, `{"jsonrpc":"2.0","method":"notifications/message",`+
		`"params":{"level":"info","data":"`+plantedKey+`"}}`)
	g.server.Send(t, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,`+
		`"progress":7,"message":"`+plantedKey+`"}}`)
	if l := g.client.Next(t); !strings.Contains(l, `"progress":1}`) || strings.Contains(l, plantedKey) {
		t.Errorf("the client hears %s", l)
	}
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{"content":[]}}`)
	wantText(t, g.client.Next(t), `"content":[]`)
}

// TestHeldCallKeepsItsMasks: a held call reports its masks, comes back with its own arguments, and is sent as the
// person saw it.
func TestHeldCallKeepsItsMasks(t *testing.T) {
	k := newTable()
	k.listed["mcp/fs/mv"] = holdfast.Contract{Boundary: "mcp/fs/mv", Risk: holdfast.High, Redact: defaultRedact()}
	e, err := redact.New(redact.Options{Masks: redact.Egress})
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, k, waiting(MaxWait), func(c *Config) {
		c.Engine = func() *redaction.Engine { return &redaction.Engine{Engine: e} }
	})
	const args = `{"to":"ann@example.com"}`
	state := holdByURL(t, g, 1, args)
	g.client.Send(t, retry(2, args, state, accepted))
	g.k.waits(t, 2)
	g.k.decide("r1", true)
	l := g.server.Next(t)
	wantText(t, l, `"arguments":{"to":"[email]"}`)
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{"content":[]}}`)
	wantText(t, g.client.Next(t), `"content":[{"type":"text","text":"[holdfast] masked=1; kinds=email`)
	for i, r := range g.k.requests {
		if string(r.Payload) != `{"to":"[email]"}` {
			t.Errorf("crossing %d is of %s", i, r.Payload)
		}
	}
}

// TestRedactIsCheckedAtUse: a call that waited is not sent by words that no longer hold.
func TestRedactIsCheckedAtUse(t *testing.T) {
	r := defaultRedact()
	r.Request = "off"
	k := newTable()
	k.listed["mcp/fs/mv"] = holdfast.Contract{Boundary: "mcp/fs/mv", Risk: holdfast.High, Redact: r}
	e, err := redact.New(redact.Options{Masks: redact.Egress})
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, k, waiting(MaxWait), func(c *Config) {
		c.Engine = func() *redaction.Engine { return &redaction.Engine{Engine: e} }
	})
	const args = `{"k":"` + plantedKey + `"}`
	g.client.Send(t, retry(2, args, holdByURL(t, g, 1, args), accepted))
	g.k.waits(t, 2)
	g.k.mu.Lock()
	g.k.listed["mcp/fs/mv"] = holdfast.Contract{Boundary: "mcp/fs/mv", Risk: holdfast.High, Redact: defaultRedact()}
	g.k.mu.Unlock()
	g.k.decide("r1", true)
	wantText(t, g.client.Next(t), "the contract's redact has changed since the call came", "call again")
}

// TestMembersBesideArgumentsAreSearched: what goes with the arguments is searched by the tool's contract.
func TestMembersBesideArgumentsAreSearched(t *testing.T) {
	g := startSearching(t, defaultRedact())
	g.k.listed["mcp/fs/tools/call"] = holdfast.Contract{Boundary: "mcp/fs/tools/call", Risk: holdfast.Medium}
	g.greet(t)
	g.client.Send(t, callWith(1, `{}`, `,"task":{"owner":"ann@example.com"},"_meta":{"own/x":"bob@example.com"}`))
	l := g.server.Next(t)
	wantText(t, l, `"task":{"owner":"[email]"}`, `"own/x":"[email]"`)
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{"content":[]}}`)
	wantText(t, g.client.Next(t),
		`masked=2; kinds=email\nmasked before the server got it: params._meta[\"own/x\"], params.task.owner`)
	if r := g.k.requests[0]; r.Boundary != "mcp/fs/tools/call" ||
		strings.Contains(string(r.Payload)+string(g.k.requests[1].Beside), "@") {
		t.Errorf("%s is of %s", r.Boundary, r.Payload)
	}
	g.client.Send(t, callWith(2, `{}`, `,"task":{"k":"`+plantedKey+`"}`))
	wantText(t, g.client.Next(t), "refused: params.task.k: what is there (secret)")
}

// TestTraceWordsAreSearched: the trace of a searched call leaves out words in which something is found.
func TestTraceWordsAreSearched(t *testing.T) {
	for redacts, kept := range map[*holdfast.Redaction]bool{nil: true, defaultRedact(): false} {
		g := startSearching(t, redacts).greet(t)
		g.client.Send(t, callWith(1, `{}`, `,"_meta":{"tracestate":"a=1","baggage":"k=`+plantedKey+`"}`))
		l := g.server.Next(t)
		wantText(t, l, `"tracestate":"a=1"`)
		if strings.Contains(l, plantedKey) != kept {
			t.Errorf("with redact %v: %s", redacts, l)
		}
	}
}

// TestResourcesAreSearched: another method has a contract too.
func TestResourcesAreSearched(t *testing.T) {
	g := startSearching(t, nil)
	g.k.listed["mcp/fs/resources/read"] = holdfast.Contract{Boundary: "mcp/fs/resources/read",
		Risk: holdfast.Medium, Redact: defaultRedact()}
	g.greet(t)
	g.client.Send(t, `{"jsonrpc":"2.0","id":5,"method":"resources/read",`+
		`"params":{"uri":"https://ann:`+plantedKey+`@a.example/"}}`)
	wantText(t, g.client.Next(t), `"error":`, "refused: params.uri: what is there (secret)")
	g.client.Send(t, `{"jsonrpc":"2.0","id":6,"method":"resources/read","params":{"uri":"a:b"}}`)
	l := g.server.Next(t)
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t,
		l)+`,"result":{"contents":[{"uri":"a:b","text":"`+plantedKey+`"},{"uri":"a:c","blob":"AA=="}]}}`)
	wantText(t, g.client.Next(t),
		`{"uri":"a:b","text":"[secret]"},{"uri":"a:c","blob":"AA=="},{"uri":"holdfast:redaction"`)
	if body := string(g.k.outputs[0].Body); !strings.Contains(body, `"dev.holdfast/uninspected":1`) {
		t.Errorf("the record gets %s", body)
	}
}

// TestAnswersAreSearched: what a person answers a server's question goes to the tool as well.
func TestAnswersAreSearched(t *testing.T) {
	g := startSearching(t, defaultRedact())
	g.k.listed["client/fs/*"] = holdfast.Contract{Boundary: "client/fs/*", Risk: holdfast.Medium}
	question := g.answers(t, 1, "",
		`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create",`+
			`"params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}}}`)
	g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call",`+
		`"params":{"name":"cat","arguments":{"a":1},`+
		`"requestState":%q,"inputResponses":{"a":{"action":"accept","content":{"who":"ann@example.com"}}},%s}}`,
		stateOf(question), able))
	wantText(t, g.server.Next(t), `"inputResponses":{"a":{"action":"accept","content":{"who":"[email]"}}}`)
}
