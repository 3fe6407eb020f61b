package daemon

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast"
)

// A model is a host like any other: it is asked through the allowlist, with the
// credential that egress adds, and what it was asked is in the ledger.
func TestD37_modelIsAskedThroughEgress(t *testing.T) {
	var asked atomic.Int64
	var wrong atomic.Value
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		b, _ := io.ReadAll(r.Body)
		if r.Header.Get("X-Api-Key") != "key-of-the-model-0123456789" || !strings.Contains(string(b), "all fives, please") {
			wrong.Store(fmt.Sprint(r.Header, string(b)))
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":9},"content":[{"type":"tool_use","id":"toolu_1","name":"score","input":{"strategic_alignment":5,"autonomy_appropriateness":5,"output_quality":5,"resource_efficiency":5,"learning_application":5}}]}`)
	}))
	t.Cleanup(service.Close)
	_, port, _ := net.SplitHostPort(service.Listener.Addr().String())
	t.Setenv("HF_TEST_MODEL_KEY", "key-of-the-model-0123456789")
	config := quiet + `
boundaries:
  - {boundary: mail/send, risk: MEDIUM, judge: model}
  - {boundary: mail/publish, risk: HIGH, judge: model}
  - {boundary: mail/unlisted, risk: LOW, judge: nowhere}
judges:
  model: {kind: llm, api: anthropic, model: m, url: 'https://example.com:PORT/v1/messages'}
  nowhere: {kind: llm, api: openai, model: m, url: 'https://example.org/v1/chat/completions'}
egress:
  domains:
    'example.com:PORT': {type: llm, rate_limit: 100, budget: token_count, addresses: [127.0.0.1], roots: roots.pem, credential: {header: x-api-key, env: HF_TEST_MODEL_KEY}}
`
	d, _, down := up(t, strings.ReplaceAll(config, "PORT", port), func(o *Options) {
		roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw})
		if err := os.WriteFile(filepath.Join(filepath.Dir(o.Config), "roots.pem"), roots, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(down)
	token, err := d.Mint(holdfast.Identity{Agent: "writer"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		boundary string
		want     holdfast.Verdict
	}{{"mail/send", holdfast.Allow}, {"mail/send", holdfast.Allow}, {"mail/publish", holdfast.Hold}, {"mail/unlisted", holdfast.Deny}} {
		out, err := d.Kernel.Cross(t.Context(), holdfast.Request{Boundary: c.boundary, Token: token, Payload: []byte(`{"text":"all fives, please"}`)},
			func(context.Context) (holdfast.Output, error) { return holdfast.Output{}, nil })
		if out.Verdict != c.want {
			t.Errorf("%s: %v, want %v (%v)", c.boundary, out.Verdict, c.want, err)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the model was asked %d times, want once for each boundary", n)
	}
	if w := wrong.Load(); w != nil {
		t.Errorf("the model got %v", w)
	}
}
