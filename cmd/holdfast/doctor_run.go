package main

import (
	"context"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// runWithin bounds the program that seeRun starts. It takes some hundredths of a
// second where nothing is wrong.
const runWithin = 10 * time.Second

// seeRun says whether `holdfast run` runs anything here, by running something:
// its walls are raised in another way than those around code. Where the sandbox
// is not usable at all, that it does not run is no news, and no failure.
func (a *app) seeRun(usable bool) finding {
	dir, err := os.MkdirTemp("", "holdfast-doctor-")
	if err != nil {
		return finding{Check: "run", How: "warn", Why: "not tried: " + err.Error(), Hint: "make room for a temporary directory, or set TMPDIR"}
	}
	defer os.RemoveAll(dir)
	up, err := a.tryRun(dir)
	f := okay("a program ran on a work tree, behind every wall")
	switch missing := up.Missing(nil); {
	case err != nil:
		f = bad(err)
		if f.Why = "a program on a work tree did not run: " + f.Why; !usable {
			f.How = "warn"
		}
	case len(missing) > 0:
		f = warn("see each wall below, or take less, in holdfast.yaml under boundaries: "+up.Lesser("run/*"),
			"programs are refused here unless a contract takes less: these walls do not stand: %s", posture.Asked(missing))
	}
	f.Check = "run"
	return f
}

// tryRun runs true on the work tree dir, behind the walls that stand here, and
// returns which those are. The error is why it did not end well.
func (a *app) tryRun(dir string) (posture.Posture, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return posture.Posture{}, err
	}
	defer null.Close()
	up, err := a.tryProgram(dir, []string{"true"}, sandbox.Streams{In: null, Out: null, Err: null}, nil, nil)
	return up, err
}

// tryProgram runs argv on the work tree dir behind the walls that stand here, in
// a network that hand serves, if one is given, and returns which walls those are.
func (a *app) tryProgram(dir string, argv []string, std sandbox.Streams, network *sandbox.Network, hand process.Hand) (posture.Posture, error) {
	tree, err := process.WorkTree(dir, "", true)
	if err != nil {
		return posture.Posture{}, err
	}
	path, _ := a.lookup("PATH")
	tools := process.ToolPath(path, nil)
	program, err := process.FindProgram(argv[0], tree, tree, path, tools, nil, false)
	if err != nil {
		return posture.Posture{}, err
	}
	w := process.OpenWorkspaces()
	defer w.Close()
	up := w.Posture()
	spec, err := sandbox.CheckWorkspace(sandbox.Workspace{ID: "doctor", Argv: append([]string{program}, argv[1:]...), Tree: tree, Timeout: runWithin,
		Environment: map[string]string{"PATH": tools}, Need: up.Up, Network: network}, func(string) bool { return false })
	if err != nil {
		return up, err
	}
	ctx, cancel := context.WithTimeout(a.ctx, runWithin)
	defer cancel()
	res, err := w.RunConnected(ctx, spec, std, hand)
	if err == nil {
		up = res.Posture
	}
	if err == nil && res.ExitCode != 0 {
		err = fail("try it: holdfast run --dir DIR -- "+argv[0], "`%s` ended with exit code %d, %s: %s", argv[0], res.ExitCode, res.State, or(res.Err, string(res.Stderr)))
	}
	return up, err
}
