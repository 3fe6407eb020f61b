// Package copies keeps private copies in a folder of Holdfast's own. Each is made
// under a passing name and gets its own when it is whole; it is held by whoever
// makes or uses it, and removed when nobody does. Several processes do so at once,
// and many within each.
//
// What makes, names, locks and takes away goes through the folder's door, one at a
// time. So nobody finds a draft that is not locked yet, or a name that is about to
// be taken away; what takes its time (filling, looking through, removing) is done
// outside, under the copy's own lock.
package copies

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// Draft begins the name of what is not whole, or is not to be used any more.
	Draft = ".new-"
	// lockName is, in each copy, what those hold shared who make or use it.
	lockName = "lock"
)

// Copy is one that is held. Its owner releases it, or discards it.
type Copy struct {
	// Home is the copy's folder, to be filled and read by its owner beside the
	// file "lock".
	Home string
	lock *os.File
}

// Hold holds the copy of a name in dir. Where there is none the error is
// fs.ErrNotExist.
func Hold(ctx context.Context, dir, name string) (*Copy, error) {
	d, err := enter(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer d.leave()
	return d.hold(name, unix.LOCK_SH)
}

// Begin makes a draft in dir, which is held from its first moment; word is part of
// its name. Its owner fills it, and ends with Finish or Discard.
func Begin(ctx context.Context, dir, word string) (*Copy, error) {
	d, err := enter(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer d.leave()
	home, err := os.MkdirTemp(dir, Draft+word)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(home, lockName), nil, 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	c, err := d.hold(filepath.Base(home), unix.LOCK_SH)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(home))
	}
	return c, nil
}

// Finish gives a draft its name. Where another copy was first the draft is removed
// and c is that one, held: first is false then, and its owner looks at it. One
// that cannot be held makes way. After an error the draft is still c's.
func (c *Copy) Finish(ctx context.Context, name string) (first bool, err error) {
	d, err := enter(ctx, filepath.Dir(c.Home))
	if err != nil {
		return false, err
	}
	other, away, err := d.give(name, c)
	d.leave()
	if away != "" {
		os.RemoveAll(away) // or a sweep will
	}
	if other != nil {
		c.remove()
		*c = *other
	}
	return other == nil && err == nil, err
}

// give gives a draft a name, or returns who has it, held. away is what made way.
func (d *door) give(name string, c *Copy) (other *Copy, away string, err error) {
	home := filepath.Join(d.dir, name)
	if other, err = d.hold(name, unix.LOCK_SH); err == nil {
		return other, "", nil
	}
	if _, gone := os.Lstat(home); gone == nil {
		if away, err = d.away(name); err != nil {
			return nil, "", err
		}
	}
	if err = os.Rename(c.Home, home); err == nil {
		c.Home = home
	}
	return nil, away, err
}

// Discard takes a copy out of the way, in one step, removes it and releases it.
// Who holds it beside goes on with what is left of it; one that has taken its name
// in the meantime stays.
func (c *Copy) Discard(ctx context.Context) error {
	if isDraft(filepath.Base(c.Home)) {
		return c.remove()
	}
	d, err := enter(ctx, filepath.Dir(c.Home))
	if err != nil {
		c.Release()
		return err
	}
	if !same(int(c.lock.Fd()), filepath.Join(c.Home, lockName)) {
		d.leave()
		c.Release()
		return nil
	}
	away, err := d.away(filepath.Base(c.Home))
	d.leave()
	if err != nil {
		c.Release()
		return err
	}
	c.Home = away
	return c.remove()
}

// Release lets the copy be removed when nobody else holds it.
func (c *Copy) Release() error {
	unix.Flock(int(c.lock.Fd()), unix.LOCK_UN) // also where a child that is just being started has it too
	return c.lock.Close()
}

func (c *Copy) remove() error { return errors.Join(os.RemoveAll(c.Home), c.Release()) }

// Sweep removes what in dir has a name that old accepts and is held by nobody, and
// returns the names. What cannot be removed stays for the next; without a door, all
// of it.
func Sweep(ctx context.Context, dir string, old func(name string) bool) (removed []string) {
	d, err := enter(ctx, dir)
	if err != nil {
		return nil
	}
	var taken []*unused
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		if e.IsDir() && old(e.Name()) {
			if u := d.take(e.Name()); u != nil {
				taken = append(taken, u)
			}
		}
	}
	d.leave()
	for _, u := range taken {
		if u.remove() == nil {
			removed = append(removed, u.name)
		}
	}
	return removed
}

// Behind calls f behind dir's door, where nobody else names or removes: f takes no
// longer than a few system calls, and uses nothing of this package.
func Behind(ctx context.Context, dir string, f func() error) error {
	d, err := enter(ctx, dir)
	if err != nil {
		return err
	}
	defer d.leave()
	return f()
}

// unused is what nobody holds, under a draft's name; without a lock the copy has
// none.
type unused struct {
	name, home string
	copy       *Copy
}

func (u *unused) remove() error {
	err := os.RemoveAll(u.home)
	if u.copy != nil {
		u.copy.Release()
	}
	return err
}

// take takes what nobody holds out of the way: nil is in use, or being removed.
func (d *door) take(name string) *unused {
	c, err := d.hold(name, unix.LOCK_EX)
	if err != nil && !(errors.Is(err, fs.ErrNotExist) && stale(filepath.Join(d.dir, name))) {
		return nil
	}
	u := &unused{name, filepath.Join(d.dir, name), c}
	if isDraft(name) {
		return u
	}
	if u.home, err = d.away(name); err == nil {
		return u
	}
	if c != nil {
		c.Release()
	}
	return nil
}

// away renames a copy to a draft, and returns where it is then.
func (d *door) away(name string) (string, error) {
	to := filepath.Join(d.dir, Draft+name+"-"+rand.Text())
	return to, os.Rename(filepath.Join(d.dir, name), to)
}

// hold locks a copy, and waits for nobody.
func (d *door) hold(name string, how int) (*Copy, error) {
	home := filepath.Join(d.dir, name)
	path := filepath.Join(home, lockName)
	lock, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), how|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	if !same(int(lock.Fd()), path) { // whoever removes a draft does so outside the door
		lock.Close()
		return nil, fs.ErrNotExist
	}
	return &Copy{home, lock}, nil
}

func isDraft(name string) bool { return strings.HasPrefix(name, Draft) }

// stale says that something has been so for a minute: what has no lock is being
// removed, or was left by whoever was killed in the middle of that.
func stale(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && time.Since(info.ModTime()) > time.Minute
}
