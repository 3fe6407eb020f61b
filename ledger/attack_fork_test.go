package ledger

import (
	"errors"
	"testing"
)

// The log of checkpoints records a head that the tenant's tree never had: the
// history up to there was rewritten after it was signed, and grew on.
func TestAttackForkThatTheLogRecords(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	other.signer = w.signer
	for n := range 10 {
		w.cross(t, "acme", n)
		other.cross(t, "acme", n+500)
	}
	old := mustSign(t, w.signer, other.head("acme")) // what was signed first
	w.record(t, old)
	for n := range 10 {
		w.cross(t, "acme", n+100)
	}
	w.sign(t, "acme")
	w.record(t, w.tenants["acme"].cps[0])
	w.sign(t, CheckpointsTenant)
	if _, err := w.verify(w.export(t)); err == nil {
		t.Error("a rewritten history verifies, though the log of checkpoints records the tree that it replaced")
	}
}

// A checkpoint of the tenant that the log does not record, below the newest:
// two trees of one size were signed, and the export shows the one.
func TestAttackCheckpointThatTheLogDoesNotRecord(t *testing.T) {
	w := newWorld(t)
	for n := range 10 {
		w.cross(t, "acme", n)
	}
	w.sign(t, "acme")
	for n := range 10 {
		w.cross(t, "acme", n+100)
	}
	w.sign(t, "acme")
	w.record(t, w.tenants["acme"].cps[1])
	w.sign(t, CheckpointsTenant)
	if _, err := w.verify(w.export(t)); err == nil {
		t.Error("a checkpoint that was never recorded verifies")
	}
}

// One head among many that were recorded is of another tree: it is found, and
// the fault says about where, in an export and in a store.
func TestEveryRecordedHeadIsHeldAgainstTheTree(t *testing.T) {
	const heads = 3*headGroup + 5
	for bad := -1; bad < heads; bad++ {
		w := newWorld(t)
		for n := range heads {
			w.event(t, "acme", n)
			h := w.head("acme")
			if n == bad {
				h.Root[7] ^= 1
			}
			w.record(t, mustSign(t, w.signer, h))
		}
		w.sign(t, CheckpointsTenant)
		w.sign(t, "acme")
		_, err := w.verify(w.export(t))
		var log CheckpointLog
		for i, s := range w.tenants[CheckpointsTenant].leaves {
			if err := log.Add(int64(i), s.Record); err != nil {
				t.Fatal(err)
			}
		}
		acme := w.tenants["acme"]
		_, stored := log.VerifyStore(w.head("acme"), acme.cps, acme.each)
		for from, err := range map[string]error{"export": err, "store": stored} {
			var f *Fault
			switch {
			case bad < 0 && err != nil:
				t.Fatalf("%s: %v", from, err)
			case bad < 0:
			case !errors.As(err, &f) || f.Tenant != "acme" || f.Seq < int64(bad) || f.Seq >= int64(bad+headGroup):
				t.Fatalf("%s, head %d: %v", from, bad, err)
			}
		}
		if _, err := log.VerifyStore(Head{Tenant: "acme", Root: new(Tree).Root()}, nil, func(func(Stored) error) error { return nil }); err == nil {
			t.Fatal("a tree that is gone verifies in a store")
		}
		if len(log.tenants["acme"].sizes) > 2*heads {
			t.Fatal("more than was said is kept")
		}
	}
}
