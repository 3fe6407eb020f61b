// Package statedir owns the state directory of one runtime: its layout, the lock of its one owner, and the runtime's
// own keys.
package statedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
)

// Paths is where everything stands in the state directory. Dir is absolute and
// without symbolic links once OpenState made it.
type Paths struct {
	Dir         string
	DB          string // the store
	Lock        string // held by the one owner (D48)
	Sock        string // where commands reach the owner, 0600
	Halt        string // the latch (D34)
	OperatorKey string // the operator's key, sealed by a passphrase (D11)
	OperatorPub string
	LedgerKey   string // signs checkpoints
	SealKey     string // seals results that may be replayed (D10)
	TokenKey    string // signs local tokens (D8)
	RuntimeID   string // names this runtime
	StoreMade   string // says that there was a store once
	Signed      string // the head that was signed last
	Log         string
	Reports     string // the daily reports, one of each day
	Snapshots   string // versions of work trees
}

// PathsIn returns the layout under dir without touching it. Setting and
// reading the latch needs no more.
func PathsIn(dir string) Paths {
	at := func(name string) string { return filepath.Join(dir, name) }
	return Paths{
		Dir:         dir,
		DB:          at("holdfast.db"),
		Lock:        at("owner.lock"),
		Sock:        at("sock"),
		Halt:        at("HALT"),
		OperatorKey: at("operator.key"),
		OperatorPub: at("operator.pub"),
		LedgerKey:   at("ledger.key"),
		SealKey:     at("seal.key"),
		TokenKey:    at("token.key"),
		RuntimeID:   at("runtime.id"),
		StoreMade:   at("store.made"),
		Signed:      at("ledger.signed"),
		Log:         at("holdfast.log"),
		Reports:     at("reports"),
		Snapshots:   at("snapshots"),
	}
}

// OperatorKeyOf is where the sealed key of an operator with that name is kept;
// the first operator's is OperatorKey.
func (p Paths) OperatorKeyOf(name string) string {
	return filepath.Join(p.Dir, "operator-"+name+".key")
}

// FindState returns the state directory as an absolute path: the flag, else
// $HOLDFAST_STATE, which must be absolute, else $XDG_STATE_HOME/holdfast, else
// ~/.local/state/holdfast. Nothing is created. lookup is os.LookupEnv.
func FindState(flag string, lookup func(string) (string, bool)) (string, error) {
	if flag != "" {
		return guard.MakeAbsolute("--state", flag)
	}
	if v, ok := lookup("HOLDFAST_STATE"); ok {
		if v == "" {
			return "", usage.HintErrorf("unset it, or name a directory", "HOLDFAST_STATE is set and empty")
		}
		if !filepath.IsAbs(v) {
			// In another directory it would name another state, in which no one halted.
			return "", usage.HintErrorf(
				"make it absolute; --state may be relative", "HOLDFAST_STATE is the relative path %q", excerpt.Word(v),
			)
		}
		return guard.MakeAbsolute("HOLDFAST_STATE", v)
	}
	// The XDG rules: a path that is not absolute is ignored.
	if v, _ := lookup("XDG_STATE_HOME"); filepath.IsAbs(v) {
		return guard.MakeAbsolute("XDG_STATE_HOME", filepath.Join(v, "holdfast"))
	}
	if v, _ := lookup("HOME"); filepath.IsAbs(v) {
		return guard.MakeAbsolute("HOME", filepath.Join(v, ".local", "state", "holdfast"))
	}
	return "", usage.HintErrorf("name one with --state",
		"no state directory: neither HOLDFAST_STATE, XDG_STATE_HOME nor HOME says where")
}

// OpenState makes the state directory (0700) where it is missing and returns
// the layout with symbolic links resolved. It refuses a directory that is not
// ours, that others can enter, that others could move away, or under which a
// socket's path would be too long.
func OpenState(dir string) (Paths, error) {
	if !filepath.IsAbs(dir) {
		return Paths{}, usage.Errorf("the state directory must be absolute, not %q", dir)
	}
	if err := shortEnough(toBe(dir)); err != nil {
		return Paths{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Paths{}, usage.HintErrorf("choose another with --state", "cannot make the state directory: %v", err)
	}
	real, err := guard.Guard{}.Resolve(dir)
	if err != nil {
		return Paths{}, err
	}
	if err := private(real); err != nil {
		return Paths{}, err
	}
	return PathsIn(real), shortEnough(real)
}

// toBe is what dir will resolve to once it is made: the part of it that is
// there without symbolic links, and the rest as it stands.
func toBe(dir string) string {
	rest := ""
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return dir
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// shortEnough refuses a directory in which no socket could stand.
func shortEnough(dir string) error {
	if n, limit := len(PathsIn(dir).Sock), maxSock(runtime.GOOS); n > limit {
		return usage.HintErrorf("choose a shorter one with --state or HOLDFAST_STATE",
			"the state directory's path is too long: a socket there would have %d bytes, the system takes %d", n, limit)
	}
	return nil
}

// maxSock is the longest socket path in bytes: sun_path less its NUL.
func maxSock(goos string) int {
	if goos == "linux" {
		return 107
	}
	return 103
}

// StoreGone is an error where the store of p was made once and is not there
// now, or is empty: what runs on without it would forget who is paused, what
// was spent and what was done.
func StoreGone(p Paths) error {
	if _, err := os.Lstat(p.StoreMade); missing(err) {
		return nil
	} else if err != nil {
		return err
	}
	info, err := os.Lstat(p.DB)
	switch {
	case err == nil && info.Size() > 0:
		return nil
	case err != nil && !missing(err):
		return err
	}
	return usage.HintErrorf("put it back from a backup, or start anew with another --state",
		"the store %s is missing, but its keys are there", p.DB)
}

// MarkStore notes that there is a store now, after which it may not go missing.
// Until then a first start that was cut off is simply begun again.
func MarkStore(p Paths) error {
	if _, err := os.Lstat(p.StoreMade); !missing(err) {
		return err
	}
	return writeNew(p.StoreMade, []byte("holdfast store v1 made\n"))
}

// private refuses a directory that is not ours alone.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return usage.Errorf("the state directory %s is not a directory", dir)
	}
	st, ok := guard.StatOf(info)
	switch {
	case !ok || int(st.Uid) != os.Geteuid():
		return usage.HintErrorf("choose another with --state", "the state directory %s belongs to another user", dir)
	case info.Mode().Perm()&0o077 != 0:
		return usage.HintErrorf("chmod 700 "+dir, "others can enter the state directory %s (mode %04o)", dir,
			info.Mode().Perm())
	}
	return nil
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
