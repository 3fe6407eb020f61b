package daemon

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/providertest"
)

// models is both providers over TLS on this machine, and a daemon with the gateway
// to them.
type models struct {
	*providertest.Provider
	d      *Daemon
	client *api.Client
	token  string // of the agent coder
	at     string // of the gateway
	bare   string // of the providers, without TLS
}

// newModels starts all of it. more is configuration beside the two rows.
func newModels(t *testing.T, p *providertest.Provider, more string) *models {
	t.Helper()
	service := httptest.NewTLSServer(p)
	t.Cleanup(service.Close)
	bare := httptest.NewServer(p)
	t.Cleanup(bare.Close)
	_, port, _ := net.SplitHostPort(service.Listener.Addr().String())
	dir := t.TempDir()
	roots := filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: service.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HF_TEST_MODEL_KEY", "sk-of-the-tenant-0123456789")
	config := fmt.Sprintf(`version: 1
listen: {pages: '127.0.0.1:0'}
egress:
  domains:
    'a.example.com:%[1]s': {addresses: [127.0.0.1], roots: %[2]s, type: llm, models: {provider: anthropic}, credential: {header: x-api-key, env: HF_TEST_MODEL_KEY}}
    'o.example.com:%[1]s': {addresses: [127.0.0.1], roots: %[2]s, type: llm, models: {provider: openai}, credential: {header: authorization, prefix: 'Bearer ', env: HF_TEST_MODEL_KEY}}
%[3]s`, port, roots, more)
	d, c, down := up(t, config)
	t.Cleanup(down)
	tok, err := d.Mint(holdfast.Identity{Agent: "coder"})
	if err != nil {
		t.Fatal(err)
	}
	at, _ := d.pagesAt()
	return &models{p, d, c, tok.Reveal(), at, bare.URL}
}

// post asks the gateway for a message.
func (m *models) post(ctx context.Context, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.at+"/llm/anthropic/v1/messages", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Api-Key", m.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	return http.DefaultClient.Do(r)
}
