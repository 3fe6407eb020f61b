package main

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

func reviewOpenCommand() command {
	return command{name: "open", about: "print a link that opens the pages in a browser", run: reviewOpen, help: `
Print a link to the daemon's pages. It signs one browser in, once, within ten
minutes; it opens the review that is named, or the queue. The browser may then
look and halt. Deciding there needs the operator's passphrase besides.

    holdfast review open [ID] [--json]

    $ holdfast review open
`}
}

func reviewOpen(a *app, args []string) error {
	rest, err := a.parse(a.flags("review open"), args, 0, 1)
	if err != nil {
		return err
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	c, _, err := a.dial(a.ctx, p)
	if errors.Is(err, api.ErrNobody) {
		return &holdfast.Error{Kind: holdfast.KindNotFound, Why: "no daemon runs, and so there are no pages", Hint: "start one with `" + a.forState("holdfast up") + "`"}
	}
	if err != nil {
		return a.silent(p, err)
	}
	id := ""
	if len(rest) == 1 {
		r, err := c.Review(a.ctx, rest[0])
		if err != nil {
			return err
		}
		id = r.ID
	}
	link, err := c.Open(a.ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]string{"url": link})
	}
	_, err = fmt.Fprintln(a.out, link)
	return err
}
