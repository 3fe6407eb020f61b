// Package guard reads files that govern Holdfast, and refuses those that another user could have
// written or read.
package guard

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
)

// maxLinks bounds the symbolic links followed on the way to one file.
const maxLinks = 40

// Guard walks paths component by component and refuses what somebody other
// than root and this process's user could change (D49). The zero value knows
// no work trees.
type Guard struct {
	// trees are the directories agents work in, by device and inode, so
	// that no spelling of a path leads around them.
	trees []tree
}

type tree struct {
	path     string
	dev, ino uint64
}

// New looks up the work trees. One that does not exist holds no file; one
// that cannot be looked at is an error.
func New(workTrees []string) (Guard, error) {
	var g Guard
	for _, p := range workTrees {
		var st unix.Stat_t
		switch err := unix.Stat(p, &st); {
		case errors.Is(err, unix.ENOENT):
		case err != nil:
			return Guard{}, usage.Errorf("cannot look at the work tree %s: %v", p, err)
		default:
			g.trees = append(g.trees, tree{p, uint64(st.Dev), uint64(st.Ino)})
		}
	}
	return g, nil
}

// Resolve returns the path without symbolic links, having checked every
// directory and link on the way, and the last component too when it is a
// directory. The path must be absolute.
func (g Guard) Resolve(path string) (string, error) {
	rest := strings.Split(strings.TrimPrefix(path, "/"), "/")
	at, links := "/", 0
	if err := g.checkDir(at); err != nil {
		return "", err
	}
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		if err != nil {
			return "", err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return "", usage.Errorf("%s: more than %d symbolic links", path, maxLinks)
			}
			target, err := g.link(next, info)
			if err != nil {
				return "", err
			}
			rest = append(strings.Split(target, "/"), rest...)
			if filepath.IsAbs(target) {
				at = "/"
			}
		case info.IsDir():
			if err := g.checkDir(next); err != nil {
				return "", err
			}
			at = next
		case hasName(rest):
			return "", &fs.PathError{Op: "open", Path: next, Err: unix.ENOTDIR}
		default:
			return next, nil
		}
	}
	return at, nil
}

func hasName(rest []string) bool {
	for _, r := range rest {
		if r != "" && r != "." {
			return true
		}
	}
	return false
}

func (g Guard) link(path string, info fs.FileInfo) (string, error) {
	if err := ours(path, info); err != nil {
		return "", err
	}
	return os.Readlink(path)
}

// checkDir refuses a directory in which somebody else could put another file
// in place of ours. In a sticky directory only a file's owner can.
func (g Guard) checkDir(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	st, ok := StatOf(info)
	if !ok {
		return usage.Errorf("%s: cannot tell its owner", path)
	}
	for _, t := range g.trees {
		if t.dev == uint64(st.Dev) && t.ino == uint64(st.Ino) {
			return usage.HintErrorf("move it out of the work tree",
				"%s is an agent's work tree: nothing that governs is read from there", t.path)
		}
	}
	if err := ours(path, info); err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return usage.HintErrorf("chmod go-w "+path, "the directory %s can be written by others", path)
	}
	return nil
}

// ours accepts what root or this process's user owns.
func ours(path string, info fs.FileInfo) error {
	st, ok := StatOf(info)
	if !ok || (st.Uid != 0 && int(st.Uid) != os.Geteuid()) {
		return usage.HintErrorf("chown it to the user Holdfast runs as", "%s belongs to another user", path)
	}
	return nil
}

// Read returns a governing file's bytes: absolute path, every component
// checked, a regular file that only root or we can write, at most limit bytes.
// It never waits on a pipe or a device.
func (g Guard) Read(path string, limit int64) ([]byte, error) {
	real, err := g.Resolve(path)
	if err != nil {
		return nil, err
	}
	return ReadRegular(real, limit, func(info fs.FileInfo) error {
		if err := ours(real, info); err != nil {
			return err
		}
		if info.Mode().Perm()&0o022 != 0 {
			return usage.HintErrorf("chmod go-w "+real, "%s can be written by others", real)
		}
		return nil
	})
}

// ReadRegular opens a file without following a last link or waiting, lets
// check judge what was opened, and reads at most limit bytes of it.
func ReadRegular(path string, limit int64, check func(fs.FileInfo) error) ([]byte, error) {
	f, err := OpenRegular(path, check)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, usage.Errorf("%s: more than %d bytes", path, limit)
	}
	return b, err
}

// OpenRegular opens a file as ReadRegular does.
func OpenRegular(path string, check func(fs.FileInfo) error) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = usage.Errorf("%s: not a regular file", path)
	}
	if err == nil {
		err = check(info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// CheckPrivate returns a check that refuses a file of the state directory that is not ours alone.
func CheckPrivate(path string) func(fs.FileInfo) error {
	return func(info fs.FileInfo) error {
		st, ok := StatOf(info)
		switch {
		case !ok || int(st.Uid) != os.Geteuid():
			return usage.Errorf("%s belongs to another user", path)
		case st.Nlink != 1:
			return usage.Errorf("%s has %d names, it must have one", path, st.Nlink)
		case info.Mode().Perm()&0o077 != 0:
			return usage.HintErrorf("chmod 600 "+path, "others can read %s (mode %04o)", path, info.Mode().Perm())
		}
		return nil
	}
}

// StatOf returns the system's own description of a file.
func StatOf(info fs.FileInfo) (*syscall.Stat_t, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	return st, ok
}

// ExplainReadError turns a file system's error into an error for a person, and leaves others.
func ExplainReadError(path string, err error) error {
	var p *fs.PathError
	if !errors.As(err, &p) {
		return err
	}
	return usage.Errorf("cannot read %s: %v", path, p.Err)
}
