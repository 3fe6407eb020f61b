package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
)

func agentCommand() command {
	return command{name: "agent", about: "list, pause, unpause and trust agents; make and revoke their tokens", help: `
Every agent that ever crossed has a record: its kind, its trust, whether it may
go on. Anybody may pause one; to let it go on, or to trust it, needs the
operator key.

    $ holdfast agent pause nightly 'it loops'
`, sub: []command{
		agentListCommand(),
		agentPauseCommand(),
		agentUnpauseCommand(),
		agentTokenCommand(),
		agentRevokeCommand(),
		agentTrustCommand(),
	}}
}

func agentListCommand() command {
	return command{name: "ls", about: "list agents", run: agentList, help: `
List the agents that were seen, and beneath each those within it that its host
told of, AGENT/ID, each beneath whoever started it.

    holdfast agent ls [--json]

    $ holdfast agent ls
`}
}

func agentList(a *app, args []string) error {
	if _, err := a.parse(a.flags("agent ls"), args, 0, 0); err != nil {
		return err
	}
	var as []holdfast.Agent
	err := a.read(func(_ daemon.Paths, s kernel.Store) error {
		return a.view(s, func(tx kernel.Tx) (err error) { as, err = tx.Agents(a.tenant); return err })
	})
	if err != nil && !isNoState(err) {
		return err
	}
	if a.json {
		return a.printJSON(append([]holdfast.Agent{}, as...))
	}
	if len(as) == 0 {
		a.say("no agent was seen yet")
		return nil
	}
	now, rows := time.Now(), [][]string{{"NAME", "KIND", "TRUST", "STATE", "FIRST SEEN", "WHY"}}
	for _, g := range story.Tree(as) {
		level := g.Level.String()
		if g.Owner != "" {
			level = "-" // it has its owner's
		}
		rows = append(rows, []string{strings.Repeat("  ", g.Depth) + clean(g.Name), or(g.Kind, "-"), level, string(g.State), story.Ago(g.First, now), g.Why})
	}
	table(a.out, rows)
	return nil
}

// word carries out what anybody may say: NAME [REASON] [--who NAME].
func (a *app) word(name string, args []string, do func(c *api.Client, w api.Word) error) error {
	fs := a.flags(name)
	who := fs.String("who", "", "")
	rest, err := a.parse(fs, args, 1, -1)
	if err != nil {
		return err
	}
	return a.reach(func(c *api.Client, _ *api.Status) error {
		return do(c, api.Word{Tenant: a.tenant, Subject: rest[0], Who: a.who(*who), Why: strings.Join(rest[1:], " ")})
	})
}

func agentPauseCommand() command {
	return command{name: "pause", about: "stop one agent", run: agentPause, help: `
Stop one agent: its crossings in flight are cut, and it is refused until a
person lets it go on. Those within it are stopped with it. AGENT/ID is one of
those, with those beneath it alone; it is known by its host's word, so that only
a pause of AGENT stops one that takes another name.

    holdfast agent pause NAME [REASON]

    $ holdfast agent pause nightly 'it loops'
    nightly  paused
`}
}

func agentPause(a *app, args []string) error {
	return a.word("agent pause", args, func(c *api.Client, w api.Word) error {
		cut, err := c.Pause(a.ctx, w)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(map[string]any{"agent": w.Subject, "state": holdfast.AgentPaused, "cut": cut.Cut})
		}
		if cut.Cut > 0 {
			a.say("%s cut", story.Count(cut.Cut, "crossing was", "crossings were"))
		}
		return a.agentIs(w.Subject, string(holdfast.AgentPaused))
	})
}

func (a *app) agentIs(name, what string) error {
	_, err := fmt.Fprintf(a.out, "%s  %s\n", clean(name), what)
	return err
}

func agentUnpauseCommand() command {
	return command{name: "unpause", about: "let one agent go on; needs the operator key", run: agentUnpause, help: `
Let an agent go on. Where it was paused because its code tried to get out of the
sandbox, or because something was out of the ordinary, that answers the review of
it, too. "holdfast status" says why it was paused.

    holdfast agent unpause NAME [--reason TEXT]

` + personFlags + `
    $ holdfast agent unpause nightly
    nightly  running
`}
}

func agentUnpause(a *app, args []string) error {
	return a.personalOn("agent unpause", args, operator.Unpause, func(c *api.Client, subject string, w api.PersonsWord) error {
		got, err := c.Unpause(a.ctx, w)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(struct {
				kernel.Unpaused
				State holdfast.AgentState `json:"state"`
			}{got, holdfast.AgentRunning})
		}
		for _, id := range got.Settled {
			a.say("review %s, which asked whether it may go on, is settled with that", clean(id))
		}
		for _, id := range got.Left {
			a.say("review %s, which asks whether it may go on, waits on: who asked cannot answer it", clean(id))
		}
		return a.agentIs(subject, string(holdfast.AgentRunning))
	})
}

func agentTrustCommand() command {
	return command{name: "trust", about: "set an agent's trust; needs the operator key", run: agentTrust, help: `
Set an agent's trust level: baseline, medium, high or highest.

    holdfast agent trust NAME LEVEL [--reason TEXT]

` + personFlags + `
    $ holdfast agent trust nightly medium
    nightly  medium
`}
}

func agentTrust(a *app, args []string) error {
	fs, p := a.flags("agent trust"), person{}
	p.flags(fs)
	rest, err := a.parse(fs, args, 2, 2)
	if err != nil {
		return err
	}
	var level holdfast.Level
	if err := level.UnmarshalText([]byte(rest[1])); err != nil {
		return usage("", "%v", err)
	}
	return a.personal(p, operator.Statement{Act: operator.Trust, Subject: rest[0], Tenant: a.tenant, Value: level.String()}, func(c *api.Client, w api.PersonsWord) error {
		if err := c.Trust(a.ctx, w); err != nil {
			return err
		}
		return a.agentIs(rest[0], level.String())
	})
}
