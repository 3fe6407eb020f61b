package versions

import "strings"

// Subject is what a rollback goes back to, as a person signs it.
type Subject struct {
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

// String returns the Subject of a signed statement, which ParseSubject reads.
func (r Subject) String() string {
	s := r.ID
	if r.Before {
		s = wordBefore + s
	}
	if r.MidMerge {
		s = wordMidMerge + s
	}
	return s
}

// ParseSubject reads the Subject of a signed statement.
func ParseSubject(subject string) (r Subject) {
	subject, r.MidMerge = strings.CutPrefix(subject, wordMidMerge)
	r.ID, r.Before = strings.CutPrefix(subject, wordBefore)
	return r
}
