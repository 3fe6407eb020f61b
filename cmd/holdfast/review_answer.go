package main

import (
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// decideCommand returns the command of one answer: approve, reject, changes or defer.
func decideCommand(act, word, flags, example string) command {
	own := ""
	if act == operator.Approve {
		own = approveFlags
	}
	return command{name: act, about: word,
		run: func(a *app, args []string) error { return answer(a, act, args) }, help: `
` + strings.ToUpper(word[:1]) + word[1:] + `.

What the agent wants is shown first, redacted, with the hashes that the answer
is bound to; then the operator's passphrase is asked for.

    holdfast review ` + act + ` ID ` + flags + `

` + own + personFlags + `
    $ holdfast review ` + act + ` ` + example + `
`}
}

// answering holds the flags of approve, reject, changes and defer.
type answering struct {
	act string
	person
	later  time.Duration
	inPart bool
	keep   remembering
}

func (w *answering) flags(fs *flag.FlagSet) {
	w.person.flags(fs)
	fs.DurationVar(&w.later, "for", 0, "")
	fs.BoolVar(&w.inPart, "in-part", false, "")
	w.keep.flags(fs)
}

func (w *answering) check() error {
	switch {
	case (w.act == operator.Reject || w.act == operator.Changes) && w.reason == "":
		return usage("the agent is told: --reason 'why not'", "say why with --reason")
	case w.act == operator.Defer && w.later <= 0:
		return usage("such as --for 2h", "say how long with --for")
	case w.act != operator.Approve && w.inPart:
		return usage("", "--in-part belongs to `review approve`")
	case w.act != operator.Approve && w.keep.asked():
		return usage("", "--remember and what belongs to it are for `review approve`")
	case w.act != operator.Defer && w.later != 0:
		return usage("", "--for belongs to `review defer`")
	}
	return w.keep.check()
}

// answer carries out approve, reject, changes and defer.
func answer(a *app, act string, args []string) error {
	fs, w := a.flags("review "+act), answering{act: act}
	w.flags(fs)
	rest, err := a.parse(fs, args, 1, 1)
	if err == nil {
		err = w.check()
	}
	if err != nil {
		return err
	}
	return a.reach(func(c *api.Client, st *api.Status) error {
		r, err := c.Review(a.ctx, rest[0])
		if err != nil {
			return err
		}
		showReview(a.err, r)
		fmt.Fprintln(a.err)
		// The kernel would say so too, but only after the passphrase was typed.
		if !r.Waiting(time.Now()) {
			return r.IsAnswered()
		}
		rule, err := a.meant(&w.keep, r)
		if err != nil {
			return err
		}
		s, err := w.statement(r)
		if err != nil {
			return err
		}
		sign, err := a.signer(w.person, st)
		if err != nil {
			return err
		}
		signed, err := sign(s)
		if err != nil {
			return err
		}
		done, err := c.Decide(a.ctx, api.PersonsWord{Tenant: r.Tenant, Signed: signed})
		if err != nil {
			return err
		}
		var kept *review.Remembered
		if rule != "" {
			if kept, err = a.remember(c, sign, &w.keep, r, rule); err != nil {
				a.say("the approval stands; the rule was not made")
				return err
			}
		}
		if err := a.sayDecision(done, kept); err != nil || a.json {
			return err
		}
		return a.sayStopped(c, done)
	})
}

// sayStopped says of the review of an attempt what its answer did to the agent.
func (a *app) sayStopped(c *api.Client, done *review.Review) error {
	if done.About == "" || done.State == review.Deferred {
		return nil
	}
	all, err := c.Agents(a.ctx, done.Tenant)
	if err != nil {
		return err
	}
	for i := range all {
		if g := &all[i]; g.Name == done.Agent {
			a.say("%s", clean(story.Answered(done, g)))
			if g.State != holdfast.AgentRunning {
				a.hint("`%s` lets it go on", a.forState("holdfast agent unpause "+quoted(clean(g.Name))))
			}
		}
	}
	return nil
}

// statement is what the person says of the review.
func (w *answering) statement(r *review.Review) (operator.Statement, error) {
	s := r.NewStatement(w.act)
	if w.act == operator.Approve && r.InPart() {
		if !w.inPart {
			return s, &holdfast.Error{Kind: holdfast.KindPermission, Why: notWhole(r),
				Hint: "reject it, or approve what you have not seen whole with --in-part"}
		}
		s.Value = operator.InPart
	}
	if w.act == operator.Defer {
		s.Until = time.Now().Add(w.later).UTC()
	}
	return s, nil
}

// notWhole says why nobody has seen the whole of what is asked.
func notWhole(r *review.Review) string {
	switch who := clean(r.Agent); {
	case !r.Masked:
		return "only the beginning of what " + who + " asked can be shown"
	case !r.Cut:
		return "something in what " + who + " asked is masked, and can be anything that looks like a secret"
	default:
		return "only the beginning of what " + who + " asked can be shown, and something in it is masked"
	}
}

func (a *app) sayDecision(done *review.Review, kept *review.Remembered) error {
	if a.json {
		return a.printJSON(struct {
			*review.Review
			Remembered *review.Remembered `json:"remembered,omitempty"`
		}{done, kept})
	}
	fmt.Fprintf(a.out, "%s  %s by %s\n", clean(done.ID), done.State, clean(done.Reviewer))
	if done.About == "" && done.State == review.Approved {
		a.say("the agent may do exactly this once, until %s", done.Expires.UTC().Format(time.RFC3339))
	}
	if kept != nil {
		fmt.Fprintf(a.out, "%s  remembered by %s until %s\n", clean(kept.ID), clean(kept.Reviewer), kept.Expires.UTC().Format(time.RFC3339))
		a.say("`holdfast review forget %s` ends it", kept.ID)
	}
	return nil
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
