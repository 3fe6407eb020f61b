package egress

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/ledger"
)

// noRm refuses answers that call the tool rm, and none other.
const noRm = `rules:
  - id: no-rm
    on: output
    boundary: "egress/*"
    when: "has(output.model) && (output.model.unread || output.model.tool_calls.exists(c, c.name == 'rm'))"
    message: nothing is removed here
`

func newGated(t *testing.T, answers domain.Answers) *world {
	t.Helper()
	return newModels(t, setup{
		rows: func(tls, plain uint16) []domain.Domain {
			rows := modelRows(tls, plain)
			for i := range rows {
				rows[i].Models.Answers = answers
			}
			return rows
		},
		policy: func(p *kernel.Policy) {
			modelPrices(p)
			set, err := constitution.Load([]constitution.Source{{Name: "r.yaml", Text: []byte(noRm)}})
			if err != nil {
				t.Fatal(err)
			}
			p.Rules = set
		},
	})
}

// callOf is the events of a tool's call, in two parts.
func callOf(name string) (begin, end string) {
	begin = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"" + name + "\",\"input\":{}}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"path\\\":\"}}\n\n"
	end = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"1}\"}}\n\n" +
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":7}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	return begin, end
}

const streamAsk = `{"model":"claude-x","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hello"}]}`

// Text goes on at once; a call of a tool, and all behind it, once the rules have
// judged it whole.
func TestGate_textPassesAndCallsWait(t *testing.T) {
	for _, tool := range []string{"ls", "rm"} {
		t.Run(tool, func(t *testing.T) {
			w := newGated(t, domain.JudgedCalls)
			begin, end := callOf(tool)
			seen := make(chan bool, 1)
			w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
				says(200, "text/event-stream", anthropicStream, begin)(rw, r)
				select {
				case <-seen:
				case <-time.After(longest):
				}
				says(200, "", end)(rw, r)
			})
			r, err := http.NewRequest(http.MethodPost, w.gatewayFor()+"/llm/anthropic/v1/messages", strings.NewReader(streamAsk))
			w.must(err)
			r.Header.Set("X-Api-Key", "good")
			resp, err := http.DefaultClient.Do(r)
			w.must(err)
			defer resp.Body.Close()
			in, got := bufio.NewReader(resp.Body), ""
			for !strings.Contains(got, "hi there") { // it comes before the call is whole
				line, err := in.ReadString('\n')
				if got += line; err != nil {
					t.Fatalf("%v after %q", err, got)
				}
			}
			seen <- true
			rest, _ := io.ReadAll(in)
			got += string(rest)
			es := w.entries(1)
			if tool == "ls" {
				if got != anthropicStream+begin+end || es[0].Outcome != ledger.Done {
					t.Errorf("%s: the client got %q", es[0].Outcome, got)
				}
				return
			}
			if strings.Contains(got, `"name":"rm"`) || strings.Contains(got, "partial_json") || strings.Contains(got, "message_stop") || !strings.Contains(got, "event: error") || !strings.Contains(got, "nothing is removed here") {
				t.Errorf("the client got %q", got)
			}
			if es[0].Outcome != ledger.Withheld || es[0].Model.How != "complete" && es[0].Model.How != "partial" || es[0].Model.Input != 9 {
				t.Errorf("%s, charged %+v", es[0].Outcome, es[0].Model)
			}
		})
	}
}

// What is no stream is judged whole, and so is every answer where nobody said
// otherwise.
func TestGate_wholeAnswers(t *testing.T) {
	begin, end := callOf("rm")
	calls := strings.Replace(anthropicAnswer, `{"type":"text","text":"hi"}`, `{"type":"tool_use","id":"t2","name":"rm","input":{}}`, 1)
	worlds, asked := map[domain.Answers]*world{}, map[domain.Answers]int{}
	for _, answers := range []domain.Answers{"", domain.JudgedCalls} {
		worlds[answers] = newGated(t, answers)
	}
	for name, c := range map[string]struct {
		answers domain.Answers
		ask     string
		answer  http.HandlerFunc
		passes  bool
	}{
		"a document by another name": {domain.JudgedCalls, streamAsk, says(200, "text/event-stream", calls), false},
		"lines that are no events":   {domain.JudgedCalls, streamAsk, says(200, "text/event-stream", anthropicStream, strings.ReplaceAll(begin+end, "data: ", "")), false},
		"an unknown field":           {domain.JudgedCalls, streamAsk, says(200, "text/event-stream", anthropicStream, strings.ReplaceAll(begin+end, "data: ", "Data: ")), false},
		"a beginning with a call":    {domain.JudgedCalls, streamAsk, says(200, "text/event-stream", strings.Replace(anthropicStream, `"content":[]`, `"content":[{"type":"tool_use","id":"t2","name":"rm","input":{}}]`, 1), anthropicEnd), false},
		"an error and a call":        {domain.JudgedCalls, streamAsk, says(200, "application/json", strings.Replace(calls, `{`, `{"error":{"type":"overloaded_error"},`, 1)), false},
		"a document":                 {domain.JudgedCalls, streamAsk, says(200, "application/json", calls), false},
		"a document that is good":    {domain.JudgedCalls, streamAsk, says(200, "application/json", anthropicAnswer), true},
		"events, judged whole":       {"", streamAsk, says(200, "text/event-stream", anthropicStream, begin, end), false},
		"good events":                {"", streamAsk, says(200, "text/event-stream", anthropicStream, anthropicEnd), true},
		"an error of theirs":         {domain.JudgedCalls, streamAsk, says(400, "application/json", `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := worlds[c.answers]
			w.up.answer(c.answer)
			resp, got := posted(t, http.DefaultClient, w.gatewayFor()+"/llm/anthropic/v1/messages", c.ask)
			if resp.StatusCode == 200 && !c.passes {
				if c.answers != domain.JudgedCalls || !strings.Contains(got, "event: error") || strings.Contains(got, `rm"`) {
					t.Errorf("%d %s", resp.StatusCode, got)
				}
			} else if c.passes != (resp.StatusCode == 200) || !c.passes && strings.Contains(got, `"name":"rm"`) {
				t.Errorf("%d %s", resp.StatusCode, got)
			}
			asked[c.answers]++
			_ = w.entries(asked[c.answers])
		})
	}
}

// Of what a row of models gives that is no answer to a known request, rules are told
// that calls may be in it: what was withheld is not fetched afterwards.
func TestGate_whatNobodyReads(t *testing.T) {
	w := newGated(t, domain.JudgedCalls)
	w.up.answer(says(200, "application/json", `{"output":[{"type":"function_call","name":"rm","arguments":"{}"}]}`))
	resp, err := w.client().Get("https://" + w.at("other.test") + "/v1/responses/resp_1")
	w.must(err)
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusForbidden || strings.Contains(string(b), `"rm"`) {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
	if es := w.entries(1); es[0].Outcome != ledger.Withheld {
		t.Errorf("%s", es[0].Outcome)
	}
}
