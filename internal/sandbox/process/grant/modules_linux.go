package grant

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/holdfast-dev/holdfast"
)

// maxModules bounds the submodules and linked work trees of a repository, and
// maxModuleDirs the directories that are looked through for them.
const (
	maxModules    = 4096
	maxModuleDirs = 1 << 16
)

// modules seals what the host's git reads of each submodule, of those within
// submodules too, and of each linked work tree: also what is not there yet,
// which git would believe as soon as it is.
func (g *Tree) modules(git string) error {
	for _, below := range []string{"modules", "worktrees"} {
		found, err := g.repositories(filepath.Join(git, below))
		if err != nil {
			return &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf("the submodules and work trees of %s cannot be looked through: %v", g.Path, err), Err: err}
		}
		for _, dir := range found {
			if !slices.Contains(g.Pinned, dir) {
				g.Pinned = append(g.Pinned, dir)
			}
			for _, name := range append([]string{"gitdir"}, sealedIn...) {
				// A repository has no gitdir of its own, and a work tree's
				// hooks are its repository's.
				if below == "modules" && name == "gitdir" || below == "worktrees" && (name == "hooks" || name == "config") {
					continue
				}
				g.Sealed = append(g.Sealed, filepath.Join(dir, name))
			}
		}
	}
	return nil
}

// repositories are the directories below top that git would take for one, a
// parent before what lies in it.
func (g *Tree) repositories(top string) ([]string, error) {
	var found []string
	seen := 0
	err := fs.WalkDir(g.dir.FS(), top, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !e.IsDir():
			return nil
		}
		if slices.Contains([]string{"objects", "refs", "logs", "hooks", "info"}, e.Name()) && slices.Contains(found, filepath.Dir(name)) {
			return fs.SkipDir
		}
		if seen++; seen > maxModuleDirs || len(found) > maxModules {
			return errors.New("there are too many")
		}
		if _, err := g.dir.Lstat(filepath.Join(name, "HEAD")); err == nil {
			found = append(found, name)
		}
		return nil
	})
	return found, err
}
