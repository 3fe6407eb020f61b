package main

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/policy/domain"
)

func egressCheckCommand() command {
	return command{name: "check", about: "say what would become of a request, sending nothing", run: egressCheck, help: `
Say what would become of a request: which row of the allowlist decides, what its
risk is, what would be looked into and redacted, whether there is a credential for
it, and what is left of each rate and budget. Nothing is sent or recorded, and no
name is looked up. Exit code: 0 it would be sent, 3 refused, 4 a person would be
asked, 5 everything is halted.

    holdfast egress check URL [flags]

    --method M       GET if absent
    --upgrade P      the request upgrades, such as to websocket
    --agent NAME     who would ask; cli if absent
    --kind KIND      the kind of agent, as the configuration lists them
    --session NAME   one a day for each agent, if absent
    --chain NAME     the chain of steps it would belong to
    --intent NAME    the intent it would be for
    --resolve        look up the host, and say which addresses may be dialled

    $ holdfast egress check https://api.openai.com/v1/models --agent nightly
`}
}

func egressCheck(a *app, args []string) error {
	fs, q := a.flags("egress check"), api.EgressAsk{}
	fs.StringVar(&q.Method, "method", "GET", "")
	fs.StringVar(&q.Upgrade, "upgrade", "", "")
	fs.StringVar(&q.Agent, "agent", "cli", "")
	fs.StringVar(&q.Kind, "kind", "", "")
	fs.StringVar(&q.Session, "session", "", "")
	fs.StringVar(&q.Chain, "chain", "", "")
	fs.StringVar(&q.Intent, "intent", "", "")
	fs.BoolVar(&q.Resolve, "resolve", false, "")
	rest, err := a.parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	if err := a.local(); err != nil {
		return err
	}
	if err := (api.Ask{Agent: q.Agent, Kind: q.Kind, Session: q.Session, Intent: q.Intent, Chain: q.Chain}).Named(); err != nil {
		return usage("", "%s", err.(*holdfast.Error).Why)
	}
	if q.Method == "" || strings.ToUpper(q.Method) != q.Method {
		return usage("such as GET or POST", "a method is written in capital letters")
	}
	q.URL = rest[0]
	if _, _, err := domain.ParseURL(q.URL); err != nil {
		e := bad(err)
		return usage(or(e.Hint, "write https://host/path"), "%s", e.Why)
	}
	return a.act(func(c *api.Client, _ *api.Status) error {
		ans, err := c.EgressCheck(a.ctx, q)
		if err != nil {
			return err
		}
		wouldHold(&ans.Answer)
		if a.json {
			err = a.printJSON(ans)
		} else {
			err = a.sayEgress(ans)
		}
		if err != nil {
			return err
		}
		if c := ans.Credential; c != nil && !c.Present && ans.Outcome != nil && ans.Outcome.Verdict == holdfast.Allow {
			return status(exitRefused)
		}
		return ended(&ans.Answer)
	})
}

// sayEgress writes the verdict and what it stands on.
func (a *app) sayEgress(ans *api.EgressAnswer) error {
	o := ans.Outcome
	if o == nil {
		return ans.Failure.Err()
	}
	l, verdict := a.look(), o.Verdict
	if c := ans.Credential; c != nil && !c.Present && verdict == holdfast.Allow {
		verdict = holdfast.Deny
	}
	fmt.Fprintf(a.out, "%s %s  %s %s\n", l.mark(verdict), l.bold(verdictWords(verdict)), clean(ans.Method), clean(ans.URL))
	var rows [][]string
	row := func(name, format string, args ...any) {
		rows = append(rows, []string{"  " + name, fmt.Sprintf(format, args...)})
	}
	if op := o.Deciding(); o.Verdict != holdfast.Allow {
		row("because", "%s (%s)", op.Why, op.Gate)
		if op.Hint != "" {
			row("hint", "%s", op.Hint)
		}
	}
	if ans.Row == "" {
		row("allowlist", "no row allows it")
	} else {
		row("allowlist", "%s, type %s%s", ans.Row, or(ans.Type, "api"), prefix(", at ", ans.Source))
		row("risk", "%s", ans.Risk)
		row("looked into", "%s", lookedInto(ans))
	}
	if ans.Redacted {
		row("redacted", "something in the address looks like a secret or personal data, and leaves redacted")
	}
	if c := ans.Credential; c != nil && c.Present {
		row("credential", "%s, from %s", c.Header, c.From)
	} else if c != nil {
		row("credential", "%s is MISSING, and without it nothing is sent: %s", c.Header, c.Why)
	}
	for _, r := range ans.Rates {
		row("rate", "%d of %d left: %s", r.Left, r.Limit, r.Name)
	}
	for _, b := range ans.Budgets {
		asked := ", and as much as its body needs"
		if b.Asked > 0 {
			asked = fmt.Sprintf(", %d asked", b.Asked)
		}
		row("budget", "%d of %d left%s: %s", b.Left, b.Limit, asked, b.Name)
	}
	for _, x := range ans.Addresses {
		row("address", "%s%s", or(x.Address, "none"), prefix(": not dialled: ", x.Why))
	}
	for _, w := range o.Weakened {
		row("weakened", "%s", w)
	}
	table(a.out, rows)
	return nil
}

// lookedInto is what is read of a request and its answer.
func lookedInto(ans *api.EgressAnswer) string {
	if ans.Inspect == "opaque" {
		return "no: an opaque tunnel, of which only the host and the bytes are known"
	}
	word := map[string]string{"mask": "redacted", "refuse": "refused where something is found", "off": "NOT redacted",
		"placeholder": "sent with placeholders", "restore": "restored"}
	text := fmt.Sprintf("yes; the request is %s, the answer %s", word[or(ans.Request, "mask")], word[or(ans.Response, "mask")])
	if ans.Request == "refuse" {
		text = fmt.Sprintf("yes; a request with a secret is refused, the answer is %s", word[or(ans.Response, "mask")])
	}
	switch ans.Personal {
	case "mask":
		text += "; personal data is masked"
	case "refuse":
		text += "; personal data is refused"
	case "pass":
		text += "; personal data is NOT redacted"
	}
	return text
}
