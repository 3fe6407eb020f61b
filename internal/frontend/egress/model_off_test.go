package egress

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/ledger"
)

// offRows are modelRows whose answers nobody redacts.
func offRows(tls, plain uint16) []domain.Domain {
	rows := modelRows(tls, plain)
	for i := range rows {
		rows[i].Response, rows[i].Models.Answers = domain.Off, domain.JudgedCalls
	}
	return rows
}

// packedAs answers in gzip, whatever was asked for, and says that it is of the
// encoding named.
func packedAs(encoding, kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Encoding", encoding)
		_, _ = w.Write(b.Bytes())
	}
}

// D24: where answers are not redacted they are metered all the same, compressed or
// not, and a usage that the client did not ask for is not given to it.
func TestModelsMeteredWhereNothingIsRedacted(t *testing.T) {
	unasked := chatStream[strings.LastIndex(chatStream[:strings.Index(chatStream, "prompt_tokens")], "data: "):strings.Index(chatStream, "data: [DONE]")]
	shown := strings.Replace(chatStream, unasked, "", 1)
	crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	w := newModels(t, setup{rows: offRows})
	gate, charges := w.gatewayFor(), 0
	for name, c := range map[string]struct {
		ask           string
		answer        http.HandlerFunc
		want          string // "" for an answer that is refused
		how           string
		input, output int64
	}{
		"a stream":               {chatAsk, says(200, "text/event-stream", chatStream), shown, "complete", 8, 2},
		"lines in CR LF":         {chatAsk, says(200, "text/event-stream; charset=utf-8", crlf(chatStream)), crlf(shown), "complete", 8, 2},
		"usage without its end":  {chatAsk, says(200, "text/event-stream", strings.TrimRight(strings.TrimSuffix(chatStream, "data: [DONE]\n\n"), "\n")), strings.TrimSuffix(shown, "data: [DONE]\n\n"), "complete", 8, 2},
		"a comment":              {chatAsk, says(200, "text/event-stream", ": ping\n\n", chatStream), ": ping\n\n" + shown, "complete", 8, 2},
		"a packed stream":        {chatAsk, packedAs("gzip", "text/event-stream", chatStream), shown, "complete", 8, 2},
		"usage that is asked":    {strings.Replace(chatAsk, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1), says(200, "text/event-stream", chatStream), chatStream, "complete", 8, 2},
		"a document":             {anthropicAsk, says(200, "application/json", anthropicAnswer), anthropicAnswer, "complete", 9, 3},
		"a packed document":      {anthropicAsk, packedAs("gzip", "application/json", anthropicAnswer), anthropicAnswer, "complete", 9, 3},
		"packed events":          {anthropicAsk, packedAs("GZIP", "text/event-stream", anthropicStream+anthropicEnd), anthropicStream + anthropicEnd, "complete", 9, 7},
		"nobody knows how":       {chatAsk, packedAs("rot13", "text/event-stream", chatStream), "", "reserved", -1, 50},
		"packed as it is not":    {anthropicAsk, packedAs("br", "application/json", anthropicAnswer), "", "reserved", -1, 100},
		"secrets are not masked": {anthropicAsk, says(200, "application/json", strings.Replace(anthropicAnswer, `"hi"`, `"mail ann@example.com"`, 1)), strings.Replace(anthropicAnswer, `"hi"`, `"mail ann@example.com"`, 1), "complete", 9, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w.up.answer(c.answer)
			path := "/llm/anthropic/v1/messages"
			if c.ask != anthropicAsk {
				path = "/llm/openai/v1/chat/completions"
			}
			resp, got := posted(t, http.DefaultClient, gate+path, c.ask, "Accept-Encoding", "identity")
			if c.want == "" && resp.StatusCode == 200 || c.want != "" && (resp.StatusCode != 200 || got != c.want || resp.Header.Get("Content-Encoding") != "") {
				t.Errorf("%d %v %q", resp.StatusCode, resp.Header, got)
			}
			charges++
			if m := w.charged(charges); m == nil || m.How != c.how || c.input >= 0 && m.Input != c.input || m.Output != c.output {
				t.Errorf("charged %+v", m)
			}
		})
	}
}

// Providers are asked for answers that can be metered, whatever the client takes.
func TestModelsAreAskedForPlainAnswers(t *testing.T) {
	w := newModels(t, setup{rows: offRows})
	w.up.answer(says(200, "application/json", anthropicAnswer))
	_, _ = posted(t, http.DefaultClient, w.gatewayFor()+"/llm/anthropic/v1/messages", anthropicAsk, "Accept-Encoding", "zstd, compress")
	if got := w.up.requests()[0].Header.Get("Accept-Encoding"); got != "identity" {
		t.Errorf("the provider was asked for %q", got)
	}
}

// Calls of tools are judged before they are given where nothing is redacted too.
func TestGate_judgesWhereNothingIsRedacted(t *testing.T) {
	w := newModels(t, setup{rows: offRows, policy: func(p *kernel.Policy) {
		modelPrices(p)
		set, err := constitution.Load([]constitution.Source{{Name: "r.yaml", Text: []byte(noRm)}})
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = set
	}})
	begin, end := callOf("rm")
	w.up.answer(says(200, "text/event-stream", anthropicStream, begin, end))
	if _, got := posted(t, http.DefaultClient, w.gatewayFor()+"/llm/anthropic/v1/messages", streamAsk); strings.Contains(got, `"name":"rm"`) || !strings.Contains(got, "nothing is removed here") {
		t.Errorf("the client got %q", got)
	}
	if es := w.entries(1); es[0].Outcome != ledger.Withheld {
		t.Errorf("%s", es[0].Outcome)
	}
}

// aboutModels refuses by each of what a request asks of a model.
const aboutModels = `rules:
  - id: not-that-model
    on: request
    boundary: "egress/*"
    when: "has(args.model) && args.model.name == 'claude-y'"
    message: another model
  - id: no-shell-is-offered
    on: request
    boundary: "egress/*"
    when: "has(args.model) && 'bash' in args.model.tools"
    message: no shell
  - id: nothing-failed
    on: request
    boundary: "egress/*"
    when: "has(args.model) && args.model.tool_results.exists(r, r.name == 'rm' && r.error && r.bytes > 20)"
    message: ask a person why it failed
  - id: nothing-was-ever-read
    on: request
    boundary: "egress/*"
    when: "has(args.model) && (args.model.tool_results + args.model.earlier_results).exists(r, r.name == 'secrets')"
    message: it knows too much
`

// Rules on requests are told the model, the tools that are offered and what tools
// gave, and refuse by each: nothing is asked of the provider, and nothing charged.
func TestModelsRulesOnRequests(t *testing.T) {
	w := newModels(t, setup{policy: func(p *kernel.Policy) {
		modelPrices(p)
		p.Prices.Models["claude-y"] = p.Prices.Models["claude-x"]
		set, err := constitution.Load([]constitution.Source{{Name: "r.yaml", Text: []byte(aboutModels)}})
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = set
	}})
	w.up.answer(says(200, "application/json", anthropicAnswer))
	gate := w.gatewayFor()
	tool := func(name, result string) string {
		return `{"model":"claude-x","max_tokens":10,"tools":[{"name":"` + name + `","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"x"},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"rm","input":{}}]},{"role":"user","content":[` + result + `]}]}`
	}
	before := func(body string) string {
		return strings.TrimSuffix(body, "]}") + `,{"role":"assistant","content":"so it is"},{"role":"user","content":"go on"}]}`
	}
	good := `{"type":"tool_result","tool_use_id":"t1","content":"gone"}`
	n, asked := 0, 0
	for _, c := range []struct{ body, rule, why string }{
		{tool("ls", good), "", ""},
		{strings.Replace(tool("ls", good), "claude-x", "claude-y", 1), "not-that-model", "another model"},
		{tool("bash", good), "no-shell-is-offered", "no shell"},
		// What failed in an earlier turn is no news; who asks for all is told all.
		{before(tool("ls", strings.Replace(good, `"gone"`, `"it could not be removed","is_error":true`, 1))), "", ""},
		{before(strings.ReplaceAll(tool("ls", good), `"name":"rm"`, `"name":"secrets"`)), "nothing-was-ever-read", "too much"},
		{tool("ls", strings.Replace(good, `"gone"`, `"it could not be removed","is_error":true`, 1)), "nothing-failed", "ask a person"},
		{tool("ls", strings.Replace(good, `"content":"gone"`, `"is_error":true,"content":"no"`, 1)), "", ""},
	} {
		resp, got := posted(t, http.DefaultClient, gate+"/llm/anthropic/v1/messages", c.body)
		n++
		e := w.entries(n)[n-1]
		if c.rule == "" {
			if asked++; resp.StatusCode != 200 || e.Outcome != ledger.Done {
				t.Errorf("%s: %d %s", c.body, resp.StatusCode, got)
			}
			continue
		}
		if resp.StatusCode != 403 || !strings.Contains(got, "permission_error") || !strings.Contains(got, c.why) || resp.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %d %s", c.rule, resp.StatusCode, got)
		}
		if e.Outcome != ledger.Denied || !strings.Contains(e.Rule, c.rule) || e.Model != nil {
			t.Errorf("%s: the entry says %s by %s, %+v", c.rule, e.Outcome, e.Rule, e.Model)
		}
	}
	if got := len(w.up.requests()); got != asked {
		t.Errorf("the provider was asked %d times, not %d", got, asked)
	}
}

// What is charged beside tokens: a search that the provider made has its price, and one
// that could be made without end, or that nobody priced, is refused before it is sent.
func TestModelsSearchesAreCharged(t *testing.T) {
	w := newModels(t, setup{
		rows: func(tls, plain uint16) []domain.Domain {
			rows := modelRows(tls, plain)
			rows[0].Models.Window, rows[0].Models.ServerCalls = 1000, 5
			return rows
		},
		policy: func(p *kernel.Policy) {
			modelPrices(p)
			m := p.Prices.Models["claude-x"]
			m.Other = &budget.OtherPrices{Uses: map[string]int64{"web_search": 10_000}, Times: map[string]int64{"service_tier=priority": 2_000_000}}
			p.Prices.Models["claude-x"] = m
		}})
	w.up.answer(says(200, "application/json", strings.Replace(anthropicAnswer, `"output_tokens":3`, `"output_tokens":3,"service_tier":"priority","server_tool_use":{"web_search_requests":2}`, 1)))
	gate := w.gatewayFor() + "/llm/anthropic/v1/messages"
	ask := func(tool string) string {
		return strings.TrimSuffix(anthropicAsk, "}") + `,"tools":[{"name":"x",` + tool + `}]}`
	}
	if resp, got := posted(t, http.DefaultClient, gate, ask(`"type":"web_search_20250305","max_uses":3`)); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, got)
	}
	if m := w.charged(1); m == nil || m.How != "complete" || m.Micro != 2*(9+30)+20_000 || m.Terms != "service_tier=priority web_search*2" {
		t.Errorf("charged %+v", m)
	}
	for tool, why := range map[string]string{
		`"type":"web_search_20250305"`:                   "nothing bounds how often",
		`"type":"code_execution_20250825","max_uses":1`:  "no price for uses of the provider's own",
		`"type":"web_search_20250305","max_uses":900`:    "may be run 900 times",
		`"type":"web_search_20250305","max_uses":-1`:     "no whole number",
		`"type":"web_search_20250305","max_uses":1e9`:    "no whole number",
		`"type":"web_search_20250305","max_uses":100000`: "100000 times",
	} {
		if resp, got := posted(t, http.DefaultClient, gate, ask(tool)); resp.StatusCode < 400 || !strings.Contains(got, why) {
			t.Errorf("%s: %d %s", tool, resp.StatusCode, got)
		}
	}
	if seen := w.up.requests(); len(seen) != 1 {
		t.Errorf("the provider was asked %d times", len(seen))
	}
}
