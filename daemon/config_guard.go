package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"golang.org/x/sys/unix"
)

// maxLinks bounds the symbolic links followed on the way to one file.
const maxLinks = 40

// guard walks paths component by component and refuses what somebody other
// than root and this process's user could change (D49). The zero value knows
// no work trees.
type guard struct {
	// trees are the directories agents work in, by device and inode, so
	// that no spelling of a path leads around them.
	trees []tree
}

type tree struct {
	path     string
	dev, ino uint64
}

// newGuard looks up the work trees. One that does not exist holds no file; one
// that cannot be looked at is an error.
func newGuard(workTrees []string) (guard, error) {
	var g guard
	for _, p := range workTrees {
		var st unix.Stat_t
		switch err := unix.Stat(p, &st); {
		case errors.Is(err, unix.ENOENT):
		case err != nil:
			return guard{}, refusal("cannot look at the work tree %s: %v", p, err)
		default:
			g.trees = append(g.trees, tree{p, uint64(st.Dev), uint64(st.Ino)})
		}
	}
	return g, nil
}

// resolve returns the path without symbolic links, having checked every
// directory and link on the way, and the last component too when it is a
// directory. The path must be absolute.
func (g guard) resolve(path string) (string, error) {
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
				return "", refusal("%s: more than %d symbolic links", path, maxLinks)
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

func (g guard) link(path string, info fs.FileInfo) (string, error) {
	if err := ours(path, info); err != nil {
		return "", err
	}
	return os.Readlink(path)
}

// checkDir refuses a directory in which somebody else could put another file
// in place of ours. In a sticky directory only a file's owner can.
func (g guard) checkDir(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	st, ok := statOf(info)
	if !ok {
		return refusal("%s: cannot tell its owner", path)
	}
	for _, t := range g.trees {
		if t.dev == uint64(st.Dev) && t.ino == uint64(st.Ino) {
			return hinted("move it out of the work tree", "%s is an agent's work tree: nothing that governs is read from there", t.path)
		}
	}
	if err := ours(path, info); err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return hinted("chmod go-w "+path, "the directory %s can be written by others", path)
	}
	return nil
}

// ours accepts what root or this process's user owns.
func ours(path string, info fs.FileInfo) error {
	st, ok := statOf(info)
	if !ok || (st.Uid != 0 && int(st.Uid) != os.Geteuid()) {
		return hinted("chown it to the user Holdfast runs as", "%s belongs to another user", path)
	}
	return nil
}

// read returns a governing file's bytes: absolute path, every component
// checked, a regular file that only root or we can write, at most limit bytes.
// It never waits on a pipe or a device.
func (g guard) read(path string, limit int64) ([]byte, error) {
	real, err := g.resolve(path)
	if err != nil {
		return nil, err
	}
	return readRegular(real, limit, func(info fs.FileInfo) error {
		if err := ours(real, info); err != nil {
			return err
		}
		if info.Mode().Perm()&0o022 != 0 {
			return hinted("chmod go-w "+real, "%s can be written by others", real)
		}
		return nil
	})
}

// readRegular opens a file without following a last link or waiting, lets
// check judge what was opened, and reads at most limit bytes of it.
func readRegular(path string, limit int64, check func(fs.FileInfo) error) ([]byte, error) {
	f, err := openRegular(path, check)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, refusal("%s: more than %d bytes", path, limit)
	}
	return b, err
}

// openRegular opens a file as readRegular does.
func openRegular(path string, check func(fs.FileInfo) error) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = refusal("%s: not a regular file", path)
	}
	if err == nil {
		err = check(info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func refusal(format string, args ...any) error { return hinted("", format, args...) }

// hinted makes the error a person reads: kind UsageError, because somebody has
// to change a file or a flag.
func hinted(hint, format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.KindUsage, Why: fmt.Sprintf(format, args...), Hint: hint}
}
