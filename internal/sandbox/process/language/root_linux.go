package language

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
	"github.com/holdfast-dev/holdfast/internal/sandbox/copies"
	"golang.org/x/sys/unix"
)

// Root is a private copy of what one runtime needs, held: it is not removed
// while it is used.
type Root struct {
	Path string
	Copy *copies.Copy
}

// Release lets the root be removed when a newer one has taken its place.
func (r Root) Release() { r.Copy.Release() }

// A root's directory in dir is named by language and manifest and holds:
const (
	rootTree = "root"  // what the workload sees as /
	rootMark = "files" // the stamps of everything in it; written last
)

// Root returns a root for the language in dir, building a missing one
// that fits the host's runtime and is whole; note is told in words when it
// builds or removes one. Roots of the language that fit no more, and that
// nobody uses, are removed. An error is of kind MountError.
//
// Several processes may do so at once: each builds for itself under a name of
// its own, and the first to finish names the root.
func (l Language) Root(ctx context.Context, dir string, note func(string)) (Root, error) {
	r, err := l.findOrBuild(ctx, dir, note)
	if err != nil {
		return Root{}, mountError(l.Exact, dir, err)
	}
	l.sweep(ctx, dir, filepath.Base(r.Copy.Home), note)
	return r, nil
}

func mountError(exact, dir string, err error) error {
	e := &holdfast.Error{Kind: holdfast.KindMount, Why: fmt.Sprintf("the root file system for %s could not be made in %s: %v", exact, dir, err), Hint: "see that the runtime is installed whole and that the directory can be written", Err: err}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		e.Hint = "free space on that disk: a runtime takes up to 200 MB"
	}
	return e
}

func (l Language) findOrBuild(ctx context.Context, dir string, note func(string)) (Root, error) {
	m := &manifest{files: map[string]source{}, loader: newLoader()}
	if err := l.parts(m); err != nil {
		return Root{}, err
	}
	name := l.Exact + "-" + m.sum()
	c, err := copies.Hold(ctx, dir, name)
	for tries := 0; ; tries++ { // somebody may change what is there each time
		if err == nil {
			if err = whole(c.Home); err == nil {
				return Root{filepath.Join(c.Home, rootTree), c}, nil
			}
			if err := c.Discard(ctx); err != nil {
				return Root{}, err
			}
		}
		if tries == maxBuilds {
			return Root{}, err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			note(fmt.Sprintf("%s: the root in %s is built anew: %v", l.Exact, filepath.Join(dir, name), err))
		}
		if c, err = l.build(ctx, dir, name, m, note); err != nil {
			return Root{}, err
		}
	}
}

// maxBuilds is how often a root is built that is not whole when it is looked at.
const maxBuilds = 3

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

// build makes the root in a draft of its own and gives it its name. It returns
// what has that name then, held: another one where another process was first.
func (l Language) build(ctx context.Context, dir, name string, m *manifest, note func(string)) (*copies.Copy, error) {
	start := time.Now()
	c, err := copies.Begin(ctx, dir, l.Exact+"-")
	if err != nil {
		return nil, err
	}
	err = l.fill(ctx, filepath.Join(c.Home, rootTree), m)
	if err == nil {
		err = seal(c.Home)
	}
	first := false
	if err == nil {
		first, err = c.Finish(ctx, name)
	}
	if err != nil {
		return nil, errors.Join(err, c.Discard(ctx))
	}
	if first {
		note(fmt.Sprintf("%s: built a root of %d files, %d MB in %v", l.Exact, len(m.files), m.bytes>>20, time.Since(start).Round(time.Millisecond)))
	}
	return c, nil
}

// Where things are mounted, and devices: empty files that the devices cover.
var (
	mountDirs  = []string{"tmp", "code", "dev", "usr/bin"}
	mountFiles = []string{"dev/null", "dev/urandom"}
)

func (l Language) fill(ctx context.Context, tree string, m *manifest) error {
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

// sweep removes the language's other roots and drafts, but for those in use.
func (l Language) sweep(ctx context.Context, dir, keep string, note func(string)) {
	own := l.Exact + "-"
	for _, name := range copies.Sweep(ctx, dir, func(name string) bool {
		return name != keep && strings.HasPrefix(strings.TrimPrefix(name, copies.Draft), own)
	}) {
		note(fmt.Sprintf("%s: removed the root %s, which nobody uses", l.Exact, name))
	}
}
