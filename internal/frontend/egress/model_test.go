package egress

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/dialect"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
	"github.com/holdfast-dev/holdfast/ledger"
)

// modelRows has one host for each provider.
func modelRows(tls, _ uint16) []domain.Domain {
	return []domain.Domain{
		{Name: "good.test", Type: domain.LLM, Ports: []uint16{tls}, Models: domain.Models{Provider: "anthropic"}},
		{Name: "other.test", Type: domain.LLM, Ports: []uint16{tls}, Models: domain.Models{Provider: "openai", MaxOutput: 50}},
	}
}

// maskRows are modelRows that mask in both directions.
func maskRows(tls, plain uint16) []domain.Domain {
	rows := modelRows(tls, plain)
	for i := range rows {
		rows[i].Request, rows[i].Response = domain.Mask, domain.Mask
	}
	return rows
}

// modelPrices prices one model of each: a token of input costs 1, of output 10.
func modelPrices(p *kernel.Policy) {
	m := budget.ModelPrice{Input: 1_000_000, Output: 10_000_000}
	p.Prices = &budget.Prices{Version: "v", Models: map[string]budget.ModelPrice{"claude-x": m, "gpt-x": m}}
	p.Limits = append(p.Limits, budget.Limit{Scope: budget.Tenant, Resource: holdfast.MoneyMicro, Amount: 10_000_000, Source: "built in"})
}

func newModels(t *testing.T, set setup) *world {
	t.Helper()
	if set.rows == nil {
		set.rows = modelRows
	}
	if set.policy == nil {
		set.policy = modelPrices
	}
	return newEgress(t, set)
}

// gatewayFor is the gateway's address for clients whose key is "good".
func (w *world) gatewayFor() string {
	w.t.Helper()
	h, err := w.p.Models(func(r *http.Request) (Guest, error) {
		if r.Header.Get("X-Api-Key") != "good" && r.Header.Get("Authorization") != "Bearer good" {
			return Guest{}, &holdfast.Error{Kind: holdfast.KindJWT, Gate: holdfast.K2, Why: "that is no token"}
		}
		return Guest{Group: "alice", Caller: Caller{Token: func() (holdfast.Secret, error) { return w.who("alice") }}}, nil
	})
	w.must(err)
	s := httptest.NewServer(h)
	w.t.Cleanup(s.Close)
	return s.URL
}

// posted posts a body, and returns status, header and body of the answer.
func posted(t *testing.T, c *http.Client, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Api-Key", "good")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp, string(b)
}

// charged is the model of the newest entry.
func (w *world) charged(n int) *ledger.Spending {
	w.t.Helper()
	es := w.entries(n)
	return es[len(es)-1].Model
}

const (
	anthropicAsk    = `{"model":"claude-x","max_tokens":100,"messages":[{"role":"user","content":"hello"}]}`
	anthropicAnswer = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":3}}`
	anthropicStream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-x\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi there\"}}\n\n"
	anthropicEnd = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":7}}\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	chatAsk    = `{"model":"gpt-x","stream":true,"messages":[{"role":"user","content":"hello"}]}`
	chatStream = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"gpt-x\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"hi\"},\"finish_reason\":null}],\"usage\":null}\n\n" +
		"data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"gpt-x\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n" +
		"data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"gpt-x\",\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":2,\"total_tokens\":10}}\n\n" +
		"data: [DONE]\n\n"
)

func says(status int, kind string, parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		for _, p := range parts {
			io.WriteString(w, p)
			http.NewResponseController(w).Flush()
		}
	}
}

// D24: what a provider says of its use is what is charged, through the proxy as
// through the gateway; what it does not say is charged at what was reserved.
func TestD24_modelsAreCharged(t *testing.T) {
	w := newModels(t, setup{})
	gate, charges := w.gatewayFor(), 0
	for name, c := range map[string]struct {
		answer        http.HandlerFunc
		how           string
		input, output int64
	}{
		"a document":        {says(200, "application/json", anthropicAnswer), "complete", 9, 3},
		"events":            {says(200, "text/event-stream", anthropicStream, anthropicEnd), "complete", 9, 7},
		"events that end":   {says(200, "text/event-stream", anthropicStream), "partial", 9, -1},
		"no usage":          {says(200, "application/json", `{"id":"msg_1","type":"message","content":[]}`), "reserved", -1, 100},
		"negative usage":    {says(200, "application/json", strings.Replace(anthropicAnswer, ":9,", ":-9,", 1)), "reserved", -1, 100},
		"absurd usage":      {says(200, "application/json", strings.Replace(anthropicAnswer, ":3}", ":300000000}", 1)), "reserved", -1, 100},
		"no JSON":           {says(200, "application/json", "{"), "reserved", -1, 100},
		"overloaded":        {says(529, "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), "refused", 0, 0},
		"refused":           {says(400, "application/json", `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`), "refused", 0, 0},
		"a server's error":  {says(500, "application/json", `{"type":"error","error":{"type":"api_error","message":"no"}}`), "reserved", -1, 100},
		"an error with 200": {says(200, "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), "refused", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(w.up.requests())
			w.up.answer(c.answer)
			for i, url := range []string{"https://" + w.at("good.test"), gate + "/llm/anthropic"} {
				client := http.DefaultClient
				if i == 0 {
					client = w.client()
				}
				_, _ = posted(t, client, url+"/v1/messages", anthropicAsk)
				charges++
				m := w.charged(charges)
				if m == nil || m.Model != "claude-x" || m.How != c.how || c.input >= 0 && m.Input != c.input || c.output >= 0 && m.Output != c.output || m.Micro != m.Input+10*m.Output {
					t.Errorf("charged %+v", m)
				}
				if c.input < 0 && m.Input < int64(len(anthropicAsk))*10/22 || c.output < 0 && m.Output < 1 {
					t.Errorf("less than what was reserved or seen: %+v", m)
				}
			}
			if seen := w.up.requests()[before:]; len(seen) != 2 || seen[0].Body != anthropicAsk || seen[1].Header.Get("X-Api-Key") != "" {
				t.Errorf("the provider was asked %+v", seen)
			}
		})
	}
}

// What a stream's usage needs is appended to the request and taken out of the
// answer; so is a cap.
func TestModelsUsageIsAskedFor(t *testing.T) {
	w := newModels(t, setup{})
	w.up.answer(says(200, "text/event-stream", chatStream))
	_, got := posted(t, http.DefaultClient, w.gatewayFor()+"/llm/openai/v1/chat/completions", chatAsk)
	if strings.Contains(got, "prompt_tokens") || !strings.Contains(got, "[DONE]") || !strings.Contains(got, `"hi"`) {
		t.Errorf("the client got %q", got)
	}
	sent := w.up.requests()[0].Body
	if !strings.HasPrefix(sent, chatAsk[:len(chatAsk)-1]) || !strings.Contains(sent, `"include_usage":true`) || !strings.Contains(sent, `"max_completion_tokens":50`) {
		t.Errorf("the provider got %s", sent)
	}
	if m := w.charged(1); m.How != "complete" || m.Input != 8 || m.Output != 2 {
		t.Errorf("charged %+v", m)
	}
	resp, got := posted(t, http.DefaultClient, w.gatewayFor()+"/llm/openai/v1/chat/completions", strings.Replace(chatAsk, `"stream"`, `"max_tokens":51,"stream"`, 1))
	var e struct {
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal([]byte(got), &e); err != nil || resp.StatusCode != 402 || e.Error.Type != "insufficient_quota" || !strings.Contains(e.Error.Message, "at most 50") {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
}

// A client that leaves is charged all the same: no less than what was seen.
func TestModelsAClientThatLeaves(t *testing.T) {
	w := newModels(t, setup{})
	gone := make(chan struct{})
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		says(200, "text/event-stream", anthropicStream)(rw, r)
		select {
		case <-r.Context().Done():
			close(gone)
		case <-time.After(longest):
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.gatewayFor()+"/llm/anthropic/v1/messages", strings.NewReader(strings.Replace(anthropicAsk, `"max`, `"stream":true,"max`, 1)))
	w.must(err)
	r.Header.Set("Authorization", "Bearer good")
	r.Header.Set("X-Claude-Code-Agent-Id", "explore-1")
	r.Header.Set("X-Claude-Code-Session-Id", "a b")
	resp, err := http.DefaultClient.Do(r)
	w.must(err)
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	select {
	case <-gone:
	case <-time.After(longest):
		t.Fatal("the provider was not told")
	}
	es := w.entries(1)
	m := es[0].Model
	if m == nil || m.How != "partial" || m.Input != 9 || m.Output < 3 || m.Output > 100 {
		t.Errorf("charged %+v", m)
	}
	if s := es[0].Sub; s == nil || *s != (holdfast.SubAgent{ID: "explore-1", Session: "a b"}) || es[0].Agent != es[0].Owner+"/explore-1" {
		t.Errorf("asked by %s, said to be %+v", es[0].Agent, s)
	}
}

// The gateway serves nothing but what models are asked at, and nobody without a
// token; what it refuses has the provider's form, and what the models' prices lack is
// refused.
func TestModelsGatewayRefuses(t *testing.T) {
	w := newModels(t, setup{})
	w.up.answer(says(200, "application/json", anthropicAnswer))
	gate := w.gatewayFor()
	for _, c := range []struct {
		path, key, body string
		status          int
		kind            string
	}{
		{"/llm/anthropic/v1/messages", "bad", anthropicAsk, 401, "authentication_error"},
		{"/llm/openai/v1/responses", "bad", anthropicAsk, 401, "authentication_error"},
		{"/llm/anthropic/v1/files", "good", anthropicAsk, 403, "permission_error"},
		{"/llm/anthropic/v1/messages/batches", "good", anthropicAsk, 403, "permission_error"},
		{"/llm/anthropic/v1/responses", "good", anthropicAsk, 403, "permission_error"},
		{"/llm/openai/v1/messages", "good", anthropicAsk, 403, "permission_error"},
		{"/llm/anthropic/v1%2fmessages", "good", anthropicAsk, 0, ""},
		{"/llm/anthropic/v1/messages", "good", "{", 400, "invalid_request_error"},
		{"/llm/anthropic/v1/messages", "good", strings.Replace(anthropicAsk, "claude-x", "claude-y", 1), 402, "billing_error"},
		{"/llm/anthropic/v1/messages", "good", strings.Replace(anthropicAsk, "claude-x", "a b", 1), 400, "invalid_request_error"},
		{"/llm/anthropic/v1/messages", "good", strings.Replace(anthropicAsk, ":100", ":100000000", 1), 402, "billing_error"},
		{"/llm/nobody/v1/messages", "good", anthropicAsk, 404, ""},
	} {
		resp, got := posted(t, http.DefaultClient, gate+c.path, c.body, "X-Api-Key", c.key)
		var e struct {
			Type  string
			Error struct{ Type string }
		}
		_ = json.Unmarshal([]byte(got), &e)
		if c.status == 0 && resp.StatusCode >= 400 && resp.StatusCode < 500 {
			continue
		}
		if resp.StatusCode != c.status || c.kind != "" && e.Error.Type != c.kind || strings.HasPrefix(c.path, "/llm/anthropic") && e.Type != "error" {
			t.Errorf("%s with %s: %d %s", c.path, c.body, resp.StatusCode, got)
		}
		if c.status != 429 && resp.Header.Get("X-Should-Retry") != "false" && c.kind != "" {
			t.Errorf("%s: the client may try again", c.path)
		}
	}
	if n := len(w.up.requests()); n != 0 {
		t.Errorf("the provider was asked %d times", n)
	}
}

// What a row of models is asked of which nobody knows the cost has the price of the
// model "unmetered", and is refused where there is none; what only reads passes.
func TestModelsUnmeteredPaths(t *testing.T) {
	w := newModels(t, setup{})
	if resp, got := posted(t, w.client(), "https://"+w.at("good.test")+"/v1/messages/batches", anthropicAsk); resp.StatusCode != 402 || !strings.Contains(got, Unmetered) {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/v1/messages", 402}, {"DELETE", "/v1/messages", 402}, {"OPTIONS", "/v1/messages", 402}, {"HEAD", "/v1/messages", 402}, {"PUT", "/v1/messages", 402}, {"GET", "/v1/files", 402},
		{"POST", "//v1/messages", 403}, {"POST", "/v1/messages/", 403}, {"POST", "/V1/messages", 403}, {"POST", "/v1/%6dessages", 403}, {"POST", "/v1/chat/completions/", 403}, {"GET", "/v1//messages", 403},
	} {
		r, err := http.NewRequest(c.method, "https://"+w.at("good.test")+c.path, strings.NewReader(anthropicAsk))
		w.must(err)
		resp, err := w.client().Do(r)
		if err != nil || resp.StatusCode != c.status {
			t.Errorf("%s %s with a body: %v %v", c.method, c.path, resp, err)
		}
	}
	if n := len(w.up.requests()); n != 0 {
		t.Errorf("the provider was asked %d times", n)
	}
	resp, err := w.client().Get("https://" + w.at("good.test") + "/v1/files")
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("%v %v", resp, err)
	}
	w = newModels(t, setup{policy: func(p *kernel.Policy) {
		modelPrices(p)
		p.Prices.Models[Unmetered] = budget.ModelPrice{Input: 1_000_000}
	}})
	if resp, _ := posted(t, w.client(), "https://"+w.at("good.test")+"/v1/messages/batches", anthropicAsk); resp.StatusCode != 200 {
		t.Errorf("%d", resp.StatusCode)
	}
	if m := w.charged(1); m.Model != Unmetered || m.How != "reserved" || m.Input != int64(len(anthropicAsk)) || m.Micro != m.Input {
		t.Errorf("charged %+v", m)
	}
}

// Rules see what tools a request offers and what tools gave, and which an answer
// calls.
func TestModelsRulesSeeTools(t *testing.T) {
	withTool := `{"model":"claude-x","max_tokens":10,"tools":[{"name":"rm","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"x"},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"rm","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"gone","is_error":true}]}]}`
	calls := strings.Replace(anthropicAnswer, `{"type":"text","text":"hi"}`, `{"type":"tool_use","id":"t2","name":"rm","input":{"path":"/etc"}}`, 1)
	w := newModels(t, setup{})
	w.up.answer(says(200, "application/json", calls))
	_, _ = posted(t, w.client(), "https://"+w.at("good.test")+"/v1/messages", withTool)
	part := w.resultOf(w.entries(1)[0])
	for _, want := range []string{`"tool_calls":[{"id":"t2","name":"rm","arguments":"{\"path\":\"/etc\"}","complete":true}]`, `"usage":"complete"`} {
		if !strings.Contains(part, want) {
			t.Errorf("the output has no %s: %s", want, part)
		}
	}
}

// resultOf is what an entry keeps of its output.
func (w *world) resultOf(e *ledger.Entry) (text string) {
	w.t.Helper()
	w.must(w.store.View(context.Background(), func(tx kernel.Tx) error {
		list, err := tx.Crossing(e.TenantID, e.ID)
		for _, s := range list {
			if s.Kind == ledger.KindEntry {
				text = string(s.Part)
			}
		}
		return err
	}))
	return text
}

// ledger.md part 4: no cap is ever exceeded by one unit, however many ask at a time
// and whenever they leave.
func TestPart4_manyCallersNeverExceedACap(t *testing.T) {
	const room = 5000
	w := newModels(t, setup{policy: func(p *kernel.Policy) {
		modelPrices(p)
		p.Limits = append(p.Limits, budget.Limit{Scope: budget.Agent, Resource: holdfast.MoneyMicro, Amount: room, Source: "test"})
	}})
	w.up.answer(says(200, "text/event-stream", anthropicStream, anthropicEnd))
	gate := w.gatewayFor()
	done := make(chan error, 32)
	for i := range cap(done) {
		go func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, gate+"/llm/anthropic/v1/messages", strings.NewReader(anthropicAsk))
			if err == nil {
				r.Header.Set("X-Api-Key", "good")
				var resp *http.Response
				if resp, err = http.DefaultClient.Do(r); err == nil {
					_, err = io.CopyN(io.Discard, resp.Body, int64(i*37%600))
					resp.Body.Close()
				}
			}
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = nil
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	w.must(w.p.Close(t.Context()))
	used, sum := int64(0), int64(0)
	for _, e := range w.read() {
		for _, u := range e.Uses {
			if u.Draw.Limit == room && u.Used != nil {
				used += *u.Used
				if u.Before+u.Draw.Amount > room && e.Outcome != ledger.Denied {
					t.Errorf("%d were taken on top of %d", u.Draw.Amount, u.Before)
				}
			}
		}
		if e.Model != nil {
			sum += e.Model.Micro
		}
	}
	if used > room || used == 0 || sum != used {
		t.Errorf("%d of %d are used, the entries say %d", used, room, sum)
	}
}

// ledger.md part 4: where the store fails in the middle of an answer the reservation
// stays, and nothing more is asked of a provider.
func TestPart4_theStoreFailsInMidAnswer(t *testing.T) {
	w := newModels(t, setup{})
	broken := errors.New("the disk is gone")
	w.up.answer(func(rw http.ResponseWriter, r *http.Request) {
		w.breakStore(func(string) error { return broken })
		says(200, "application/json", anthropicAnswer)(rw, r)
	})
	gate := w.gatewayFor()
	_, _ = posted(t, http.DefaultClient, gate+"/llm/anthropic/v1/messages", anthropicAsk)
	var resp *http.Response
	var got string
	for end := time.Now().Add(longest); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if w.store.Poisoned() == nil {
			continue // the entry may follow the answer
		}
		resp, got = posted(t, http.DefaultClient, gate+"/llm/anthropic/v1/messages", anthropicAsk)
		break
	}
	if resp == nil || resp.StatusCode != 500 || !strings.Contains(got, "api_error") || resp.Header.Get("X-Should-Retry") != "false" {
		t.Fatalf("%v %s", resp, got)
	}
	if n := len(w.up.requests()); n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
	draws, _, no := budget.Plan(w.policy.Limits, nil, budget.Ask{Who: holdfast.Identity{Tenant: holdfast.Local}, Boundary: "egress/good.test", Consumes: map[holdfast.Resource]int64{holdfast.MoneyMicro: 1}, Now: w.now()})
	if no != nil {
		t.Fatal(no)
	}
	w.must(w.store.View(t.Context(), func(tx kernel.Tx) error {
		c, err := tx.Counter(draws[0])
		if c.Used < 10*100 {
			t.Errorf("%d are kept of what was reserved", c.Used)
		}
		return err
	}))
}

// A model that thinks for longer than the gateway's server gives other answers is
// waited for, and one that thinks for too long is told of in the provider's form.
func TestModelsThatThinkForLong(t *testing.T) {
	w := newModels(t, setup{rows: func(tls, plain uint16) []domain.Domain {
		rows := modelRows(tls, plain)
		rows[0].FirstByte = 500 * time.Millisecond
		return rows
	}})
	w.up.answer(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	h, err := w.p.Models(func(*http.Request) (Guest, error) {
		return Guest{Group: "alice", Caller: Caller{Token: func() (holdfast.Secret, error) { return w.who("alice") }}}, nil
	})
	w.must(err)
	s := httptest.NewUnstartedServer(h)
	s.Config.WriteTimeout = 100 * time.Millisecond
	s.Start()
	t.Cleanup(s.Close)
	if resp, got := posted(t, http.DefaultClient, s.URL+"/llm/anthropic/v1/messages", anthropicAsk); resp.StatusCode != 504 || !strings.Contains(got, "timeout_error") {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
}

// A client that asks for a larger window than the row's has no smaller bound by it.
func TestModelsWindowThatIsAskedFor(t *testing.T) {
	d := &domain.Domain{Models: domain.Models{Window: 1000, MaxOutput: 1}}
	for beta, want := range map[string]int64{"": 1000, "files-api-2025-04-14": 1000, "x,context-1m-2025-08-07": 1 << 20} {
		if l := limitsOf(d, &dialect.Request{}, http.Header{"Anthropic-Beta": {beta}}); l.Window != want {
			t.Errorf("%q: %+v", beta, l)
		}
	}
	beta := http.Header{"Anthropic-Beta": {"context-1m-2025-08-07"}}
	if l := limitsOf(&domain.Domain{}, &dialect.Request{}, beta); l.Window != 0 {
		t.Errorf("nobody said how much is read, and the client did: %+v", l)
	}
}

// A model on this machine is asked without TLS, where its row permits it by name.
func TestModelsWithoutTLS(t *testing.T) {
	w := newModels(t, setup{rows: func(_, plain uint16) []domain.Domain {
		return []domain.Domain{{Name: "plain.test", Type: domain.LLM, Ports: []uint16{443, plain}, Plain: true,
			Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Models: domain.Models{Provider: "anthropic"}}}
	}})
	w.plain.answer(says(200, "application/json", anthropicAnswer))
	resp, got := posted(t, http.DefaultClient, w.gatewayFor()+"/llm/anthropic/v1/messages", anthropicAsk)
	if resp.StatusCode != 200 || got != anthropicAnswer {
		t.Fatalf("%d %s", resp.StatusCode, got)
	}
	if m := w.charged(1); m == nil || m.How != holdfast.UsageComplete || m.Output != 3 {
		t.Errorf("%+v", m)
	}
}
