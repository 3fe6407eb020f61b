package latch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// tempPattern names what Set writes before the latch has its name. A crash
// leaves such a file behind; it means nothing and halts nothing.
const tempPattern = ".HALT-*.tmp"

// Set halts everything. It is SetFirst for who does not care about being the
// first; nil means that the latch is in place, durable and with a reason. Where
// the error matters, Halted tells whether the latch is in place all the same.
func (l *Latch) Set(who, why string, when time.Time) error {
	_, err := l.SetFirst(who, why, when)
	return err
}

// SetFirst puts the latch in place: a temporary file, a sync, its name, a sync
// of the directory (D48). Of several setters the first one's reason stays; for
// the others, as for anything else that already stands there, it does nothing
// and returns false and nil.
//
// A true result means that everything is halted through this call, even when
// err is not nil: on a full disk the latch is set without its reason, and err
// says so. False with an error means that nothing was set.
func (l *Latch) SetFirst(who, why string, when time.Time) (bool, error) {
	if l == nil || l.path == "" {
		return false, errors.New("there is no latch to set")
	}
	// Something there, or nobody can tell: the first is halted already,
	// the second is tried all the same.
	if absent, err := l.absent(); !absent && err == nil {
		return false, nil
	}
	line, err := json.Marshal(note{Who: clean(who, MaxWho), Why: clean(why, MaxWhy), When: when.UTC()})
	if err != nil {
		return l.bare(fmt.Errorf("time of the halt: %w", err))
	}
	temp, err := l.write(append(line, '\n'))
	if temp == "" {
		return l.bare(err)
	}
	defer os.Remove(temp)
	// A link, unlike a rename, never replaces what came first.
	linked := os.Link(temp, l.path)
	switch {
	case errors.Is(linked, fs.ErrExist):
		return false, nil
	case linked != nil:
		// A file system without links: replacing is still halting.
		if renamed := os.Rename(temp, l.path); renamed != nil {
			return l.bare(errors.Join(err, linked, renamed))
		}
	}
	return true, errors.Join(err, l.syncDir())
}

// write makes the temporary file. When it could be made but not filled or
// synced, both results are set: an unfinished latch still halts.
func (l *Latch) write(b []byte) (string, error) {
	f, err := os.CreateTemp(l.dir, tempPattern)
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return f.Name(), fmt.Errorf("halted without a reason: %w", err)
	}
	return f.Name(), nil
}

// bare sets a latch without content, the last resort.
func (l *Latch) bare(cause error) (bool, error) {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("not halted: %w", errors.Join(cause, err))
	}
	return true, errors.Join(cause, f.Sync(), f.Close(), l.syncDir())
}

// Reword puts other words into a latch that is set, in one step: it is there all
// the while, and since when stays. Whoever set it may not have known what must
// not be written down. One that is not set, or cannot be read, stays as it is.
func (l *Latch) Reword(who, why string) error {
	s, err := l.Read()
	if err != nil || !s.Halted {
		return err
	}
	line, err := json.Marshal(note{Who: clean(who, MaxWho), Why: clean(why, MaxWhy), When: s.When})
	if err != nil {
		return err
	}
	temp, err := l.write(append(line, '\n'))
	if temp == "" {
		return err
	}
	defer os.Remove(temp)
	if err != nil {
		return err
	}
	return errors.Join(os.Rename(temp, l.path), l.syncDir())
}

// Clear takes the latch away, whatever stands in its place, and syncs the
// directory; an absent latch is nil. A directory that is not empty stays and
// is an error. Whoever calls Clear has checked that a person asked for it.
func (l *Latch) Clear() error {
	if l == nil || l.path == "" {
		return errors.New("there is no latch to clear")
	}
	if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.syncDir()
}

// syncDir makes the latch's name durable.
func (l *Latch) syncDir() error {
	d, err := os.Open(l.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
