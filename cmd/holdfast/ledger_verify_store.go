package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/cli/progress"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/trees"
	"github.com/holdfast-dev/holdfast/internal/observe/witness"
	"github.com/holdfast-dev/holdfast/ledger"
)

func (o *verifying) store() error {
	a, key, known := o.a, o.key, o.known
	return a.read(func(p daemon.Paths, s kernel.Store) error {
		// Before the trees, which grow meanwhile: they must hold it.
		last, ok, err := witness.Read(p.Signed, key)
		if err != nil {
			return err
		}
		here := known
		if ok {
			here = append(slices.Clone(known), last)
		}
		faults, err := a.faults(s)
		if err != nil {
			return tampered(err)
		}
		all, err := a.trees(s)
		if err != nil {
			return tampered(err)
		}
		start := time.Now()
		v := storeCheck{a: a, s: s, p: a.newCounter(trees.CountLeaves(all))}
		v.StoreVerifier = ledger.StoreVerifier{Key: key, Known: here}
		defer v.p.Clear()
		for _, t := range all {
			if err := v.tree(t); err != nil {
				v.p.Clear()
				a.sayFaults(faults)
				return tampered(err)
			}
		}
		v.p.Clear()
		if len(faults) > 0 {
			a.sayFaults(faults[1:])
			return tampered(&faults[0])
		}
		if err := v.End(); err != nil {
			return tampered(err)
		}
		took := time.Since(start)
		if o.again != nil {
			if err := o.again.store(s, v.Reports); err != nil {
				return err
			}
		}
		return o.say(v.Reports, took, against("the newest signed head of each tree and the log of checkpoints", known))
	})
}

// faults looks at the file around the trees: what belongs to none would not be
// looked at otherwise.
func (a *app) faults(s kernel.Store) ([]ledger.Fault, error) {
	file, ok := s.(interface {
		Structure(context.Context) ([]ledger.Fault, error)
	})
	if !ok {
		return nil, nil
	}
	return file.Structure(a.ctx)
}

// structure is the first of them as an error.
func (a *app) structure(s kernel.Store) error {
	faults, err := a.faults(s)
	if err != nil || len(faults) == 0 {
		return err
	}
	return tampered(&faults[0])
}

// maxSaid bounds the lines about a damaged file.
const maxSaid = 20

func (a *app) sayFaults(faults []ledger.Fault) {
	for _, f := range faults[:min(len(faults), maxSaid)] {
		a.say("%s", f.Error())
	}
}

// storeCheck verifies the trees of a store, the log of checkpoints before the
// others.
type storeCheck struct {
	ledger.StoreVerifier
	a *app
	s kernel.Store
	p *progress.Counter
}

// tree verifies one. It reads in short transactions, between which the daemon
// may erase parts and record that beyond the end that is known here: what fails
// is asked again in one transaction, which shows one moment.
func (v *storeCheck) tree(t trees.Tree) error {
	stored := ledger.StoredTree{Head: t.Head, Newest: t.Signed, Size: t.Head.Size}
	stored.Leaves = v.counted(func(fn func(ledger.Stored) error) error {
		return v.a.leaves(v.s, t.Head.Tenant, 0, t.Head.Size, fn)
	})
	err := v.Tree(stored)
	var f *ledger.Fault
	if !errors.As(err, &f) {
		return err
	}
	return v.s.View(v.a.ctx, func(tx kernel.Tx) error {
		now, err := trees.ReadTree(tx, t.Head.Tenant)
		if err != nil {
			return err
		}
		// The checkpoint stays the one that is as old as the log that was
		// read.
		stored.Head = now.Head
		stored.Leaves = v.counted(func(fn func(ledger.Stored) error) error {
			return tx.Leaves(now.Head.Tenant, 0, now.Head.Size, fn)
		})
		return v.Tree(stored)
	})
}

// counted shows how far it is.
func (v *storeCheck) counted(each func(func(ledger.Stored) error) error) func(func(ledger.Stored) error) error {
	return func(fn func(ledger.Stored) error) error {
		return each(func(l ledger.Stored) error {
			v.p.CountLeaf()
			return fn(l)
		})
	}
}
