package daemon

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
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
		return durable.ReplaceFile(d.Paths.Signed, c.Note, 0o600)
	})
}

// Witness reads the head that was signed last in a state directory; ok is false
// where none is kept.
func Witness(p Paths, key *ledger.Verifier) (c ledger.SignedCheckpoint, ok bool, err error) {
	b, err := guard.ReadRegular(p.Signed, maxWitness, guard.CheckPrivate(p.Signed))
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
		return c, false, &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf("%s holds no signed head: %v", p.Signed, err), Err: err,
			Hint: "put it back from a backup; without it a store that is older than its state is not noticed"}
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
	if err != nil {
		return err
	}
	if !ok {
		return d.unwitnessed(ctx, store)
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

// unwitnessed is of a state that has no head that was signed last: nothing was signed
// yet, or whoever put the store back took that away as well. It is written behind each
// signature, so that the first may be without it where Holdfast was killed in between.
func (d *Daemon) unwitnessed(ctx context.Context, store kernel.Store) error {
	return store.View(ctx, func(tx kernel.Tx) error {
		hs, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range hs {
			if h.Tenant == ledger.CheckpointsTenant && h.Size > 1 {
				return &holdfast.Error{Kind: holdfast.KindWALFormat, Gate: holdfast.K6,
					Why:  fmt.Sprintf("%s is gone, though the ledger was signed %d times: whether the store was put back to an earlier moment cannot be told; look, then resume", d.Paths.Signed, h.Size),
					Hint: "put it back from a backup, or, where the state is a copy of the store alone, resume: the next signature writes it"}
			}
		}
		return nil
	})
}

const (
	// verifyEvery is how often a daemon that runs looks whether its ledger still
	// contains what was signed of it, which it looks at before anything else when it
	// starts.
	verifyEvery = time.Hour
	// verifyAgain is how soon it looks again where it could not.
	verifyAgain = time.Minute
)

// verifying verifies until ctx ends.
func (d *Daemon) verifying(ctx context.Context) {
	last := time.Now()
	every(ctx, verifyAgain, func() {
		if now := time.Now(); now.Sub(last) >= d.watching.verifyAfter() {
			last = now
			d.verify(ctx)
		}
	})
}

// verifyAfter is how long after the last verification there is to be another.
func (w *watching) verifyAfter() time.Duration {
	if w.unlooked() != "" {
		return 0
	}
	return verifyEvery
}

// verify tells the watch whether the ledger contains what was signed of it (D41a,
// "verification failed"): where it does not, somebody changed it behind Holdfast's
// back, and everything is halted. Where that could not be seen status says why, and
// people are told, at first and each hour.
func (d *Daemon) verify(ctx context.Context) {
	if d.store.Poisoned() != nil {
		return // the ledger has failed, which is told as that
	}
	err := d.verified(ctx)
	switch {
	case err == nil:
		d.watching.looked(time.Now(), "")
		d.condition("", "", watch.VerificationFailed, false, "")
	case ctx.Err() != nil:
	case unlooked(err):
		why := "whether the ledger contains what was signed of it could not be seen: " + excerpt.Of(d.maskText(err.Error()), 300)
		if d.watching.looked(time.Now(), why) {
			d.notice(kernel.Notice{Level: "error", Event: "unverified", Why: why})
		}
	default:
		d.watching.looked(time.Now(), "")
		why, _ := usage.Explain(err)
		d.condition("", "", watch.VerificationFailed, true, why)
	}
}

// looked notes why the ledger could not be verified, or, with an empty why, that it
// could be, and says whether people are to be told.
func (w *watching) looked(now time.Time, why string) (tell bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tell = why != "" && (w.unseen == "" || now.Sub(w.told) >= verifyEvery)
	if tell {
		w.told = now
	}
	w.unseen = why
	return tell
}

// unlooked is why the last verification of the ledger could not be carried out;
// empty where it was.
func (w *watching) unlooked() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unseen
}

// SQLite's words for a file that is not, or not wholly, a database.
const (
	sqliteCorrupt = 11
	sqliteNotADB  = 26
)

// unlooked says of an error that it kept the ledger from being read: the machine's,
// or the database's, which may be busy. Any other is of what was read, which is not
// what was written: a row that is gone, hashes of another number, a forged witness,
// a link in its place.
func unlooked(err error) bool {
	var db interface {
		error
		Code() int
	}
	if errors.As(err, &db) {
		code := db.Code() & 0xff // the rest says more of the same
		return code != sqliteCorrupt && code != sqliteNotADB
	}
	var machine syscall.Errno
	return errors.As(err, &machine) && machine != syscall.ELOOP || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
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
