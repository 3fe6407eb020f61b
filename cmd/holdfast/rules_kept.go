package main

import (
	"strings"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// isVersion says whether s has the form of a rule's version.
func isVersion(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// keptRule shows what a rule said when it was in force.
func (a *app) keptRule(version string) error {
	var t constitution.Text
	err := a.read(func(_ daemon.Paths, s kernel.Store) (err error) {
		t, err = kernel.RuleText(a.ctx, s, version)
		return err
	})
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(t)
	}
	if err := a.describeRule(constitution.Info{ID: t.ID, On: t.On, Boundary: t.Boundary, When: t.When, Severity: t.Severity, Mode: t.Mode,
		OnError: t.OnError, Label: t.Label, Version: version, Where: "as it was in force"}); err != nil {
		return err
	}
	table(a.out, [][]string{{"    message", clean(t.Message)}, {"    hint", clean(t.Hint)}})
	return nil
}
