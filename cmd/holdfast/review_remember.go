package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// remembering holds the flags of a rule that is made with an approval.
type remembering struct {
	length     daemon.Duration
	given      string
	paths, any words
	exact, yes bool
}

func (m *remembering) flags(fs *flag.FlagSet) {
	fs.StringVar(&m.given, "remember", "", "")
	fs.Var(&m.paths, "path", "")
	fs.Var(&m.any, "any", "")
	fs.BoolVar(&m.exact, "exact", false, "")
	fs.BoolVar(&m.yes, "yes", false, "")
}

func (m *remembering) asked() bool {
	return m.given != "" || m.exact || m.yes || len(m.paths)+len(m.any) > 0
}

func (m *remembering) check() error {
	switch {
	case !m.asked():
		return nil
	case m.given == "":
		return usage("such as --remember 30d", "say for how long with --remember")
	case m.exact && len(m.paths)+len(m.any) > 0:
		return usage("", "--exact leaves nothing to --path and --any")
	}
	if err := m.length.UnmarshalText([]byte(m.given)); err != nil || m.length <= 0 || time.Duration(m.length) > review.RuleLifetime {
		return usage("such as --remember 30d", "a rule is remembered for more than nothing and at most 90d, not %q", m.given)
	}
	return nil
}

// choice is what the flags say of the arguments' members.
func (m *remembering) choice() review.Choice {
	c := review.Choice{Exact: m.exact || len(m.paths)+len(m.any) == 0, Any: m.any, Under: map[string]string{}}
	for _, p := range m.paths {
		name, dir, _ := strings.Cut(p, "=")
		c.Under[name] = dir
	}
	return c
}

// meant makes the rule that the flags ask for, shows it in words and asks
// whether it is meant. It returns the rule's text; "" where none is asked for.
func (a *app) meant(m *remembering, r *review.Review) (string, error) {
	if !m.asked() {
		return "", nil
	}
	rule, err := review.RuleOf(r, m.choice())
	if err != nil {
		return "", err
	}
	text, err := rule.Encode()
	if err != nil {
		return "", err
	}
	fmt.Fprintln(a.err, "This would be remembered until "+time.Now().Add(time.Duration(m.length)).UTC().Format(time.RFC3339)+":")
	fmt.Fprintln(a.err)
	for _, line := range rule.Words() {
		fmt.Fprintln(a.err, "    "+clean(line))
	}
	fmt.Fprintln(a.err)
	return text, a.sure(m.yes, "approve it, and remember that")
}

// sure asks on the terminal whether something is meant, unless the person said
// so already.
func (a *app) sure(yes bool, what string) error {
	if yes {
		return nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return &holdfast.Error{Kind: holdfast.KindUsage, Why: "this needs a yes, and there is no terminal to ask on", Hint: "read what it says and give --yes"}
	}
	defer tty.Close()
	return a.said(tty, tty, what)
}

// said asks on out, and takes a yes from in.
func (a *app) said(in io.Reader, out io.Writer, what string) error {
	fmt.Fprintf(out, "holdfast: %s? [y/N] ", what)
	line, err := a.await(func() ([]byte, error) { return bufio.NewReader(io.LimitReader(in, 64)).ReadBytes('\n') })
	if err != nil && len(line) == 0 {
		fmt.Fprintln(out)
		return err
	}
	if word := strings.ToLower(strings.TrimSpace(string(line))); word != "y" && word != "yes" {
		return &holdfast.Error{Kind: holdfast.KindCanceled, Why: "nothing was done"}
	}
	return nil
}

// remember makes the rule of the review that was just approved.
func (a *app) remember(c *api.Client, sign signing, m *remembering, r *review.Review, rule string) (*review.Remembered, error) {
	signed, err := sign(operator.Statement{Act: operator.Remember, Subject: r.ID, Tenant: r.Tenant, Exact: r.Exact, PreviewHash: r.PreviewHash,
		Policy: r.Policy, Nonce: r.Nonce, Value: rule, Until: time.Now().Add(time.Duration(m.length)).UTC()})
	if err != nil {
		return nil, err
	}
	return c.Remember(a.ctx, api.PersonsWord{Tenant: r.Tenant, Signed: signed})
}

func reviewRemembered(a *app, args []string) error {
	fs := a.flags("review remembered")
	all := fs.Bool("all", false, "")
	if _, err := a.parse(fs, args, 0, 0); err != nil {
		return err
	}
	return a.reach(func(c *api.Client, _ *api.Status) error {
		list, err := c.Remembered(a.ctx, a.tenant)
		if err != nil {
			return err
		}
		rules := []review.Remembered{}
		for _, m := range list {
			if *all || m.Ended == "" {
				rules = append(rules, m)
			}
		}
		if a.json {
			return a.printJSON(rules)
		}
		if len(rules) == 0 {
			a.say("nothing is remembered: each question is asked")
		}
		for i, m := range rules {
			if i > 0 {
				fmt.Fprintln(a.out)
			}
			a.showRule(&m)
		}
		return nil
	})
}

func (a *app) showRule(m *review.Remembered) {
	now := time.Now()
	state := "ends " + story.Ago(m.Expires, now)
	if m.Ended != "" {
		state = "ended: " + m.Ended
	}
	used := "never used"
	if m.Uses > 0 {
		used = "used " + story.Count(m.Uses, "time", "times") + ", last " + story.Ago(m.LastUse, now)
	}
	fmt.Fprintf(a.out, "%s  by %s %s, %s, %s\n", a.look().bold(clean(m.ID)), clean(or(m.Reviewer, "-")), story.Ago(m.Made, now), clean(state), used)
	for _, line := range m.Words {
		fmt.Fprintln(a.out, "    "+clean(line))
	}
}

func reviewForget(a *app, args []string) error {
	return a.personalOn("review forget", args, operator.Forget, func(c *api.Client, _ string, w api.PersonsWord) error {
		m, err := c.Forget(a.ctx, w)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(m)
		}
		fmt.Fprintf(a.out, "%s  %s\n", clean(m.ID), clean(m.Ended))
		return nil
	})
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
