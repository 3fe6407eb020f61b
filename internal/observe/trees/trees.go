// Package trees reads the ledger's trees out of a store, and exports them.
package trees

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Tree is one tenant's tree at one moment.
type Tree struct {
	Head   ledger.Head
	Signed *ledger.SignedCheckpoint // the newest checkpoint; nil before the first
}

// ReadTrees returns every tree, in the order of an export.
func ReadTrees(tx kernel.Tx) (out []Tree, err error) {
	heads, err := tx.Heads()
	if err != nil {
		return nil, err
	}
	for _, h := range heads {
		t := Tree{Head: h}
		c, err := tx.Checkpoint(h.Tenant)
		if err != nil && !errors.Is(err, kernel.ErrNotFound) {
			return nil, err
		}
		if err == nil {
			t.Signed = &c
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Tree) int { return ledger.CompareTenants(a.Head.Tenant, b.Head.Tenant) })
	return out, nil
}

// ReadTree returns the tree of one tenant. A tenant without a tree is a *ledger.Fault.
func ReadTree(tx kernel.Tx, tenant string) (Tree, error) {
	all, err := ReadTrees(tx)
	for _, t := range all {
		if t.Head.Tenant == tenant {
			return t, nil
		}
	}
	if err == nil {
		err = &ledger.Fault{Tenant: tenant, Seq: -1, Why: "the head was there and is gone"}
	}
	return Tree{}, err
}

// WriteExport writes every tree to e, closes it, and returns the trees. One transaction
// serves all of them: a part that is erased meanwhile, and the event that says so beyond
// the end, must not come apart.
func WriteExport(ctx context.Context, tx kernel.Tx, e *ledger.Exporter) ([]Tree, error) {
	all, err := ReadTrees(tx)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		var signed []ledger.SignedCheckpoint
		if t.Signed != nil {
			signed = append(signed, *t.Signed)
		}
		if err := e.Tenant(t.Head, signed, func(fn func(ledger.Stored) error) error {
			return tx.Leaves(t.Head.Tenant, 0, t.Head.Size, func(l ledger.Stored) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				return fn(l)
			})
		}); err != nil {
			return nil, err
		}
	}
	return all, e.Close()
}

// CountLeaves returns the number of leaves of all trees.
func CountLeaves(all []Tree) (n int64) {
	for _, t := range all {
		n += t.Head.Size
	}
	return n
}
