package grant

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const (
	// nestedWithin is how long a tree is looked through when its run has ended.
	nestedWithin = time.Second
	// maxNested is how many repositories are named.
	maxNested = 8
)

var errNestedLate = errors.New("the time is up")

// FindNested tells of the repositories within the tree that a run made or changed
// since start. The host's git executes what their settings say as soon as
// somebody stands in them, and also when it looks at the tree from above
// (`git status`) and the index, which a run may write, names one.
func (t Tree) FindNested(start time.Time) []string {
	if t.dir == nil {
		return nil
	}
	var found []string
	since, end, more := start.Add(-time.Second), time.Now().Add(nestedWithin), 0
	err := fs.WalkDir(t.dir.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if time.Now().After(end) {
			return errNestedLate
		}
		if err != nil || name == ".git" {
			return skipped(e)
		}
		git := e.Name() == ".git"
		if !git && (!e.IsDir() || name == "." || !bare(t.dir, name)) {
			return nil
		}
		if changed(t.dir, name, git, since) {
			if found = append(found, filepath.Join(t.Path, name)); len(found) > maxNested {
				found, more = found[:maxNested], more+1
			}
		}
		return skipped(e)
	})
	var said []string
	for _, at := range found {
		said = append(said, fmt.Sprintf("the run made or changed a repository in the tree, %s: look into its config and hooks before you use git there or anywhere above", clean(at)))
	}
	if more > 0 {
		said = append(said, fmt.Sprintf("and %d more of them", more))
	}
	if errors.Is(err, errNestedLate) {
		said = append(said, "the tree is too large to be looked through for repositories that the run made: look yourself before you use git there")
	}
	return said
}

func skipped(e fs.DirEntry) error {
	if e != nil && e.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// bare says whether git would take the directory itself for a repository.
func bare(dir *os.Root, name string) bool {
	for _, part := range []string{"HEAD", "objects", "refs"} {
		if _, err := dir.Lstat(path.Join(name, part)); err != nil {
			return false
		}
	}
	return true
}

// changed says whether what git learns from there what to execute has changed
// since. A time of change is the kernel's: no program sets it.
func changed(dir *os.Root, name string, own bool, since time.Time) bool {
	names := []string{name}
	for _, part := range sealedIn {
		names = append(names, path.Join(name, part))
	}
	if hooks, err := fs.ReadDir(dir.FS(), path.Join(name, "hooks")); err == nil {
		for _, h := range hooks {
			names = append(names, path.Join(name, "hooks", h.Name()))
		}
	}
	if !own {
		names = append(names, path.Join(name, "HEAD"), path.Join(name, "objects"), path.Join(name, "refs"))
	}
	return slices.ContainsFunc(names, func(n string) bool {
		st, err := dir.Lstat(n)
		if err != nil {
			return false
		}
		sys, ok := st.Sys().(*syscall.Stat_t)
		return !ok || time.Unix(sys.Ctim.Unix()).After(since)
	})
}

// clean is a path that can be shown: names in a tree are the run's own words.
func clean(p string) string {
	if q := fmt.Sprintf("%q", p); len(q) != len(p)+2 {
		return fmt.Sprintf("%.400s", q)
	}
	return p
}
