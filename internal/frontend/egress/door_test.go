package egress

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

// A guest's token is Holdfast's: it goes to no provider, wherever in the header it
// stands, also where a row passes the agent's own keys.
func TestModelsKeepTheGuestsToken(t *testing.T) {
	w := newModels(t, setup{rows: func(tls, plain uint16) []domain.Domain {
		rows := modelRows(tls, plain)
		rows[0].AgentCredentials = true
		return rows
	}})
	w.up.answer(says(200, "application/json", anthropicAnswer))
	tok, err := w.who("alice")
	w.must(err)
	h, err := w.p.Models(func(*http.Request) (Guest, error) {
		return Guest{Group: "alice", Caller: Caller{Token: func() (holdfast.Secret, error) { return tok, nil }}}, nil
	})
	w.must(err)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	if resp, got := posted(t, http.DefaultClient, s.URL+"/llm/anthropic/v1/messages", anthropicAsk,
		"X-Api-Key", tok.Reveal(), "Authorization", "Bearer "+tok.Reveal(), "Api-Key", "own-key", "X-Other", "a "+tok.Reveal()); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, got)
	}
	got := w.up.requests()[0].Header
	for name, values := range got {
		if strings.Contains(strings.Join(values, " "), tok.Reveal()) {
			t.Errorf("the provider got the token in %s", name)
		}
	}
	if got.Get("Api-Key") != "own-key" {
		t.Errorf("the provider got %v", got)
	}
}
