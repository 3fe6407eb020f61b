package main

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

func budgetCommand() command {
	return command{name: "budget", about: "what is left of budgets; let agents go on that one has blocked", otherwise: "ls", help: `
What is left of budgets, and what blocks agents. Without a command it is "ls".

    $ holdfast budget
    $ holdfast budget nightly
`, sub: []command{
		{name: "ls", about: "how each budget stands", run: budgetShow, help: budgetHelp},
		{name: "unblock", about: "lift the block of a tenant early; needs the operator key", run: budgetUnblock, help: `
Let the agents of a tenant go on before the window of its budget ends. The
budget stays as it is: what asks for more of it is refused, until its window
ends or the configuration raises it. "holdfast status" says what is blocked. A
session that is paused by its own budget is let go on by approving its review,
which grants it as much again; a chain that was ended stays ended.

    holdfast budget unblock [--reason TEXT] [--tenant NAME]

` + personFlags + `
    $ holdfast budget unblock --reason 'the month pays for it'
`},
	}}
}

func budgetUnblock(a *app, args []string) error {
	fs, p := a.flags("budget unblock"), person{}
	p.flags(fs)
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	return a.personal(p, operator.Statement{Act: operator.Unblock, Subject: "budget", Tenant: a.tenant}, func(c *api.Client, w api.PersonsWord) error {
		b, err := c.Unblock(a.ctx, w)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(b)
		}
		_, err = fmt.Fprintf(a.out, "the agents of tenant %s go on\n", clean(b.Tenant))
		return err
	})
}
