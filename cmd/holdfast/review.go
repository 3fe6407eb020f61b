package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/api"
	"github.com/holdfast-dev/holdfast/internal/operator"
	"github.com/holdfast-dev/holdfast/internal/review"
	"github.com/holdfast-dev/holdfast/kernel"
)

func reviewCommand() command {
	decide := func(act, word, flags, example string) command {
		own := ""
		if act == operator.Approve {
			own = inPartFlag
		}
		return command{name: act, about: word, run: func(a *app, args []string) error { return answer(a, act, args) }, help: `
` + strings.ToUpper(word[:1]) + word[1:] + `.

What the agent wants is shown first, redacted, with the hashes that the answer
is bound to; then the operator's passphrase is asked for.

    holdfast review ` + act + ` ID ` + flags + `

` + own + personFlags + `
    $ holdfast review ` + act + ` ` + example + `
`}
	}
	return command{name: "review", about: "answer what agents must ask a person", help: `
Some crossings must wait for a person. List them, look at them, answer them. An
approval is for exactly what was shown, once, within 24 hours; the agent then
asks again and acts.

    $ holdfast review ls
`, sub: []command{
		{name: "ls", about: "list the reviews that wait; --all lists the others too", run: reviewList, help: `
List the reviews that wait for a person, newest first.

    holdfast review ls [--all] [--json]

    $ holdfast review ls
`},
		{name: "show", about: "show one review", run: reviewShow, help: `
Show what an agent wants to do, redacted, and why a person is asked.

    holdfast review show ID [--json]

    $ holdfast review show rv_eeab167e3f
`},
		decide("approve", "let it happen, once", "[--in-part] [--reason TEXT]", "rv_eeab167e3f"),
		decide("reject", "refuse it", "--reason TEXT", "rv_eeab167e3f --reason 'not on a Friday'"),
		decide("changes", "refuse it, and say what should change", "--reason TEXT", "rv_eeab167e3f --reason 'into archive/, please'"),
		decide("defer", "answer later; it still ends when it would have", "--for 2h [--reason TEXT]", "rv_eeab167e3f --for 2h"),
	}}
}

const inPartFlag = `    --in-part                approve what is too long to be shown whole
`

// reviews reads reviews, from the store itself: reading needs no owner.
func (a *app) reviews(states ...review.State) ([]review.Review, error) {
	var out []review.Review
	err := a.read(func(_ daemon.Paths, s kernel.Store) error {
		return a.view(s, func(tx kernel.Tx) error {
			for _, st := range states {
				rs, err := tx.Reviews(a.tenant, st, 1000)
				if err != nil {
					return err
				}
				out = append(out, rs...)
			}
			return nil
		})
	})
	for i := range out {
		out[i].Entry = nil
	}
	return out, err
}

func reviewList(a *app, args []string) error {
	fs := a.flags("review ls")
	all := fs.Bool("all", false, "")
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	states := []review.State{review.Pending, review.Deferred}
	if *all {
		states = []review.State{""}
	}
	rs, err := a.reviews(states...)
	if err != nil && !isNoState(err) {
		return err
	}
	if a.json {
		return a.printJSON(append([]review.Review{}, rs...))
	}
	if len(rs) == 0 {
		a.say("nobody waits for an answer")
		return nil
	}
	now, rows := time.Now(), [][]string{{"ID", "STATE", "AGENT", "BOUNDARY", "RISK", "ASKED", "ENDS", "WHY"}}
	for _, r := range rs {
		rows = append(rows, []string{clean(r.ID), string(r.State), r.Agent, r.Boundary, r.Risk.String(), ago(r.Created, now), ago(r.Expires, now), r.Why})
	}
	table(a.out, rows)
	return nil
}

func reviewShow(a *app, args []string) error {
	rest, err := a.parse(a.flags("review show"), args, 1, 1)
	if err != nil {
		return err
	}
	var r review.Review
	err = a.read(func(_ daemon.Paths, s kernel.Store) error {
		return a.view(s, func(tx kernel.Tx) error { r, err = tx.Review(rest[0]); return err })
	})
	if err != nil {
		return notThere(err, "review", rest[0], "holdfast review ls --all")
	}
	r.Entry = nil
	if a.json {
		return a.printJSON(r)
	}
	showReview(a.out, a.look(), &r)
	return nil
}

// showReview writes what a reviewer must see: the preview and both hashes.
func showReview(w io.Writer, l look, r *review.Review) {
	rows := [][]string{
		{"review", r.ID + " (" + string(r.State) + ")"},
		{"boundary", r.Boundary},
		{"agent", r.Agent + prefix(", session ", r.Session) + prefix(", asked by ", r.Principal)},
		{"risk", r.Risk.String()},
		{"why", r.Why},
		{"asked", r.Created.UTC().Format(time.RFC3339) + ", ends " + r.Expires.UTC().Format(time.RFC3339)},
		{"crossing", r.Crossing},
		{"preview", r.PreviewHash},
		{"exact", r.Exact},
	}
	if r.Confidence != nil && r.Threshold != nil {
		rows = append(rows, []string{"confidence", fmt.Sprintf("%.2f, threshold %.2f", *r.Confidence, *r.Threshold)})
	}
	if r.Reviewer != "" {
		rows = append(rows, []string{"decided", r.Decided.UTC().Format(time.RFC3339) + " by " + r.Reviewer + prefix(": ", r.Reason)})
	}
	table(w, rows)
	fmt.Fprintln(w)
	for line := range strings.Lines(r.Preview) {
		fmt.Fprintln(w, "    "+clean(strings.TrimRight(line, "\n")))
	}
	_ = l
}

// answer carries out approve, reject, changes and defer.
func answer(a *app, act string, args []string) error {
	fs, p := a.flags("review "+act), person{}
	p.flags(fs)
	later := fs.Duration("for", 0, "")
	inPart := fs.Bool("in-part", false, "")
	rest, err := a.parse(fs, args, 1, 1)
	if err != nil {
		return err
	}
	switch {
	case (act == operator.Reject || act == operator.Changes) && p.reason == "":
		return usage("the agent is told: --reason 'why not'", "say why with --reason")
	case act == operator.Defer && *later <= 0:
		return usage("such as --for 2h", "say how long with --for")
	case act != operator.Approve && *inPart:
		return usage("", "--in-part belongs to `review approve`")
	case act != operator.Defer && *later != 0:
		return usage("", "--for belongs to `review defer`")
	}
	return a.reach(func(c *api.Client, st *api.Status) error {
		r, err := c.Review(a.ctx, rest[0])
		if err != nil {
			return err
		}
		showReview(a.err, a.look(), r)
		fmt.Fprintln(a.err)
		s := operator.Statement{Act: act, Subject: r.ID, Tenant: r.Tenant, Exact: r.Exact, PreviewHash: r.PreviewHash, Policy: r.Policy, Nonce: r.Nonce}
		if act == operator.Approve && r.Cut {
			if !*inPart {
				return &holdfast.Error{Kind: holdfast.KindPermission, Why: "only the beginning of what " + clean(r.Agent) + " asked can be shown",
					Hint: "reject it, or approve what you have not seen whole with --in-part"}
			}
			s.Value = operator.InPart
		}
		if act == operator.Defer {
			s.Until = time.Now().Add(*later).UTC()
		}
		signed, err := a.sign(p, st.Runtime, s)
		if err != nil {
			return err
		}
		done, err := c.Decide(a.ctx, api.PersonsWord{Tenant: r.Tenant, Signed: signed})
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(done)
		}
		fmt.Fprintf(a.out, "%s  %s by %s\n", clean(done.ID), done.State, clean(a.who(p.reviewer)))
		if done.State == review.Approved {
			a.say("the agent may do exactly this once, until %s", done.Expires.UTC().Format(time.RFC3339))
		}
		return nil
	})
}

// notThere is err, or a letter where it only says "not found".
func notThere(err error, what, name, list string) error {
	if !isNotFound(err) {
		return err
	}
	return &holdfast.Error{Kind: holdfast.KindNotFound, Why: "there is no " + what + " " + clean(name), Hint: "`" + list + "` lists them"}
}
