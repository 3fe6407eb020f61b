package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution/rulefile"
)

func rulesCommand() command {
	return command{name: "rules", about: "check, test, explain and replay rules", help: `
Rules are the constitution: what no crossing may violate, in CEL.

    $ holdfast rules check rules.yaml
`, sub: []command{
		rulesCheckCommand(),
		rulesTestCommand(),
		rulesExplainCommand(),
		rulesReplayCommand(),
	}}
}

func rulesCheckCommand() command {
	return command{name: "check", about: "print every problem, or the rules with their cost", run: rulesCheck, help: `
Read rules files as the daemon would, all of them together, and print every
problem with its place; the exit code is then 1. Without problems the rules are
printed with what each may cost, of ` + fmt.Sprint(constitution.MaxRuleCost) + ` at most, what they ask of the past,
and what only observes or passes when it fails. Arguments are typed by the
boundaries that the configuration lists.

    holdfast rules check FILE... [--json]

    $ holdfast rules check rules.yaml
`}
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
func (a *app) rulesOf(files []string) ([]constitution.Source, *config.RuleTexts, error) {
	path, err := config.FindPath(a.config, a.lookup)
	if err != nil {
		return nil, nil, err
	}
	here, err := config.RulesHere(path)
	switch {
	case err != nil && len(files) == 0:
		return nil, nil, err
	case err != nil:
		a.say("the configuration cannot be read, so that arguments are not typed: %v", err)
		here = &config.RuleTexts{}
	case len(files) == 0:
		return here.Sources, here, nil
	}
	var sources []constitution.Source
	for _, file := range files {
		name, b, err := a.input([]string{file}, rulefile.MaxFile)
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
		var at *rulefile.LocatedError
		switch {
		case errors.As(err, &at) && errors.As(err, &e):
			found = append(found, problem{at.Where, at.Reason, e.Hint})
		case errors.As(err, &e):
			found = append(found, problem{e.Rule, e.Why, e.Hint})
		default:
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
