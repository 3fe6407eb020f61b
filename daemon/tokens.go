package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/token"
)

// tokens returns a source of one agent's tokens: one is used for half its
// life, so that a stolen one is soon worthless and a call seldom waits for a
// signature.
func (d *Daemon) tokens(id holdfast.Identity) func(context.Context) (holdfast.Secret, error) {
	var mu sync.Mutex
	var tok holdfast.Secret
	var until time.Time
	return func(context.Context) (holdfast.Secret, error) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); !now.Before(until) {
			t, err := d.Mint(id)
			if err != nil {
				return holdfast.Secret{}, err
			}
			tok, until = t, now.Add(localTTL/2)
		}
		return tok, nil
	}
}

// giveToken makes a token for use outside of Holdfast, and records that.
func (d *Daemon) giveToken(a api.TokenAsk) (api.Token, error) {
	if a.TTL < time.Second || a.TTL > token.MaxTTL {
		return api.Token{}, &holdfast.Error{Kind: holdfast.KindUsage,
			Why: "a token lives for 1s to 24h, not for " + a.TTL.String()}
	}
	tok, id, err := d.mint(holdfast.Identity{Agent: a.Agent, Kind: a.Kind, Session: a.Session, Intent: a.Intent,
		Chain: a.Chain}, a.TTL)
	if err != nil {
		return api.Token{}, err
	}
	err = d.Kernel.Record(kernel.Event{Tenant: id.Tenant,
		Name: "agent_token_given", Who: person(), Subject: excerpt.Word(a.Agent),
		Data: map[string]any{"jti": id.TokenID,
			"session": excerpt.Word(id.Session), "expires": id.Expires.UTC().Format(time.RFC3339)}})
	if err != nil {
		return api.Token{}, err
	}
	return api.Token{Token: tok.Reveal(), ID: id.TokenID, Tenant: id.Tenant, Agent: id.Agent, Session: id.Session,
		Expires: id.Expires.UTC()}, nil
}
