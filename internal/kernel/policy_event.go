package kernel

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
	"github.com/holdfast-dev/holdfast/internal/policy/constitution"
)

// govern records the event by which a policy comes into force, and with it what
// each of its rules says, by version: what a record names can be read for ever,
// whatever becomes of the owner's files (D44).
func (k *Kernel) govern(p *Policy, e Event) error {
	ctx, cancel := edge()
	defer cancel()
	return walError(k.store.Update(ctx, func(tx Tx) error {
		if err := keepTexts(tx, p.Rules.Texts()); err != nil {
			return err
		}
		return k.event(tx, e)
	}))
}

func keepTexts(tx Tx, texts []constitution.Text) error {
	for _, t := range texts {
		if err := ruleTexts.Insert(tx, t.Version(), t); err != nil && !errors.Is(err, ErrExists) {
			return err
		}
	}
	return nil
}

// RuleText is what a rule said, by the version that a record names, 64 hex
// digits: of every rule that was ever in force while a daemon ran. It is
// KindNotFound where none is kept, and KindWALFormat where what is kept is another
// text than that version's.
func RuleText(ctx context.Context, s Store, version string) (t constitution.Text, err error) {
	err = s.View(ctx, func(tx Tx) error {
		t, _, err = ruleTexts.Get(tx, version)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return constitution.Text{}, &holdfast.Error{Kind: holdfast.KindNotFound, Why: "no rule of that version was ever in force here",
			Hint: "a version is 64 hex digits, as `holdfast rules check` and `holdfast ledger show --json` have them"}
	}
	damaged := (*table.DamagedError)(nil)
	if err != nil && !errors.As(err, &damaged) {
		return constitution.Text{}, err
	}
	if err != nil || t.Version() != version {
		return constitution.Text{}, &holdfast.Error{Kind: holdfast.KindWALFormat, Why: "what is kept as the rule of that version is another text",
			Hint: "somebody changed the store: `holdfast ledger verify` says what else"}
	}
	return t, nil
}
