package snapshot

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// folderFlags open a folder and nothing else: no link to one, no pipe.
const folderFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// treeError is why a tree could not be opened.
type treeError struct {
	path string
	err  error
}

func (e *treeError) Error() string { return e.path + ": " + e.err.Error() }

func (e *treeError) Unwrap() error { return e.err }

// openTree opens an absolute path component by component and follows nothing:
// whoever may write to a folder above it cannot put another in its place unseen.
func openTree(path string) (int, error) {
	fd, err := unix.Open("/", folderFlags, 0)
	if err != nil {
		return -1, err
	}
	for name := range strings.SplitSeq(strings.Trim(filepath.Clean(path), "/"), "/") {
		if name == "" {
			continue
		}
		next, err := openAt(fd, name, folderFlags)
		unix.Close(fd)
		if err != nil {
			return -1, &treeError{path, err}
		}
		fd = next
	}
	return fd, nil
}

// openAt opens one name, again where a signal came between.
func openAt(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func statAt(dir int, name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{ino: uint64(st.Ino), mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano()}
}

// names reads the names in an open folder, at most so many.
func names(fd int, most int) ([]string, error) {
	own, err := unix.Openat(fd, ".", folderFlags, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(own), ".")
	defer f.Close()
	var out []string
	for {
		some, err := f.Readdirnames(1024)
		out = append(out, some...)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case len(out) > most:
			return out, nil
		}
	}
}

// folders opens the folders of a tree one after the other, and keeps those open
// that lead to the last one. It follows no link.
type folders struct {
	root  int
	parts []string
	fds   []int // one for each part
}

// at returns the open folder of that path; "" is the tree. It belongs to f, until
// the next call. With make it makes what is missing, with that mode.
func (f *folders) at(path string, make func(dir int, name string) error) (int, error) {
	var want []string
	if path != "" {
		want = strings.Split(path, "/")
	}
	same := 0
	for same < len(want) && same < len(f.parts) && want[same] == f.parts[same] {
		same++
	}
	f.cut(same)
	for _, name := range want[same:] {
		fd, err := openAt(f.last(), name, folderFlags)
		if make != nil && errors.Is(err, unix.ENOENT) {
			if err = make(f.last(), name); err == nil {
				fd, err = openAt(f.last(), name, folderFlags)
			}
		}
		if err != nil {
			return -1, err
		}
		f.parts, f.fds = append(f.parts, name), append(f.fds, fd)
	}
	return f.last(), nil
}

func (f *folders) last() int {
	if len(f.fds) == 0 {
		return f.root
	}
	return f.fds[len(f.fds)-1]
}

// cut closes all but the first so many.
func (f *folders) cut(keep int) {
	for _, fd := range f.fds[keep:] {
		unix.Close(fd)
	}
	f.parts, f.fds = f.parts[:keep], f.fds[:keep]
}

func (f *folders) close() { f.cut(0) }

// split is the folder of a path, and its last name.
func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}
