package witness

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/ledger"
	"golang.org/x/mod/sumdb/tlog"
)

// logTail is how many of the newest leaves of the log of checkpoints are read
// when the ledger is opened, logChunk how many at a time.
const (
	logTail  = 10_000
	logChunk = 1_000
)

// CheckSigned refuses a ledger in which a tenant's tree does not contain what
// was signed of it, by its own newest checkpoint or by the log of checkpoints:
// to go on from there would sign a second history. It looks at heads and the
// hashes on the way to a root, never at all leaves; `holdfast ledger verify`
// does that.
func CheckSigned(ctx context.Context, s kernel.Store, key *ledger.Verifier) error {
	return s.View(ctx, func(tx kernel.Tx) error {
		hs, err := tx.Heads()
		if err != nil {
			return err
		}
		heads := make(map[string]ledger.Head)
		for _, h := range hs {
			heads[h.Tenant] = h
		}
		recorded, whole, err := recordedHeads(tx, heads[ledger.CheckpointsTenant].Size)
		if err != nil {
			return err
		}
		for tenant, want := range recorded {
			if err := contains(tx, heads[tenant], want); err != nil {
				return err
			}
		}
		for _, h := range hs {
			signed, err := newestSigned(tx, key, h)
			if err != nil {
				return err
			}
			r, ok := recorded[h.Tenant]
			switch {
			case h.Tenant == ledger.CheckpointsTenant && signed != h.Size:
				// It grows and is signed in one transaction.
				return cutBack("the newest checkpoint of %s was taken away: it has %d leaves, and %d of them are signed", h.Tenant, h.Size, signed)
			case h.Tenant == ledger.CheckpointsTenant || !ok && !whole:
			case signed > r.Size:
				return cutBack("%s was cut back: it does not record the checkpoint of %d leaves of tenant %q", ledger.CheckpointsTenant, signed, h.Tenant)
			case signed < r.Size:
				return cutBack("the checkpoint of %d leaves of tenant %q was taken away: %s records it", r.Size, h.Tenant, ledger.CheckpointsTenant)
			}
		}
		return nil
	})
}

// recordedHeads reads the newest head of each tenant from the end of the log,
// and whether it read all of it.
func recordedHeads(tx kernel.Tx, size int64) (map[string]ledger.Head, bool, error) {
	out := make(map[string]ledger.Head)
	low := max(0, size-logTail)
	for to := size; to > low; to -= min(to, logChunk) {
		here := make(map[string]ledger.Head)
		err := tx.Leaves(ledger.CheckpointsTenant, max(low, to-logChunk), to, func(l ledger.Stored) error {
			h, err := ledger.RecordedHead(l.Record)
			if err != nil {
				return fmt.Errorf("the log of checkpoints, leaf %d: %w", l.Seq, err)
			}
			here[h.Tenant] = h
			return nil
		})
		if err != nil {
			return nil, false, err
		}
		for tenant, h := range here {
			if _, newer := out[tenant]; !newer {
				out[tenant] = h
			}
		}
	}
	return out, low == 0, nil
}

// newestSigned is the size of the newest checkpoint that a tree contains, zero
// for none.
func newestSigned(tx kernel.Tx, key *ledger.Verifier, h ledger.Head) (int64, error) {
	kept, err := tx.Checkpoint(h.Tenant)
	if errors.Is(err, kernel.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	c, err := key.Open(kept.Note)
	if err != nil {
		return 0, fmt.Errorf("tenant %q: its newest checkpoint: %w", h.Tenant, err)
	}
	if c.Tenant != h.Tenant {
		return 0, cutBack("tenant %q: its newest checkpoint is another tenant's", h.Tenant)
	}
	return c.Size, contains(tx, h, c.Head)
}

// contains refuses a tree that is shorter than one that was signed, or does not
// begin with it.
func contains(tx kernel.Tx, h, want ledger.Head) error {
	if h.Size < want.Size {
		return cutBack("the ledger was cut back: tenant %q had %d signed leaves and has %d", want.Tenant, want.Size, h.Size)
	}
	root, err := tlog.TreeHash(want.Size, ledger.HashReader(tx.Nodes(want.Tenant), h.Size))
	if err != nil {
		return err
	}
	if root != want.Root {
		return cutBack("the ledger was written anew: the first %d leaves of tenant %q are not those that were signed", want.Size, want.Tenant)
	}
	return nil
}

func cutBack(format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.KindWALFormat, Gate: holdfast.K6, Why: fmt.Sprintf(format, args...),
		Hint: "keep the files as they are, run `holdfast ledger verify`, and restore a backup"}
}
