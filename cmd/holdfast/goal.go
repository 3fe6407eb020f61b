package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/goalrule"
)

func goalCommand() command {
	return command{name: "goal", about: "what agents set out to do: check it, submit it, acknowledge violations", sub: []command{
		{name: "check", about: "say what would happen to a goal, recording nothing", run: goalCheck, help: `
Say what the rules make of a goal, of sub-tasks or of a graph of them. Nothing
is recorded. Exit code: 0 it would be admitted, 3 it would be refused, 4 a
person would be asked, 5 everything is halted.

    holdfast goal check [FILE | -] [flags]

` + askFlags + goalForm + `
    $ echo '{"goal":{"goal_id":"g1","description":"tidy the docs","priority":"normal","goal_type":"maintenance"}}' | holdfast goal check
    allow  goal/admit
`},
		{name: "submit", about: "submit a goal: a real crossing of goal/admit", run: goalSubmit, help: `
Submit a goal, sub-tasks or a graph of them: a real crossing of goal/admit, with
its verdicts in the ledger. A critical violation pauses all goals of the tenant
until a person has acknowledged it and resumed.

    holdfast goal submit [FILE | -] [flags]

` + askFlags + `    --key K          an idempotency key: the same key again is the same goal
` + goalForm + `
    $ echo '{"goal":{"goal_id":"g1","description":"tidy the docs","priority":"normal","goal_type":"maintenance"}}' | holdfast goal submit
    allow  goal/admit  019f...
`},
		{name: "status", about: "say whether goals are paused, and what violated the rules of late", run: goalStatus, help: `
Say whether goals are paused, which critical violations wait to be acknowledged,
and which submissions violated a rule of late.

    holdfast goal status [--since 24h] [--json]

    $ holdfast goal status
    goals are admitted
`},
		{name: "ack", about: "acknowledge a critical violation; needs the operator key", run: goalAck, help: `
Acknowledge one critical violation, by the id that ` + "`holdfast goal status`" + ` shows.
Goals go on only after each was acknowledged and somebody resumed.

    holdfast goal ack ID [--reason TEXT]

` + personFlags + `
    $ holdfast goal ack 019f0c1e-5d2a-7b33-8a41-0c5f6a7b8c9d.1 --reason 'seen, the agent is paused'
    acknowledged, none is left: holdfast goal resume
`},
		{name: "resume", about: "let goals be admitted again; needs the operator key", run: goalResume, help: `
Let goals be admitted again, once each critical violation was acknowledged.

    holdfast goal resume [--reason TEXT]

` + personFlags + `
    $ holdfast goal resume
    goals are admitted
`},
	}}
}

const goalForm = `
The document is read from FILE or standard input. It is a JSON object with one at
least of

    goal       {goal_id, description, priority, goal_type, ...}
    sub_tasks  [{id, required_caps, ...}]
    graph      {goal_id, sub_tasks}

where a priority is critical, high, normal, low or idle, or 0 to 4.
`

// goalAsk reads the document and who asks.
func (a *app) goalAsk(name string, args []string) (api.Ask, error) {
	fs, q := a.flags(name), asking{}
	q.flags(fs)
	key := new(string)
	if name == "goal submit" {
		key = fs.String("key", "", "")
	}
	rest, err := a.parse(fs, args, 0, 1)
	if err != nil {
		return api.Ask{}, err
	}
	var doc []byte
	if len(rest) == 1 && rest[0] != "-" {
		_, doc, err = a.input(rest, holdfast.MaxPayload)
	} else {
		doc, err = a.payload(rest)
	}
	if err != nil {
		return api.Ask{}, err
	}
	ask, err := q.ask(a, goalrule.Boundary, doc)
	ask.IdempotencyKey = *key
	return ask, err
}

func goalCheck(a *app, args []string) error {
	return a.askGoal("goal check", args, (*api.Client).Check)
}

func goalSubmit(a *app, args []string) error {
	return a.askGoal("goal submit", args, (*api.Client).Goal)
}

func (a *app) askGoal(name string, args []string, do func(*api.Client, context.Context, api.Ask) (*api.Answer, error)) error {
	ask, err := a.goalAsk(name, args)
	if err != nil {
		return err
	}
	return a.act(func(c *api.Client, _ *api.Status) error {
		ans, err := do(c, a.ctx, ask)
		if err != nil {
			return err
		}
		if a.json {
			err = a.printJSON(ans)
		} else {
			err = a.sayGoal(wouldHold(ans))
		}
		if err != nil {
			return err
		}
		return ended(ans)
	})
}

// sayGoal says what became of it, and every rule that spoke.
func (a *app) sayGoal(ans *api.Answer) error {
	if err := a.sayAnswer(ans); err != nil {
		return err
	}
	var verdicts []goalrule.Verdict
	if ans.Outcome == nil || json.Unmarshal(ans.Outcome.Verdicts, &verdicts) != nil {
		return nil
	}
	for _, v := range verdicts {
		for _, o := range v.Violations {
			a.say("%s %s: %s %s: %s%s", o.SubjectType, clean(o.Subject), o.Rule, o.Severity, clean(o.Message), spared(&o))
		}
	}
	return nil
}

// spared says why a violation that would refuse does not.
func spared(v *goalrule.Violation) string {
	switch {
	case v.Observed:
		return " (the rule only observes)"
	case v.Passed:
		return " (the rule failed, and passes then)"
	}
	return ""
}

func goalStatus(a *app, args []string) error {
	fs := a.flags("goal status")
	since := fs.Duration("since", 24*time.Hour, "")
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	if *since <= 0 {
		return usage("such as 24h", "--since must be above zero")
	}
	return a.reach(func(c *api.Client, _ *api.Status) error {
		p, err := c.Goals(a.ctx, a.tenant)
		if err != nil {
			return err
		}
		judged, err := c.GoalViolations(a.ctx, a.tenant, time.Now().Add(-*since))
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(map[string]any{"pause": p, "violations": judged})
		}
		if !p.Paused {
			fmt.Fprintln(a.out, "goals are admitted")
		} else {
			fmt.Fprintf(a.out, "goals are PAUSED since %s; %s to be acknowledged\n", p.Since.Format(time.RFC3339), story.Count(p.Waiting(), "violation waits", "violations wait"))
		}
		for _, v := range p.Violations {
			by := "waits"
			if v.By != "" {
				by = "acknowledged by " + v.By
			}
			fmt.Fprintf(a.out, "  %s  %s  %s  %s  %s\n", v.ID, v.Rule, clean(v.Agent), clean(v.Message), clean(by))
		}
		for _, j := range judged {
			for _, v := range j.Violations {
				fmt.Fprintf(a.out, "%s  %s  %s %s  %s  %s%s\n", j.At.Format(time.RFC3339), v.Severity, v.SubjectType, clean(v.Subject), v.Rule, clean(strings.TrimSpace(v.Message)), spared(&v))
			}
		}
		return nil
	})
}

func goalAck(a *app, args []string) error {
	return a.personalOn("goal ack", args, operator.AckGoal, func(c *api.Client, _ string, w api.PersonsWord) error {
		p, err := c.AckGoal(a.ctx, w)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(p)
		}
		left := "none is left: " + a.forState("holdfast goal resume")
		if n := p.Waiting(); n > 0 {
			left = story.Count(n, "more waits", "more wait")
		}
		_, err = fmt.Fprintf(a.out, "acknowledged, %s\n", left)
		return err
	})
}

func goalResume(a *app, args []string) error {
	fs, p := a.flags("goal resume"), person{}
	p.flags(fs)
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	return a.personal(p, operator.Statement{Act: operator.ResumeGoals, Subject: "goals", Tenant: a.tenant}, func(c *api.Client, w api.PersonsWord) error {
		if err := c.ResumeGoals(a.ctx, w); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(map[string]any{"resumed": "goals"})
		}
		_, err := fmt.Fprintln(a.out, "goals are admitted")
		return err
	})
}
