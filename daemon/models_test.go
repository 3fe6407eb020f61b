package daemon

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// A client of a provider's asks through the pages' address with a token of
// Holdfast's for a key: the provider gets its own key, and what was spent is told by
// agent and model, also after a restart.
func TestModelsThroughTheGateway(t *testing.T) {
	w := newWorld(t, `'example.com:PORT': {HERE, type: llm, models: {provider: anthropic}, credential: {header: x-api-key, env: HF_TEST_SERVICE_KEY}}`,
		func(config string) string { return strings.Replace(config, "pages: none", "pages: '127.0.0.1:0'", 1) })
	tok, err := w.d.Mint(holdfast.Identity{Agent: "coder"})
	if err != nil {
		t.Fatal(err)
	}
	at, _ := w.d.pagesAt()
	ask := func(at, key string, header ...string) (int, string) {
		r, err := http.NewRequest(http.MethodPost, at+"/llm/anthropic/v1/messages", strings.NewReader(`{"model":"claude-x","max_tokens":10,"messages":[{"role":"user","content":"mail ann@example.com"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", key)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Claude-Code-Agent-Id", "explore")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	if status, got := ask(at, "sk-mine"); status != http.StatusUnauthorized || !strings.Contains(got, "authentication_error") {
		t.Fatalf("%d %s", status, got)
	}
	var refused *ledger.Entry
	if err := w.d.store.View(t.Context(), func(tx kernel.Tx) error {
		l, err := tx.Leaf(holdfast.Unverified, 0)
		if err == nil {
			refused, err = ledger.ParseEntry(l.Record)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if refused.Boundary != "llm" || refused.Gate == nil || *refused.Gate != holdfast.K2 || !strings.Contains(refused.Why, "the token is malformed") {
		t.Errorf("a key that is none is recorded as %s %q", refused.ErrorKind, refused.Why)
	}
	status, got := ask(at, tok.Reveal())
	if status != http.StatusOK || !strings.Contains(got, `"has_key":true`) || strings.Contains(got, "ann@example.com") || strings.Contains(got, tok.Reveal()) {
		t.Fatalf("%d %s", status, got)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		s, err := w.client.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Spend == nil && time.Now().Before(end) {
			continue // the entry may follow the answer
		}
		if s.Spend == nil || len(s.Spend.Today) != 1 {
			t.Fatalf("%+v", s.Spend)
		}
		// The service is no model and told no usage: what was reserved is charged, and
		// nobody said what it costs.
		if x := s.Spend.Today[0]; x.Agent != "coder/explore" || x.Model != "claude-x" || x.Calls != 1 || x.Estimated != 1 || x.Unpriced != 1 || x.Output != 10 || x.Input == 0 || x.Micro != 0 {
			t.Fatalf("%+v", x)
		}
		break
	}
	// The port of a proxy is its agent's, whatever the key; no page in a browser is it.
	port := "http://" + w.d.egress.Listeners()[0].Address
	if status, got := ask(port, "anything"); status != http.StatusOK || !strings.Contains(got, `"has_key":true`) {
		t.Errorf("%d %s", status, got)
	}
	for _, header := range [][]string{{"Origin", "https://example.org"}, {"Sec-Fetch-Mode", "no-cors"}} {
		if status, got := ask(port, "anything", header...); status != http.StatusForbidden || !strings.Contains(got, "permission_error") {
			t.Errorf("%v: %d %s", header, status, got)
		}
	}
}
