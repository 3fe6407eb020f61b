package kernel

import (
	"errors"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/table"
)

// The store's errors. Implementations wrap them.
var (
	ErrNotFound = table.ErrNotFound
	ErrExists   = table.ErrExists
	ErrConflict = table.ErrConflict
	ErrReadOnly = errors.New("write in a view")
	ErrPoisoned = errors.New("the ledger is poisoned")
	// ErrNewer says that the store was written by a newer Holdfast.
	ErrNewer = errors.New("the store has a newer schema")
)

// asError finds the coded error in err's chain.
func asError(err error) (*holdfast.Error, bool) {
	var e *holdfast.Error
	ok := errors.As(err, &e)
	return e, ok
}
