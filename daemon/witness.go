package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sqlite"
	"github.com/holdfast-dev/holdfast/internal/watch"
	"github.com/holdfast-dev/holdfast/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
)

// maxWitness bounds the file beside the store in bytes.
const maxWitness = 64 << 10

// checkpoint signs the trees, and keeps the newest signed head of the log of
// checkpoints in a file beside the store, which a backup of the store does not
// hold: so a store that is put back to an earlier moment does not go unnoticed.
func (d *Daemon) checkpoint(ctx context.Context) (int, error) {
	n, err := d.Kernel.Checkpoint(d.signer)
	if err != nil || n == 0 {
		return n, err
	}
	return n, d.store.View(ctx, func(tx kernel.Tx) error {
		c, err := tx.Checkpoint(ledger.CheckpointsTenant)
		if err != nil {
			return err
		}
		return replaceFile(d.Paths.Signed, c.Note)
	})
}

// Witness reads the head that was signed last in a state directory; ok is false
// where none is kept.
func Witness(p Paths, key *ledger.Verifier) (c ledger.SignedCheckpoint, ok bool, err error) {
	b, err := readRegular(p.Signed, maxWitness, privateFile(p.Signed))
	if missing(err) {
		return c, false, nil
	}
	if err == nil {
		c, err = key.Open(b)
	}
	if err == nil && c.Tenant != ledger.CheckpointsTenant {
		err = errors.New("it is not of the log of checkpoints")
	}
	if err != nil {
		return c, false, hinted("put it back from a backup; without it a store that is older than its state is not noticed", "%s holds no signed head: %v", p.Signed, err)
	}
	return c, true, nil
}

// heedWitness halts where the store does not hold what was signed here last. A
// person lifts that, who knows.
func (d *Daemon) heedWitness(ctx context.Context) error {
	err := d.witnessed(ctx, d.store)
	var back *holdfast.Error
	if !errors.As(err, &back) {
		return err
	}
	d.unverified = back.Why
	d.log.Error("everything is halted", "why", back.Why)
	_, err = d.latch.SetFirst("holdfast", back.Why, time.Now())
	return err
}

// witnessed says where the store does not hold what was signed here last: it
// was put back to an earlier moment, and has forgotten which approvals were used,
// which tokens were revoked and who was paused since. Any other error says that
// it could not be seen.
func (d *Daemon) witnessed(ctx context.Context, store kernel.Store) error {
	want, ok, err := Witness(d.Paths, d.signer.Verifier())
	if err != nil || !ok {
		return err
	}
	err = store.View(ctx, func(tx kernel.Tx) error {
		hs, err := tx.Heads()
		if err != nil {
			return err
		}
		own := ledger.Head{Tenant: want.Tenant}
		for _, h := range hs {
			if h.Tenant == want.Tenant {
				own = h
			}
		}
		return contains(tx, own, want.Head)
	})
	var back *holdfast.Error
	if errors.As(err, &back) {
		again := *back
		again.Why = fmt.Sprintf("the store was put back to an earlier moment (%s): approvals that were used, tokens that were revoked and agents that were paused since are forgotten; look, then resume", back.Why)
		return &again
	}
	return err
}

// verifyEvery is how often a daemon that runs looks whether its ledger still
// contains what was signed of it, which it looks at before anything else when it
// starts.
const verifyEvery = time.Hour

// verify tells the watch whether the ledger contains what was signed of it (D41a,
// "verification failed"): where it does not, somebody changed it behind Holdfast's
// back, and everything is halted.
func (d *Daemon) verify(ctx context.Context) {
	if d.store.Poisoned() != nil {
		return // the ledger has failed, which is told as that
	}
	err := d.verified(ctx)
	var back *holdfast.Error
	switch {
	case errors.As(err, &back) && back.Kind == holdfast.KindWALFormat:
		d.condition("", "", watch.VerificationFailed, true, back.Why)
	case err == nil:
		d.condition("", "", watch.VerificationFailed, false, "")
	case ctx.Err() == nil:
		d.log.Error("whether the ledger contains what was signed of it could not be seen", "err", err)
	}
}

// verified reads what stands on the disk: the store that writes knows its heads by
// heart.
func (d *Daemon) verified(ctx context.Context) error {
	disk, err := sqlite.Open(ctx, sqlite.Options{Path: d.Paths.DB, ReadOnly: true})
	if err != nil {
		return err
	}
	err = notCutBack(ctx, disk, d.signer.Verifier())
	if err == nil {
		err = d.witnessed(ctx, disk)
	}
	return errors.Join(err, disk.Close())
}
