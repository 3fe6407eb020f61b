package main

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

func reviewAcceptCommand() command {
	return command{name: "accept", about: "accept a tool that is not what it was at first sight",
		run: reviewAccept, help: `
A tool that changes anything it says of itself is put to a person each time, also
when it says again what it said at first. This shows what it said at first and
what it was changed to, and takes it for what it says now: from then on that is
its first sight. Rules and approvals for another text stay worthless.

    holdfast review accept BOUNDARY [--take first|changed] [--yes] [--reason TEXT]

    --take TEXT              accept what it said at first, or what it was changed
                             to, whatever it says now
    --yes                    accept it without asking whether it is meant
` + personFlags + `
    $ holdfast review accept mcp/files/write_file
`}
}

func reviewAccept(a *app, args []string) error {
	fs, p := a.flags("review accept"), person{}
	p.flags(fs)
	yes, take := fs.Bool("yes", false, ""), fs.String("take", "", "")
	rest, err := a.parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	if *take != "" && *take != "first" && *take != "changed" {
		return &holdfast.Error{Kind: holdfast.KindValue, Why: "--take is neither first nor changed"}
	}
	return a.reach(func(c *api.Client, st *api.Status) error {
		change, err := c.Changed(a.ctx, rest[0])
		if err != nil {
			return err
		}
		a.showChange(change)
		pin, what := taken(change, *take)
		if err := a.sure(*yes, "take the tool for "+what); err != nil {
			return err
		}
		sign, err := a.signer(p, st)
		if err != nil {
			return err
		}
		signed, err := sign(operator.Statement{Act: operator.Accept, Subject: change.Boundary, Exact: pin, PreviewHash: change.First.Pin})
		if err != nil {
			return err
		}
		if change, err = c.Accept(a.ctx, api.PersonsWord{Signed: signed}); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(change)
		}
		fmt.Fprintf(a.out, "%s  accepted for %s\n", clean(change.Boundary), what)
		return nil
	})
}

// taken is the pin of the text that is accepted, and what that text is: without
// a wish what the tool says now.
func taken(c *review.Change, take string) (pin, what string) {
	if take == "first" || take == "" && c.Shows == c.First.Pin {
		return c.First.Pin, "what it said at first"
	}
	return c.Now.Pin, "what it was changed to"
}

// showChange writes what a tool said at first and what it was changed to.
func (a *app) showChange(c *review.Change) {
	table(a.err, [][]string{{"tool", c.Boundary}, {"first", c.First.Pin}, {"changed", c.Now.Pin}})
	switch c.Shows {
	case c.First.Pin:
		fmt.Fprintln(a.err, "\nIt says again what it said at first. It is held because it said something else meanwhile.")
	case c.Now.Pin, "":
	default:
		fmt.Fprintln(a.err, "\nIt says something else again by now, which was not kept: once this is accepted it is held all the same.")
	}
	if c.What == nil {
		fmt.Fprintln(a.err, "\nWhat it said at first is not known any more: look at what it was changed to.")
	}
	for _, name := range c.What {
		fmt.Fprintf(a.err, "\n%s\n", clean(name))
		for _, side := range []struct{ sign, of string }{{"-", said(c.First.Says, name)}, {"+", said(c.Now.Says, name)}} {
			fmt.Fprintf(a.err, "    %s %s\n", side.sign, clean(side.of))
		}
	}
	fmt.Fprintln(a.err)
}

// said is a text of a tool, or its hash where the text was not kept.
func said(says map[string]review.Said, name string) string {
	s, there := says[name]
	switch {
	case !there:
		return "(nothing)"
	case s.Text == "":
		return "(too long to be kept; sha256 " + s.Hash + ")"
	}
	return s.Text
}
