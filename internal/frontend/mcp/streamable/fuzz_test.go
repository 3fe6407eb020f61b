package streamable

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/mcp"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/gateway"
)

// FuzzHTTP: whatever stands in a request, the front answers in a form that its
// protocol has, and what reaches the core is a message of one line.
func FuzzHTTP(f *testing.F) {
	meta := `"params":{"name":"t",` + newMeta + `}`
	for _, seed := range []struct{ heads, body string }{
		{mcp.HeaderVersion + ": 2026-07-28\n" + mcp.HeaderMethod + ": tools/list",
			`{"jsonrpc":"2.0","id":1,"method":"tools/list",` + meta + `}`},
		{mcp.HeaderVersion + ": 2026-07-28\n" + mcp.HeaderMethod + ": tools/call\n" + mcp.HeaderName +
			": t\nMcp-Param-A: =?base64?YQ==?=", newCall("1.5", "t")},
		{mcp.HeaderVersion + ": 2026-07-28\n" + mcp.HeaderMethod + ": subscriptions/listen",
			`{"jsonrpc":"2.0","id":"a","method":"subscriptions/listen",` + meta + `}`},
		{mcp.HeaderSession + ": S\n" + mcp.HeaderVersion + ": 2025-11-25",
			`{"jsonrpc":"2.0","id":"\u00fc","method":"tools/list"}`},
		{mcp.HeaderSession + ": S",
			`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]`},
		{mcp.HeaderSession + ": S", "{\"jsonrpc\":\"2.0\",\n\"id\":\"q1\",\"result\":{}}"},
		{"", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`},
		{"Origin: http://evil.example.com\nContent-Type: text/plain", "{"},
	} {
		f.Add(uint8(0), seed.heads, seed.body)
		f.Add(uint8(1), seed.heads, "")
	}
	s := newScript()
	h := NewHandler(context.Background(), Config{Enter: func(*http.Request) (string, func(context.Context,
		gateway.Client) error, error) {
		return "a", s.run, nil
	}})
	f.Cleanup(func() { _ = h.Close(context.Background()) })
	known := map[int]bool{200: true, 202: true, 204: true, 400: true, 403: true, 404: true, 405: true, 406: true, 413: true, 415: true, 503: true}
	f.Fuzz(func(t *testing.T, method uint8, heads, body string) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, []string{"POST", "GET", "DELETE", "PATCH"}[method%4], "http://localhost/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "*/*")
		for line := range strings.SplitSeq(heads, "\n") {
			if name, value, ok := strings.Cut(line, ":"); ok {
				value = strings.TrimSpace(value)
				if value == "S" {
					value = h.anySession()
				}
				r.Header.Add(name, value)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !known[w.Code] {
			t.Errorf("the status is %d", w.Code)
		}
		checkAnswer(t, w)
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, m := range s.seen {
			if bytes.ContainsAny(m.Line(), "\r\n") {
				t.Errorf("the core got more than one line: %q", m.Line())
			}
			if m.IsRequest() && (len(m.ID) == 0 || m.ID[0] < '1' || m.ID[0] > '9') {
				t.Errorf("the core got a foreign id %s", m.ID)
			}
		}
		s.seen = nil
	})
}

// anySession is a session that is there, or "none".
func (h *Handler) anySession() string {
	for _, s := range h.seats() {
		if s.id != "" {
			return s.id
		}
	}
	return "none"
}

func checkAnswer(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	switch kind := w.Header().Get("Content-Type"); kind {
	case "application/json":
		if m, err := mcp.Parse(bytes.ReplaceAll(w.Body.Bytes(), []byte(`"id":null`), []byte(`"id":0`))); err != nil || m.Error == nil {
			t.Errorf("the answer %s: %v", w.Body, err)
		}
	case "text/event-stream":
		for l := range strings.Lines(w.Body.String()) {
			data, ok := strings.CutPrefix(l, "data: ")
			if !ok {
				if l = strings.TrimSpace(l); l != "" && l != ":" && l != "retry: 1000" && l != "event: message" {
					t.Errorf("a line of a stream is %q", l)
				}
				continue
			}
			if _, err := mcp.Parse([]byte(data)); err != nil {
				t.Errorf("an event is %s: %v", data, err)
			}
		}
	case "":
		if w.Body.Len() != 0 {
			t.Errorf("an answer without a type: %s", w.Body)
		}
	default:
		t.Errorf("an answer of type %s", kind)
	}
}
