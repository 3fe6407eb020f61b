package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

func (o *verifying) store() error {
	a, key, known := o.a, o.key, o.known
	return a.read(func(p daemon.Paths, s kernel.Store) error {
		// Before the trees, which grow meanwhile: they must hold it.
		last, ok, err := daemon.Witness(p, key)
		if err != nil {
			return err
		}
		here := known
		if ok {
			here = append(slices.Clone(known), last)
		}
		faults, err := a.faults(s)
		if err != nil {
			return err
		}
		trees, err := a.trees(s)
		if err != nil {
			return tampered(err)
		}
		start := time.Now()
		v := storeCheck{a: a, s: s, key: key, kept: here, p: a.progress(trees)}
		defer v.p.end()
		for _, t := range trees {
			if err := v.tree(t); err != nil {
				v.p.end()
				a.sayFaults(faults)
				return tampered(err)
			}
		}
		v.p.end()
		if len(faults) > 0 {
			a.sayFaults(faults[1:])
			return tampered(&faults[0])
		}
		if err := unmet(here, v.reports); err != nil {
			return err
		}
		if err := unmet(v.recorded(), v.reports); err != nil {
			return err
		}
		took := time.Since(start)
		if o.again != nil {
			if err := o.again.store(s, v.reports); err != nil {
				return err
			}
		}
		return o.say(v.reports, took, against("the newest signed head of each tree and the log of checkpoints", known))
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
	a       *app
	s       kernel.Store
	key     *ledger.Verifier
	kept    []ledger.SignedCheckpoint
	log     ledger.CheckpointLog
	p       *progress
	reports []ledger.Report
}

// tree verifies one. It reads in short transactions, between which the daemon
// may erase parts and record that beyond the end that is known here: what fails
// is asked again in one transaction, which shows one moment.
func (v *storeCheck) tree(t tree) error {
	size := t.head.Size
	r, log, err := v.leaves(t, func(fn func(ledger.Stored) error) error {
		return v.a.leaves(v.s, t.head.Tenant, 0, t.head.Size, fn)
	})
	var f *ledger.Fault
	if errors.As(err, &f) {
		err = v.s.View(v.a.ctx, func(tx kernel.Tx) error {
			now, err := treeOf(tx, t.head.Tenant)
			if err != nil {
				return err
			}
			// The checkpoint stays the one that is as old as the log that
			// was read.
			t.head = now.head
			r, log, err = v.leaves(t, func(fn func(ledger.Stored) error) error {
				return tx.Leaves(t.head.Tenant, 0, t.head.Size, fn)
			})
			return err
		})
	}
	if err != nil {
		return err
	}
	if t.head.Tenant == ledger.CheckpointsTenant {
		v.log = log
	}
	signed := ledger.Head{Tenant: t.head.Tenant}
	if t.signed != nil {
		c, err := v.key.Open(t.signed.Note)
		if err != nil {
			return err
		}
		signed = c.Head
	}
	if err := v.log.Covers(signed); err != nil {
		return err
	}
	// Size and checkpoint were read in one transaction.
	if t.head.Tenant == ledger.CheckpointsTenant {
		if err := ledger.SignedWhole(size, signed.Size); err != nil {
			return err
		}
	}
	v.reports = append(v.reports, r)
	return nil
}

func (v *storeCheck) leaves(t tree, each func(func(ledger.Stored) error) error) (ledger.Report, ledger.CheckpointLog, error) {
	var log ledger.CheckpointLog
	cps, err := opened(v.key, t, append(v.recorded(), v.kept...))
	if err != nil {
		return ledger.Report{}, log, err
	}
	r, err := v.log.VerifyStore(t.head, cps, func(fn func(ledger.Stored) error) error {
		return each(func(l ledger.Stored) error {
			v.p.one()
			if err := fn(l); err != nil || t.head.Tenant != ledger.CheckpointsTenant {
				return err
			}
			return log.Add(l.Seq, l.Record)
		})
	})
	return r, log, err
}

// recorded are the heads that the log of checkpoints records.
func (v *storeCheck) recorded() []ledger.SignedCheckpoint {
	var out []ledger.SignedCheckpoint
	for _, h := range v.log.Newest() {
		out = append(out, ledger.SignedCheckpoint{Head: h})
	}
	return out
}

// opened are the checkpoints to compare a tree with, ascending by size: its
// newest, what the log of checkpoints records, and those that were kept
// elsewhere.
func opened(key *ledger.Verifier, t tree, known []ledger.SignedCheckpoint) ([]ledger.SignedCheckpoint, error) {
	var out []ledger.SignedCheckpoint
	if t.signed != nil {
		c, err := key.Open(t.signed.Note)
		if err != nil {
			return nil, &ledger.Fault{Tenant: t.head.Tenant, Seq: -1, Why: "the newest checkpoint: " + err.Error()}
		}
		if c.Tenant != t.head.Tenant {
			return nil, &ledger.Fault{Tenant: t.head.Tenant, Seq: -1, Why: "the newest checkpoint is another tenant's"}
		}
		out = append(out, c)
	}
	for _, c := range known {
		// One that says what another says already adds nothing; one that
		// contradicts it stays, and fails.
		same := func(o ledger.SignedCheckpoint) bool { return o.Head == c.Head }
		if c.Tenant == t.head.Tenant && !slices.ContainsFunc(out, same) {
			out = append(out, c)
		}
	}
	sortBySize(out)
	return out, nil
}

func sortBySize(cs []ledger.SignedCheckpoint) {
	for i := 1; i < len(cs); i++ {
		for k := i; k > 0 && cs[k].Size < cs[k-1].Size; k-- {
			cs[k], cs[k-1] = cs[k-1], cs[k]
		}
	}
}

// unmet is the error for a checkpoint of a tenant that is not there at all.
func unmet(known []ledger.SignedCheckpoint, reports []ledger.Report) error {
	for _, c := range known {
		found := false
		for _, r := range reports {
			found = found || r.Tenant == c.Tenant
		}
		if !found {
			return tampered(&ledger.Fault{Tenant: c.Tenant, Seq: -1, Why: "a signed head of this tenant exists, and the ledger has no such tenant"})
		}
	}
	return nil
}
