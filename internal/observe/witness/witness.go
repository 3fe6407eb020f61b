// Package witness keeps the newest signed head of the ledger next to the store, and tells whether the store still
// contains what was signed of it.
package witness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"github.com/holdfast-dev/holdfast/ledger"
)

// maxWitness bounds the file beside the store in bytes.
const maxWitness = 64 << 10

// Options are what a Witness is made of.
type Options struct {
	File string // where the newest signed head is kept
	// Signer has the key of the ledger, and Sign signs the heads of all trees and returns their number.
	Signer *ledger.Signer
	Sign   func(*ledger.Signer) (int, error)
	Store  Store
	// Disk opens the store as it is on the disk, for reading.
	Disk func(context.Context) (Disk, error)
	// Changed receives whether the ledger has lost what was signed of it, and why.
	Changed func(holds bool, why string)
	// Notify tells people.
	Notify func(kernel.Notice)
	Mask   func(string) string
}

// Store is the open store.
type Store interface {
	kernel.Store
	// Poisoned returns why nothing more can be written, or nil.
	Poisoned() error
}

// Disk is the store as it is on the disk.
type Disk interface {
	kernel.Store
	Close() error
}

// Witness keeps the newest signed head, and compares the ledger with it.
type Witness struct {
	Options

	mu     sync.Mutex
	unseen string    // guarded by mu; why the ledger could not be verified
	told   time.Time // guarded by mu; when people were told that it could not
}

// New returns a witness.
func New(o Options) *Witness { return &Witness{Options: o} }

// Checkpoint signs the trees, and keeps the newest signed head of the log of
// checkpoints in a file beside the store, which a backup of the store does not
// hold: so a store that is put back to an earlier moment does not go unnoticed.
func (w *Witness) Checkpoint(ctx context.Context) (int, error) {
	n, err := w.Sign(w.Signer)
	if err != nil || n == 0 {
		return n, err
	}
	return n, w.Store.View(ctx, func(tx kernel.Tx) error {
		c, err := tx.Checkpoint(ledger.CheckpointsTenant)
		if err != nil {
			return err
		}
		return durable.ReplaceFile(w.File, c.Note, 0o600)
	})
}

// Read reads the head that was signed last; ok is false if none is kept.
func Read(file string, key *ledger.Verifier) (c ledger.SignedCheckpoint, ok bool, err error) {
	b, err := guard.ReadRegular(file, maxWitness, guard.CheckPrivate(file))
	if errors.Is(err, fs.ErrNotExist) {
		return c, false, nil
	}
	if err == nil {
		c, err = key.Open(b)
	}
	if err == nil && c.Tenant != ledger.CheckpointsTenant {
		err = errors.New("it is not of the log of checkpoints")
	}
	if err != nil {
		return c, false, &holdfast.Error{Kind: holdfast.KindUsage,
			Why: fmt.Sprintf("%s holds no signed head: %v", file, err), Err: err,
			Hint: "put it back from a backup; without it a store that is older than its state is not noticed"}
	}
	return c, true, nil
}

// CheckStore returns why the open store does not hold what was signed here last, or "". The error says that it
// could not be seen.
func (w *Witness) CheckStore(ctx context.Context) (why string, err error) {
	err = w.witnessed(ctx, w.Store)
	var back *holdfast.Error
	if !errors.As(err, &back) {
		return "", err
	}
	return back.Why, nil
}

// witnessed says where the store does not hold what was signed here last: it
// was put back to an earlier moment, and has forgotten which approvals were used,
// which tokens were revoked and who was paused since. Any other error says that
// it could not be seen.
func (w *Witness) witnessed(ctx context.Context, store kernel.Store) error {
	want, ok, err := Read(w.File, w.Signer.Verifier())
	if err != nil {
		return err
	}
	if !ok {
		return w.unwitnessed(ctx, store)
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
func (w *Witness) unwitnessed(ctx context.Context, store kernel.Store) error {
	return store.View(ctx, func(tx kernel.Tx) error {
		hs, err := tx.Heads()
		if err != nil {
			return err
		}
		for _, h := range hs {
			if h.Tenant == ledger.CheckpointsTenant && h.Size > 1 {
				return &holdfast.Error{Kind: holdfast.KindWALFormat, Gate: holdfast.K6,
					Why:  fmt.Sprintf("%s is gone, though the ledger was signed %d times: whether the store was put back to an earlier moment cannot be told; look, then resume", w.File, h.Size),
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

// Run verifies until ctx ends.
func (w *Witness) Run(ctx context.Context) {
	last := time.Now()
	t := time.NewTicker(verifyAgain)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if now := time.Now(); now.Sub(last) >= w.verifyAfter() {
			last = now
			w.Verify(ctx)
		}
	}
}

// verifyAfter is how long after the last verification there is to be another.
func (w *Witness) verifyAfter() time.Duration {
	if w.Trouble() != "" {
		return 0
	}
	return verifyEvery
}

// Verify tells the watch whether the ledger contains what was signed of it (D41a,
// "verification failed"): where it does not, somebody changed it behind Holdfast's
// back, and everything is halted. Where that could not be seen status says why, and
// people are told, at first and each hour.
func (w *Witness) Verify(ctx context.Context) {
	if w.Store.Poisoned() != nil {
		return // the ledger has failed, which is told as that
	}
	err := w.verified(ctx)
	switch {
	case err == nil:
		w.noteLook(time.Now(), "")
		w.Changed(false, "")
	case ctx.Err() != nil:
	case isReadFailure(err):
		why := "whether the ledger contains what was signed of it could not be seen: " + excerpt.Of(w.Mask(err.Error()),
			300)
		if w.noteLook(time.Now(), why) {
			w.Notify(kernel.Notice{Level: "error", Event: "unverified", Why: why})
		}
	default:
		w.noteLook(time.Now(), "")
		why, _ := usage.Explain(err)
		w.Changed(true, why)
	}
}

// noteLook notes why the ledger could not be verified, or, with an empty why, that it
// could be, and says whether people are to be told.
func (w *Witness) noteLook(now time.Time, why string) (tell bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tell = why != "" && (w.unseen == "" || now.Sub(w.told) >= verifyEvery)
	if tell {
		w.told = now
	}
	w.unseen = why
	return tell
}

// Trouble returns why the last verification of the ledger could not be carried out, or "".
func (w *Witness) Trouble() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unseen
}

// SQLite's words for a file that is not, or not wholly, a database.
const (
	sqliteCorrupt = 11
	sqliteNotADB  = 26
)

// isReadFailure reports whether err kept the ledger from being read: the machine's,
// or the database's, which may be busy. Any other is of what was read, which is not
// what was written: a row that is gone, hashes of another number, a forged witness,
// a link in its place.
func isReadFailure(err error) bool {
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
func (w *Witness) verified(ctx context.Context) error {
	disk, err := w.Disk(ctx)
	if err != nil {
		return err
	}
	err = CheckSigned(ctx, disk, w.Signer.Verifier())
	if err == nil {
		err = w.witnessed(ctx, disk)
	}
	return errors.Join(err, disk.Close())
}
