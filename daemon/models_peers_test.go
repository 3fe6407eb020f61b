package daemon

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/api"
	"github.com/holdfast-dev/holdfast/internal/llm/llmtest"
)

// The client libraries from npm, for models. Those for Go are pinned in
// tools/llmpeers.
const (
	npmAnthropic = "@anthropic-ai/sdk@1.12.0"
	npmOpenAI    = "openai@6.49.0"
)

// models is both providers over TLS on this machine, and a daemon with the gateway
// to them.
type models struct {
	*llmtest.Provider
	d      *Daemon
	client *api.Client
	token  string // of the agent coder
	at     string // of the gateway
	bare   string // of the providers, without TLS
}

// newModels starts all of it. more is configuration beside the two rows.
func newModels(t *testing.T, p *llmtest.Provider, more string) *models {
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

// said is what a client prints that asks at a base address with a key.
func (m *models) said(t *testing.T, base, key string, command ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	anthropic, openai := base, base+"/v1"
	if base == m.at {
		anthropic, openai = base+"/llm/anthropic", base+"/llm/openai/v1"
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), "ANTHROPIC_BASE_URL="+anthropic, "ANTHROPIC_API_KEY="+key, "OPENAI_BASE_URL="+openai, "OPENAI_API_KEY="+key)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", command, err, out, errs.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// unchanged holds that a client makes of the providers behind the gateway what it
// makes of them without, that these get the tenant's key, and that what was asked is
// charged.
func (m *models) unchanged(t *testing.T, command ...string) {
	t.Helper()
	want := m.said(t, m.bare, "sk-anybody", command...)
	before := len(m.Asked())
	got := m.said(t, m.at, m.token, command...)
	if len(want) < 20 || len(got) != len(want) {
		t.Fatalf("%d lines, and %d through the gateway", len(want), len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("directly: %s\n through: %s", want[i], got[i])
		}
	}
	for _, a := range m.Asked()[before:] {
		if a.Header.Get("X-Api-Key") != "sk-of-the-tenant-0123456789" && a.Header.Get("Authorization") != "Bearer sk-of-the-tenant-0123456789" || bytes.Contains(fmt.Append(nil, a.Header), []byte(m.token)) {
			t.Errorf("%s %s came with %v", a.Method, a.Path, a.Header)
		}
	}
}

// TestModelsByTheGoLibraries: the official Go libraries of both providers, as they
// are, make the same of a provider and of the gateway before it.
func TestModelsByTheGoLibraries(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the libraries")
	}
	bin := filepath.Join(t.TempDir(), "llmpeers")
	cmd := exec.Command("go", "build", "-C", filepath.Join("..", "tools", "llmpeers"), "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	newModels(t, &llmtest.Provider{}, "").unchanged(t, bin)
}

// TestModelsByTheTypeScriptLibraries is the same of those from npm.
func TestModelsByTheTypeScriptLibraries(t *testing.T) {
	if testing.Short() {
		t.Skip("installs clients from npm")
	}
	dir := t.TempDir()
	if out, err := exec.Command("npm", "install", "--prefix", dir, "--no-audit", "--no-fund", npmAnthropic, npmOpenAI).CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v: %s", err, out)
	}
	script, err := os.ReadFile(filepath.Join("testdata", "llmpeers.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "llmpeers.mjs")
	if err := os.WriteFile(path, script, 0o600); err != nil {
		t.Fatal(err)
	}
	newModels(t, &llmtest.Provider{}, "").unchanged(t, "node", path)
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
