package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/tiers"
)

// seeSandbox tries every wall of the sandbox, a program on a work tree, and its
// network. What
// cannot stand here is no failure: what needs it is refused. A wall that seems to
// stand and does not is one.
func (a *app) seeSandbox(p daemon.Paths) []finding {
	list, usable := a.seeTier(p)
	// Behind it, when its control groups are given back.
	return slices.Insert(list, min(4, len(list)), a.seeRun(usable), a.seeNetwork(usable))
}

// seeTier tries the walls around code; usable is whether code runs at all.
func (a *app) seeTier(p daemon.Paths) (list []finding, usable bool) {
	t, done, err := a.trialTier(p)
	if err != nil {
		return []finding{missing(err)}, false
	}
	defer done()
	trials := t.Trials(a.ctx)
	if len(trials) == 1 && trials[0].Wall == "" {
		return []finding{{Check: "sandbox", How: "warn", Why: trials[0].Why, Hint: trials[0].Hint}}, false
	}
	list = append([]finding{seeLanguages(t), seeExec(t.Posture())}, a.seeStronger(t, p.Dir)...)
	for _, tr := range trials {
		f := finding{Check: "wall " + string(tr.Wall), Why: tr.Why, Hint: tr.Hint}
		switch {
		case tr.Holds:
			f.How = "ok"
		case tr.Known:
			f.How, f.Why = "warn", "it does not stand: "+tr.Why
		default:
			f.How = "FAIL"
		}
		list = append(list, f)
	}
	return list, true
}

// seeExec says whether `holdfast exec` runs anything here where no contract takes
// less than every wall.
func seeExec(p posture.Posture) finding {
	f := okay("code is run behind every wall")
	if missing := p.Missing(nil); len(missing) > 0 {
		f = finding{How: "warn", Why: "code is refused here unless a contract takes less: these walls do not stand: " + posture.Asked(missing),
			Hint: "see each wall below, or take less, in holdfast.yaml under boundaries: " + p.Lesser("exec/*")}
	}
	f.Check = "exec"
	return f
}

// seeStronger says of each stronger tier what was found for it, or what is missing
// and how to have it: which is no failure, as what needs it is refused.
func (a *app) seeStronger(t *process.Tier, state string) []finding {
	if !there(state) {
		state = ""
	}
	c := tiers.Config{}
	if _, l, err := a.loads(); err == nil {
		c = l.Config.Sandbox.TierConfig()
	}
	found, err := tiers.ProbeVM(a.ctx, &c)
	vm := okay("%s", found)
	if err != nil {
		vm = tierless(err)
	}
	ct := tierless(errNoRoom)
	if dir, err := os.MkdirTemp("", "holdfast-doctor-"); err == nil {
		defer os.RemoveAll(dir)
		p, err := tiers.ProbeContainers(a.ctx, &c, dir, state, t)
		if ct = okay("%s", tierWords(p)); err != nil {
			ct = tierless(err)
		} else if len(p.Missing(nil)) > 0 {
			ct.How, ct.Hint = "warn", "what needs every wall is refused there; a contract may take less: "+p.Lesser("exec/*")
		}
	}
	ct.Check, vm.Check = "tier container", "tier vm"
	return []finding{ct, vm}
}

var errNoRoom = errors.New("not tried: there is no room for a temporary directory")

// tierless is a tier that is not there.
func tierless(err error) finding {
	f := bad(err)
	f.How, f.Why = "warn", "what needs it is refused: "+f.Why
	return f
}

// trialTier is a tier whose roots stand in the state's own directory where there
// is one, else in a directory that done takes away.
func (a *app) trialTier(p daemon.Paths) (t *process.Tier, done func(), err error) {
	dir, remove := filepath.Join(p.Dir, "sandbox"), func() {}
	if !there(dir) {
		if dir, err = os.MkdirTemp("", "holdfast-doctor-"); err != nil {
			return nil, nil, err
		}
		remove = func() { os.RemoveAll(dir) }
	}
	if t, err = process.Open(a.ctx, process.Config{Dir: dir}); err != nil {
		remove()
		return nil, nil, err
	}
	return t, func() { t.Close(); remove() }, nil
}

// missing is a system on which there is no sandbox.
func missing(err error) finding {
	f := bad(err)
	f.Check, f.How = "sandbox", "warn"
	return f
}

// seeLanguages says what can be run, and how.
func seeLanguages(t *process.Tier) finding {
	names, absent := t.Languages()
	up := t.Posture()
	f := okay("%s tier, %s, control groups: %s; languages: %s", up.Tier, up.Mode, up.Groups, strings.Join(names, ", "))
	var more []string
	for _, l := range []string{"python3", "node"} {
		if why := absent[l]; why != "" {
			more = append(more, why)
		}
	}
	if len(more) > 0 {
		f.Hint = "for more languages: " + strings.Join(more, "; ")
	}
	f.Check = "sandbox"
	return f
}

// tierWords says of a tier in one line what raises its walls, and what it cannot.
func tierWords(p posture.Posture) string {
	s := fmt.Sprintf("%s tier%s%s, control groups: %s%s", p.Tier, prefix(", ", clean(p.Runtime)), prefix(", ", p.Mode), or(p.Groups, "its own"), prefix(", image ", clean(p.Image)))
	if missing := p.Missing(nil); len(missing) > 0 {
		s += "; these walls do not stand: " + posture.Asked(missing)
	}
	if !p.Names {
		s += "; it cannot name the call that ends a program"
	}
	return s
}
