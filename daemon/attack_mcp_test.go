package daemon

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
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
