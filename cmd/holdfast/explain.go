package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

func explainCommand() command {
	return command{name: "explain", about: "ask all eight gates and print their opinions", run: explain, help: `
Ask all eight gates without stopping, and print what each thinks, why, by which
rule, and what to do. Nothing is recorded. The exit code is that of check. Of a
run of code "holdfast exec --explain" asks it, with all that decides what runs.

    holdfast explain BOUNDARY [PAYLOAD | -] [flags]

` + askFlags + `
    $ holdfast explain agent/step '{"action":"plan"}'
`}
}

func explain(a *app, args []string) error {
	ask, err := a.question("explain", args)
	if err != nil {
		return err
	}
	return a.act(func(c *api.Client, _ *api.Status) error {
		ans, err := c.Explain(a.ctx, ask)
		if err != nil {
			return err
		}
		err = a.explained(ans, ask.Agent, ask.Kind)
		if lang, of := strings.CutPrefix(ask.Boundary, "exec/"); of && ans.Outcome != nil && !a.json {
			a.hint("`holdfast exec --explain --lang %s FILE` asks it of a run as it is: its language, code, files and limits", lang)
		}
		return err
	})
}

// explainRun is explain of the crossing that a run would be.
func (a *app) explainRun(x api.Execution) error {
	return a.act(func(c *api.Client, _ *api.Status) error {
		ans, err := c.ExplainExec(a.ctx, x)
		if err != nil {
			return err
		}
		return a.explained(ans, x.Agent, x.Kind)
	})
}

// explained shows what the gates think, and ends as check does.
func (a *app) explained(ans *api.Answer, agent, kind string) error {
	if ans.Outcome == nil {
		return ans.Failure.Err()
	}
	if !a.json {
		picture(a.out, a.look(), ans.Outcome, agent, kind)
	} else if err := a.printJSON(ans); err != nil {
		return err
	}
	return ended(ans)
}

// picture draws an outcome: who asks for what, the gates, and the verdict.
func picture(w io.Writer, l look, o *holdfast.Outcome, agent, kind string) {
	fmt.Fprintf(w, "%s  asked by %s%s\n\n", l.bold(clean(o.Boundary)), clean(or(agent, "the token's agent")), prefix(", ", clean(kind)))
	opinions(w, l, o.Opinions)
	fmt.Fprintf(w, "\n%s %s%s\n", l.mark(o.Verdict), l.bold(verdictWords(o.Verdict)), prefix("  review ", o.Review))
	for _, weak := range o.Weakened {
		fmt.Fprintf(w, "  weakened: %s\n", clean(weak))
	}
}

func verdictWords(v holdfast.Verdict) string {
	switch v {
	case holdfast.Allow:
		return "it would act"
	case holdfast.Hold:
		return "a person would be asked"
	}
	return "it would be refused"
}

// opinions draws one line for each gate, and below it the rule and what to do.
func opinions(w io.Writer, l look, ops []holdfast.Opinion) {
	const indent = "                               "
	for _, op := range ops {
		fmt.Fprintf(w, "  %s %-4s %-12s %-5s  %s\n", l.mark(op.Verdict), op.Gate, op.Gate.Topic(), op.Verdict, clean(or(op.Why, strings.ToLower(op.State))))
		for _, note := range [][2]string{{"rule", op.Rule}, {"hint", op.Hint}} {
			if note[1] != "" {
				fmt.Fprintf(w, "%s%s\n", indent[:29], l.dim(note[0]+": "+clean(note[1])))
			}
		}
	}
}
