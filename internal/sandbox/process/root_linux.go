package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"golang.org/x/sys/unix"
)

// rootDir is a private copy of what one runtime needs, and the lock that keeps
// it from being removed while it is used.
type rootDir struct {
	path string
	lock *os.File
}

// release lets the root be removed when a newer one has taken its place.
func (r rootDir) release() { r.lock.Close() }

// A root's directory in dir is named by language and manifest and holds:
const (
	rootTree  = "root"  // what the workload sees as /
	rootMark  = "files" // the stamps of everything in it; written last
	rootLock  = "lock"  // held shared by whoever uses or builds the root
	rootDraft = ".new-" // begins the name of one that is not finished
)

// root returns a root for the language in dir, building it where there is none
// that fits the host's runtime and is whole; note is told in words when it
// builds or removes one. Roots of the language that fit no more, and that
// nobody uses, are removed. An error is of kind MountError.
//
// Several processes may do so at once: each builds for itself under a name of
// its own, and the first to finish names the root.
func (l language) root(ctx context.Context, dir string, note func(string)) (rootDir, error) {
	r, err := l.findOrBuild(ctx, dir, note)
	if err != nil {
		return rootDir{}, mountError(l.exact, dir, err)
	}
	l.sweep(dir, filepath.Base(filepath.Dir(r.path)), note)
	return r, nil
}

func mountError(exact, dir string, err error) error {
	e := &holdfast.Error{Kind: holdfast.KindMount, Why: fmt.Sprintf("the root file system for %s could not be made in %s: %v", exact, dir, err), Hint: "see that the runtime is installed whole and that the directory can be written", Err: err}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		e.Hint = "free space on that disk: a runtime takes up to 200 MB"
	}
	return e
}

func (l language) findOrBuild(ctx context.Context, dir string, note func(string)) (rootDir, error) {
	m := &manifest{files: map[string]source{}, loader: newLoader()}
	if err := l.parts(m); err != nil {
		return rootDir{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return rootDir{}, err
	}
	home := filepath.Join(dir, l.exact+"-"+m.sum())
	for range 3 { // another process may build, or remove, at the same time
		r, err := open(home)
		if err == nil {
			return r, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			note(fmt.Sprintf("%s: the root in %s is built anew: %v", l.exact, home, err))
			if err := discard(home); err != nil {
				return rootDir{}, err
			}
		}
		start := time.Now()
		if err := l.build(ctx, dir, home, m); err != nil {
			return rootDir{}, err
		}
		note(fmt.Sprintf("%s: built a root of %d files, %d MB in %v", l.exact, len(m.files), m.bytes>>20, time.Since(start).Round(time.Millisecond)))
	}
	return open(home)
}

// open takes the root in home if it is whole: nothing in it was changed, added
// or taken away since it was built.
func open(home string) (rootDir, error) {
	lock, err := holdLock(home, unix.LOCK_SH)
	if err != nil {
		return rootDir{}, err
	}
	r := rootDir{filepath.Join(home, rootTree), lock}
	if err := whole(home); err != nil {
		lock.Close()
		return rootDir{}, err
	}
	return r, nil
}

func holdLock(home string, how int) (*os.File, error) {
	path := filepath.Join(home, rootLock)
	lock, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), how|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// It may have been removed between the two.
	held, err := lock.Stat()
	now, err2 := os.Stat(path)
	if err = errors.Join(err, err2); err == nil && os.SameFile(held, now) {
		return lock, nil
	}
	lock.Close()
	return nil, fs.ErrNotExist
}

var errNotWhole = errors.New("it is not as it was built")

func whole(home string) error {
	b, err := os.ReadFile(filepath.Join(home, rootMark))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: its list is missing", errNotWhole)
	}
	var want map[string]stamp
	if err == nil {
		err = json.Unmarshal(b, &want)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNotWhole, err)
	}
	got, err := stamps(filepath.Join(home, rootTree))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, p := range slices.Sorted(maps.Keys(want)) {
		if got[p] != want[p] {
			return fmt.Errorf("%w: %s differs", errNotWhole, p)
		}
		delete(got, p)
	}
	for p := range got {
		return fmt.Errorf("%w: %s was added", errNotWhole, p)
	}
	return nil
}

// build makes the root in a directory of its own and gives it its name.
func (l language) build(ctx context.Context, dir, home string, m *manifest) (err error) {
	draft, err := os.MkdirTemp(dir, rootDraft+l.exact+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(draft)
		}
	}()
	if err := os.WriteFile(filepath.Join(draft, rootLock), nil, 0o600); err != nil {
		return err
	}
	lock, err := holdLock(draft, unix.LOCK_SH)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := l.fill(ctx, filepath.Join(draft, rootTree), m); err != nil {
		return err
	}
	if err := seal(draft); err != nil {
		return err
	}
	err = os.Rename(draft, home)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		return os.RemoveAll(draft) // another process was first
	}
	return err
}

// Where things are mounted, and devices: empty files that the devices cover.
var (
	mountDirs  = []string{"tmp", "code", "dev", "usr/bin"}
	mountFiles = []string{"dev/null", "dev/urandom"}
)

func (l language) fill(ctx context.Context, tree string, m *manifest) error {
	if err := m.copyTo(tree, ctx.Err); err != nil {
		return err
	}
	for _, d := range mountDirs {
		if err := os.MkdirAll(filepath.Join(tree, d), 0o755); err != nil {
			return err
		}
	}
	for _, f := range mountFiles {
		if err := os.WriteFile(filepath.Join(tree, f), nil, 0o644); err != nil {
			return err
		}
	}
	if l.finish != nil {
		if err := l.finish(ctx, tree); err != nil {
			return err
		}
	}
	executable := map[string]bool{}
	for dst, s := range m.files {
		executable[dst] = s.exec
	}
	return filepath.WalkDir(tree, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if d.IsDir() || executable[strings.TrimPrefix(p, tree)] {
			mode = 0o755
		}
		return os.Chmod(p, mode)
	})
}

// seal forces the root to the disk, where a full one shows, and writes its list.
func seal(draft string) error {
	d, err := os.Open(draft)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return err
	}
	list, err := stamps(filepath.Join(draft, rootTree))
	if err != nil {
		return err
	}
	b, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(draft, rootMark), b, 0o600)
}

// discard takes a root that is not whole out of the way, in one step, and
// removes it. Who has it mounted keeps running on what is left of it.
func discard(home string) error {
	away, err := os.MkdirTemp(filepath.Dir(home), rootDraft)
	if err != nil {
		return err
	}
	err = os.Rename(home, filepath.Join(away, "old"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(away))
}

// sweep removes the language's other roots and drafts, but for those in use.
func (l language) sweep(dir, keep string, note func(string)) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		ours := strings.HasPrefix(name, l.exact+"-") || strings.HasPrefix(name, rootDraft+l.exact+"-")
		if !ours || name == keep || !e.IsDir() {
			continue
		}
		home := filepath.Join(dir, name)
		lock, err := holdLock(home, unix.LOCK_EX)
		if err != nil && !(errors.Is(err, fs.ErrNotExist) && stale(home)) {
			continue // in use, or just begun
		}
		err = discard(home)
		if lock != nil {
			lock.Close()
		}
		if err == nil {
			note(fmt.Sprintf("%s: removed the root %s, which nobody uses", l.exact, name))
		}
	}
}

// stale says that a directory without a lock has been so for a minute.
func stale(home string) bool {
	info, err := os.Stat(home)
	return err == nil && time.Since(info.ModTime()) > time.Minute
}
