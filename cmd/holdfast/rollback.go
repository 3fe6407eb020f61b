package main

import (
	"path/filepath"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/worktree/versions"
)

func rollbackCommand() command {
	return command{name: "rollback", about: "put work trees back to a snapshot; needs the operator key",
		run: runRollback, help: `
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

func runRollback(a *app, args []string) error {
	fs, p := a.flags("rollback"), person{}
	p.flags(fs)
	before, tree, dry := fs.String("before", "", ""), fs.String("tree", "", ""), fs.Bool("dry-run", false, "")
	midMerge := fs.Bool("mid-merge", false, "")
	rest, err := a.parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	to, err := a.rollbackSubject(rest, *before)
	if err != nil {
		return err
	}
	to.MidMerge = *midMerge
	subject := to.String()
	if *tree, err = resolveTree(*tree); err != nil {
		return err
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
	// Fails before the passphrase is asked for if there is no such version.
	err = a.reach(func(c *api.Client, _ *api.Status) error {
		_, err := c.FindRollback(a.ctx, subject, *tree)
		return err
	})
	if err != nil {
		return err
	}
	s := operator.Statement{Act: operator.Rollback, Subject: subject, Value: *tree, Tenant: a.tenant}
	return a.personal(p, s, func(c *api.Client, w api.PersonsWord) error {
		b, err := c.Rollback(a.ctx, w)
		if err != nil {
			return err
		}
		return a.rolled(b, false)
	})
}

// rollbackSubject returns the subject of a rollback to the snapshot in rest, or to the version before a crossing.
func (a *app) rollbackSubject(rest []string, before string) (to versions.Subject, err error) {
	switch {
	case len(rest) == 1 && before == "":
		to.ID = rest[0]
	case len(rest) == 0 && before != "":
		to.Before = true
		err = a.read(func(_ daemon.Paths, s kernel.Store) (err error) {
			to.ID, err = a.named(s, before)
			return err
		})
	default:
		err = usage("`holdfast snapshot ls` lists snapshots", "name one snapshot, or --before and a crossing")
	}
	return to, err
}

// resolveTree returns the absolute path of a work tree, without symbolic links if it exists.
func resolveTree(tree string) (string, error) {
	if tree == "" {
		return "", nil
	}
	tree, err := filepath.Abs(tree)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(tree); err == nil {
		return real, nil
	}
	return tree, nil
}
