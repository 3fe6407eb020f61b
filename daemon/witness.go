package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
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

// heedWitness halts where the store does not hold what was signed here last: it
// was put back to an earlier moment, and has forgotten which approvals were used,
// which tokens were revoked and who was paused since. A person lifts that, who
// knows.
func (d *Daemon) heedWitness(ctx context.Context) error {
	want, ok, err := Witness(d.Paths, d.signer.Verifier())
	if err != nil || !ok {
		return err
	}
	err = d.store.View(ctx, func(tx kernel.Tx) error {
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
	if !errors.As(err, &back) {
		return err
	}
	why := fmt.Sprintf("the store was put back to an earlier moment (%s): approvals that were used, tokens that were revoked and agents that were paused since are forgotten; look, then resume", back.Why)
	d.log.Error("everything is halted", "why", why)
	if _, err := d.latch.SetFirst("holdfast", why, time.Now()); err != nil {
		return err
	}
	return nil
}
