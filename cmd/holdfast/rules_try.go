package main

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/assure/ruletest"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

func rulesTestCommand() command {
	return command{name: "test", about: "carry out tests of rules that are written down", run: rulesTest, help: `
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
`}
}

func rulesTest(a *app, args []string) error {
	fs := a.flags("rules test")
	var files repeated
	fs.Var(&files, "rules", "")
	rest, err := a.parse(fs, args, 1, -1)
	if err != nil {
		return err
	}
	inForce, here, err := a.rulesOf(files)
	if err != nil {
		return err
	}
	reports, failed := []*ruletest.Report{}, 0
	for _, file := range rest {
		name, text, err := a.input([]string{file}, ruletest.MaxArchive)
		if err != nil {
			return err
		}
		extra := inForce
		if len(files) == 0 && ruletest.HasRules(text) {
			extra = nil
		}
		r, err := ruletest.Run(a.ctx, name, text, extra, here.Setting)
		if err != nil {
			return a.ruleProblems(err)
		}
		reports, failed = append(reports, r), failed+r.Failed
		if !a.json {
			a.sayTested(r)
		}
	}
	if a.json {
		if err := a.printJSON(map[string]any{"failed": failed, "archives": reports}); err != nil {
			return err
		}
	}
	if failed > 0 {
		return status(exitRefused)
	}
	return nil
}

// sayTested prints what failed of an archive, and how many cases passed.
func (a *app) sayTested(r *ruletest.Report) {
	for _, c := range r.Results {
		switch {
		case !c.Passed:
			fmt.Fprintf(a.out, "%s: FAIL %s\n    expected %s\n    got      %s\n", clean(c.Where), clean(c.Name), clean(c.Expected), clean(c.Got))
		case a.verbose:
			fmt.Fprintf(a.out, "%s: ok %s: %s\n", clean(c.Where), clean(c.Name), clean(c.Got))
		}
	}
	n := len(r.Results) - r.Failed
	passing := story.Count(n, "case passes", "cases pass")
	if r.Failed > 0 {
		passing += ", " + story.Count(r.Failed, "fails", "fail")
	}
	fmt.Fprintf(a.out, "%s: %s\n", clean(r.File), passing)
}

// ruleSet compiles rules, or prints what is wrong with them.
func (a *app) ruleSet(files []string) (*constitution.Set, *config.RuleTexts, error) {
	sources, here, err := a.rulesOf(files)
	if err != nil {
		return nil, nil, err
	}
	set, err := here.Load(sources)
	if err != nil {
		return nil, nil, a.ruleProblems(err)
	}
	return set, here, nil
}
