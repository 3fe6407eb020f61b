package snapshot

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
)

// scan is what a walk through a tree found: names and what they are, no content.
type scan struct {
	tree    Tree
	limits  Limits
	own     map[place]bool  // what is never part of it
	ownAt   map[string]bool // the same by its path below the tree
	dev     uint64
	uid     uint32
	entries []entry
	left    []Left          // not part of it, whatever is ignored
	stays   map[string]bool // paths of what is left out, and of the folders that it lies in
	links   int             // files that have other names as well
	seen    int
}

// place is a file or folder, whatever its names are.
type place struct{ dev, ino uint64 }

func placeOf(st *unix.Stat_t) place { return place{uint64(st.Dev), uint64(st.Ino)} }

// metaName is where a version keeps what git does not: modes and empty folders.
const metaName = ".holdfast-kept"

// walk walks the tree that is open as root, which may hold about so many names.
func walk(ctx context.Context, root int, t Tree, l Limits, own []string, about int) (*scan, error) {
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		return nil, err
	}
	s := &scan{tree: t, limits: l, dev: uint64(st.Dev), uid: st.Uid, own: map[place]bool{}, ownAt: map[string]bool{}, stays: map[string]bool{}, entries: make([]entry, 0, about)}
	for _, p := range own {
		if within(t.Path, p) {
			return nil, refused(holdfast.KindUsage, "track the folders that agents work in", "%s is Holdfast's own, or lies within it", t.Path)
		}
		if unix.Stat(p, &st) == nil {
			s.own[placeOf(&st)] = true
		}
		if rel, below := strings.CutPrefix(p, strings.TrimSuffix(t.Path, "/")+"/"); below {
			s.ownAt[rel] = true
		}
	}
	if err := unix.Fstat(root, &st); err != nil {
		return nil, err
	}
	if s.own[placeOf(&st)] {
		return nil, refused(holdfast.KindUsage, "track the folders that agents work in", "%s is Holdfast's own, or lies within it", t.Path)
	}
	if err := s.folder(ctx, root, "", 0); err != nil {
		return nil, err
	}
	// They mostly are: to look takes a tenth of what sorting them does.
	if !slices.IsSortedFunc(s.entries, byPath) {
		slices.SortFunc(s.entries, byPath)
	}
	return s, nil
}

// within says whether a path is one of Holdfast's own, or lies below it.
func within(path, own string) bool {
	real, err := filepath.EvalSymlinks(own)
	if err != nil {
		real = own
	}
	return path == own || path == real || strings.HasPrefix(path, own+"/") || strings.HasPrefix(path, real+"/")
}

func (s *scan) leave(path, why string) {
	s.left = append(s.left, Left{Path: shown(path), Why: why, Files: 1})
	s.stay(path)
}

// stay notes that a path is there which no version holds.
func (s *scan) stay(path string) {
	for path != "" && !s.stays[path] {
		s.stays[path] = true
		path, _ = split(path)
	}
}

// shown is a path as text that a terminal can take.
func shown(path string) string {
	if q := strconv.Quote(path); q != `"`+path+`"` || len(path) > 400 {
		return fmt.Sprintf("%.400s", q)
	}
	return path
}

func (s *scan) folder(ctx context.Context, fd int, path string, depth int) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	list, err := names(fd, s.limits.Names-s.seen)
	if err != nil {
		return err
	}
	if s.seen += len(list); s.seen > s.limits.Names {
		return refused(holdfast.KindBounds, "remove what nobody needs, or track the folders below that matter",
			"%s holds more than %d names", s.tree.Path, s.limits.Names)
	}
	slices.Sort(list)
	for _, name := range list {
		at := name
		if path != "" {
			at = path + "/" + name
		}
		if err := s.name(ctx, fd, name, at, depth); err != nil {
			return err
		}
	}
	return nil
}

// isGit says whether a name is git's own folder to some file system: no such name
// is ever read or written.
func isGit(name string) bool {
	plain := name
	if strings.ContainsFunc(name, unseen) {
		plain = strings.Map(func(r rune) rune {
			if unseen(r) {
				return -1
			}
			return r
		}, name)
	}
	plain = strings.TrimRight(plain, ". ")
	return strings.EqualFold(plain, ".git") || strings.EqualFold(plain, "git~1")
}

// unseen says that HFS+ does not see it.
func unseen(r rune) bool {
	return r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff
}

func (s *scan) name(ctx context.Context, dir int, name, path string, depth int) error {
	st, err := statAt(dir, name)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		s.leave(path, "it cannot be looked at: "+err.Error())
		return nil
	}
	switch {
	case isGit(name):
		if path != ".git" {
			s.leave(path, "git's own: the history of a repository within")
		}
		return nil
	case s.ownAt[path] || s.own[placeOf(&st)]:
		s.leave(path, ownLeft)
		return nil
	case path == metaName:
		s.leave(path, "a name that snapshots use themselves")
		return nil
	case len(path) > 4096:
		s.leave(path, "its path is longer than 4096 bytes")
		return nil
	}
	e := entry{path: path, perm: uint32(st.Mode) & 0o777, size: st.Size, seen: stampOf(&st)}
	switch uint32(st.Mode) & unix.S_IFMT {
	case unix.S_IFDIR:
		return s.below(ctx, dir, name, depth, e)
	case unix.S_IFLNK:
		e.kind, e.perm = link, 0
	case unix.S_IFREG:
		if why := s.unfit(&st); why != "" {
			s.leave(path, why)
			return nil
		}
		if e.kind = file; e.perm&0o100 != 0 {
			e.kind = program
		}
		if st.Nlink > 1 {
			s.links++
		}
	default:
		s.leave(path, "it is no file, folder or link: "+odd(uint32(st.Mode)))
		return nil
	}
	s.entries = append(s.entries, e)
	return nil
}

// unfit is why a regular file is not kept, or "".
func (s *scan) unfit(st *unix.Stat_t) string {
	switch {
	case uint64(st.Dev) != s.dev:
		return "it lies on another file system"
	case st.Size > s.limits.File:
		return fmt.Sprintf("it has %d bytes, more than the %d that one file may have", st.Size, s.limits.File)
	case st.Nlink > 1 && st.Uid != s.uid:
		return "it has other names, and another owner than the tree"
	}
	return ""
}

func odd(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return "a pipe"
	case unix.S_IFSOCK:
		return "a socket"
	}
	return "a device"
}

// below looks into a folder. What was opened is judged, which may be another than was
// looked at before.
func (s *scan) below(ctx context.Context, dir int, name string, depth int, e entry) error {
	if depth >= s.limits.Depth {
		s.leave(e.path, fmt.Sprintf("it lies more than %d folders deep", s.limits.Depth))
		return nil
	}
	fd, err := openAt(dir, name, folderFlags)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil // it was replaced meanwhile, which the next look shows
	case err != nil:
		s.leave(e.path, "it cannot be opened: "+err.Error())
		return nil
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		s.leave(e.path, "it cannot be looked at: "+err.Error())
		return nil
	}
	switch is := placeOf(&st); {
	case is.dev != s.dev:
		s.leave(e.path, "it lies on another file system")
		return nil
	case s.own[is]:
		s.leave(e.path, ownLeft)
		return nil
	}
	e.kind, e.size, e.perm, e.seen = folder, 0, uint32(st.Mode)&0o777, stampOf(&st)
	s.entries = append(s.entries, e)
	return s.folder(ctx, fd, e.path, depth+1)
}

const ownLeft = "Holdfast's own, which no rollback touches (D40)"
