package ledger

import (
	"cmp"
	"slices"
)

// StoredTree is one tenant's tree as a store holds it.
type StoredTree struct {
	// Head is what the leaves must make up.
	Head Head
	// Newest is the tree's newest checkpoint as it is stored, nil where it has none, and
	// Size how many leaves the tree had when that was read: a store that grows may have
	// a younger Head.
	Newest *SignedCheckpoint
	Size   int64
	// Leaves calls its argument for every leaf of Head in order and returns its first
	// error, as Tx.Leaves does.
	Leaves func(func(Stored) error) error
}

// StoreVerifier verifies the trees of one store, in the order of CompareTenants, each
// as CheckpointLog.VerifyStore does: against its newest checkpoint, against what the
// log of checkpoints records, and against what is known from elsewhere. It is for one
// goroutine.
type StoreVerifier struct {
	// Key is the runtime's.
	Key *Verifier
	// Known are checkpoints that are known from elsewhere, opened: the trees must
	// contain them.
	Known []SignedCheckpoint
	// Reports are of the trees that were verified, in their order.
	Reports []Report

	log CheckpointLog
}

// Tree verifies the next tree. After an error it may be asked again, of the same tree.
// The error is a *Fault or of reading.
func (v *StoreVerifier) Tree(t StoredTree) error {
	signed, err := v.newest(&t)
	if err != nil {
		return err
	}
	var own CheckpointLog
	logs := t.Head.Tenant == CheckpointsTenant
	r, err := v.log.VerifyStore(t.Head, v.heads(&t, signed), func(fn func(Stored) error) error {
		return t.Leaves(func(s Stored) error {
			if err := fn(s); err != nil || !logs {
				return err
			}
			return own.Add(s.Seq, s.Record)
		})
	})
	if err != nil {
		return err
	}
	if logs {
		if err := SignedWhole(t.Size, signed.Size); err != nil {
			return err
		}
		v.log = own
	} else if err := v.log.Covers(signed.Head); err != nil {
		return err
	}
	v.Reports = append(v.Reports, r)
	return nil
}

// End is called behind the last tree: a head that is known or recorded, of a tenant
// that has no tree, is a *Fault.
func (v *StoreVerifier) End() error {
	for _, c := range append(slices.Clone(v.Known), v.recorded()...) {
		if !slices.ContainsFunc(v.Reports, func(r Report) bool { return r.Tenant == c.Tenant }) {
			return &Fault{c.Tenant, -1, "a signed head of this tenant exists, and the ledger has no such tenant"}
		}
	}
	return nil
}

// newest is a tree's newest checkpoint, opened; of no leaves where it has none.
func (v *StoreVerifier) newest(t *StoredTree) (SignedCheckpoint, error) {
	none := SignedCheckpoint{Head: Head{Tenant: t.Head.Tenant}}
	if t.Newest == nil {
		return none, nil
	}
	c, err := v.Key.Open(t.Newest.Note)
	if err != nil {
		return none, &Fault{t.Head.Tenant, -1, "the newest checkpoint: " + err.Error()}
	}
	if c.Tenant != t.Head.Tenant {
		return none, &Fault{t.Head.Tenant, -1, "the newest checkpoint is another tenant's"}
	}
	return c, nil
}

// heads are what a tree must contain, ascending by size: its newest checkpoint, what
// the log of checkpoints records, and what is known from elsewhere. One that says what
// another says already adds nothing; one that contradicts it stays, and fails.
func (v *StoreVerifier) heads(t *StoredTree, signed SignedCheckpoint) (out []SignedCheckpoint) {
	if t.Newest != nil {
		out = append(out, signed)
	}
	for _, c := range append(v.recorded(), v.Known...) {
		if c.Tenant == t.Head.Tenant && !slices.ContainsFunc(out, func(o SignedCheckpoint) bool { return o.Head == c.Head }) {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b SignedCheckpoint) int { return cmp.Compare(a.Size, b.Size) })
	return out
}

// recorded are the heads that the log of checkpoints records.
func (v *StoreVerifier) recorded() (out []SignedCheckpoint) {
	for _, h := range v.log.Newest() {
		out = append(out, SignedCheckpoint{Head: h})
	}
	return out
}
