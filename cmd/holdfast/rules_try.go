package main

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/assure/ruletest"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

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
func (a *app) ruleSet(files []string) (*constitution.Set, *daemon.RuleTexts, error) {
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
