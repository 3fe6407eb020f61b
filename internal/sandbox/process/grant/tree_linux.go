package grant

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
)

// NewError returns the error for a work tree that cannot be used.
func NewError(dir string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf("the work tree %.200s cannot be used: %v", dir, err), Hint: "name a directory with --dir"}
}

// Tree is a directory that the workload may write, and what it may not
// change in it. Names are relative to it.
type Tree struct {
	Path string `json:"path"`
	// Pinned may be written and not be moved or removed; Sealed may not be
	// written either.
	Pinned []string `json:"pinned,omitempty"`
	Sealed []string `json:"sealed,omitempty"`
	// Dev and Ino are the directory's own: no other that comes to stand there
	// is given.
	Dev uint64 `json:"dev"`
	Ino uint64 `json:"ino"`

	dir *os.Root // here, and not in the launcher
}

// Open are the tree and the repository that belongs to it where that lies
// elsewhere (a linked work tree, a submodule), each with what a run must not
// change: what the host's git would execute later on.
//
// Each is held open, and the caller closes them. None is reached by a link: what
// was checked was followed to its end, and a link that came since leads elsewhere.
func Open(tree string) (_ []Tree, err error) {
	own, err := openGrant(tree)
	if err != nil {
		return nil, err
	}
	list := []Tree{own}
	defer func() {
		if err != nil {
			Close(list)
		}
	}()
	at := filepath.Join(tree, ".git")
	st, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist) && bare(own.dir, "."):
		err = list[0].repository(".") // git takes the tree itself for one
		return list, err
	case errors.Is(err, fs.ErrNotExist):
		return list, nil
	case err != nil:
		return nil, NewError(tree, err)
	case st.IsDir():
		if err := own.repository(".git"); err != nil {
			return nil, err
		}
		own.named(".git/config")
		list[0] = own
		return list, nil
	case !st.Mode().IsRegular():
		return nil, &holdfast.Error{Kind: holdfast.KindUsage, Why: at + " is a link or no file at all, which a run could turn elsewhere", Hint: "make it a directory, or `git worktree add` a tree of its own"}
	}
	own.Sealed = append(own.Sealed, ".git")
	repo, err := linked(tree, at)
	if err != nil {
		return nil, err
	}
	other, err := openGrant(repo)
	if err != nil {
		return nil, err
	}
	list = []Tree{own, other}
	if err := list[1].repository("."); err != nil {
		return nil, err
	}
	return list, nil
}

// openGrant opens the directory that the path leads to without any link.
func openGrant(path string) (Tree, error) {
	fd, err := openUnlinked(path)
	if err != nil {
		return Tree{}, NewError(path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Tree{}, NewError(path, err)
	}
	dir, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return Tree{}, NewError(path, err)
	}
	return Tree{Path: path, Dev: st.Dev, Ino: st.Ino, dir: dir}, nil
}

// ReadInfo describes the directory.
func (g Tree) ReadInfo() (os.FileInfo, error) { return g.dir.Stat(".") }

// ErrReplaced: another directory stands where the work tree was found.
var ErrReplaced = errors.New("it was replaced while the run began")

// openUnlinked opens a directory, with no link on the whole way to it.
func openUnlinked(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if errors.Is(err, unix.ELOOP) {
		err = ErrReplaced
	}
	return fd, err
}

// OpenSame is openUnlinked where the directory must be the one that was checked.
func (g Tree) OpenSame(path string) (int, error) {
	fd, err := openUnlinked(path)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Dev != g.Dev || st.Ino != g.Ino {
		unix.Close(fd)
		return -1, ErrReplaced
	}
	return fd, nil
}

func Close(list []Tree) {
	for _, g := range list {
		g.dir.Close()
	}
}

// linked finds the repository of a tree whose .git is a file, if that is
// really its own: what a run once wrote there must not open another directory.
func linked(tree, at string) (string, error) {
	foreign := func(why string) error {
		return &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf("the repository that %s names is not used: %s", at, why), Hint: "look at the file: something may have changed it; `git worktree repair` mends it"}
	}
	text, err := shortText(at)
	if err != nil {
		return "", NewError(tree, err)
	}
	dir, ok := strings.CutPrefix(text, "gitdir:")
	if !ok {
		return "", foreign("it names none")
	}
	dir = from(tree, strings.TrimSpace(dir))
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", foreign("it is not there")
	}
	if back, err := shortText(filepath.Join(dir, "gitdir")); err == nil {
		if real, err := filepath.EvalSymlinks(from(dir, back)); err != nil || real != at {
			return "", foreign("it is another tree's")
		}
		common, err := shortText(filepath.Join(dir, "commondir"))
		if err != nil {
			return "", foreign("it does not say where its objects are")
		}
		repo, err := filepath.EvalSymlinks(from(dir, common))
		if err != nil || filepath.Dir(dir) != filepath.Join(repo, "worktrees") {
			return "", foreign("its objects are elsewhere")
		}
		return repo, nil
	}
	config, err := shortText(filepath.Join(dir, "config"))
	if err != nil {
		return "", foreign("it is no repository")
	}
	for _, v := range settings(config) {
		if v.key == "core.worktree" {
			if real, err := filepath.EvalSymlinks(from(dir, v.value)); err == nil && real == tree {
				return dir, nil
			}
		}
	}
	return "", foreign("it is another tree's")
}

func from(dir, p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(dir, p)
}

// shortText reads a short file, without the end of its line.
func shortText(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO has no writer
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s is no regular file", filepath.Base(path)))
	}
	b := make([]byte, 1<<20)
	n, err := f.Read(b)
	if n == 0 && err != nil {
		return "", err
	}
	return strings.TrimRight(string(b[:n]), "\n"), nil
}

// sealedIn are the places in a repository from which the host's git learns what
// to execute.
var sealedIn = []string{"hooks", "config", "config.worktree", "commondir"}

// repository seals those of the repository at git, and of those of its
// submodules and linked work trees.
func (g *Tree) repository(git string) error {
	if git != "." {
		g.Pinned = append(g.Pinned, git)
	}
	if err := g.hooks(git); err != nil {
		return err
	}
	for _, name := range sealedIn {
		g.Sealed = append(g.Sealed, filepath.Join(git, name))
	}
	return g.modules(git)
}

// hooks makes the directory of hooks where there is none: what is not there
// cannot be kept from being written.
func (g *Tree) hooks(git string) error {
	name := filepath.Join(git, "hooks")
	hooks := filepath.Join(g.Path, name)
	st, err := g.dir.Lstat(name)
	switch {
	case err == nil && st.IsDir():
		return nil
	case err == nil:
		return &holdfast.Error{Kind: holdfast.KindUsage, Why: hooks + " is no directory, and a run could put one in its place", Hint: "make it one, or set core.hooksPath"}
	case !errors.Is(err, fs.ErrNotExist):
		return NewError(hooks, err)
	}
	own, err := g.dir.Stat(git)
	if err == nil {
		err = g.dir.Mkdir(name, 0o755)
	}
	if err == nil && os.Geteuid() == 0 {
		sys := own.Sys().(*syscall.Stat_t)
		err = g.dir.Lchown(name, int(sys.Uid), int(sys.Gid))
	}
	if err != nil {
		return NewError(hooks, err)
	}
	return nil
}

// named seals what the repository's configuration names in the tree: hooks that
// lie there, and configuration that it includes.
func (g *Tree) named(config string) {
	text, err := shortText(filepath.Join(g.Path, config))
	if err != nil {
		return
	}
	for _, v := range settings(text) {
		base := g.Path
		switch {
		case v.key == "core.hookspath":
		case v.key == "include.path" || strings.HasPrefix(v.key, "includeif.") && strings.HasSuffix(v.key, ".path"):
			base = filepath.Join(g.Path, filepath.Dir(config))
		default:
			continue
		}
		name, err := filepath.Rel(g.Path, from(base, v.value))
		if err != nil || name == "." || name == ".." || strings.HasPrefix(name, "../") || strings.HasPrefix(v.value, "~") {
			continue // it lies elsewhere, where nothing reaches it
		}
		if real, err := filepath.EvalSymlinks(filepath.Join(g.Path, name)); err == nil && real == filepath.Join(g.Path, name) {
			g.Sealed = append(g.Sealed, name)
		}
	}
}

type setting struct{ key, value string }

// settings reads what it can of git's configuration: sections and keys in lower
// case, values without quotes.
func settings(text string) []setting {
	var list []setting
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if s, ok := strings.CutPrefix(line, "["); ok {
			s, rest, _ := strings.Cut(s, "]")
			name, sub, _ := strings.Cut(s, " ")
			section = strings.ToLower(name)
			if sub = strings.Trim(strings.TrimSpace(sub), `"`); sub != "" {
				section += "." + sub
			}
			line = strings.TrimSpace(rest)
		}
		key, value, ok := strings.Cut(line, "=")
		if ok && !strings.HasPrefix(key, "#") && !strings.HasPrefix(key, ";") {
			list = append(list, setting{section + "." + strings.ToLower(strings.TrimSpace(key)), strings.Trim(strings.TrimSpace(value), `"`)})
		}
	}
	return list
}

// Absent are the places from which git would learn what to execute and that
// were not there: what is not there cannot be held.
type Absent []absence

type absence struct {
	tree Tree
	name string
}

func FindMissing(trees []Tree) Absent {
	var list Absent
	for i, t := range trees {
		if _, err := t.dir.Lstat(".git"); i == 0 && errors.Is(err, fs.ErrNotExist) {
			list = append(list, absence{t, ".git"})
		}
		for _, name := range t.Sealed {
			if _, err := t.dir.Lstat(name); errors.Is(err, fs.ErrNotExist) {
				list = append(list, absence{t, name})
			}
		}
	}
	return list
}

// Clear takes away what a run made there, and says so. It is the run's own tree
// that it looks into, wherever that is by now: what stands in its place may be
// another's.
func (a Absent) Clear() []string {
	said := a.clearSealed()
	for _, p := range a {
		if _, err := p.tree.dir.Lstat(p.name); p.name == ".git" && err == nil {
			said = append(said, fmt.Sprintf("the run made a repository, %s: look into its config and hooks before you use git there", filepath.Join(p.tree.Path, p.name)))
		}
	}
	return said
}

// clearSealed is clear, but for a repository that was made.
func (a Absent) clearSealed() (said []string) {
	for _, p := range a {
		_, err := p.tree.dir.Lstat(p.name)
		if p.name == ".git" || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = p.tree.dir.RemoveAll(p.name)
		}
		end := "it was removed"
		if err != nil {
			end = fmt.Sprintf("REMOVE IT BEFORE YOU USE GIT: %v", err)
		}
		said = append(said, fmt.Sprintf("the run made %s, from which git learns what to execute: %s", filepath.Join(p.tree.Path, p.name), end))
	}
	return said
}

// Mount opens the directory as a mount in which its owner's files are those of
// the user that workloads are on the host: makeSpace returns a user namespace that maps
// the owner to that user. It needs root.
func (g Tree) Mount(exec bool, makeSpace func(uid, gid uint32) (int, error)) (*os.File, error) {
	path := g.Path
	at, err := g.OpenSame(path)
	if err != nil {
		return nil, NewError(path, err)
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return nil, NewError(path, err)
	}
	fd, err := unix.OpenTree(at, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, NewError(path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	ns, err := makeSpace(st.Uid, st.Gid)
	if err == nil {
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH,
			&unix.MountAttr{Attr_set: TreeAttributes(exec) | unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns)})
		unix.Close(ns)
	}
	if err != nil {
		f.Close()
		return nil, &holdfast.Error{Kind: holdfast.KindMount, Err: err,
			Why:  fmt.Sprintf("the file system of %s cannot show its files as those of the sandbox's user: %v", path, err),
			Hint: "run holdfast as the ordinary user who owns the tree, or keep the tree on ext4, xfs or btrfs"}
	}
	return f, nil
}

func TreeAttributes(exec bool) uint64 {
	if exec {
		return unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	}
	return unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
}

// Hold makes mounts, in a root, of what must stay where it is, and of what must stay as it
// is. A link on the way is none of them: it could lead anywhere.
func (t Tree) Hold(root string) error {
	dir, err := unix.Open(root+t.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	for _, name := range t.Pinned {
		if err := holdOne(dir, name, 0); err != nil {
			return &fs.PathError{Op: "hold", Path: filepath.Join(t.Path, name), Err: err}
		}
	}
	for _, name := range t.Sealed {
		if err := holdOne(dir, name, unix.MOUNT_ATTR_RDONLY); err != nil {
			return &fs.PathError{Op: "hold", Path: filepath.Join(t.Path, name), Err: err}
		}
	}
	return nil
}

func holdOne(dir int, name string, attr uint64) error {
	at, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	own, err := unix.OpenTree(at, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(own)
	if attr != 0 {
		if err := unix.MountSetattr(own, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr}); err != nil {
			return err
		}
	}
	return unix.MoveMount(own, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}
