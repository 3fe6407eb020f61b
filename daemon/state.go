package daemon

import (
	"errors"
	"io/fs"

	"github.com/holdfast-dev/holdfast/internal/store/statedir"
)

// Paths is the layout of a state directory.
type Paths = statedir.Paths

// ErrOwned says that another process owns the state directory. The error that
// wraps it is a *holdfast.Error of kind ConflictError that names the process.
var ErrOwned = statedir.ErrOwned

// PathsIn returns the layout under dir. It reads nothing.
func PathsIn(dir string) Paths { return statedir.PathsIn(dir) }

// FindState returns the state directory as an absolute path: the flag, else $HOLDFAST_STATE, which must be
// absolute, else $XDG_STATE_HOME/holdfast, else ~/.local/state/holdfast. It creates nothing. lookup is
// os.LookupEnv.
func FindState(flag string, lookup func(string) (string, bool)) (string, error) {
	return statedir.FindState(flag, lookup)
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
