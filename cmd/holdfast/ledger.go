package main

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/observe/trees"
	"github.com/holdfast-dev/holdfast/ledger"
)

func ledgerCommand() command {
	return command{name: "ledger", about: "what was done: read it, verify it, prove it, export it, erase parts of it", help: `
The ledger holds everything that was asked and done: append-only, in one Merkle
tree for each tenant, signed again and again. Reading it needs no daemon.

    $ holdfast ledger tail
    $ holdfast ledger verify
`, sub: []command{tailCommand(), showCommand(), verifyCommand(), proveCommand(), exportCommand(), eraseCommand(), checkpointCommand(), ledgerKeyCommand()}}
}

func checkpointCommand() command {
	return command{name: "checkpoint", about: "sign the trees now, and print the signed heads", run: checkpoint, help: `
Sign the head of every tree that has grown, and print the newest signed heads.
Keep them somewhere else: with one, ` + "`holdfast ledger verify --checkpoint FILE`" + `
finds a history that was cut off or written anew.

    holdfast ledger checkpoint [--json]

    $ holdfast ledger checkpoint > elsewhere.txt
`}
}

func checkpoint(a *app, args []string) error {
	if _, err := a.parse(a.flags("ledger checkpoint"), args, 0, 0); err != nil {
		return err
	}
	signed := 0
	if err := a.reach(func(c *api.Client, _ *api.Status) (err error) {
		signed, err = c.Checkpoint(a.ctx)
		return err
	}); err != nil {
		return err
	}
	a.say("%s signed", story.Count(signed, "tree was", "trees were"))
	return a.read(func(_ daemon.Paths, s kernel.Store) error {
		all, err := a.trees(s)
		if err != nil {
			return err
		}
		for i, t := range all {
			if t.Signed == nil {
				continue
			}
			if a.json {
				err = a.printJSON(map[string]any{"tenant_id": t.Head.Tenant, "leaves": t.Signed.Size, "root": t.Signed.Root.String(), "at": t.Signed.At, "note": string(t.Signed.Note)})
			} else {
				if i > 0 {
					fmt.Fprintln(a.out)
				}
				_, err = a.out.Write(t.Signed.Note)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func ledgerKeyCommand() command {
	return command{name: "key", about: "print the public key that verifies the ledger", run: ledgerKey, help: `
Print the public key of the ledger. Give it to whoever shall verify an export;
it may be known to everybody.

    $ holdfast ledger key > ledger.pub
`}
}

func ledgerKey(a *app, args []string) error {
	if _, err := a.parse(a.flags("ledger key"), args, 0, 0); err != nil {
		return err
	}
	p, err := a.paths()
	if err != nil {
		return err
	}
	v, err := daemon.LedgerKey(p)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]string{"key": v.String(), "runtime": v.Runtime()})
	}
	_, err = fmt.Fprintln(a.out, v)
	return err
}

// trees reads every tree's head and newest checkpoint in one transaction, in
// the order of an export.
func (a *app) trees(s kernel.Store) (out []trees.Tree, err error) {
	err = a.view(s, func(tx kernel.Tx) error {
		out, err = trees.ReadTrees(tx)
		return err
	})
	return out, err
}

// chunk is how many leaves one transaction reads, so that it stays short.
const chunk = 8192

// leaves calls fn for the leaves [from, to) of a tenant, in short
// transactions: what is written is never changed, so that they show one tree.
func (a *app) leaves(s kernel.Store, tenant string, from, to int64, fn func(ledger.Stored) error) error {
	for from < to {
		end := min(from+chunk, to)
		if err := a.view(s, func(tx kernel.Tx) error { return tx.Leaves(tenant, from, end, fn) }); err != nil {
			return err
		}
		from = end
		if err := a.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
