package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
)

// able is the _meta of a client that can be asked everything.
const able = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}}`

const questions = `{"resultType":"input_required","requestState":"theirs \"1\"","x":1.50,"inputRequests":{` +
	`"who":{"method":"elicitation/create","params":{"message":"name? 1.50","_meta":{"x":1}},"x":1},"where":{"method":"roots/list"}}}`

// asking is a rig whose server may ask all that contracts say.
func asking(t *testing.T, contracts map[string]holdfast.Risk, change ...func(*Config)) *rig {
	g := start(t, newTable(), change...)
	for b, r := range contracts {
		g.k.listed[b] = holdfast.Contract{Boundary: b, Risk: r}
	}
	return g
}

var open1 = map[string]holdfast.Risk{"client/fs/*": holdfast.Medium}

// answers sends a call and answers it with a result, whose line for the client
// it returns.
func (g *rig) answers(t *testing.T, id int, more, result string) string {
	t.Helper()
	g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cat","arguments":{"a":1},%s}}`, id, more+able))
	if id == 1 {
		g.listed(t, reads)
	}
	l := g.server.Next(t)
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":`+result+`}`)
	return g.client.Next(t)
}

func stateOf(line string) string {
	s, _ := mcp.Text(mcp.Get([]byte(line), "result", "requestState"))
	return s
}

// TestQuestions: each question of the server is a crossing, and so is each
// answer; what was judged is what passes, both ways.
func TestQuestions(t *testing.T) {
	g := asking(t, open1)
	l := g.answers(t, 1, "", questions)
	state := stateOf(l)
	want := `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"` + state + `","x":1.50,"inputRequests":{` +
		`"where":{"method":"roots/list","params":{}},"who":{"method":"elicitation/create","params":{"message":"name? 1.50"}}}}}`
	if l != want || strings.Contains(l, "theirs") {
		t.Errorf("got  %s\nwant %s", l, want)
	}
	for i, want := range []string{`mcp/fs/cat {"a":1}`, `client/fs/roots/list {}`, `client/fs/elicitation/create {"message":"name? 1.50"}`} {
		if r := g.k.requests[i]; fmt.Sprintf("%s %s", r.Boundary, r.Payload) != want {
			t.Errorf("the kernel was asked %s %s, want %s", r.Boundary, r.Payload, want)
		}
	}
	g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"cat","arguments":{"a":1},"requestState":%q,`+
		`"inputResponses":{"who":{"action":"accept", "content":{"n":1.50}},"where":{"roots":[]},"why":{"action":"accept"}},%s}}`, state, able))
	l = g.server.Next(t)
	wantText(t, l, `"params":{"name":"cat","arguments":{"a":1},"inputResponses":{"where":{"roots":[]},"who":{"action":"accept", "content":{"n":1.50}}},"requestState":"theirs \"1\"","_meta":`)
	for i, want := range []string{`client/fs/roots/list {"question":{},"answer":{"roots":[]}}`,
		`client/fs/elicitation/create {"question":{"message":"name? 1.50"},"answer":{"action":"accept", "content":{"n":1.50}}}`, `mcp/fs/cat {"a":1}`} {
		if r := g.k.requests[3+i]; fmt.Sprintf("%s %s", r.Boundary, r.Payload) != want {
			t.Errorf("the kernel was asked %s %s, want %s", r.Boundary, r.Payload, want)
		}
	}
	if o := g.k.outputs[4]; string(o.Body) != `{"action":"accept", "content":{"n":1.50}}` {
		t.Errorf("K8 saw of the answer %s", o.Body)
	}
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{"resultType":"complete","content":[]}}`)
	wantText(t, g.client.Next(t), `"id":2`, `"content":[]`)
	// A state without questions is a server that wants to be asked later.
	l = g.answers(t, 3, "", `{"resultType":"input_required","requestState":"later"}`)
	g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"cat","arguments":{"a":1},"requestState":%q,%s}}`, stateOf(l), able))
	wantText(t, g.server.Next(t), `"arguments":{"a":1},"requestState":"later","_meta"`)
}

// TestQuestionsThatDoNotPass: what a server may not ask fails the call by name,
// and the client reads nothing of the question.
func TestQuestionsThatDoNotPass(t *testing.T) {
	const q = `"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"the-question"}}}`
	for name, c := range map[string]struct {
		contracts map[string]holdfast.Risk
		result    string
		why       string
	}{
		"no contract":         {nil, `{"resultType":"input_required",` + q + `}`, "asks the client for elicitation/create, which holdfast does not pass"},
		"a tool's pattern":    {map[string]holdfast.Risk{"mcp/fs/*": 3, "*": 3, "client/*": 3}, `{"resultType":"input_required",` + q + `}`, "which holdfast does not pass"},
		"prohibited":          {map[string]holdfast.Risk{"client/fs/*": 3, "client/fs/elicitation/create": 0}, `{"resultType":"input_required",` + q + `}`, "which holdfast does not pass"},
		"another server's":    {map[string]holdfast.Risk{"client/f/*": 3}, `{"resultType":"input_required",` + q + `}`, "which holdfast does not pass"},
		"called complete":     {nil, `{"resultType":"complete","content":[],` + q + `}`, "which holdfast does not pass"},
		"called nothing":      {nil, `{"content":[],` + q + `}`, "which holdfast does not pass"},
		"in disguise":         {open1, `{"content":[],"InputRequests":{"a":{"method":"elicitation/create","params":{"message":"the-question"}}}}`, `differs from \"inputRequests\" only in case`},
		"a method of its own": {open1, `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","Method":"roots/list","params":{"message":"the-question"}}}}`, "differs from its own only in case"},
		"no object":           {open1, `{"resultType":"input_required","inputRequests":[]}`, "inputRequests is not an object"},
		"no method":           {open1, `{"resultType":"input_required","inputRequests":{"a":{}}}`, "has no method"},
		"too many":            {open1, `{"resultType":"input_required","inputRequests":{` + strings.Repeat(`"a":{},`, 0) + many(maxInputs+1) + `}}`, "more than 16 questions"},
		"a long key":          {open1, `{"resultType":"input_required","inputRequests":{"` + strings.Repeat("k", maxKey+1) + `":{"method":"roots/list"}}}`, "has a key of more than 128 bytes"},
		"a state as number":   {open1, `{"resultType":"input_required","requestState":7}`, "requestState is not a string"},
		"a long state":        {open1, `{"resultType":"input_required","requestState":"` + strings.Repeat("s", maxTheirs+1) + `"}`, "requestState is not a string of at most"},
		"all too long":        {open1, `{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":{"x":"` + strings.Repeat("y", maxSealed) + `"}}}}`, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			g := asking(t, c.contracts)
			l := g.answers(t, 1, "", c.result)
			wantText(t, l, "failed: ", c.why, "what the call did before stands", `"isError":true`, `"resultType":"complete"`)
			if strings.Contains(l, "the-question") {
				t.Errorf("the client reads the question: %s", l)
			}
		})
	}
	t.Run("of what the client cannot", func(t *testing.T) {
		g := asking(t, open1)
		g.client.Send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cat",`+modern(`{}`)+`}}`)
		g.listed(t, reads)
		l := g.server.Next(t)
		g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t,
			l)+`,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}}`)
		wantText(t, g.client.Next(t), "asks the client for roots/list, of which the client did not say that it can")
	})
	t.Run("in a session", func(t *testing.T) {
		g := asking(t, open1)
		g.greet(t)
		g.client.Send(t, callCat(7))
		l := g.server.Next(t)
		g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{"content":[],`+q+`}}`)
		wantText(t, g.client.Next(t),
			"failed: the MCP server wants input from the client, which holdfast does not pass to a client of this protocol version")
	})
	t.Run("denied", func(t *testing.T) {
		g := asking(t, open1)
		g.k.risks["client/fs/elicitation/create"] = holdfast.Prohibited
		wantText(t, g.answers(t, 1, "", `{"resultType":"input_required",`+q+`}`), "refused: this tool is forbidden", `"isError":true`)
	})
}

func many(n int) string {
	var qs []string
	for i := range n {
		qs = append(qs, fmt.Sprintf(`"q%d":{"method":"roots/list"}`, i))
	}
	return strings.Join(qs, ",")
}

// TestQuestionsThatAreHeld: a question that a person must allow waits, and what
// an answer says of itself makes it no answer to another question.
func TestQuestionsThatAreHeld(t *testing.T) {
	g := asking(t, map[string]holdfast.Risk{"client/fs/*": holdfast.High}, waiting(MaxWait))
	g.client.Send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cat","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}`)
	g.listed(t, reads)
	l := g.server.Next(t)
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t,
		l)+`,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}}`)
	g.k.waits(t, 2)
	g.k.decide("r1", true)
	wantText(t, g.client.Next(t), `"inputRequests":{"a":{"method":"roots/list","params":{}}}`)
}

func TestAnswersThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ responses, why string }{
		"roots for a form":  {`{"who":{"action":"accept","roots":[{"uri":"file:///"}]}}`, `has a member \"roots\", which no answer to elicitation/create has`},
		"a form for roots":  {`{"where":{"roots":[],"action":"accept"}}`, `has a member \"action\", which no answer to roots/list has`},
		"words for a form":  {`{"who":{"role":"user","action":"accept"}}`, `has a member \"role\"`},
		"in disguise":       {`{"who":{"Action":"accept"}}`, `has a member \"Action\"`},
		"no object":         {`{"who":"accept"}`, "is not an object"},
		"no object of them": {`[]`, "params.inputResponses is not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			g := asking(t, open1)
			state := stateOf(g.answers(t, 1, "", questions))
			n := len(g.k.requests)
			g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"cat","arguments":{"a":1},"requestState":%q,"inputResponses":%s,%s}}`, state, c.responses, able))
			wantText(t, g.client.Next(t), `"id":2`, `"code":-32602`, c.why)
			if len(g.k.requests) != n {
				t.Error("a crossing was made")
			}
		})
	}
	t.Run("denied", func(t *testing.T) {
		g := asking(t, open1)
		state := stateOf(g.answers(t, 1, "", questions))
		g.k.risks["client/fs/roots/list"] = holdfast.Prohibited
		g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"cat","arguments":{"a":1},"requestState":%q,"inputResponses":{"where":{"roots":[]}},%s}}`, state, able))
		wantText(t, g.client.Next(t), "refused: this tool is forbidden")
		g.client.Input.Close()
		for l := range g.server.Lines {
			t.Errorf("more to the server: %s", l)
		}
	})
	t.Run("without a question", func(t *testing.T) {
		g := asking(t, open1)
		g.client.Send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cat","inputResponses":{"who":{"roots":[]}},`+able+`}}`)
		g.listed(t, reads)
		if l := g.server.Next(t); strings.Contains(l, "inputResponses") {
			t.Errorf("the server gets an answer that nothing judged: %s", l)
		}
	})
}

// TestAnswersAndHolds: a retry that is held keeps its answers over the hold.
func TestAnswersAndHolds(t *testing.T) {
	g := asking(t, open1, waiting(MaxWait))
	state := stateOf(g.answers(t, 1, "", questions))
	g.k.risks["mcp/fs/cat"] = holdfast.High
	g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"cat","arguments":{"a":1},"requestState":%q,"inputResponses":{"where":{"roots":[ ]}},%s}}`, state, able))
	l := g.client.Next(t)
	wantText(t, l, `"mode":"url"`)
	g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"cat","arguments":{"a":1},"requestState":%q,"inputResponses":{"approval":{"action":"accept"},"where":{"roots":["other"]}},%s}}`, stateOf(l), able))
	g.k.waits(t, 7)
	g.k.decide("r1", true)
	wantText(t, g.server.Next(t),
		`"arguments":{"a":1},"inputResponses":{"where":{"roots":[ ]}},"requestState":"theirs \"1\"","_meta"`)
}

// TestAnswersAreNotReplayed: a retry with answers is not given what was settled
// without them, and is given its own.
func TestAnswersAreNotReplayed(t *testing.T) {
	g := asking(t, open1)
	const key = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","dev.holdfast/idempotency-key":"k"`
	keyed := strings.Replace(able, `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, key, 1)
	g.client.Send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cat",`+keyed+`}}`)
	g.listed(t, reads)
	l := g.server.Next(t)
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":`+questions+`}`)
	state := stateOf(g.client.Next(t))
	// Again without answers: the same questions, without asking the server.
	g.client.Send(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"cat",`+keyed+`}}`)
	wantText(t, g.client.Next(t), `"id":2`, `"inputRequests"`)
	answer := func(id int) {
		g.client.Send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"cat","requestState":%q,"inputResponses":{"where":{"roots":[]}},%s}}`, id, state, keyed))
	}
	answer(3)
	l = g.server.Next(t)
	g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"result":{"content":[],"done":1}}`)
	wantText(t, g.client.Next(t), `"id":3`, `"done":1`)
	answer(4)
	wantText(t, g.client.Next(t), `"id":4`, `"done":1`, `"dev.holdfast/replayed":true`)
}

// TestAddresses: the error that wants the client to open an address is a
// question too.
func TestAddresses(t *testing.T) {
	const e = `{"code":-32042.0,"message":"open it","data":{"elicitations":[{"mode":"url","url":"https://evil.example/the-question","elicitationId":"e"}]}}`
	for name, c := range map[string]struct {
		contracts map[string]holdfast.Risk
		e, want   string
	}{
		"no contract": {nil, e, "asks the client for elicitation/create, which holdfast does not pass"},
		"a contract":  {open1, e, e},
		"no list":     {open1, `{"code":-3.2042e4,"message":"open","data":{"elicitations":7}}`, "and not a list"},
		"no object":   {open1, `{"code":-32042,"message":"open","data":{"elicitations":[7]}}`, "is not an object"},
		"another":     {nil, `{"code":-32041,"message":"no"}`, `"error":{"code":-32041,"message":"no"}`},
	} {
		t.Run(name, func(t *testing.T) {
			g := asking(t, c.contracts)
			g.client.Send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cat",`+able+`}}`)
			g.listed(t, reads)
			l := g.server.Next(t)
			g.server.Send(t, `{"jsonrpc":"2.0","id":`+idOf(t, l)+`,"error":`+c.e+`}`)
			l = g.client.Next(t)
			wantText(t, l, c.want)
			if c.contracts == nil && strings.Contains(l, "the-question") {
				t.Errorf("the client reads the address: %s", l)
			}
		})
	}
}

// TestHeaders: what a proxy read in the headers is what the tool gets.
func TestHeaders(t *testing.T) {
	bound, err := headers([]byte(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},
		"o":{"type":"object","properties":{"deep":{"type":"boolean","x-mcp-header":"Deep"}}},"free":{"type":"string"},"bad":7}}`))
	if err != nil {
		t.Fatal(err)
	}
	tl := tool{headers: bound}
	for name, c := range map[string]struct {
		given map[string]string
		args  string
		ok    bool
	}{
		"no HTTP":       {nil, `{"region":"eu"}`, true},
		"equal":         {map[string]string{"mcp-param-region": "eu", "mcp-param-n": "7", "mcp-param-deep": "true", "mcp-param-x": "y"}, `{"region":"eu","n":7,"o":{"deep":true}}`, true},
		"as base64":     {map[string]string{"mcp-param-region": "=?base64?w6k=?="}, `{"region":"é"}`, true},
		"another":       {map[string]string{"mcp-param-region": "us"}, `{"region":"eu"}`, false},
		"missing":       {map[string]string{}, `{"region":"eu"}`, false},
		"for nothing":   {map[string]string{"mcp-param-region": "eu"}, `{}`, false},
		"for null":      {map[string]string{"mcp-param-region": "eu"}, `{"region":null}`, false},
		"null":          {map[string]string{}, `{"region":null,"free":"x"}`, true},
		"deep":          {map[string]string{"mcp-param-deep": "false"}, `{"o":{"deep":true}}`, false},
		"number":        {map[string]string{"mcp-param-n": "8"}, `{"n":7}`, false},
		"number's form": {map[string]string{"mcp-param-n": "7.0"}, `{"n":7}`, true},
		"fraction":      {map[string]string{"mcp-param-n": "7.5"}, `{"n":7.5}`, false},
		"beyond":        {map[string]string{"mcp-param-n": "9007199254740993"}, `{"n":9007199254740993}`, false},
		"object":        {map[string]string{"mcp-param-region": "{}"}, `{"region":{}}`, false},
		"bad base64":    {map[string]string{"mcp-param-region": "=?base64?*?="}, `{"region":"*"}`, false},
	} {
		if why := tl.mismatch(c.given, []byte(c.args)); (why == "") != c.ok {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// TestToolsWithHeadersThatMayNotBe: a tool whose schema wants a header that the
// protocol does not allow is not shown, and cannot be called; the log says why,
// and the tools beside it are there.
func TestToolsWithHeadersThatMayNotBe(t *testing.T) {
	g := start(t, newTable())
	g.client.Send(t, hello)
	g.server.Next(t)
	g.server.Send(t, welcome)
	g.client.Next(t)
	tool := func(name, property string) string {
		return `{"name":"` + name + `","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"a":` + property + `}}}`
	}
	list := `"result":{"tools":[` + strings.Join([]string{tool("number", `{"type":"number","x-mcp-header":"A"}`), tool("fine", `{"type":"string","x-mcp-header":"A"}`),
		tool("lines", `{"type":"string","x-mcp-header":"A\r\nB"}`), tool("items", `{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`)}, ",") + `]}`
	g.client.Send(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	g.server.Next(t)
	g.server.Send(t, `{"jsonrpc":"2.0","id":2,`+list+`}`)
	got := g.client.Next(t)
	wantText(t, got, `"fine"`)
	for _, name := range []string{"number", "lines", "items"} {
		if strings.Contains(got, `"`+name+`"`) {
			t.Errorf("%s is shown: %s", name, got)
		}
		wantText(t, g.log.String(), "left out", "tool="+name)
	}
	wantText(t, g.log.String(), "no string, integer or boolean", "no header's name", "no one argument")
	g.client.Send(t, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"number","arguments":{"a":1}}}`)
	wantText(t, g.client.Next(t), `"error"`, "number")
	if g.k.crossings > 1 || len(g.k.outputs) != 0 {
		t.Errorf("%d crossings, %d acts", g.k.crossings, len(g.k.outputs))
	}
}
