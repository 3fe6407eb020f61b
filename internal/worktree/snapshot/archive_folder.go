package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
)

// Folder is a folder that archives stand in, open: nobody who may write to a folder
// above it can put another in its place meanwhile.
type Folder struct {
	path string
	fd   int
}

// OpenFolder opens one by its absolute path, in which no part is a link.
func OpenFolder(path string) (*Folder, error) {
	fd, err := openTree(path)
	if err != nil {
		return nil, err
	}
	return &Folder{path, fd}, nil
}

// Close gives it back.
func (f *Folder) Close() error { return unix.Close(f.fd) }

// Path is where a name in it stands.
func (f *Folder) Path(name string) string { return filepath.Join(f.path, name) }

// unfinished is the name of an archive that is being written.
func unfinished(name string) string { return "." + name + ".tmp" }

// Archives are the names of archives in it, the oldest first.
func (f *Folder) Archives() (out []string, err error) {
	list, err := names(f.fd, 1<<20)
	for _, name := range list {
		if _, ok := ArchiveID(name); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, err
}

// Sweep takes away what a crash left half written. One process writes to it.
func (f *Folder) Sweep() error {
	list, err := names(f.fd, 1<<20)
	for _, name := range list {
		inner, ok := strings.CutSuffix(strings.TrimPrefix(name, "."), ".tmp")
		if _, is := ArchiveID(inner); ok && is && name == unfinished(inner) {
			err = errors.Join(err, f.Remove(name))
		}
	}
	return err
}

// Open opens a file in it for reading. It follows no link and waits for nobody.
// fs.ErrNotExist means that there is none.
func (f *Folder) Open(name string) (*os.File, error) {
	fd, err := openAt(f.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: f.Path(name), Err: err}
	}
	file := os.NewFile(uintptr(fd), f.Path(name))
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = refused(holdfast.KindConflict, "move it away", "%s is no regular file", f.Path(name))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Remove removes a file in it, durably.
func (f *Folder) Remove(name string) error {
	if err := unix.Unlinkat(f.fd, name, 0); err != nil {
		return &fs.PathError{Op: "remove", Path: f.Path(name), Err: err}
	}
	return f.sync()
}

func (f *Folder) sync() error {
	if err := unix.Fsync(f.fd); err != nil && !errors.Is(err, unix.EINVAL) {
		return &fs.PathError{Op: "sync", Path: f.path, Err: err}
	}
	return nil
}

// Put writes a file that is not there, of mode 0600. It is written under another
// name, synced, and read back by check, whose error keeps it from its own name: that
// one names the whole file, or nothing. On an error nothing of it is left.
func (f *Folder) Put(ctx context.Context, name string, from io.Reader, check func(io.Reader) error) error {
	tmp := unfinished(name)
	err := f.put(tmp, name, &untilEnd{ctx, from}, check)
	if err == nil {
		return f.sync()
	}
	if rerr := unix.Unlinkat(f.fd, tmp, 0); rerr != nil && !errors.Is(rerr, unix.ENOENT) {
		err = errors.Join(err, &fs.PathError{Op: "remove", Path: f.Path(tmp), Err: rerr})
	}
	return f.full(err)
}

func (f *Folder) put(tmp, name string, from io.Reader, check func(io.Reader) error) error {
	fd, err := unix.Openat(f.fd, tmp, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &fs.PathError{Op: "create", Path: f.Path(tmp), Err: err}
	}
	file := os.NewFile(uintptr(fd), f.Path(tmp))
	_, err = io.Copy(file, from)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = check(file)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if _, err := statAt(f.fd, name); !errors.Is(err, unix.ENOENT) {
		return errors.Join(err, &fs.PathError{Op: "create", Path: f.Path(name), Err: fs.ErrExist})
	}
	return unix.Renameat(f.fd, tmp, f.fd, name)
}

// full names the error of a folder without room.
func (f *Folder) full(err error) error {
	var own *holdfast.Error
	if !errors.As(err, &own) && (errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)) {
		return &holdfast.Error{Kind: holdfast.KindInternal, Rule: "disk/full", Why: fmt.Sprintf("there is no room left for an archive in %s", f.path),
			Hint: "make room there; the archives that are there are whole, and nothing of this one is left", Err: err}
	}
	return err
}
