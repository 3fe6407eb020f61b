package kernel

import (
	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// Admit records that a person lets another one be an operator: the statement's
// Subject is the new key's id, its Value the key's text with its name. The
// statement is what admits the key wherever the list of keys is read
// (operator.ParseKeys); this makes it known and keeps it.
func (k *Kernel) Admit(signed operator.Signed) (operator.Public, error) {
	var pub operator.Public
	s, err := k.runSigned(signed, operator.Admit, func(tx *scope, w *Word) error {
		var err error
		if pub, err = operator.ParsePublic(w.Value); err != nil {
			return err
		}
		if pub.ID() != w.Subject || pub.Name() == "" {
			return &holdfast.Error{Kind: holdfast.KindValue, Rule: "operator/no_key", Why: "the statement admits a key without a name, or another than it names"}
		}
		for _, old := range k.operator() {
			if old.Equal(pub) || review.SameName(old.Name(), pub.Name()) {
				return &holdfast.Error{Kind: holdfast.KindConflict, Rule: "operator/there", Why: "there is an operator of that key or name already", Hint: "name the new one otherwise"}
			}
		}
		data := w.Data()
		data["key"] = pub.String()
		return k.event(tx, Event{Tenant: holdfast.Local, Name: "operator_admitted", Who: w.Reviewer,
			Subject: pub.ID(), Data: data})
	})
	if err != nil {
		return operator.Public{}, err
	}
	k.notify(Notice{Level: "warning", Event: "operator_admitted", Why: s.Reviewer + " made " + pub.Name() + " an operator"})
	return pub, nil
}
