package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

func rulesCommand() command {
	return command{name: "rules", about: "check, test, explain and replay rules", help: `
Rules are the constitution: what no crossing may violate, in CEL.

    $ holdfast rules check rules.yaml
`, sub: []command{
		{name: "check", about: "print every problem, or the rules with their cost", run: rulesCheck, help: `
Read rules files as the daemon would, all of them together, and print every
problem with its place; the exit code is then 1. Without problems the rules are
printed with what each may cost, of ` + fmt.Sprint(constitution.MaxRuleCost) + ` at most, what they ask of the past,
and what only observes or passes when it fails. Arguments are typed by the
boundaries that the configuration lists.

    holdfast rules check FILE... [--json]

    $ holdfast rules check rules.yaml
`},
		{name: "test", about: "carry out tests of rules that are written down", run: rulesTest, help: `
Carry out archives of tests (txtar): rules, requests with what came before them,
and the opinions that are expected. What fails is printed with its line, what was
expected and what there was; the exit code is then 3.

    holdfast rules test FILE.txtar... [flags]

    --rules FILE    rules that are judged as well; may be given more than once.
                    Without it an archive without rules is judged by those in
                    force
    --verbose       also print what passes

An archive has the files rules.yaml, boundaries.yaml, NAME.facts.json and
cases.yaml, of which only the last must be there:

    -- rules.yaml --
    rules:
      - {id: small, on: request, boundary: mcp/bank/pay,
         when: args.amount > 100, message: too much}
    -- cases.yaml --
    cases:
      - {boundary: mcp/bank/pay, args: {"amount": 100}, want: allow}
      - {boundary: mcp/bank/pay, args: {"amount": 101}, want: deny, rules: [small]}

With "sequence: true" a case that passes is history for the next, "history:" lists
what began before, and "at: 25h" asks a case later; doc/rules.md has the rest.

    $ holdfast rules test rules.txtar
    rules.txtar: 2 cases pass
`},
		{name: "explain", about: "say what each rule makes of a request, and why", run: rulesExplain, help: `
Say which rules are asked of a request and what each thinks, what it cost, what
the parts of its condition were, and why the others are not asked. With the id of
a rule in place of a boundary the rule itself is described; with the version that
a record names, what the rule said that was in force then. It reads the
configuration and the ledger that are here, asks no daemon and records nothing;
what is printed is redacted.

    holdfast rules explain BOUNDARY [PAYLOAD | -] [flags]
    holdfast rules explain RULE | VERSION

    --agent NAME      who would ask; cli if absent
    --kind KIND       the kind of agent
    --session NAME    --chain NAME    --principal NAME    --role NAME,...
                      as a token has them
    --rules FILE      rules in place of those in force; may be given more than
                      once
    --fact NAME=JSON  a fact in place of what is fetched; may be given more than
                      once

Facts that the rules name are fetched as the daemon does, commands included.

    $ holdfast rules explain mcp/bank/pay '{"amount":150}'
`},
		{name: "replay", about: "say what other rules would have made of what is recorded", run: rulesReplay, help: `
Judge what is recorded by other rules, and say what would have been different:
what acted and would be refused or held, and what a rule refused and none would be
asked of. What cannot be told is counted apart, with its first leaf: the ledger
keeps no payload of it, or a rule reads a member that is masked, or names a fact
that was not recorded, and no other refuses. It only reads.

    holdfast rules replay --rules FILE [--since 24h] [--json]

    $ holdfast rules replay --rules new.yaml --since 24h
`},
	}}
}

func rulesCheck(a *app, args []string) error {
	rest, err := a.parse(a.flags("rules check"), args, 1, -1)
	if err != nil {
		return err
	}
	sources, here, err := a.rulesOf(rest)
	if err != nil {
		return err
	}
	report, err := here.Check(sources)
	if err != nil {
		return a.ruleProblems(err)
	}
	if a.json {
		return a.printJSON(report)
	}
	rows := [][]string{{"ID", "ON", "BOUNDARY", "SEVERITY", "MODE", "COST", "WHERE"}}
	for _, r := range report.Rules {
		rows = append(rows, []string{clean(r.ID), string(r.On), or(r.Boundary, "*"), r.Severity, r.Mode, fmt.Sprint(r.Cost), r.Where})
	}
	table(a.out, rows)
	for _, r := range report.Rules {
		for _, p := range r.Past {
			fmt.Fprintf(a.out, "%s asks the past: %s (%s), cost %d\n", clean(r.ID), clean(p.Text), p.Where, p.Cost)
		}
		if len(r.Facts) > 0 {
			fmt.Fprintf(a.out, "%s names the facts %s\n", clean(r.ID), strings.Join(r.Facts, ", "))
		}
	}
	for _, w := range report.Warnings {
		a.say("%s", w)
	}
	return nil
}

// rulesOf reads the rules files that are named, or those in force where none is,
// and what the configuration says of boundaries.
func (a *app) rulesOf(files []string) ([]constitution.Source, *daemon.RuleTexts, error) {
	config, err := daemon.FindConfig(a.config, a.lookup)
	if err != nil {
		return nil, nil, err
	}
	here, err := daemon.RulesHere(config)
	switch {
	case err != nil && len(files) == 0:
		return nil, nil, err
	case err != nil:
		a.say("the configuration cannot be read, so that arguments are not typed: %v", err)
		here = &daemon.RuleTexts{}
	case len(files) == 0:
		return here.Sources, here, nil
	}
	var sources []constitution.Source
	for _, file := range files {
		name, b, err := a.input([]string{file}, constitution.MaxFile)
		if err != nil {
			return nil, nil, err
		}
		sources = append(sources, constitution.Source{Name: name, Text: b})
	}
	return sources, here, nil
}

// ruleProblems prints each problem with its place.
func (a *app) ruleProblems(err error) error {
	type problem struct {
		Where string `json:"where"`
		Why   string `json:"why"`
		Hint  string `json:"hint,omitempty"`
	}
	found := []problem{}
	for _, err := range flat(err) {
		var e *holdfast.Error
		if errors.As(err, &e) {
			found = append(found, problem{e.Rule, strings.TrimPrefix(e.Why, e.Rule+": "), e.Hint})
		} else {
			found = append(found, problem{"", err.Error(), ""})
		}
	}
	if a.json {
		return errors.Join(a.printJSON(map[string]any{"problems": found}), status(exitError))
	}
	for _, p := range found {
		a.say("%s%s", prefix("", p.Where)+prefixIf(p.Where, ": "), p.Why)
		a.hints(p.Hint)
	}
	return status(exitError)
}

func prefixIf(cond, s string) string {
	if cond == "" {
		return ""
	}
	return s
}

// flat is every error that was joined into err, in order.
func flat(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range many.Unwrap() {
			out = append(out, flat(e)...)
		}
		return out
	}
	return []error{err}
}
