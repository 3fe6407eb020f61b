package daemon

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// TestD21_webhookTellsOfAnAttempt: people are told of an attempt to leave a
// sandbox at level critical, with its question; and status says in words
// why the agent is paused.
func TestD21_webhookTellsOfAnAttempt(t *testing.T) {
	r := newReceiver(t)
	d, c, down := hookedAt(t, r, "LOW")
	defer down()
	token, err := d.Mint(holdfast.Identity{Agent: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Kernel.Cross(t.Context(), holdfast.Request{Boundary: "agent/step", Payload: []byte(`{}`), Token: token}, func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{}, &posture.Escape{Run: "run-1", Call: posture.Call{Nr: 101, Name: "ptrace", Arch: "x86_64"}}
	})
	if holdfast.KindOf(err) != holdfast.KindEscape {
		t.Fatal(err)
	}
	got := r.wait(0)
	q, _ := got["review"].(map[string]any)
	if got["event"] != "sandbox_escape_attempted" || got["level"] != "critical" || got["agent"] != "bob" || q["about"] != "escape" || q["state"] != "pending" || q["expires_at"] != nil {
		t.Fatalf("%v", got)
	}
	if why, _ := got["why"].(string); !strings.Contains(why, "ptrace (call 101, x86_64)") || !strings.Contains(why, "the agent is paused") {
		t.Errorf("%q", why)
	}
	s, err := c.Status(t.Context())
	if err != nil || !slices.Contains(s.Paused, "bob") || !strings.Contains(s.PausedWhy["bob"], "tried to leave its sandbox with ptrace") || s.Waiting != 1 || s.Halted {
		t.Errorf("%+v, %v", s, err)
	}
}
