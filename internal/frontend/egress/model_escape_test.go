package egress

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/model/providertest"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// D24: however an answer comes it is metered, or charged at what was reserved; never
// less. In rows that redact, and in rows that do not.
func TestModelsNoAnswerEscapesTheMeter(t *testing.T) {
	stream, doc := providertest.Read("messages_text_stream").Body, providertest.Read("messages_text").Body
	pack := func(text []byte, codings ...string) string {
		out := string(text)
		for _, c := range codings {
			out = string(packed(t, c, out))
		}
		return out
	}
	answer := func(status int, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			for i := 0; i < len(header); i += 2 {
				w.Header().Add(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const kind, events, document, encoding = "Content-Type", "text/event-stream", "application/json", "Content-Encoding"
	cut := func(b []byte, at string) string { s, _, _ := strings.Cut(string(b), at); return s }
	lines := strings.ReplaceAll(string(doc), "\n", "") + "\n"
	answers := map[string]struct {
		answer http.HandlerFunc
		how    string
		status int // that the client is told; 0 for 200
		masked int // the same where it is redacted; status for 0
	}{
		"events":                        {answer(200, string(stream), kind, events), "complete", 0, 0},
		"another case, and a parameter": {answer(200, string(stream), kind, "TEXT/Event-Stream;Charset=UTF-8"), "complete", 0, 0},
		"a parameter that is none":      {answer(200, string(stream), kind, "text/event-stream; =;"), "complete", 0, 0},
		"events without a type":         {answer(200, string(stream)), "complete", 0, 0},
		"events as a text":              {answer(200, string(stream), kind, "text/plain; charset=utf-8"), "complete", 0, 0},
		"events behind a byte order":    {answer(200, "\ufeff"+string(stream), kind, "text/plain"), "complete", 0, 0},
		"events said to be a document":  {answer(200, string(stream), kind, document), "reserved", 0, 0},
		"events said to be lines":       {answer(200, string(stream), kind, "application/x-ndjson"), "complete", 0, 0},
		"a document":                    {answer(200, string(doc), kind, document), "complete", 0, 0},
		"a document of its own kind":    {answer(200, string(doc), kind, "APPLICATION/VND.x+JSON; charset=utf-8"), "complete", 0, 0},
		"a document without a type":     {answer(200, string(doc)), "complete", 0, 0},
		"a document said to be events":  {answer(200, string(doc), kind, events), "reserved", 0, 0},
		"lines of JSON":                 {answer(200, lines+lines, kind, "application/x-ndjson"), "reserved", 0, 0},
		"two documents":                 {answer(200, string(doc)+string(doc), kind, document), "reserved", 0, 0},
		"two types":                     {answer(200, string(stream), kind, events, kind, document), "complete", 0, 0},
		"gzip":                          {answer(200, pack(stream, "gzip"), kind, events, encoding, "gzip"), "complete", 0, 0},
		"deflate":                       {answer(200, pack(stream, "deflate"), kind, events, encoding, "deflate"), "complete", 0, 0},
		"br":                            {answer(200, pack(stream, "br"), kind, events, encoding, "BR"), "complete", 0, 0},
		"zstd":                          {answer(200, pack(doc, "zstd"), kind, document, encoding, "zstd"), "complete", 0, 0},
		"twice":                         {answer(200, pack(doc, "gzip", "br"), kind, document, encoding, "gzip, br"), "complete", 0, 0},
		"twice, in two fields":          {answer(200, pack(doc, "br", "gzip"), kind, document, encoding, "br", encoding, "gzip"), "complete", 0, 0},
		"said to be packed twice":       {answer(200, pack(doc, "gzip"), kind, document, encoding, "gzip, gzip"), "reserved", 502, 0},
		"another encoding than is said": {answer(200, pack(doc, "zstd"), kind, document, encoding, "gzip"), "reserved", 502, 0},
		"packed in part":                {answer(200, pack(doc, "gzip")[:40], kind, document, encoding, "gzip"), "reserved", 502, 0},
		"packed as nobody knows":        {answer(200, string(doc), kind, document, encoding, "rot13"), "reserved", 200, 502},
		"a part":                        {answer(206, string(doc[:len(doc)-90]), kind, document, "Content-Range", "bytes 0-9/99"), "reserved", 206, 0},
		"a part that is all":            {answer(206, string(doc), kind, document, "Content-Range", "bytes 0-9/99"), "complete", 206, 0},
		"a part of the events":          {answer(200, cut(stream, "event: content_block_stop"), kind, events), "partial", 0, 0},
		"its end alone":                 {answer(200, string(stream[bytes.Index(stream, []byte("event: message_delta")):]), kind, events), "reserved", 0, 0},
		"usage in a trailer": {answer(200, cut(doc, `,
  "usage"`)+"}", kind, document, http.TrailerPrefix+"Usage", `{"input_tokens":1,"output_tokens":1}`), "reserved", 0, 0},
		"usage in a header":           {answer(200, "{}", kind, document, "Usage", `{"input_tokens":1,"output_tokens":1}`), "reserved", 0, 0},
		"no content":                  {answer(204, "", kind, document), "reserved", 204, 0},
		"reset content":               {answer(205, "", kind, document), "reserved", 205, 0},
		"not modified":                {answer(304, "", kind, document), "reserved", 304, 0},
		"nothing":                     {answer(200, "", kind, document), "reserved", 0, 0},
		"accepted, for later":         {answer(202, `{"id":"x","status":"queued"}`, kind, document), "reserved", 202, 0},
		"elsewhere":                   {answer(307, "", "Location", "https://evil.test/v1/messages"), "reserved", 307, 0},
		"elsewhere, with a document":  {answer(308, string(doc), kind, document, "Location", "https://evil.test/v1/messages"), "complete", 308, 0},
		"an error that tells its use": {answer(400, string(doc), kind, document), "complete", 400, 0},
		"an error's page":             {answer(502, "<html>", kind, "text/html"), "reserved", 502, 0},
		"no HTML is an answer":        {answer(200, "<html>", kind, "text/html"), "reserved", 0, 0},
		"usage below zero":            {answer(200, strings.Replace(string(doc), `"output_tokens": 7`, `"output_tokens": -7`, 1), kind, document), "reserved", 0, 0},
		"usage twice":                 {answer(200, strings.Replace(string(doc), `"usage"`, `"usage":{"input_tokens":0,"output_tokens":0},"usage"`, 1), kind, document), "reserved", 0, 500},
		"early hints first": {func(w http.ResponseWriter, r *http.Request) {
			for _, early := range []int{103, 102, 103} {
				w.Header().Set("Link", "</v1/x>; rel=preload")
				w.Header().Set(kind, document)
				w.WriteHeader(early)
			}
			answer(200, string(stream), kind, events)(w, r)
		}, "complete", 0, 0},
		"pushed": {func(w http.ResponseWriter, r *http.Request) {
			if p, ok := w.(http.Pusher); ok && p.Push("/v1/messages", nil) == nil {
				t.Error("the proxy takes what is pushed")
			}
			answer(200, string(stream), kind, events)(w, r)
		}, "complete", 0, 0},
	}
	for how, rows := range map[string]func(tls, plain uint16) []domain.Domain{"redacted": maskRows,
		"restored": modelRows, "as it is": offRows} {
		t.Run(how, func(t *testing.T) {
			w := newModels(t, setup{rows: rows})
			client := w.client()
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			n := 0
			for name, c := range answers {
				w.up.answer(c.answer)
				resp, got := posted(t, client, "https://"+w.at("good.test")+"/v1/messages", streamAsk, "Range", "bytes=0-9", "Accept-Encoding", "zstd, *", "TE", "trailers", "If-None-Match", "*")
				want := max(c.status, 200)
				if how == "redacted" && c.masked != 0 || how == "restored" && c.masked == http.StatusBadGateway {
					want = c.masked
				}
				if strings.Contains(got, "nothing was sent") {
					t.Errorf("%s: %s", name, got)
				}
				if resp.StatusCode != want || len(resp.Trailer) > 0 {
					t.Errorf("%s: %d %s, trailers %v", name, resp.StatusCode, got, resp.Trailer)
				}
				n++
				m, least := w.charged(n), int64(7)
				if c.how == "reserved" {
					least = 100
				}
				if m == nil || m.How != c.how || m.Output < least || m.Input < 25 || m.Micro != m.Input+10*m.Output {
					t.Errorf("%s: charged %+v", name, m)
				}
			}
			asked := w.up.requests()
			if len(asked) != n {
				t.Errorf("the provider was asked %d times, not %d", len(asked), n)
			}
			for _, a := range asked {
				if a.Header.Get("Range") != "" || a.Header.Get("Accept-Encoding") != "identity" {
					t.Errorf("asked %+v", a)
				}
			}
		})
	}
}

// unknownPaths are what providers are asked beside their models, of which nobody
// knows what it costs.
var unknownPaths = []string{
	"POST /v1/messages/batches", "POST /v1/messages/batches/b/cancel", "POST /v1/complete", "POST /v1/files", "POST /v1/skills", "POST /v1/organizations/x",
	"POST /v2/messages", "PUT /v1/messages", "PATCH /v1/messages", "GET /v1/messages",
	"POST /v1/batches", "POST /v1/responses/compact", "POST /v1/responses/resp_1", "POST /v1/responses/resp_1/cancel", "POST /v1/conversations",
	"POST /v1/assistants", "POST /v1/threads", "POST /v1/threads/runs", "POST /v1/threads/t/runs", "POST /v1/fine_tuning/jobs", "POST /v1/evals", "POST /v1/containers",
	"POST /v1/images/generations", "POST /v1/images/edits", "POST /v1/audio/speech", "POST /v1/audio/transcriptions", "POST /v1/audio/translations", "POST /v1/videos",
	"POST /v1/moderations", "POST /v1/uploads", "POST /v1/vector_stores", "POST /v1/vector_stores/v/search", "POST /v1/realtime/calls", "POST /v1/realtime/client_secrets",
	"POST /v1/realtime/sessions", "POST /v1/chatkit/sessions", "POST /v1/engines/x/completions", "POST /openai/deployments/x/chat/completions", "POST /v1/chat/completions/c",
}

// D24: where something counts tokens or money, what is asked of which nobody knows the
// cost is refused by name, through the proxy and the gateway; nothing is sent.
func TestModelsUnknownPathsAreRefused(t *testing.T) {
	tokensAlone := func(p *kernel.Policy) {
		p.Limits = slices.DeleteFunc(p.Limits, func(l budget.Limit) bool { return l.Resource == "money_micro" })
	}
	for name, policy := range map[string]func(*kernel.Policy){"prices": modelPrices, "tokens alone": tokensAlone} {
		t.Run(name, func(t *testing.T) {
			w := newModels(t, setup{policy: policy})
			gate, client := w.gatewayFor(), w.client()
			for i, ask := range unknownPaths {
				method, path, _ := strings.Cut(ask, " ")
				ask := func(c *http.Client, url string) (*http.Response, string) {
					r, err := http.NewRequest(method, url, strings.NewReader(anthropicAsk))
					w.must(err)
					r.Header.Set("X-Api-Key", "good")
					r.Header.Set("Content-Type", "application/json")
					resp, err := c.Do(r)
					w.must(err)
					defer resp.Body.Close()
					b, _ := io.ReadAll(resp.Body)
					return resp, string(b)
				}
				host := []string{"good.test", "other.test"}[i%2]
				if resp, got := ask(client, "https://"+w.at(host)+path); resp.StatusCode != 402 || !strings.Contains(got, "nobody can say how many tokens this takes") {
					t.Errorf("%s %s: %d %s", method, path, resp.StatusCode, got)
				}
				if resp, got := ask(http.DefaultClient, gate+"/llm/"+[]string{"anthropic", "openai"}[i%2]+path); resp.StatusCode != 403 {
					t.Errorf("%s %s through the gateway: %d %s", method, path, resp.StatusCode, got)
				}
			}
			if n := len(w.up.requests()); n != 0 {
				t.Errorf("the provider was asked %d times", n)
			}
		})
	}
}

// D24: a WebSocket to models, whose messages nobody meters, is refused where something
// counts; a price of "unmetered" does not pay for it, since the configuration that has
// one refuses the row.
func TestModelsNoWebSocketIsUnmetered(t *testing.T) {
	w := newModels(t, setup{rows: func(tls, plain uint16) []domain.Domain {
		rows := maskRows(tls, plain)
		rows[1].WebSocket = true
		return rows
	}})
	for n, path := range []string{"v1/realtime?model=gpt-x", "v1/responses"} {
		w.refused(w.send("GET", w.url("other.test")+path, "", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="), 402)
		if e := w.entries(n + 1)[n]; !strings.Contains(e.Why, Unmetered) {
			t.Errorf("%s: %s", path, e.Why)
		}
	}
	w.untouched()
}

// What only reads or removes costs nothing, and passes.
func TestModelsWhatReadsIsFree(t *testing.T) {
	w := newModels(t, setup{})
	client := w.client()
	for i, ask := range []string{"GET /v1/files", "GET /v1/messages/batches/b/results", "GET /v1/responses/resp_1?stream=true", "GET /v1/batches", "HEAD /v1/messages", "OPTIONS /v1/messages",
		"DELETE /v1/files/f", "GET /v1/models?limit=1", "GET /v1/videos/v/content"} {
		method, path, _ := strings.Cut(ask, " ")
		r, err := http.NewRequest(method, "https://"+w.at("other.test")+path, nil)
		w.must(err)
		resp, err := client.Do(r)
		w.must(err)
		resp.Body.Close()
		if m := w.charged(i + 1); resp.StatusCode != 200 || m != nil {
			t.Errorf("%s: %d, charged %+v", ask, resp.StatusCode, m)
		}
	}
}

// A row that lets models be asked unmetered does, and charges nothing for it; its
// formats that are known are metered all the same.
func TestModelsUnmeteredAndMeant(t *testing.T) {
	w := newModels(t, setup{rows: func(tls, plain uint16) []domain.Domain {
		rows := modelRows(tls, plain)
		rows[0].Models.Unmetered = true
		return rows
	}})
	w.up.answer(says(200, "application/json", anthropicAnswer))
	if resp, got := posted(t, w.client(), "https://"+w.at("good.test")+"/v1/messages/batches", anthropicAsk); resp.StatusCode != 200 || w.charged(1) != nil {
		t.Errorf("%d %s, charged %+v", resp.StatusCode, got, w.charged(1))
	}
	_, _ = posted(t, w.client(), "https://"+w.at("good.test")+"/v1/messages", anthropicAsk)
	if m := w.charged(2); m == nil || m.How != "complete" || m.Output != 3 {
		t.Errorf("charged %+v", m)
	}
	if e := w.entries(2)[0]; !slices.ContainsFunc(e.Weakened, func(s string) bool { return strings.Contains(s, "no budget of tokens or money holds there") }) {
		t.Errorf("the record says %q", e.Weakened)
	}
}

// What a request's body does not hold is reserved as the window that was configured,
// or refused by name; what comes later or elsewhere is refused always.
func TestModelsInputThatStandsElsewhere(t *testing.T) {
	for _, window := range []int64{0, 5000} {
		w := newModels(t, setup{rows: func(tls, plain uint16) []domain.Domain {
			rows := modelRows(tls, plain)
			rows[1].Models.Window = window
			return rows
		}})
		w.up.answer(says(200, "application/json", "{}"))
		gate, n := w.gatewayFor(), 0
		for member, wide := range map[string]bool{`"previous_response_id":"resp_1"`: true, `"conversation":"conv_1"`: true, `"conversation":{"id":"conv_1"}`: true,
			`"prompt":{"id":"pmpt_1"}`: false, `"background":true`: false} {
			resp, got := posted(t, http.DefaultClient, gate+"/llm/openai/v1/responses", `{"model":"gpt-x","input":"hello",`+member+`}`)
			n++
			name, _, _ := strings.Cut(member[1:], `"`)
			if !wide || window == 0 {
				if resp.StatusCode != 402 || !strings.Contains(got, name) {
					t.Errorf("%s, window %d: %d %s", member, window, resp.StatusCode, got)
				}
				continue
			}
			if m := w.charged(n); resp.StatusCode != 200 || m == nil || m.How != "reserved" || m.Input+m.CacheWrite != window {
				t.Errorf("%s, window %d: %d %s, charged %+v", member, window, resp.StatusCode, got, m)
			}
		}
	}
}
