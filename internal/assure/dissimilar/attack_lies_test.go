package dissimilar_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/ledger"
)

// Ledgers whose trees and signatures hold and whose semantics lie, and which
// are found out.
func TestAttackLiesThatAreNamed(t *testing.T) {
	for name, lie := range map[string]func(*book){
		"K5_replay_of_what_failed_as_done": func(b *book) {
			g, seq := b.begin(keyed("kf"))
			b.end(g, seq, keep, func(e *ledger.Entry) {
				e.Outcome, e.State = ledger.Halted, holdfast.Faulted
				e.ErrorKind = "HaltedError"
				e.ExitCode = 1
			})
			b.replay(g.ID, "kf")
		},
		"settled_at_less_than_nothing": func(b *book) {
			g, seq := b.begin(drawing(1))
			b.end(g, seq, used(50), func(e *ledger.Entry) { e.Uses[0].Used = ptr(int64(-40)) })
		},
		"decision_signed_once_used_in_two_tenants": func(b *book) {
			b.approved("rv_1")
			b.whole(high(b.id(), "rv_1"), func(g *ledger.Begin) { g.TenantID = "beta" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			ordinary(b)
			lie(b)
			if _, found := b.judge(); len(found) == 0 {
				t.Error("nobody noticed")
			}
		})
	}
}
