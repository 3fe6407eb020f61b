package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/feature/erasure"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
)

func eraseCommand() command {
	return command{name: "erase", about: "erase a part of a record; needs the operator key", run: ledgerErase, help: `
Erase the redacted texts that stand beside records: of one crossing, or of
everything older than a day. The records stay, with the salted hashes of what was
erased, so that every proof still verifies; who erased what, and why, is recorded.
What waits in review, or was approved and may still act, is kept.

    holdfast ledger erase CROSSING [--part PART] [--reason TEXT]
    holdfast ledger erase --before DATE [--part PART] [--reason TEXT]

    --before DATE            2026-01-31, the start of that day in UTC, or a time
                             such as 2026-01-31T12:00:00Z
    --part PART              request, output or preview; all if absent
` + personFlags + `
    $ holdfast ledger erase 01a1fcf0-11e1-7926-beb1-ebc9b9125e2d --part output
    $ holdfast ledger erase --before 2026-01-31 --reason 'retention'
`}
}

func ledgerErase(a *app, args []string) error {
	fs, p := a.flags("ledger erase"), person{}
	before := fs.String("before", "", "")
	part := fs.String("part", erasure.All, "")
	p.flags(fs)
	rest, err := a.parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	parts := []string{erasure.Request, erasure.Output, erasure.Preview, erasure.All}
	switch {
	case (len(rest) == 1) == (*before != ""):
		return usage("", "name one crossing, or --before a day")
	case !slices.Contains(parts, *part):
		return usage("one of "+strings.Join(parts, ", "), "there is no part %q", *part)
	}
	subject := ""
	if *before == "" {
		subject = rest[0]
	} else if subject, err = eraseBefore(*before); err != nil {
		return err
	}
	return a.personal(p, operator.Statement{Act: operator.Erase, Subject: subject, Tenant: a.tenant, Value: *part}, func(c *api.Client, w api.PersonsWord) error {
		out, err := c.Erase(a.ctx, w)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(out)
		}
		fmt.Fprintf(a.out, "%s erased\n", story.Count(out.Parts, "part was", "parts were"))
		for _, h := range out.Hashes {
			fmt.Fprintf(a.out, "  %s\n", h)
		}
		if out.Parts > len(out.Hashes) {
			fmt.Fprintf(a.out, "  and %d more\n", out.Parts-len(out.Hashes))
		}
		if out.Kept > 0 {
			a.say("%s kept, because a person is still to answer or to be obeyed", story.Count(out.Kept, "part is", "parts are"))
		}
		return nil
	})
}

// eraseBefore is the subject that names a day or a time.
func eraseBefore(text string) (string, error) {
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(form, text); err == nil {
			return erasure.Before + t.UTC().Format(time.RFC3339), nil
		}
	}
	return "", usage("such as 2026-01-31, or 2026-01-31T12:00:00Z", "--before %q is no day and no time", text)
}
