package approval

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Word is a person's statement whose signature was verified.
type Word struct {
	operator.Statement
	key    operator.Public // that signed it
	signed operator.Signed
	now    func() time.Time
}

// VerifySigned checks that a person with an operator key said this, here, a
// moment ago (D11).
func (b *Book) VerifySigned(signed operator.Signed) (*Word, error) {
	w := &Word{signed: signed, now: b.src.Now}
	err := error(&holdfast.Error{Kind: holdfast.KindPermission, Rule: "statement/no_key",
		Why: "there is no operator key", Hint: "make one with `holdfast init`"})
	for _, w.key = range b.src.Operator() {
		if w.Statement, err = operator.Verify(w.key, signed, b.src.Now()); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if w.Runtime != b.src.Runtime {
		return nil, &holdfast.Error{Kind: holdfast.KindPermission, Rule: "statement/other_runtime",
			Why: "the statement was made for another state directory", Hint: "name the same --state"}
	}
	if name := w.key.Name(); name != "" && w.Reviewer != name && w.Reviewer != w.key.ID() {
		return nil, &holdfast.Error{Kind: holdfast.KindPermission, Rule: "statement/other_name",
			Why:  "the key is " + name + "'s, and the statement is said as " + excerpt.Of(w.Reviewer, 64),
			Hint: "say it under the key's own name"}
	}
	// A statement is kept unchanged, under its signature, permanently.
	if b.src.Redact.Text([]byte(w.Reason)).Found() {
		return nil, &holdfast.Error{Kind: holdfast.KindValue, Rule: "statement/secret",
			Why: "the reason holds a secret or personal data, and would be kept as it is", Hint: "say it again without"}
	}
	return w, nil
}

// Spend makes a statement worthless for a second use.
func (w *Word) Spend(tx table.Writer) error {
	err := usedStatements.Insert(tx, w.ID, usedStatement{At: review.FormatTime(w.At)})
	if errors.Is(err, table.ErrExists) {
		return &holdfast.Error{Kind: holdfast.KindConflict, Rule: "statement/replayed",
			Why: "this statement was carried out already", Hint: "say it again"}
	}
	return err
}

// Data returns the statement as an event keeps it, so that it can be verified later.
func (w *Word) Data() map[string]any {
	return map[string]any{"reason": w.Reason, "statement": w.signed.Statement, "signature": w.signed.Signature}
}

// CheckAct refuses a statement of another act.
func (w *Word) CheckAct(act string) error {
	if w.Act == act {
		return nil
	}
	return &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf("the statement says %q, not %q", w.Act, act)}
}

// CheckTenant refuses a statement about another tenant's subject; one that names
// no tenant is about holdfast.Local.
func (w *Word) CheckTenant(tenant string) error {
	said := cmp.Or(w.Tenant, holdfast.Local)
	if said == cmp.Or(tenant, holdfast.Local) {
		return nil
	}
	return &holdfast.Error{Kind: holdfast.KindPermission, Why: fmt.Sprintf("the statement is about tenant %q, not %q",
		said, excerpt.Of(tenant, 64)), Hint: "say it again with --tenant"}
}

// CheckSince refuses a statement from before what it lifts was as it is: one that
// was refused then was not carried out, and could be sent again. A time that lies
// ahead of the clock is of a clock that was set back, and does not count.
func (w *Word) CheckSince(at time.Time) error {
	if !w.At.Before(at) || at.After(w.now()) {
		return nil
	}
	return &holdfast.Error{Kind: holdfast.KindConflict, Rule: "statement/before",
		Why: "the statement was made before what it lifts", Hint: "look again, and say it again"}
}

// IsAsker reports whether the person is the one who asked (D11).
func (w *Word) IsAsker(r *review.Review) bool { return review.SaidBySelf(&w.Statement, w.key, r) }

// RunSigned carries out one act that needs a person, once, in one transaction of
// update.
func RunSigned[T table.Writer](b *Book, signed operator.Signed, act string, update func(func(T) error) error,
	do func(T, *Word) error) (operator.Statement, error) {
	w, err := b.VerifySigned(signed)
	if err == nil {
		err = w.CheckAct(act)
	}
	if err != nil {
		return operator.Statement{}, err
	}
	err = update(func(tx T) error {
		if err := w.Spend(tx); err != nil {
			return err
		}
		return do(tx, w)
	})
	if err == nil {
		b.src.Attended(w.Tenant, "")
	}
	return w.Statement, err
}

func (b *Book) runSigned(signed operator.Signed, act string, do func(Tx, *Word) error) (operator.Statement, error) {
	return RunSigned(b, signed, act, b.src.Update, do)
}
