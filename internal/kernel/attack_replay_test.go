package kernel_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// A result that a person let one principal have is asked for by another one
// whose agent bears the same name.
func TestAttack_replay_to_another_principal(t *testing.T) {
	w := newWorld(t, "", func(c *kernel.Config, _ *world) {
		c.Policy.Contracts = append(c.Policy.Contracts, holdfast.Contract{Boundary: "test/secret", Risk: holdfast.High, Replay: "payload", Source: "test"})
	})
	as := func(principal, key string) holdfast.Request {
		return holdfast.Request{Boundary: "test/secret", Payload: []byte(`{}`), IdempotencyKey: key,
			Token: w.who("bot", func(id *holdfast.Identity) { id.Principal = principal })}
	}
	for _, key := range []string{"", "k1"} {
		h := w.held(as("user:alice", key))
		w.approve(h.Review)
		w.passes(as("user:alice", key))
		if out, err := w.cross(as("user:alice", key)); err != nil || !out.Replayed {
			t.Fatalf("alice's own result is not given back: %v", err)
		}
		out, err := w.cross(as("user:mallory", key))
		if err == nil {
			t.Fatalf("mallory has what a person let alice have, replayed %v: %s", out.Replayed, out.Output.Body)
		}
	}
}
