package egress

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// A provider's answer in whatever form is charged: as it says, where that can be read,
// and else no less than what was reserved or seen. The one world counts on: each answer
// is one charge.
func TestAttackModels_answers(t *testing.T) {
	w := newModels(t, setup{rows: func(_, plain uint16) []domain.Domain {
		return []domain.Domain{{Name: "plain.test", Type: domain.LLM, Ports: []uint16{plain}, Plain: true, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Models: domain.Models{Provider: "anthropic"}}}
	}})
	events := anthropicStream + anthropicEnd
	raw := func(text string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(rw).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, text)
		}
	}
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(events))
	w.must(z.Close())
	bytewise := ""
	for i := range len(events) {
		bytewise += "1\r\n" + events[i:i+1] + "\r\n"
	}
	for i, c := range []struct {
		name   string
		answer http.HandlerFunc
		how    string
		output int64
	}{
		{"events as plain text", says(200, "text/plain", events), "complete", 7},
		{"events as a page", says(200, "text/html", events), "complete", 7},
		{"events as bytes", says(200, "application/octet-stream", events), "complete", 7},
		{"events as a document", says(200, "application/json", events), "reserved", 100},
		{"a document as events", says(200, "text/event-stream", anthropicAnswer), "reserved", 100},
		{"events behind a redirect", says(302, "text/event-stream", events), "complete", 7},
		{"events of an error", says(400, "text/event-stream", events), "complete", 7},
		{"lines that end in CR", says(200, "text/event-stream", strings.ReplaceAll(events, "\n", "\r")), "complete", 7},
		{"fields without a space", says(200, "text/event-stream", strings.ReplaceAll(events, ": {", ":{")), "complete", 7},
		{"usage after the end", says(200, "text/event-stream", events, strings.Replace(anthropicEnd, ":7}", ":70}", 1)), "complete", 70},
		{"usage that falls after the end", says(200, "text/event-stream", events, strings.Replace(anthropicEnd, ":7}", ":2}", 1)), "reserved", 100},
		{"usage twice in one event", says(200, "text/event-stream", strings.Replace(events, `:7}`, `:7,"output_tokens":1}`, 1)), "partial", 100},
		{"usage in two letterings", says(200, "text/event-stream", strings.Replace(events, `:7}`, `:7,"Output_Tokens":1}`, 1)), "partial", 100},
		{"usage in an unknown event", says(200, "text/event-stream", strings.Replace(events, `"type":"message_delta"`, `"type":"message_usage"`, 1)), "partial", -1},
		{"an error beside an answer", says(200, "application/json", strings.Replace(anthropicAnswer, `{`, `{"error":{"type":"overloaded_error"},`, 1)), "complete", 3},
		{"an error beside nothing that is used", says(200, "application/json", `{"type":"error","error":{"type":"of tomorrow"}}`), "reserved", 100},
		{"nothing", says(200, "text/event-stream"), "reserved", 100},
		{"nothing as a document", says(200, "application/json"), "reserved", 100},
		{"no content", says(204, "application/json"), "reserved", 100},
		{"another protocol", raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), "reserved", 100},
		{"no HTTP", raw("hello\r\n\r\n"), "reserved", 100},
		{"nothing at all", raw(""), "reserved", 100},
		{"a chunk for each byte", raw(head + "Transfer-Encoding: chunked\r\n\r\n" + bytewise + "0\r\n\r\n"), "complete", 7},
		{"a chunk of all there is", raw(head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + anthropicStream), "partial", -1},
		{"less than was announced", raw(head + "Content-Length: 99999\r\n\r\n" + anthropicStream), "partial", -1},
		{"more than was announced", raw(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(anthropicStream), events)), "partial", -1},
		{"until it closes", raw(head + "\r\n" + events), "complete", 7},
		{"early answers", raw(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 3) + head + "\r\n" + events), "complete", 7},
		{"packed", raw(head + "Content-Encoding: gzip\r\n\r\n" + packed.String()), "complete", 7},
		{"packed, and it is not", raw(head + "Content-Encoding: gzip\r\n\r\n" + events), "reserved", 100},
		{"packed as nobody knows", raw(head + "Content-Encoding: lz9\r\n\r\n" + events), "reserved", 100},
		{"an event without an end", says(200, "text/event-stream", anthropicStream, "data: "+strings.Repeat("a", 2<<20)), "partial", -1},
	} {
		w.plain.answer(c.answer)
		r, err := http.NewRequest(http.MethodPost, fmt.Sprintf("http://plain.test:%d/v1/messages", w.plain.port), strings.NewReader(streamAsk))
		w.must(err)
		r.Header.Set("Content-Type", "application/json")
		if resp, err := w.client().Transport.RoundTrip(r); err == nil { // which follows no redirect
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		m := w.charged(i + 1)
		if m.How != c.how || c.output >= 0 && m.Output != c.output || m.Output < 1 || m.Input < 9 || c.how == "reserved" && m.Input < int64(len(streamAsk)) {
			t.Errorf("%s: %+v", c.name, m)
		}
		if asked := len(w.plain.requests()); asked != i+1 {
			t.Fatalf("%s: the provider was asked %d times for %d charges", c.name, asked, i+1)
		}
	}
}

// What stands in a request's header changes neither what is asked nor whose key pays.
func TestAttackModels_headers(t *testing.T) {
	w := newModels(t, setup{})
	w.up.answer(says(200, "application/json", anthropicAnswer))
	gate := w.gatewayFor()
	for i, header := range [][]string{
		{"X-Http-Method-Override", "GET"}, {"X_http_method_override", "GET"}, {"X-Method-Override", "DELETE"}, {"X-Original-Url", "/v1/messages/count_tokens"}, {"X-Rewrite-Url", "/v1/models"},
		{"Connection", "close, x-api-key, content-type"}, {"Expect", "100-continue"}, {"Range", "bytes=0-1"}, {"Accept-Encoding", "br, compress"}, {"Content-Type", "text/plain"},
		{"Content-Type", "application/x-www-form-urlencoded"}, {"Api-Key", "own"}, {"Cookie", "key=own"}, {"Proxy-Authorization", "Bearer own"},
		{"Idempotency-Key", "1"}, {"X-Forwarded-Host", "other.test"}, {"Forwarded", "host=other.test"}, {"Te", "trailers"}, {"X-Goog-Api-Key", "own"},
	} {
		resp, got := posted(t, http.DefaultClient, gate+"/llm/anthropic/v1/messages", anthropicAsk, header...)
		seen := w.up.requests()
		if resp.StatusCode != 200 || len(seen) != i+1 {
			t.Fatalf("%s: %d %s, the provider was asked %d times", header, resp.StatusCode, got, len(seen))
		}
		last := seen[i]
		for name, values := range last.Header {
			if text := strings.Join(values, " "); strings.Contains(text, "own") || strings.Contains(text, "good") || strings.Contains(strings.ToLower(name), "override") || strings.Contains(text, "count_tokens") {
				t.Errorf("%s: the provider got %s: %s", header, name, text)
			}
		}
		if last.Method != "POST" || last.URI != "/v1/messages" || last.Body != anthropicAsk {
			t.Errorf("%s: the provider was asked %s %s %s", header, last.Method, last.URI, last.Body)
		}
		if m := w.charged(i + 1); m.How != "complete" || m.Input != 9 || m.Output != 3 {
			t.Errorf("%s: charged %+v", header, m)
		}
	}
}
