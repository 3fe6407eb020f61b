package daemon

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/frontend/bearer"
	"github.com/holdfast-dev/holdfast/internal/frontend/mcp/server"
)

// A long-lived token was stolen and is revoked; its agent gets another one,
// for a shorter time. What it asks is made with the new token, although the old one would have lived longer.
func TestAttackToken_a_revoked_one_shuts_its_agent_out(t *testing.T) {
	d, c, _ := withServers(t)
	give := func(ttl time.Duration) *api.Token {
		tok, err := c.Token(t.Context(), api.TokenAsk{Agent: "ann", Session: "s", TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	var source func(context.Context) (holdfast.Secret, error)
	with := func(tok *api.Token) error {
		v, err := d.bearer.Enter(t.Context(), "mcp", []string{"Bearer " + tok.Token})
		if err == nil {
			source = v.Token
		}
		return err
	}
	stolen := give(8 * time.Hour)
	if err := with(stolen); err != nil {
		t.Fatal(err)
	}
	if err := d.Kernel.Revoke(holdfast.Local, stolen.ID, "bob", "stolen"); err != nil {
		t.Fatal(err)
	}
	fresh := give(time.Hour)
	if err := with(fresh); err != nil {
		t.Fatal(err)
	}
	if got, err := source(t.Context()); err != nil || got.Reveal() != fresh.Token {
		t.Errorf("the crossings of the new token are made with the revoked one, until that expires: %v", err)
	}
	if err := with(give(8 * time.Hour)); err != nil {
		t.Error(err)
	}
	if err := with(stolen); err == nil {
		t.Error("a revoked token is let in")
	}
}

// A caller whose instance of a server ends again and again wears it out for
// itself alone, in all its sessions, and who comes under many names takes no more
// memory than the bound.
func TestAttackKeep_one_caller_wears_a_server_out(t *testing.T) {
	d, _, _ := withServers(t)
	b, err := d.backend(api.Hello{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	who := func(agent, session string) string {
		return bearer.CallerOf(holdfast.Identity{Tenant: "t", Principal: "p", Agent: agent, Session: session})
	}
	keeper := func(agent, session string) *server.Keeper { return d.keepers.of(d, who(agent, session), b) }
	alice := keeper("alice", "1")
	if keeper("bob", "1") == alice {
		t.Error("what ended for alice is counted for bob")
	}
	if keeper("alice", "2") != alice {
		t.Error("a new session of alice's begins to count anew")
	}
	for i := range 2 * maxKeepers {
		keeper(fmt.Sprint(i), "1")
		if keeper("alice", "1") != alice {
			t.Fatal("a keeper in use is forgotten")
		}
	}
	if n := len(d.keepers.m); n > maxKeepers {
		t.Errorf("%d are kept", n)
	}
}
