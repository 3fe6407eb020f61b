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
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// remembering holds the flags of a rule that is made with an approval.
type remembering struct {
	length     config.Duration
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
	s := r.NewStatement(operator.Remember)
	s.Value, s.Until = rule, time.Now().Add(time.Duration(m.length)).UTC()
	signed, err := sign(s)
	if err != nil {
		return nil, err
	}
	return c.Remember(a.ctx, api.PersonsWord{Tenant: r.Tenant, Signed: signed})
}

func reviewRememberedCommand() command {
	return command{name: "remembered", about: "list the rules that were remembered of approvals",
		run: reviewRemembered, help: `
List what was remembered with ` + "`review approve --remember`" + `: which agent may do
what without being asked, until when, how often it did, and who said so. A rule
ends by itself when the tool or its contract changes.

    holdfast review remembered [--all] [--json]

    --all   those that ended, too

    $ holdfast review remembered
`}
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

func reviewForgetCommand() command {
	return command{name: "forget", about: "end a remembered rule", run: reviewForget, help: `
End a rule that was remembered: from now on a person is asked again.

    holdfast review forget ID [--reason TEXT]

` + personFlags + `
    $ holdfast review forget rr_1c0ffee123
`}
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
