package main

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

func agentRevokeCommand() command {
	return command{name: "revoke", about: "make one token worthless for ever", run: agentRevoke, help: `
Make one token worthless, for ever and at once: what is under way with it is
cut. Other tokens of the same agent stay good; to stop the agent, pause it. Who
did it, and why, is written down. ID is the number that "agent token" says, or
the claim jti of a token from elsewhere, whose tenant is then named too.

    holdfast agent revoke ID [REASON] [--who NAME] [--tenant NAME]

    $ holdfast agent revoke 0b7cf9a4-77c2-4a52-9d6e-6b7a3a1f7a10 'it leaked'
    0b7cf9a4-77c2-4a52-9d6e-6b7a3a1f7a10  revoked
`}
}

func agentRevoke(a *app, args []string) error {
	return a.word("agent revoke", args, func(c *api.Client, w api.Word) error {
		if err := c.Revoke(a.ctx, w); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(map[string]any{"jti": w.Subject, "tenant_id": w.Tenant, "state": "revoked"})
		}
		return a.agentIs(w.Subject, "revoked")
	})
}

func agentTokenCommand() command {
	return command{name: "token", about: "make a token with which an agent calls over HTTP", run: agentToken, help: `
Make a token: an MCP client that brings it to an HTTP endpoint of Holdfast's, as
Authorization: Bearer TOKEN, acts as that agent. It is a secret: whoever has it
acts as the agent until it expires. Who made it, for whom, and its number are
written down; the token is not.

    holdfast agent token NAME [flags]

It is for tenant local, for which alone this machine's own issuer speaks.

    --ttl DURATION   how long it lives, 1s to 24h; 15m if absent
    --kind KIND      the kind of agent, as the configuration lists them
    --session NAME   the session it acts in; one of the day if absent
    --chain NAME     the chain of steps that it is for; none if absent

    $ holdfast agent token nightly --ttl 8h > token
`}
}

func agentToken(a *app, args []string) error {
	fs := a.flags("agent token")
	ask := api.TokenAsk{}
	fs.DurationVar(&ask.TTL, "ttl", 15*time.Minute, "")
	fs.StringVar(&ask.Kind, "kind", "", "")
	fs.StringVar(&ask.Session, "session", "", "")
	fs.StringVar(&ask.Chain, "chain", "", "")
	rest, err := a.parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	if ask.TTL < time.Second || ask.TTL > 24*time.Hour {
		return usage("", "a token lives for 1s to 24h, not for %s", ask.TTL)
	}
	ask.Agent, ask.Tenant = rest[0], a.tenant
	return a.act(func(c *api.Client, _ *api.Status) error {
		t, err := c.Token(a.ctx, ask)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(t)
		}
		a.say("keep it secret, for whoever has this token acts as %s until %s, in tenant %s; it is number %s", clean(t.Agent), t.Expires.Format(time.RFC3339), clean(t.Tenant), t.ID)
		a.say("`holdfast agent revoke %s` ends it before", t.ID)
		_, err = fmt.Fprintln(a.out, t.Token)
		return err
	})
}
