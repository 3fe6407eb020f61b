package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// A work tree, or a toolbox, in which a program would find the state directory
// or the configuration is refused, and that is recorded, by whatever name it
// goes; one beside them is not.
func TestRunReachesNothingOfHoldfasts(t *testing.T) {
	d, c, down := up(t, quiet)
	defer down()
	state := d.Paths.Dir
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Dir(state), link); err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(filepath.Dir(state), "s2")
	inside := filepath.Join(state, "tree")
	for _, dir := range []string{beside, inside} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	began := errors.New("it began")
	run := func(tree string, toolbox ...string) *api.Executed {
		t.Helper()
		got, err := c.Run(t.Context(), api.RunAsk{Agent: "alice", Space: sandbox.Workspace{ID: "r1", Argv: []string{"/usr/bin/true"}, Tree: tree, Toolbox: toolbox}},
			func(context.Context, api.RunTerms) (*posture.Result, error) { return nil, began })
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for what, got := range map[string]*api.Executed{
		"the directory around it":     run(filepath.Dir(state)),
		"a link to that":              run(link),
		"one in it":                   run(inside),
		"the state itself":            run(state),
		"a toolbox around it":         run(t.TempDir(), filepath.Dir(state)),
		"a toolbox that leads thence": run(beside, link),
	} {
		if got.Outcome == nil || got.Outcome.Verdict != holdfast.Deny || got.Outcome.Crossing == "" || holdfast.KindOf(got.Failure.Err()) != holdfast.KindRule {
			t.Errorf("%s: %+v %v", what, got.Outcome, got.Failure)
		}
	}
	if got := run(beside); got.Outcome == nil || got.Outcome.Verdict != holdfast.Allow {
		t.Errorf("one beside it: %+v %v", got.Outcome, got.Failure)
	}
}
