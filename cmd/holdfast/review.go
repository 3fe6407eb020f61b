package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/kernel/approval"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

func reviewCommand() command {
	return command{name: "review", about: "answer what agents must ask a person", help: `
Some crossings must wait for a person. List them, look at them, answer them. An
approval is for exactly what was shown, once, within 24 hours; the agent then
asks again and acts. Of code that tried to get out of its sandbox, approving
lets its agent go on, and rejecting keeps it stopped.

    $ holdfast review ls
`, sub: []command{
		reviewListCommand(),
		reviewShowCommand(),
		reviewOpenCommand(),
		decideCommand("approve", "let it happen, once", "[--reason TEXT] [--remember 30d [RULE]]", "rv_eeab167e3f"),
		decideCommand("reject", "refuse it", "--reason TEXT", "rv_eeab167e3f --reason 'not on a Friday'"),
		decideCommand("changes", "refuse it, and say what should change", "--reason TEXT", "rv_eeab167e3f --reason 'into archive/, please'"),
		decideCommand("defer", "answer later; it still ends when it would have", "--for 2h [--reason TEXT]", "rv_eeab167e3f --for 2h"),
		reviewRememberedCommand(),
		reviewForgetCommand(),
		reviewAcceptCommand(),
	}}
}

// listed is a review with what became of it.
type listed struct {
	review.Review
	// Fate tells "approved, never ran" from "ran, never returned".
	Fate string `json:"fate"`
}

// reviews reads reviews, from the store itself: reading needs no owner.
func (a *app) reviews(states ...review.State) ([]listed, error) {
	var out []listed
	err := a.read(func(_ daemon.Paths, s kernel.Store) error {
		return a.view(s, func(tx kernel.Tx) error {
			for _, st := range states {
				rs, err := tx.Reviews(a.tenant, st, 1000)
				if err != nil {
					return err
				}
				for i := range rs {
					one, err := withFate(tx, &rs[i])
					if err != nil {
						return err
					}
					out = append(out, one)
				}
			}
			return nil
		})
	})
	return out, err
}

func withFate(tx kernel.Tx, r *review.Review) (listed, error) {
	r.Entry = nil
	out := listed{Review: *r, Fate: r.Fate(nil)}
	if r.About != "" || r.Waiting(r.Created) || r.State == review.Rejected || r.State == review.Changes {
		return out, nil // nothing can have run
	}
	life, err := approval.LifeOf(tx, r)
	out.Fate = r.Fate(life)
	return out, err
}

func reviewListCommand() command {
	return command{name: "ls", about: "list the reviews that wait; --all lists the others too", run: reviewList, help: `
List the reviews that wait for a person, newest first, each with the beginning
of what is asked, redacted, and why where it is not only that its risk is HIGH.
"holdfast review show" shows all of it.

    holdfast review ls [--all] [--json]

    $ holdfast review ls
`}
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
		return a.printJSON(append([]listed{}, rs...))
	}
	if len(rs) == 0 {
		a.say("nobody waits for an answer")
		return nil
	}
	now, columns := time.Now(), a.look().columns
	rows := [][]string{{"ID", "STATE", "AGENT", "BOUNDARY", "RISK", "ASKED", "ENDS"}}
	for _, r := range rs {
		state := string(r.State)
		if *all {
			state = r.Fate
		}
		rows = append(rows, []string{clean(r.ID), state, r.Asks(), r.Boundary, r.Risk.String(), story.Ago(r.Created, now), story.Ago(r.Expires, now)})
	}
	// Below each row stands what is asked, and why where that is not the usual.
	for i, line := range strings.Split(strings.TrimSuffix(tabled(rows), "\n"), "\n") {
		fmt.Fprintln(a.out, line)
		if i == 0 {
			continue
		}
		r := &rs[i-1]
		fmt.Fprintln(a.out, clipped("    "+clean(or(r.Preview, "(its text was erased)")), columns))
		if why := r.Unusual(); why != "" {
			fmt.Fprintln(a.out, clipped("    why: "+clean(why), columns))
		}
	}
	return nil
}

// notThere is err, or a letter where it only says "not found".
func notThere(err error, what, name, list string) error {
	if !isNotFound(err) {
		return err
	}
	return &holdfast.Error{Kind: holdfast.KindNotFound, Why: "there is no " + what + " " + clean(name), Hint: "`" + list + "` lists them"}
}
