package console

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/budget"
)

// spends makes one crossing of an agent's that takes tokens of a model.
func (w *world) spends(agent, intent, model string, took holdfast.Tokens) {
	w.t.Helper()
	tok, _, err := w.mint.Mint(holdfast.Identity{Tenant: holdfast.Local, Principal: "user:alice", Roles: []string{"agent"}, Agent: agent, Intent: intent, Session: "s1"}, 15*time.Minute, w.now())
	if err != nil {
		w.t.Fatal(err)
	}
	r := holdfast.Request{Boundary: "test/low", Payload: []byte(`{}`), Token: tok,
		Model: &holdfast.ModelUse{Model: model, Tokens: holdfast.Tokens{Input: 1000, Output: 1000}}}
	if agent == "bob" {
		r.Sub = &holdfast.SubAgent{ID: "explore"}
	}
	if _, err := w.k.Cross(w.t.Context(), r, func(context.Context) (holdfast.Output, error) {
		return holdfast.Output{Body: []byte(`{}`), Model: &holdfast.ModelUse{How: "complete", Tokens: took}}, nil
	}); err != nil {
		w.t.Fatal(err)
	}
}

// D24: the page of agents says what was spent today on models, by agent, intent and
// model, the dearest first and with their sum; a name is text there.
func TestD24_whatWasSpentIsShown(t *testing.T) {
	w := newWorld(t)
	w.signedIn().get("/agents").wants(200, "Agents").lacks("Spent on models")
	w.spends("alice", "", "free", holdfast.Tokens{Input: 7, Output: 1}) // nothing has a price yet
	p := *w.k.Policy()
	p.Version = "2222222222222222222222222222222222222222222222222222222222222222"
	p.Prices = &budget.Prices{Version: "v", Models: map[string]budget.ModelPrice{"<b>dear": {Input: 1_000_000_000, Output: 10_000_000_000}}}
	p.Limits = append(p.Limits, budget.Limit{Scope: budget.Tenant, Resource: holdfast.MoneyMicro, Amount: 1 << 40, Source: "test"})
	if err := w.k.SetPolicy(&p, "a test"); err != nil {
		t.Fatal(err)
	}
	w.spends("alice", "I-7", "<b>dear", holdfast.Tokens{Input: 20, Output: 3})
	w.spends("alice", "I-7", "<b>dear", holdfast.Tokens{Input: 30, Output: 2})
	w.spends("bob", "", "<b>dear", holdfast.Tokens{Input: 500, CacheRead: 4, Output: 1})
	b := w.signedIn().get("/agents")
	b.wants(200, `<section aria-label="Spent">`, "Spent on models today: $0.61",
		`alice <span class="meta">&lt;b&gt;dear, for I-7: $0.10, calls: 2, tokens in 50, from a cache 0, into it 0, out 5</span>`,
		`bob/explore <span class="meta">&lt;b&gt;dear: $0.51`, "tokens in 500, from a cache 4, into it 0, out 1",
		`alice <span class="meta">free: $0.00, calls: 1, tokens in 7, from a cache 0, into it 0, out 1, without a price: 1</span>`)
	b.inOrder("bob/explore", "for I-7", "without a price")
	b.wants(200, `bob and those within it <span class="meta">$0.5140, calls: 1, in all</span>`, `<li class="within"><span class="dot lit" aria-hidden="true"></span>bob/explore
<span class="meta">started by bob, first seen`)
	b.lacks("alice and those")
	w.advance(24 * time.Hour)
	w.signedIn().get("/agents").wants(200, "alice").lacks("Spent on models")
}

// What does not fit a page is counted and summed there, and stands behind a link;
// the dearest of all tenants comes first.
func TestSpentIsShownInPages(t *testing.T) {
	w := newWorld(t)
	p := *w.k.Policy()
	p.Version = "2222222222222222222222222222222222222222222222222222222222222222"
	p.Prices = &budget.Prices{Version: "v", Models: map[string]budget.ModelPrice{"m": {Input: 10_000_000_000, Output: 1}}}
	p.Limits = append(p.Limits, budget.Limit{Scope: budget.Tenant, Resource: holdfast.MoneyMicro, Amount: 1 << 40, Source: "test"})
	if err := w.k.SetPolicy(&p, "a test"); err != nil {
		t.Fatal(err)
	}
	for i := range 101 { // $0.01 to $1.01
		agent := fmt.Sprintf("agent-%03d", i+1)
		if i%2 == 1 {
			agent = "acme-" + agent
		}
		w.spends(agent, "", "m", holdfast.Tokens{Input: int64(i + 1)})
	}
	b := w.signedIn().get("/agents")
	b.wants(200, "Spent on models today: $51.51", "51 more, $13.26 together, are not on this page", `<a class="button" rel="next" href="/agents?spent=50">Cheaper</a>`,
		`acme-agent-100 <span class="meta">of acme</span> <span class="meta">m: $1.00`)
	b.lacks("Dearer")
	b.inOrder("Spent on models", "agent-101", "agent-100", "agent-099", "agent-052")
	if _, spent, _ := strings.Cut(b.body, "Spent on models"); strings.Contains(spent, "agent-051") {
		t.Error("the page goes on too far")
	}
	b.get("/agents?spent=50").wants(200, "Spent on models today: $51.51", "1 more, $0.01 together", `<a class="button" rel="prev" href="/agents?spent=0">Dearer</a> <a class="button" rel="next" href="/agents?spent=100">`)
	b.inOrder("Spent on models", "agent-051", "agent-002")
	b.get("/agents?spent=100").wants(200, `rel="prev" href="/agents?spent=50">Dearer</a></p>`, "agent-001 <")
	b.lacks("Cheaper")
	b.lacks("more, $")
	for _, at := range []string{"101", "-1", "x", "99999999999999999999"} {
		b.get("/agents?spent="+at).wants(200, "51 more")
	}
}

func (b *browser) lacks(text string) *browser {
	b.t.Helper()
	if strings.Contains(b.body, text) {
		b.t.Errorf("%s says %q:\n%s", b.at, text, b.body)
	}
	return b
}

func (b *browser) inOrder(texts ...string) {
	b.t.Helper()
	for rest, i := b.body, 0; i < len(texts); i++ {
		_, after, found := strings.Cut(rest, texts[i])
		if !found {
			b.t.Errorf("%s does not say %q after what comes before it:\n%s", b.at, texts[i], b.body)
		}
		rest = after
	}
}
