package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxNamesRead bounds what git says of names, in bytes.
const maxNamesRead = 256 << 20

// ignored asks git which names in the tree its .gitignore files leave out: files,
// and folders of which everything is. git opens nothing there but these files, which
// hold patterns and nothing else. What the tree's own index tracks is not left out.
func (r *repo) ignored(ctx context.Context, root int) (map[string]bool, error) {
	g := r.git
	g.tree, g.index = r.tree.Path, filepath.Join(r.dir, "names-index")
	defer os.Remove(g.index)
	if err := copyIndex(root, g.index); err != nil {
		return nil, err
	}
	args := []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"}
	b, err := g.run(ctx, nil, maxNamesRead, args...)
	if err != nil && ctx.Err() == nil {
		// An index that git does not take says nothing of what is tracked.
		if err := os.Remove(g.index); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		b, err = g.run(ctx, nil, maxNamesRead, args...)
	}
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for name := range bytes.SplitSeq(b, []byte{0}) {
		if len(name) > 0 {
			out[string(bytes.TrimSuffix(name, []byte("/")))] = true
		}
	}
	return out, nil
}

// maxIndex bounds the copy of an index.
const maxIndex = 256 << 20

// copyIndex copies the index of the repository in the tree, where it has one.
func copyIndex(root int, to string) error {
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	dir, err := openAt(root, ".git", folderFlags)
	if err != nil {
		return nil
	}
	defer unix.Close(dir)
	fd, err := openAt(dir, "index", unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return nil
	}
	from := os.NewFile(uintptr(fd), "index")
	defer from.Close()
	if info, err := from.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxIndex {
		return nil
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.LimitReader(from, maxIndex))
	return errors.Join(err, f.Close())
}

// drop takes what is ignored out of the scan, but for what was kept before or is
// asked for: an agent that writes a .gitignore hides nothing that a version holds.
func (s *scan) drop(ignored map[string]bool, kept func(string) bool) {
	if len(ignored) == 0 {
		return
	}
	at := map[string]int{} // of the ignored name, in left
	keep := s.entries[:0]
	for _, e := range s.entries {
		top := above(e.path, ignored)
		if top == "" || kept(e.path) {
			keep = append(keep, e)
			continue
		}
		dir, _ := split(e.path)
		s.stay(dir)
		i, there := at[top]
		if !there {
			i = len(s.left)
			at[top] = i
			s.left = append(s.left, Left{Path: shown(top), Why: "ignored by .gitignore"})
		}
		if e.kind != folder {
			s.left[i].Files++
			s.left[i].Bytes += e.size
		}
	}
	s.entries = keep
}

// above is the ignored name that a path is, or lies below.
func above(path string, ignored map[string]bool) string {
	for i := range len(path) {
		if path[i] == '/' && ignored[path[:i]] {
			return path[:i]
		}
	}
	if ignored[path] {
		return path
	}
	return ""
}
