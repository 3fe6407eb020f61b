package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

func reviewCommand() command {
	decide := func(act, word, flags, example string) command {
		own := ""
		if act == operator.Approve {
			own = approveFlags
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
asks again and acts. Of code that tried to get out of its sandbox, approving
lets its agent go on, and rejecting keeps it stopped.

    $ holdfast review ls
`, sub: []command{
		{name: "ls", about: "list the reviews that wait; --all lists the others too", run: reviewList, help: `
List the reviews that wait for a person, newest first, each with the beginning
of what is asked, redacted, and why where it is not only that its risk is HIGH.
"holdfast review show" shows all of it.

    holdfast review ls [--all] [--json]

    $ holdfast review ls
`},
		{name: "show", about: "show one review and what became of it", run: reviewShow, help: `
Show what an agent wants to do, redacted, why a person is asked, and what has
become of it: proposed, decided, executed, returned.

    holdfast review show ID [--json]

    $ holdfast review show rv_eeab167e3f
`},
		reviewOpenCommand(),
		decide("approve", "let it happen, once", "[--reason TEXT] [--remember 30d [RULE]]", "rv_eeab167e3f"),
		decide("reject", "refuse it", "--reason TEXT", "rv_eeab167e3f --reason 'not on a Friday'"),
		decide("changes", "refuse it, and say what should change", "--reason TEXT", "rv_eeab167e3f --reason 'into archive/, please'"),
		decide("defer", "answer later; it still ends when it would have", "--for 2h [--reason TEXT]", "rv_eeab167e3f --for 2h"),
		{name: "remembered", about: "list the rules that were remembered of approvals", run: reviewRemembered, help: `
List what was remembered with ` + "`review approve --remember`" + `: which agent may do
what without being asked, until when, how often it did, and who said so. A rule
ends by itself when the tool or its contract changes.

    holdfast review remembered [--all] [--json]

    --all   those that ended, too

    $ holdfast review remembered
`},
		{name: "forget", about: "end a remembered rule", run: reviewForget, help: `
End a rule that was remembered: from now on a person is asked again.

    holdfast review forget ID [--reason TEXT]

` + personFlags + `
    $ holdfast review forget rr_1c0ffee123
`},
		{name: "accept", about: "accept a tool that is not what it was at first sight", run: reviewAccept, help: `
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
`},
	}}
}

const approveFlags = `    --in-part                approve what cannot be shown whole: it is
                             too long, or something in it is masked
    --remember 30d           and make a rule of it: the same agent may do the
                             same again without being asked, at most 90 days;
                             exactly these arguments, unless a member is named:
    --path ARG[=DIR]         the member ARG may be DIR or a path below it, as
                             it is spelled; the approved path itself without =DIR
    --any ARG                the member ARG may be anything of its type
    --exact                  exactly these arguments
    --yes                    make the rule without asking whether it is meant
`

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
	life, err := kernel.LifeOf(tx, r)
	out.Fate = r.Fate(life)
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
