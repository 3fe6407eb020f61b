package main

import (
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature/spend"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
)

// maxSpent is how many lines say what was spent; --json has all.
const maxSpent = 5

// spendLines say what was spent on models today, the dearest of all tenants first.
func spendLines(s *api.Spend) []string {
	if s == nil {
		return nil
	}
	sum := func(list []spend.Sum) (micro int64) {
		for i := range list {
			micro += list[i].Micro
		}
		return micro
	}
	out := []string{fmt.Sprintf("on models: %s today, %s this month", story.Dollars(sum(s.Today)), story.Dollars(sum(s.ThisMonth)))}
	trees := spend.ByTrees(s.Today)
	for i := range trees[:min(len(trees), maxSpent)] {
		x := &trees[i]
		out = append(out, fmt.Sprintf("%s and those within it: %s, %s", clean(x.Agent), story.Dollars(x.Micro), story.Count(int(x.Calls), "call", "calls")))
	}
	for i := range s.Today[:min(len(s.Today), maxSpent)] {
		x := &s.Today[i]
		of := ""
		if x.Tenant != holdfast.Local {
			of = " of " + clean(x.Tenant)
		}
		line := fmt.Sprintf("%s%s on %s%s: %s, %s", clean(x.Agent), of, clean(x.Model), prefix(" for ", clean(x.Intent)), story.Dollars(x.Micro), story.Count(int(x.Calls), "call", "calls"))
		if x.Unpriced > 0 {
			line += fmt.Sprintf(", %d of them without a price", x.Unpriced)
		}
		out = append(out, line)
	}
	if more := len(s.Today) - maxSpent; more > 0 {
		out = append(out, fmt.Sprintf("%d more, %s together: `holdfast status --json`", more, story.Dollars(sum(s.Today[maxSpent:]))))
	}
	return out
}
