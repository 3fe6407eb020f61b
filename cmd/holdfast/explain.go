package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/api"
)

func explainCommand() command {
	return command{name: "explain", about: "ask all eight gates and print their opinions", run: explain, help: `
Ask all eight gates without stopping, and print what each thinks, why, by which
rule, and what to do. Nothing is recorded. The exit code is that of check.

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
		if ans.Outcome == nil {
			return ans.Failure.Err()
		}
		if a.json {
			err = a.printJSON(ans)
		} else {
			picture(a.out, a.look(), ans.Outcome, ask)
		}
		if err != nil {
			return err
		}
		return ended(ans)
	})
}

// picture draws an outcome: who asks for what, the gates, and the verdict.
func picture(w io.Writer, l look, o *holdfast.Outcome, ask api.Ask) {
	fmt.Fprintf(w, "%s  asked by %s%s\n\n", l.bold(clean(o.Boundary)), clean(or(ask.Agent, "the token's agent")), prefix(", ", clean(ask.Kind)))
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
