package dissimilar_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

// answeredAnomaly writes how eve was paused for a loop, with the question rv_l, and
// returns the answer that approves it.
func answeredAnomaly(b *book) operator.Statement {
	g, seq := b.begin()
	b.end(g, seq)
	b.event("review_proposed", "user:alice", "rv_l", g.ID, map[string]any{"about": "anomaly", "agent": "eve", "boundary": "watch/pause",
		"exact_hash": sha([]byte("loop")), "preview_hash": sha([]byte(text)), "policy": policy}, part(text))
	b.event("agent_paused", "holdfast:watch", "eve", g.ID, map[string]any{"why": "a loop", "condition": "loop", "review": "rv_l"}, nil)
	s := answer("rv_l")
	s.Exact, s.Tenant = sha([]byte("loop")), "acme"
	return s
}

// TestD41a_anAnswerAndItsPause: an approval that lifts the pause of what was out of the
// ordinary, and an unpause that answers it, are right; one that reaches further, and
// what the agent begins before it, are found.
func TestD41a_anAnswerAndItsPause(t *testing.T) {
	decided := func(b *book, s operator.Signed) int64 {
		return b.event("review_decided", "bob", "rv_l", "", word(s, map[string]any{"decision": "approved"}), nil)
	}
	lifted := func(b *book, agent string, s operator.Signed) int64 {
		return b.event("agent_unpaused", "bob", agent, "", word(s, map[string]any{"review": "rv_l"}), nil)
	}
	for name, write := range map[string]func(*book) (bad int64){
		"approved": func(b *book) int64 {
			s := b.sign(answeredAnomaly(b))
			decided(b, s)
			lifted(b, "eve", s)
			return -1
		},
		"unpaused": func(b *book) int64 {
			answeredAnomaly(b)
			s := b.sign(operator.Statement{Act: operator.Unpause, Subject: "eve", Tenant: "acme"})
			lifted(b, "eve", s)
			decided(b, s)
			return -1
		},
		"approved, and another agent goes on": func(b *book) int64 {
			s := b.sign(answeredAnomaly(b))
			decided(b, s)
			return lifted(b, "ada", s)
		},
		"put off, and the agent goes on": func(b *book) int64 {
			return lifted(b, "eve", b.sign(answeredAnomaly(b)))
		},
		"unpaused, and another's is answered": func(b *book) int64 {
			answeredAnomaly(b)
			s := b.sign(operator.Statement{Act: operator.Unpause, Subject: "ada", Tenant: "acme"})
			lifted(b, "ada", s)
			return decided(b, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			ordinary(b)
			bad := write(b)
			_, found := b.judge()
			switch {
			case bad < 0 && len(found) > 0:
				t.Error(fmt.Sprint(found))
			case bad >= 0 && (len(found) != 1 || found[0].Seq != bad):
				t.Errorf("leaf %d is wrong, and found is %s", bad, fmt.Sprint(found))
			}
		})
	}
}
