package statedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/guard"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
	"golang.org/x/sys/unix"
)

// ErrOwned says that another process owns the state directory. The error that
// wraps it is a *holdfast.Error of kind ConflictError that names the process.
var ErrOwned = errors.New("the state directory has an owner")

// Holder is what the owner writes into its lock, for messages. It proves
// nothing: only the lock itself does.
type Holder struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// String names the process, or says that nobody knows it.
func (h Holder) String() string {
	if h.PID <= 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d, since %s", h.PID, h.Since.UTC().Format(time.RFC3339))
}

// Owner is the right to have the store open for writing (D48). It ends with
// Release or with the process, however that ends.
type Owner struct {
	Paths Paths
	file  *os.File
}

// maxHolder bounds what is read of a lock file.
const maxHolder = 4096

// AcquireOwner opens the state directory as OpenState does and takes its lock,
// at once or not at all. The lock file stays for ever: removing it would let
// two processes lock two files of one name.
func AcquireOwner(dir string, now time.Time) (*Owner, error) {
	p, err := OpenState(dir)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(p.Lock, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, usage.HintErrorf("remove what stands in its place", "cannot open the lock: %v", err)
	}
	if err := lock(f, p.Lock); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	o := &Owner{Paths: p, file: f}
	if err := o.sign(Holder{PID: os.Getpid(), Since: now.UTC()}); err != nil {
		return nil, errors.Join(usage.Errorf("cannot write the lock %s: %v", p.Lock, err), f.Close())
	}
	return o, nil
}

// lock judges the opened file, locks it, and makes sure that the name still
// means the same file.
func lock(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return usage.Errorf("%s: not a regular file", path)
	}
	if err := guard.CheckPrivate(path)(info); err != nil {
		return err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		h := readHolder(f)
		return &holdfast.Error{
			Kind: holdfast.KindConflict,
			Why:  fmt.Sprintf("the state directory is owned by %s (%s)", h, path),
			Hint: "stop that process, or use another --state",
			Err:  ErrOwned,
		}
	case err != nil:
		return usage.HintErrorf("keep the state directory on a local file system", "cannot lock %s: %v", path, err)
	}
	named, err := os.Lstat(path)
	if err != nil || !os.SameFile(info, named) {
		return usage.Errorf("the lock %s was replaced while it was taken", path)
	}
	return nil
}

// sign writes who holds the lock. A crash in here leaves a torn line, which
// readHolder takes for "another process".
func (o *Owner) sign(h Holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := o.file.Truncate(0); err != nil {
		return err
	}
	_, err = o.file.WriteAt(append(b, '\n'), 0)
	// A full disk keeps nobody from owning: the note is for messages only.
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return nil
	}
	return err
}

// Release gives the right up; a second time is nil. Nothing of the state may
// be written after it.
func (o *Owner) Release() error {
	if o == nil || o.file == nil {
		return nil
	}
	f := o.file
	o.file = nil
	// Closing alone would leave it locked while a child that is being started has a copy
	// of the descriptor, until it executes its program.
	return errors.Join(f.Truncate(0), unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}

// Process returns what the lock's last holder wrote, for messages such as that
// of an owner that does not answer; zero when there is nothing to read.
func Process(p Paths) Holder {
	f, err := os.OpenFile(p.Lock, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return Holder{}
	}
	defer f.Close()
	return readHolder(f)
}

func readHolder(f *os.File) Holder {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxHolder))
	var h Holder
	if err != nil || json.Unmarshal(b, &h) != nil || h.PID <= 0 {
		return Holder{}
	}
	return h
}
