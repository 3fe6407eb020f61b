package image

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox/copies"
)

// Image is a root file system that is ready, until it is closed.
type Image struct {
	Source Source
	// Digest is sha256: and that of a layout's manifest, or of the content of a
	// folder or an archive.
	Digest string
	// Root is a folder of the host, which may only be read.
	Root string
	// Notes are what of the original is not there, each a sentence.
	Notes []string
	copy  *copies.Copy
}

// Close lets the copy be removed when another image takes its place.
func (i *Image) Close() error { return i.copy.Release() }

// origin is a source that was looked at.
type origin struct {
	key    string // another one for whatever else stands there
	digest string // in hexadecimal, or "" where only its copy tells
	fill   func(*draft) error
	close  func()
}

// Open makes the root of a source ready in the folder dir, or finds it there, and
// removes copies that nobody uses. dir is Holdfast's own, two below the one that no
// image may hold. An error is a MountError that names what is wrong; nothing of
// such an image is kept.
func Open(ctx context.Context, dir string, s Source, limits Limits) (*Image, error) {
	i, err := open(ctx, dir, s, limits)
	if err != nil {
		return nil, s.letter(err)
	}
	sweep(ctx, dir, i)
	return i, nil
}

func open(ctx context.Context, dir string, s Source, limits Limits) (*Image, error) {
	if err := os.MkdirAll(filepath.Join(dir, keys), 0o700); err != nil {
		return nil, err
	}
	o, err := look(ctx, dir, s, limits)
	if err != nil {
		return nil, err
	}
	defer o.close()
	if b, err := os.ReadFile(filepath.Join(dir, keys, o.key)); err == nil && len(b) == 2*sha256.Size {
		if c, err := copies.Hold(ctx, dir, string(b)); err == nil {
			i, err := take(ctx, c, string(b), limits)
			if err == nil {
				i.Source = s
				return i, nil
			}
			if ctx.Err() != nil {
				return nil, err
			}
		}
	}
	for tries := 1; ; tries++ { // somebody may change what is there each time
		c, digest, err := build(ctx, dir, o, limits)
		if err != nil {
			return nil, err
		}
		if err := know(ctx, dir, o.key, digest); err != nil {
			return nil, errors.Join(err, c.Release())
		}
		i, err := take(ctx, c, digest, limits)
		if err == nil {
			i.Source = s
			return i, nil
		}
		if tries == maxBuilds || ctx.Err() != nil {
			return nil, err
		}
	}
}

// maxBuilds is how often a copy is made that is not whole when it is looked at.
const maxBuilds = 3

// look opens a source and sees what it is.
func look(ctx context.Context, dir string, s Source, limits Limits) (*origin, error) {
	fd, err := unix.Open(s.Path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, refuse("name the folder of a root or of an OCI image layout, or an archive, by its absolute path", "there is nothing to be read: %v", err)
	}
	var st, home unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &st), unix.Stat(filepath.Dir(filepath.Dir(dir)), &home)); err != nil {
		unix.Close(fd)
		return nil, err
	}
	o := &origin{close: func() { unix.Close(fd) }}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		err = o.folder(ctx, fd, s.Tag, limits, home)
	case unix.S_IFREG:
		err = o.archive(ctx, fd, st, s.Tag, limits)
	default:
		err = refuse("name the folder of a root or of an OCI image layout, or an archive", "it is no folder and no file")
	}
	if err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func (o *origin) folder(ctx context.Context, fd int, tag string, limits Limits, home unix.Stat_t) error {
	var st unix.Stat_t
	if unix.Fstatat(fd, layoutMark, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		l := layout{fd}
		c, err := l.choose(tag)
		if err != nil {
			return err
		}
		o.key, o.digest = "oci-"+c.digest, c.digest
		o.fill = func(d *draft) error { return d.layout(ctx, l, c, limits) }
		return nil
	}
	if err := untagged(tag, "a folder"); err != nil {
		return err
	}
	if err := unix.Fstat(fd, &st); err != nil || st.Dev == home.Dev && st.Ino == home.Ino {
		return refuse("name a folder that holds a root and nothing else", "it is Holdfast's own directory")
	}
	s, err := scan(ctx, fd, limits, home)
	if err != nil {
		return err
	}
	o.key = "dir-" + s.key()
	o.fill = func(d *draft) error {
		err := s.copyFolder(fd, d.root())
		d.notes = s.notes
		return err
	}
	return nil
}

func untagged(tag, what string) error {
	if tag == "" {
		return nil
	}
	return refuse("leave :"+tag+" out", "it is %s, which has no tags", what)
}

func (o *origin) archive(ctx context.Context, fd int, st unix.Stat_t, tag string, limits Limits) error {
	if err := untagged(tag, "an archive"); err != nil {
		return err
	}
	i := item{st: st}
	s := scanner{list: []item{i}}
	o.key = "tar-" + s.key()
	o.fill = func(d *draft) error {
		u, err := d.unpacker(ctx, limits)
		if err != nil {
			return err
		}
		defer unix.Close(u.root)
		if err := u.apply(io.NewSectionReader(file(fd), 0, st.Size)); err != nil {
			return err
		}
		if !i.same(fd) {
			return refuse("let nobody write there meanwhile, and try again", "it changed while it was read")
		}
		return nil
	}
	return nil
}

// file reads an open descriptor, which it does not own.
type file int

// ReadAt implements io.ReaderAt.
func (f file) ReadAt(b []byte, at int64) (int, error) {
	n, err := unix.Pread(int(f), b, at)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}
