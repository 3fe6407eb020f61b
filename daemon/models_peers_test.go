//go:build peers

package daemon

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/model/providertest"
)

// The client libraries from npm, for models. Those for Go are pinned in
// tools/llmpeers.
const (
	npmAnthropic = "@anthropic-ai/sdk@1.12.0"
	npmOpenAI    = "openai@6.49.0"
)

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
	bin := filepath.Join(t.TempDir(), "llmpeers")
	cmd := exec.Command("go", "build", "-C", filepath.Join("..", "tools", "llmpeers"), "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	newModels(t, &providertest.Provider{}, "").unchanged(t, bin)
}

// TestModelsByTheTypeScriptLibraries is the same of those from npm.
func TestModelsByTheTypeScriptLibraries(t *testing.T) {
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
	newModels(t, &providertest.Provider{}, "").unchanged(t, "node", path)
}
