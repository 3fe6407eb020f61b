package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/observe/story"
	"github.com/holdfast-dev/holdfast/internal/observe/trees"
	"github.com/holdfast-dev/holdfast/ledger"
)

func proveCommand() command {
	return command{name: "prove", about: "prove that an entry, or an older head, is in the signed ledger", run: ledgerProve, help: `
Write a proof that the entry of a crossing stands in the ledger under a signed
head: the record and the hashes that lead from it to the root. Whoever has the
public key can verify it without the ledger.

    holdfast ledger prove CROSSING
    holdfast ledger prove --from FILE

    --from FILE   a signed head that was kept, as ` + "`ledger checkpoint`" + ` printed it:
                  prove that its tree is the beginning of what is signed now, so
                  that nothing before it was changed or taken away since

    $ holdfast ledger prove $(holdfast ledger tail -n 1 --json | jq -r .id) > proof.json
    $ holdfast ledger verify --proof proof.json --key "$(holdfast ledger key)"
`}
}

// proven is a record with its proof, as `ledger prove` writes it; a proof of
// growth has no record.
type proven struct {
	Record json.RawMessage `json:"record,omitempty"`
	Proof  json.RawMessage `json:"proof"`
}

func ledgerProve(a *app, args []string) error {
	fs := a.flags("ledger prove")
	from := fs.String("from", "", "")
	rest, err := a.parse(fs, args, 0, 1)
	if err != nil {
		return err
	}
	if (*from == "") == (len(rest) == 0) {
		return usage("`holdfast ledger prove --help` shows both", "prove is for one crossing, or for one head with --from")
	}
	key, err := a.verifier("")
	if err != nil {
		return err
	}
	if *from != "" {
		return a.proveGrowth(key, *from)
	}
	return a.read(func(_ daemon.Paths, s kernel.Store) error {
		var proof *ledger.Inclusion
		var leaf ledger.Stored
		var signed ledger.SignedCheckpoint
		err := a.view(s, func(tx kernel.Tx) (err error) {
			if leaf, err = entryOf(tx, a.tenant, rest[0]); err != nil {
				return err
			}
			if signed, err = tx.Checkpoint(a.tenant); err != nil && !errors.Is(err, kernel.ErrNotFound) {
				return err
			}
			if signed.Size <= leaf.Seq {
				return &holdfast.Error{Kind: holdfast.KindConflict, Why: fmt.Sprintf("leaf %d is not signed yet", leaf.Seq), Hint: "`" + a.forState("holdfast ledger checkpoint") + "` signs it"}
			}
			proof, err = ledger.ProveInclusion(tx.Nodes(a.tenant), signed, leaf.Seq)
			return err
		})
		if err != nil {
			return err
		}
		if err := proof.Verify(key, leaf.Record); err != nil {
			return tampered(err)
		}
		text, err := proof.AppendJSON(nil)
		if err != nil {
			return err
		}
		// Written by hand, so that the record stays as it was, byte for byte.
		if _, err := fmt.Fprintf(a.out, "{\"record\":%s,\"proof\":%s}\n", leaf.Record, text); err != nil {
			return err
		}
		a.say("the entry is leaf %d of the %d that were signed at %s", leaf.Seq, signed.Size, stamp(signed.At))
		return nil
	})
}

// proveGrowth proves that a head that was kept is the beginning of the newest.
func (a *app) proveGrowth(key *ledger.Verifier, file string) error {
	kept, err := checkpoints(key, []string{file})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(kept, func(c ledger.SignedCheckpoint) bool { return c.Tenant == a.tenant })
	if at < 0 {
		return fail("", "%s has no signed head of %s", file, clean(a.tenant))
	}
	return a.read(func(_ daemon.Paths, s kernel.Store) error {
		var proof *ledger.Consistency
		var signed ledger.SignedCheckpoint
		err := a.view(s, func(tx kernel.Tx) (err error) {
			if signed, err = tx.Checkpoint(a.tenant); err != nil && !errors.Is(err, kernel.ErrNotFound) {
				return err
			}
			if signed.Size < kept[at].Size {
				return tampered(fmt.Errorf("%d leaves of %s are signed, and %d were when that head was kept", signed.Size, clean(a.tenant), kept[at].Size))
			}
			if proof, err = ledger.ProveConsistency(tx.Nodes(a.tenant), kept[at], signed); err == nil {
				err = proof.Verify(key)
			}
			if err != nil {
				return tampered(err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		text, err := proof.AppendJSON(nil)
		if err != nil {
			return err
		}
		if err := a.line(`{"proof":` + string(text) + `}`); err != nil {
			return err
		}
		a.say("the %d leaves of %s that were signed at %s begin the %d that were signed at %s", kept[at].Size, clean(a.tenant), stamp(kept[at].At), signed.Size, stamp(signed.At))
		return nil
	})
}

func entryOf(tx kernel.Tx, tenant, id string) (ledger.Stored, error) {
	found, err := tx.Crossing(tenant, id)
	if err != nil && !errors.Is(err, kernel.ErrNotFound) {
		return ledger.Stored{}, err
	}
	for _, l := range found {
		if l.Kind == ledger.KindEntry {
			return l, nil
		}
	}
	why := "the ledger of " + clean(tenant) + " has no crossing " + clean(id)
	if len(found) > 0 {
		why = "the crossing " + clean(id) + " has begun and has no entry yet"
	}
	return ledger.Stored{}, &holdfast.Error{Kind: holdfast.KindNotFound, Why: why, Hint: "`holdfast ledger tail` lists them"}
}

// line prints one.
func (a *app) line(s string) error {
	_, err := io.WriteString(a.out, s+"\n")
	return err
}

func (a *app) verifyProof(key *ledger.Verifier, file string) error {
	name, b, err := file, []byte(nil), error(nil)
	if file == "-" {
		name, b, err = a.input(nil, maxProof)
	} else {
		b, err = readPlain(file, maxProof)
	}
	if err != nil {
		return err
	}
	var p proven
	if err := json.Unmarshal(b, &p); err != nil {
		return fail("", "%s is no proof: %v", name, err)
	}
	if p.Record == nil {
		return a.verifyGrowth(key, name, p.Proof)
	}
	proof, err := ledger.ParseInclusion(p.Proof)
	if err == nil {
		err = proof.Verify(key, p.Record)
	}
	if err != nil {
		return fail("", "%s does not prove its record: %v", name, err)
	}
	c, err := key.Open([]byte(proof.Note))
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"ok": true, "tenant_id": proof.Tenant, "seq": proof.Seq, "leaves": c.Size, "root": c.Root.String(), "signed_at": c.At})
	}
	_, err = fmt.Fprintf(a.out, "proven: the record is leaf %d of %s, of the %d that were signed at %s\n", proof.Seq, clean(proof.Tenant), c.Size, stamp(c.At))
	return err
}

// verifyGrowth checks a proof that one head begins another.
func (a *app) verifyGrowth(key *ledger.Verifier, name string, text []byte) error {
	proof, err := ledger.ParseConsistency(text)
	if err == nil {
		err = proof.Verify(key)
	}
	if err != nil {
		return fail("", "%s does not prove that one head begins another: %v", name, err)
	}
	old, err := key.Open([]byte(proof.Old))
	if err != nil {
		return err
	}
	now, err := key.Open([]byte(proof.New))
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"ok": true, "tenant_id": proof.Tenant, "from_leaves": old.Size, "from_root": old.Root.String(), "leaves": now.Size, "root": now.Root.String(), "signed_at": now.At})
	}
	return a.line(fmt.Sprintf("proven: the %d leaves of %s that were signed at %s begin the %d that were signed at %s", old.Size, clean(proof.Tenant), stamp(old.At), now.Size, stamp(now.At)))
}

func exportCommand() command {
	return command{name: "export", about: "write the whole ledger for verification elsewhere", run: ledgerExport, help: `
Write the whole ledger as lines of JSON, to standard output or to a file that
does not exist yet. Whoever has the public key can verify it.

    holdfast ledger export [FILE]

    $ holdfast ledger export ledger.jsonl
`}
}

func ledgerExport(a *app, args []string) error {
	rest, err := a.parse(a.flags("ledger export"), args, 0, 1)
	if err != nil {
		return err
	}
	key, err := a.verifier("")
	if err != nil {
		return err
	}
	return a.read(func(_ daemon.Paths, s kernel.Store) (err error) {
		w := a.out
		if len(rest) == 1 && rest[0] != "-" {
			f, err := os.OpenFile(rest[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, fs.ErrExist) {
				return fail("name a file that does not exist", "%s exists already", rest[0])
			}
			if err != nil {
				return err
			}
			defer func() {
				if err != nil {
					err = errors.Join(err, os.Remove(rest[0]))
				}
			}()
			defer func() { err = errors.Join(err, f.Sync(), f.Close()) }()
			w = f
		}
		return s.View(a.ctx, func(tx kernel.Tx) error {
			all, err := trees.WriteExport(a.ctx, tx, ledger.NewExporter(w, key))
			if err == nil {
				a.say("exported %s of %s", story.Count(trees.CountLeaves(all), "leaf", "leaves"),
					story.Count(len(all), "tenant", "tenants"))
			}
			return err
		})
	})
}
