package sandbox

import (
	"maps"
	"testing"
)

// Clients of models find the gateway inside of a workspace where a provider is spoken
// for, and what somebody gave stands.
func TestModelVariables(t *testing.T) {
	both := &Network{Models: []string{"anthropic", "openai"}}
	for name, c := range map[string]struct {
		n           *Network
		given, want map[string]string
	}{
		"nobody": {&Network{}, nil, map[string]string{}},
		"one":    {&Network{Models: []string{"anthropic"}}, nil, map[string]string{"ANTHROPIC_BASE_URL": "http://127.0.0.1:7412/llm/anthropic", "ANTHROPIC_AUTH_TOKEN": "holdfast"}},
		"given": {both, map[string]string{"ANTHROPIC_API_KEY": "k", "OPENAI_BASE_URL": "http://x"},
			map[string]string{"ANTHROPIC_BASE_URL": "http://127.0.0.1:7412/llm/anthropic", "OPENAI_API_KEY": "holdfast"}},
	} {
		if got := c.n.ModelVariables(c.given); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}
