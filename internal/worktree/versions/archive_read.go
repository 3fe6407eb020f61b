package versions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/feature"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/store/sqlite"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/ledger"
)

// ArchiveReport is what verification found in an archive that is whole.
type ArchiveReport struct {
	SHA256   string             `json:"sha256"` // of the file
	Bytes    int64              `json:"bytes"`  // of the file
	Files    int                `json:"files"`  // in it
	Archive  snapshot.Archive   `json:"archive"`
	Manifest *snapshot.Manifest `json:"snapshot"`
	// Leaves are of every tenant's ledger in the copy of the store.
	Leaves int64 `json:"leaves"`
	// OwnKey says that the ledger was verified by nothing but the key that the
	// archive itself names.
	OwnKey bool `json:"own_key,omitempty"`
}

// VerifyArchive verifies the archive in a file by restoring it into a folder of its
// own below scratch, with nothing else but the public key of its ledger: every hash,
// that the manifest is the one that the ledger in its store has, and that ledger
// from its first leaf. A nil key is the one that the archive names, by which
// somebody who made up all of it is not found. Errors: ConflictError archive/damaged,
// a *ledger.Fault, or what keeps it from being read or restored here.
func VerifyArchive(ctx context.Context, file, scratch string, key *ledger.Verifier) (_ *ArchiveReport, err error) {
	f, err := guard.OpenRegular(file, func(os.FileInfo) error { return nil })
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readArchive(ctx, f, scratch, key)
}

// readArchive is VerifyArchive of what is open already.
func readArchive(ctx context.Context, r io.Reader, scratch string, key *ledger.Verifier) (out *ArchiveReport,
	err error) {
	dir, err := os.MkdirTemp(scratch, "restored-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	sum := newSummed(io.Discard)
	u, err := snapshot.Unpack(ctx, io.TeeReader(r, sum), dir)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(sum, r); err != nil { // what the unpacking left, for its hash
		return nil, err
	}
	out = &ArchiveReport{SHA256: sum.text(), Bytes: sum.n, Files: u.Files, Archive: u.Archive,
		Manifest: u.Manifest, OwnKey: key == nil}
	if key == nil {
		if key, err = ledger.ParseVerifier(u.LedgerKey); err != nil {
			return nil, err
		}
	}
	if key.String() != u.LedgerKey {
		return nil, &holdfast.Error{Kind: holdfast.KindConflict, Rule: "archive/key",
			Why:  "the archive is of another ledger: it names the key " + excerpt.Word(u.LedgerKey),
			Hint: "was it written by another Holdfast?"}
	}
	out.Leaves, err = verifyCopy(ctx, u, key)
	return out, err
}

// verifyCopy opens the copy of a store, verifies every tree of its ledger, and looks
// for the record of the snapshot among what is signed.
func verifyCopy(ctx context.Context, u *snapshot.Unpacked, key *ledger.Verifier) (leaves int64, err error) {
	s, err := openCopy(ctx, u.Store)
	if err != nil {
		return 0, &holdfast.Error{Kind: holdfast.KindConflict, Rule: "archive/damaged",
			Why: "the store in the archive does not open: " + excerpt.Word(err.Error()), Err: err}
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	faults, err := s.Structure(ctx)
	if err != nil {
		return 0, err
	}
	if len(faults) > 0 {
		return 0, &faults[0]
	}
	err = s.View(ctx, func(tx kernel.Tx) error {
		signed := int64(0)
		reports, err := verifyTrees(ctx, tx, key)
		for _, r := range reports {
			leaves += r.Size
			if r.Tenant == holdfast.Local {
				signed = r.Signed
			}
		}
		if err != nil {
			return err
		}
		return recordedIn(tx, u.Manifest, signed)
	})
	return leaves, err
}

// openCopy opens an unpacked copy of a store to read it. One that an older Holdfast wrote is
// migrated first: the copy is only for this.
func openCopy(ctx context.Context, path string) (*sqlite.Store, error) {
	opt := sqlite.Options{Path: path, Tables: feature.Tables()}
	read := opt
	read.ReadOnly = true
	s, err := sqlite.Open(ctx, read)
	if !errors.Is(err, sqlite.ErrOlder) {
		return s, err
	}
	if s, err = sqlite.Open(ctx, opt); err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, read)
}

// verifyTrees verifies every leaf of every tenant, the log of checkpoints before the
// others, against what is signed.
func verifyTrees(ctx context.Context, tx kernel.Tx, key *ledger.Verifier) ([]ledger.Report, error) {
	heads, err := tx.Heads()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(heads, func(a, b ledger.Head) int { return ledger.CompareTenants(a.Tenant, b.Tenant) })
	v := ledger.StoreVerifier{Key: key}
	for _, h := range heads {
		t := ledger.StoredTree{Head: h, Size: h.Size}
		newest, err := tx.Checkpoint(h.Tenant)
		if err == nil {
			t.Newest = &newest
		} else if !errors.Is(err, kernel.ErrNotFound) {
			return nil, &ledger.Fault{Tenant: h.Tenant, Seq: -1, Why: "the newest checkpoint: " + err.Error()}
		}
		t.Leaves = func(fn func(ledger.Stored) error) error {
			return tx.Leaves(h.Tenant, 0, h.Size, func(l ledger.Stored) error { return errors.Join(ctx.Err(), fn(l)) })
		}
		if err := v.Tree(t); err != nil {
			return nil, err
		}
	}
	return v.Reports, v.End()
}

// recordedIn refuses a snapshot whose manifest the signed part of the ledger does
// not have.
func recordedIn(tx kernel.Tx, m *snapshot.Manifest, signed int64) error {
	list, err := tx.Events(holdfast.Local, m.ID, 100)
	if err != nil {
		return err
	}
	for i := range list {
		e, err := ledger.ParseEvent(list[i].Record)
		if err != nil {
			return err
		}
		var data struct{ Manifest string }
		if len(e.Data) > 0 && (e.Name == eventTaken || e.Name == eventRolled) && list[i].Seq < signed {
			if err := json.Unmarshal(e.Data, &data); err != nil {
				return err
			}
		}
		if data.Manifest == m.Sum {
			return nil
		}
	}
	return &holdfast.Error{Kind: holdfast.KindConflict, Rule: "archive/unrecorded",
		Why:  fmt.Sprintf("the ledger in the archive does not have this manifest of the snapshot %s", m.ID),
		Hint: "somebody changed the archive: take another one"}
}
