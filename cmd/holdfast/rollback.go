package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
)

func rollbackCommand() command {
	return command{name: "rollback", about: "put work trees back to a snapshot; needs the operator key", run: rollback, help: `
Put work trees back to a snapshot, or to the newest version before a crossing.
What is there is kept first, in a snapshot of its own, so that a rollback can be
rolled back. Files only: no commit, branch or index of a repository in the tree is
touched, and never the halt latch, the ledger, limits or configuration. It works
while everything is halted, which is the best time for it.

    holdfast rollback SNAPSHOT [--tree PATH] [--dry-run] [--mid-merge]
                      [--reason TEXT]
    holdfast rollback --before CROSSING [--tree PATH] [--dry-run] [--mid-merge]

    CROSSING may be the beginning of its id, six characters or more.

    --dry-run                say what would change, and change nothing; no key
    --mid-merge              go on though a repository in a tree is in the middle
                             of a merge, rebase or the like, which an agent can
                             make it look; it stays in the middle of it
` + personFlags + `
    $ holdfast halt 'it deletes the wrong files'
    $ holdfast rollback --before 01a1fc69-1fbb-7039-a12e-df85ea412eec
`}
}

func rollback(a *app, args []string) error {
	fs, p := a.flags("rollback"), person{}
	p.flags(fs)
	before, tree, dry := fs.String("before", "", ""), fs.String("tree", "", ""), fs.Bool("dry-run", false, "")
	midMerge := fs.Bool("mid-merge", false, "")
	rest, err := a.parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	var to kernel.RollbackSubject
	switch {
	case len(rest) == 1 && *before == "":
		to.ID = rest[0]
	case len(rest) == 0 && *before != "":
		err := a.read(func(_ daemon.Paths, s kernel.Store) (err error) {
			*before, err = a.named(s, *before)
			return err
		})
		if err != nil {
			return err
		}
		to = kernel.RollbackSubject{ID: *before, Before: true}
	default:
		return usage("`holdfast snapshot ls` lists snapshots", "name one snapshot, or --before and a crossing")
	}
	to.MidMerge = *midMerge
	subject := to.String()
	if *tree != "" {
		if *tree, err = filepath.Abs(*tree); err != nil {
			return err
		}
		if real, err := filepath.EvalSymlinks(*tree); err == nil {
			*tree = real
		}
	}
	if *dry {
		return a.reach(func(c *api.Client, _ *api.Status) error {
			b, err := c.LookRollback(a.ctx, subject, *tree)
			if err != nil {
				return err
			}
			return a.rolled(b, true)
		})
	}
	// Before anybody is asked for a passphrase: there may be no such version.
	err = a.reach(func(c *api.Client, _ *api.Status) error {
		_, err := c.FindRollback(a.ctx, subject, *tree)
		return err
	})
	if err != nil {
		return err
	}
	return a.personal(p, operator.Statement{Act: operator.Rollback, Subject: subject, Value: *tree, Tenant: a.tenant}, func(c *api.Client, w api.PersonsWord) error {
		b, err := c.Rollback(a.ctx, w)
		if err != nil {
			return err
		}
		return a.rolled(b, false)
	})
}

// rolled tells what a rollback did, or would do.
func (a *app) rolled(b []byte, dry bool) error {
	var list []snapshot.Rolled
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(list); err != nil {
			return err
		}
	}
	failed, hint := 0, ""
	for i := range list {
		r := &list[i]
		if r.Failed != "" {
			failed, hint = failed+1, r.Hint
		}
		if a.json {
			continue
		}
		if _, err := fmt.Fprint(a.out, rolledTold(r, dry)); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fail(hint, "%d of %d work trees did not go back", failed, len(list))
	}
	return nil
}

func rolledTold(r *snapshot.Rolled, dry bool) string {
	var b strings.Builder
	if r.Failed != "" {
		fmt.Fprintf(&b, "%s: it did not go back: %s\n", clean(r.Tree), clean(r.Failed))
		if r.Before != nil {
			fmt.Fprintf(&b, "  what was there is in the snapshot %s\n", r.Before.ID)
		}
		return b.String()
	}
	would := ""
	if dry {
		would = "would be "
	}
	fmt.Fprintf(&b, "%s: %d %staken away, %d %sput back\n", clean(r.Tree), r.Removed, would, r.Written, would)
	fmt.Fprintf(&b, "  to %s\n", clean(r.To.Name()))
	for _, line := range r.First {
		fmt.Fprintln(&b, "  "+clean(line))
	}
	if more := r.Removed + r.Written - len(r.First); more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	if r.Middle != "" {
		fmt.Fprintf(&b, "  its repository is in the middle of a %s, which was passed over: see `git status` there\n", clean(r.Middle))
	}
	for _, line := range r.Aside {
		fmt.Fprintf(&b, "  moved aside, for no snapshot holds it: %s\n", clean(line))
	}
	if r.Stays.Names > 0 {
		fmt.Fprintf(&b, "  untouched, for no snapshot holds it: %d files of %s\n", r.Stays.Files, bytesOf(r.Stays.Bytes))
		const most = 10
		for _, l := range r.Stays.First[:min(len(r.Stays.First), most)] {
			fmt.Fprintf(&b, "    %s: %s\n", clean(l.Path), clean(l.Why))
		}
		if more := r.Stays.Names - min(len(r.Stays.First), most); more > 0 {
			fmt.Fprintf(&b, "    and %d more, with --json\n", more)
		}
	}
	if r.Before != nil {
		fmt.Fprintf(&b, "  what was there is in the snapshot %s\n", r.Before.ID)
	}
	return b.String()
}

func damagedSnapshot(why string) error {
	return &holdfast.Error{Kind: holdfast.KindConflict, Why: "the snapshot is not what was kept: " + why, Hint: "do not go back to it; `holdfast snapshot ls` lists others"}
}
