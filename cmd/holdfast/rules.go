package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/constitution"
)

func rulesCommand() command {
	return command{name: "rules", about: "check rules files", help: `
Rules are the constitution: what no crossing may violate, in CEL.

    $ holdfast rules check rules.yaml
`, sub: []command{
		{name: "check", about: "print every problem, or the rules with their cost", run: rulesCheck, help: `
Read rules files as the daemon would, all of them together, and print every
problem with its place; the exit code is then 1. Without problems the rules are
printed with what each may cost, of ` + fmt.Sprint(constitution.MaxRuleCost) + ` at most.

    holdfast rules check FILE... [--json]

    $ holdfast rules check rules.yaml
`},
	}}
}

func rulesCheck(a *app, args []string) error {
	rest, err := a.parse(a.flags("rules check"), args, 1, -1)
	if err != nil {
		return err
	}
	var sources []constitution.Source
	for _, file := range rest {
		name, b, err := a.input([]string{file}, constitution.MaxFile)
		if err != nil {
			return err
		}
		sources = append(sources, constitution.Source{Name: name, Text: b})
	}
	report, err := constitution.Check(sources)
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
			fmt.Fprintf(a.out, "%s asks the past: %s (%s)\n", clean(r.ID), clean(p.Text), p.Where)
		}
	}
	for _, w := range report.Warnings {
		a.say("%s", w)
	}
	return nil
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
