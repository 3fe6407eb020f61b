package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
)

func alertsCommand() command {
	return command{name: "alerts", about: "how people are told of what is wrong", help: `
People are told of what is wrong through the channels under ` + "`alerts: channels:`" + `
in the configuration: what is CRITICAL by short message, HIGH by mail, MEDIUM by
chat, and where there is no such channel by another. doc/alerts.md says how to set
one up.

    $ holdfast alerts ls
`, sub: []command{
		{name: "ls", about: "list the channels, and how it stands with each", run: alertsList, help: `
List the channels, what goes through each, and whether it works.

    $ holdfast alerts ls
`},
		{name: "test", about: "send a test through a channel, or through all", run: alertsTest, help: `
Send a message that says it is a test through one channel, or through all of them,
and say what came of it. It is recorded. The exit code is 1 when one could not be
told.

    holdfast alerts test [CHANNEL]

    $ holdfast alerts test
`},
	}}
}

func alertsList(a *app, args []string) error {
	if _, err := a.parse(a.flags("alerts ls"), args, 0, 0); err != nil {
		return err
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	var all []api.AlertChannel
	if _, s, err := a.dial(a.ctx, p); err == nil {
		all = s.Alerts
	} else if _, l, err := a.loads(); err == nil {
		s := l.Config.AlertSettings()
		all = s.ListChannels()
	} else {
		return err
	}
	if a.json {
		if all == nil {
			all = []api.AlertChannel{}
		}
		return a.printJSON(all)
	}
	if len(all) == 0 {
		a.say("no channel is configured: alerts stand in the log and in the ledger only")
		return nil
	}
	for _, c := range all {
		if _, err := fmt.Fprintln(a.out, clean(alertLine(c))); err != nil {
			return err
		}
	}
	return nil
}

// alertLine says how it stands with a channel.
func alertLine(c api.AlertChannel) string {
	line := c.Channel + " (" + c.Kind + ") for " + or(strings.Join(c.For, ", "), "nothing")
	if c.Waiting > 0 {
		line += fmt.Sprintf(", %d wait", c.Waiting)
	}
	if !c.Failing.IsZero() {
		return line + ", FAILS since " + c.Failing.UTC().Format(time.RFC3339) + ": " + c.Why
	}
	if c.Sent > 0 {
		line += ", " + story.Count(int(c.Sent), "was sent", "were sent")
	}
	return line
}

func alertsTest(a *app, args []string) error {
	rest, err := a.parse(a.flags("alerts test"), args, 0, 1)
	if err != nil {
		return err
	}
	return a.reach(func(c *api.Client, _ *api.Status) error {
		all, err := c.TestAlerts(a.ctx, strings.Join(rest, ""))
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fail("write one under alerts: channels:, as doc/alerts.md shows", "no channel is configured: nobody can be told")
		}
		failed := false
		for _, t := range all {
			failed = failed || !t.Told
		}
		if a.json {
			err = a.printJSON(all)
		} else {
			a.sayTests(all)
		}
		if err == nil && failed {
			return status(exitError)
		}
		return err
	})
}

func (a *app) sayTests(all []api.AlertTried) {
	for _, t := range all {
		took := time.Duration(t.Millis) * time.Millisecond
		if t.Told {
			fmt.Fprintf(a.out, "told    %s (%s by %s), in %s\n", clean(t.Channel), t.Kind, clean(t.Service), took)
			continue
		}
		fmt.Fprintf(a.out, "FAILED  %s (%s%s): %s\n", clean(t.Channel), t.Kind, prefix(" by ", clean(t.Service)), clean(t.Why))
		if t.Hint != "" {
			fmt.Fprintf(a.out, "        hint: %s\n", clean(t.Hint))
		}
	}
}

// seeAlerts looks whether people can be told.
func (o *dialled) seeAlerts(daemon.Paths) finding {
	_, l, err := o.a.loads()
	if err != nil {
		return warn("mend the configuration first", "not asked: the configuration does not load")
	}
	n := len(l.Config.Alerts.Channels)
	if n == 0 {
		return warn("write one under alerts: channels:, as doc/alerts.md shows", "nobody is told of what is wrong: no channel is configured, and alerts stand in the log and in the ledger only")
	}
	all := l.Config.Alerts.ListTroubles(o.a.ctx)
	if o.err == nil {
		for _, c := range o.status.Alerts {
			if !c.Failing.IsZero() {
				all = append(all, alertLine(c))
			}
		}
	}
	if len(all) > 0 {
		return warn("`holdfast alerts ls` says what goes where, and `holdfast alerts test` tries it", "%s", strings.Join(all, "; "))
	}
	return okay("%s; `holdfast alerts test` tries them", story.Count(n, "channel", "channels"))
}
