package daemon

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/spend"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/model/providertest"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// hosted asks a provider as a host of agents does, with its fields.
func (m *models) hosted(t *testing.T, provider, key string, fields ...string) (int, string) {
	t.Helper()
	path, body := "/llm/anthropic/v1/messages", `{"model":"spender","max_tokens":50,"messages":[{"role":"user","content":"spend"}]}`
	if provider == "openai" {
		path, body = "/llm/openai/v1/responses", `{"model":"spender","max_output_tokens":50,"input":"spend"}`
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.at+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// tree is what is known of the agents, each with its parent, by name.
func (m *models) tree(t *testing.T) map[string]holdfast.Agent {
	t.Helper()
	as, err := m.client.Agents(t.Context(), holdfast.Local)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]holdfast.Agent{}
	for _, a := range as {
		out[a.Name] = a
	}
	return out
}

// entries are the ledger's, once so many are there: an entry may follow the answer.
func (m *models) entries(t *testing.T, n int) (out []*ledger.Entry) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); len(out) < n && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		out = nil
		if err := m.d.store.View(t.Context(), func(tx kernel.Tx) error {
			heads, err := tx.Heads()
			for _, h := range heads {
				if h.Tenant != holdfast.Local {
					continue
				}
				err = tx.Leaves(h.Tenant, 0, h.Size, func(s ledger.Stored) error {
					e, err := ledger.ParseEntry(s.Record)
					if s.Kind == ledger.KindEntry && err == nil {
						out = append(out, e)
					}
					return nil
				})
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// The agents within an agent, by the fields of both hosts, are who asks: in the
// ledger, the tree and what was spent. They stop with their agent and draw on what it
// has, however many they are, and no field makes anybody more than that.
func TestModelsTree(t *testing.T) {
	const most = 3000
	m := newModels(t, &providertest.Provider{}, fmt.Sprintf(`budgets:
  - {scope: agent, resource: llm_tokens, amount: %d, match: coder}
  - {scope: agent, resource: llm_tokens, amount: 1000000}
  - {scope: tenant, resource: llm_tokens, amount: 1000000}
limits:
  - {scope: agent, per_minute: 100000}
`, most))
	other, err := m.d.Mint(holdfast.Identity{Agent: "victim"})
	if err != nil {
		t.Fatal(err)
	}
	const id, parent, session = "x-claude-code-agent-id", "x-claude-code-parent-agent-id", "X-Claude-Code-Session-Id"
	long := strings.Repeat("a", 4000)
	for i, c := range []struct {
		provider, agent, under string
		fields                 []string
	}{
		{"anthropic", "coder", "", []string{session, "s-1"}},
		{"anthropic", "coder/plan", "coder", []string{id, "plan", session, "s-1"}},
		{"anthropic", "coder/explore", "coder/plan", []string{id, "explore", parent, "plan", session, "s-1"}},
		{"openai", "coder/review", "coder", []string{"x-openai-subagent", "review", "x-codex-parent-thread-id", "0b7cf9a4-77c2-4a52-9d6e-6b7a3a1f7a10", "session_id", "c-1"}},
		// Attacks: another agent, a way out of the tree, itself, a cycle, two words, too many.
		{"anthropic", "coder/victim", "coder", []string{id, "victim", parent, "coder"}},
		{"anthropic", "coder", "", []string{id, "../victim"}},
		{"anthropic", "coder", "", []string{id, "/victim"}},
		{"anthropic", "coder/self", "coder", []string{id, "self", parent, "self"}},
		{"anthropic", "coder/plan", "coder", []string{id, "plan", parent, "explore"}},
		{"anthropic", "coder", "", []string{id, "plan", id, "victim"}},
		{"anthropic", "coder", "", []string{id, long, parent, long, session, long}},
		{"anthropic", "coder", "", []string{id, "coder", parent, "victim"}},
	} {
		status, got := m.hosted(t, c.provider, m.token, c.fields...)
		if status != http.StatusOK {
			t.Fatalf("%q: %d %s", c.fields, status, got)
		}
		es := m.entries(t, i+1)
		e := es[len(es)-1]
		owner, _ := e.Who()
		if e.Agent != c.agent || owner != "coder" || e.Sub == nil || len(e.Sub.ID)+len(e.Sub.Parent)+len(e.Sub.Session) > 300 {
			t.Errorf("%q: agent %q of %q, said to be %+v", c.fields, e.Agent, owner, e.Sub)
		}
		if a := m.tree(t)[c.agent]; a.Parent != c.under {
			t.Errorf("%q: it is beneath %q", c.fields, a.Parent)
		}
	}
	s, err := m.client.Status(t.Context())
	if err != nil || s.Agents != 1 || s.Within != 5 || s.Spend == nil {
		t.Fatalf("%+v, %v", s, err)
	}
	all := spend.ByTrees(s.Spend.Today)
	if len(all) != 1 || all[0].Agent != "coder" || all[0].Calls != 12 {
		t.Errorf("%+v", all)
	}

	// One within it is paused, with those beneath it alone; then all of it.
	if _, err := m.client.Pause(t.Context(), api.Word{Tenant: holdfast.Local, Subject: "coder/plan", Who: "bob", Why: "it loops"}); err != nil {
		t.Fatal(err)
	}
	refused := func(want bool, provider string, fields ...string) {
		t.Helper()
		status, got := m.hosted(t, provider, m.token, fields...)
		if want != (status == http.StatusServiceUnavailable || status == http.StatusForbidden) || want && !strings.Contains(got, "paused") || !want && status != http.StatusOK {
			t.Errorf("%q: %d %s", fields, status, got)
		}
	}
	refused(true, "anthropic", id, "plan")
	refused(true, "anthropic", id, "explore")
	refused(true, "anthropic", id, "new", parent, "plan")
	refused(true, "anthropic", id, "no/name", parent, "explore")
	refused(false, "openai", "x-openai-subagent", "review")
	if _, err := m.client.Pause(t.Context(), api.Word{Tenant: holdfast.Local, Subject: "coder", Who: "bob"}); err != nil {
		t.Fatal(err)
	}
	refused(true, "openai", "x-openai-subagent", "review")
	refused(true, "openai", "x-openai-subagent", "compact")
	refused(true, "anthropic", id, "fresh", session, "fresh")
	refused(true, "anthropic")
	if status, got := m.hosted(t, "anthropic", other.Reveal(), id, "plan", parent, "coder"); status != http.StatusOK {
		t.Errorf("%d %s", status, got)
	}
	for _, name := range []string{"coder", "coder/plan"} {
		if err := m.d.store.Update(t.Context(), func(tx kernel.Tx) error {
			a, err := tx.Agent(holdfast.Local, name)
			if a.State = holdfast.AgentRunning; err != nil {
				return err
			}
			return tx.PutAgent(a)
		}); err != nil {
			t.Fatal(err)
		}
	}

	// Many within it at once never take more than it has.
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := 0; n < 200; n++ {
				host, word := "anthropic", id
				if i%2 == 1 {
					host, word = "openai", "x-openai-subagent"
				}
				status, got := m.hosted(t, host, m.token, word, fmt.Sprintf("w%d-%d", i, n%3), session, fmt.Sprint(n))
				if status == http.StatusPaymentRequired {
					return
				}
				if status != http.StatusOK {
					t.Errorf("%d %s", status, got)
					return
				}
			}
			t.Error("nothing ends it")
		})
	}
	wg.Wait()
	used, asked := int64(0), 0
	for _, e := range m.entries(t, len(m.Asked())) {
		owner, _ := e.Who()
		if e.BeginSeq == nil || owner != "coder" {
			continue
		}
		asked++
		for _, u := range e.Uses {
			if u.Draw.Limit == most && u.Used != nil {
				used += *u.Used
				if u.Before+u.Draw.Amount > most {
					t.Errorf("%d were taken on top of %d", u.Draw.Amount, u.Before)
				}
			}
		}
	}
	if used > most || used < most/2 || asked < 20 {
		t.Errorf("%d of %d are used by %d", used, most, asked)
	}
}
