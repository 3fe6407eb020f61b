package kernel

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

// RollbackBefore begins the Subject of a statement that puts work trees back to the
// newest version before a crossing, whose id follows it.
const RollbackBefore = "before "

// RollbackMidMerge stands before either in the Subject of a statement that goes on
// though a tree's repository is in the middle of a merge or the like.
const RollbackMidMerge = "mid-merge "

// RollBack verifies a person's word that work trees go back to a version, and
// records it: the statement's Subject is a snapshot's id, or RollbackBefore and a
// crossing, both after RollbackMidMerge where the person says so, its Value the tree, or empty for every one. What is done on the word is
// the caller's, once. It works while everything is halted, and touches neither the
// latch, nor the ledger, nor a counter (D40).
func (k *Kernel) RollBack(tenant string, signed operator.Signed) (operator.Statement, error) {
	return k.personal(signed, operator.Rollback, func(tx Tx, s operator.Statement, _ operator.Public) error {
		if err := sameTenant(s, tenant); err != nil {
			return err
		}
		data := said(s, signed)
		data["tree"] = s.Value
		if strings.HasPrefix(s.Subject, RollbackMidMerge) {
			data["mid_merge"] = true
		}
		return k.event(tx, Event{Tenant: holdfast.Local, Name: "rollback_asked", Who: s.Reviewer, Subject: s.Subject, Data: data})
	})
}
