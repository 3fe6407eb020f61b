package daemon

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/observe/trees"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Review is a question to a person. Kernel.Review and Kernel.Reviews return it.
type Review = review.Review

// Statement is what a person says: one act on one thing. Operator.Sign completes it.
type Statement = operator.Statement

// Signed is a signed Statement, as methods of the kernel take it.
type Signed = operator.Signed

// The acts that answer a review.
const (
	Approve = operator.Approve
	Reject  = operator.Reject
	Defer   = operator.Defer
	Changes = operator.Changes
)

// Answer is a person's answer to a review.
type Answer struct {
	// Act is Approve, Reject, Defer or Changes.
	Act string
	// Reason is shown to the agent. Reject and Changes need one.
	Reason string
	// Until is the end of Defer.
	Until time.Time
	// InPart approves a review that Review.InPart reports: the person has seen only a part.
	InPart bool
}

// CreateOperator makes the first operator key of the state, sealed by the passphrase, and
// returns its ID. The key bears the name, unless that is empty. A key that exists is never
// replaced: that is a ConflictError.
func (d *Daemon) CreateOperator(name string, passphrase holdfast.Secret) (id string, err error) {
	if name != "" {
		if err := operator.CheckName(name); err != nil {
			return "", err
		}
	}
	for _, file := range []string{d.Paths.OperatorKey, d.Paths.OperatorPub} {
		if _, err := os.Lstat(file); !missing(err) {
			return "", &holdfast.Error{Kind: holdfast.KindConflict, Err: err,
				Why: "cannot make an operator key: " + file + " exists"}
		}
	}
	sealed, public, err := operator.New(passphrase, operator.Options{})
	if err != nil {
		return "", err
	}
	if name != "" {
		public = public.Named(name)
	}
	return public.ID(), errors.Join(durable.CreateFile(d.Paths.OperatorKey, sealed, 0o600),
		durable.CreateFile(d.Paths.OperatorPub, []byte(public.String()+"\n"), 0o600))
}

// Operator is an opened operator key (D11). It is for one goroutine. Close forgets the key.
type Operator struct {
	d    *Daemon
	key  operator.Key
	name string // of the person
}

// OpenOperator opens the key of the operator with that name, or the first operator's if
// that name has no key. A key without a name speaks for name, or for the user of this
// process. Opening takes up to a second and 256 MiB. A wrong passphrase is a
// PermissionError.
func (d *Daemon) OpenOperator(name string, passphrase holdfast.Secret) (*Operator, error) {
	file, sealed := "", []byte(nil)
	err := errors.New("no name")
	if operator.CheckName(name) == nil {
		file = d.Paths.OperatorKeyOf(name)
		sealed, err = guard.ReadRegular(file, operator.MaxSealed, guard.CheckPrivate(file))
	}
	if file == "" || missing(err) {
		file = d.Paths.OperatorKey
		sealed, err = guard.ReadRegular(file, operator.MaxSealed, guard.CheckPrivate(file))
	}
	if missing(err) {
		return nil, &holdfast.Error{Kind: holdfast.KindPermission,
			Why:  "cannot open an operator key: " + d.Paths.Dir + " has no key",
			Hint: "make one with Daemon.CreateOperator or `holdfast init`"}
	}
	if err != nil {
		return nil, err
	}
	key, err := operator.Open(sealed, passphrase)
	if err != nil {
		return nil, err
	}
	o := &Operator{d: d, key: key, name: cmp.Or(name, person())}
	for _, known := range d.operators() {
		own := known.Name()
		if !known.Equal(key.Public()) || own == "" {
			continue
		}
		if name != "" && name != own {
			o.Close()
			return nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: "cannot open the key of " + own + " as " + name}
		}
		o.name = own
	}
	return o, nil
}

// Close overwrites the opened key. The Operator signs nothing after it.
func (o *Operator) Close() { o.key.Wipe() }

// Sign completes a statement with the operator's name, the runtime, a fresh ID and the
// time, and signs it. It is valid for five minutes and once.
func (o *Operator) Sign(s Statement) (Signed, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return Signed{}, err
	}
	s.Reviewer, s.Runtime, s.ID, s.At = o.name, o.d.runtime, id.String(), time.Now().UTC()
	return operator.Sign(o.key, s)
}

// Decide answers a review and returns it as decided. The answer is bound to what r holds:
// show r.Preview to the person before. The errors are those of Kernel.Decide.
func (o *Operator) Decide(r Review, a Answer) (Review, error) {
	s := r.NewStatement(a.Act)
	s.Reason, s.Until = a.Reason, a.Until.UTC()
	if a.InPart {
		s.Value = operator.InPart
	}
	signed, err := o.Sign(s)
	if err != nil {
		return Review{}, err
	}
	return o.d.Kernel.Decide(signed)
}

// ExportLedger signs the trees and writes the whole ledger to w, for a
// ledger.ExportVerifier with the key that LedgerKey returns.
func (d *Daemon) ExportLedger(ctx context.Context, w io.Writer) error {
	if _, err := d.witness.Checkpoint(ctx); err != nil {
		return err
	}
	return d.store.View(ctx, func(tx kernel.Tx) error {
		_, err := trees.WriteExport(ctx, tx, ledger.NewExporter(w, d.signer.Verifier()))
		return err
	})
}
