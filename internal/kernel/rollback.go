package kernel

import (
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/operator"
)

// RollbackSubject is what a rollback goes back to.
type RollbackSubject struct {
	// ID is a snapshot's, or of Before a crossing's.
	ID string
	// Before is set for the newest version before a crossing.
	Before bool
	// MidMerge is set to continue although a tree's repository is in the middle of a merge
	// or the like.
	MidMerge bool
}

// The words before the ID in the Subject of a signed statement.
const (
	wordMidMerge = "mid-merge "
	wordBefore   = "before "
)

// String returns the Subject of a signed statement, which ParseRollback reads.
func (r RollbackSubject) String() string {
	s := r.ID
	if r.Before {
		s = wordBefore + s
	}
	if r.MidMerge {
		s = wordMidMerge + s
	}
	return s
}

// ParseRollback reads the Subject of a signed statement.
func ParseRollback(subject string) (r RollbackSubject) {
	subject, r.MidMerge = strings.CutPrefix(subject, wordMidMerge)
	r.ID, r.Before = strings.CutPrefix(subject, wordBefore)
	return r
}

// RollBack verifies a person's word that work trees go back to a version, and
// records it: the statement's Subject is a RollbackSubject, its Value the tree, or empty
// for every one. What is done on the word is the caller's, once. It works while everything
// is halted, and touches neither the latch, nor the ledger, nor a counter (D40).
func (k *Kernel) RollBack(tenant string, signed operator.Signed) (operator.Statement, error) {
	return k.runSigned(signed, operator.Rollback, func(tx *scope, w *Word) error {
		if err := w.CheckTenant(tenant); err != nil {
			return err
		}
		data := w.Data()
		data["tree"] = w.Value
		if ParseRollback(w.Subject).MidMerge {
			data["mid_merge"] = true
		}
		return k.event(tx, Event{Tenant: holdfast.Local, Name: "rollback_asked", Who: w.Reviewer,
			Subject: w.Subject, Data: data})
	})
}
