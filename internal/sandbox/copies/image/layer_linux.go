package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// unpacker writes archives, one over the other, into a root that nobody else
// sees. Names are resolved by the kernel as a program inside would find them.
type unpacker struct {
	ctx    context.Context
	root   int // open
	tally  *tally
	notes  *notes
	layers bool // names that begin with .wh. take something away
	// seen are the names of the archive at hand, and those above them.
	seen map[string]bool
	// unpacked takes what the archive at hand unpacks to; it may be nil.
	unpacked hash.Hash
}

// maxRoom is what of an archive is neither content nor names: headers, padding,
// and what stands behind its end.
func maxRoom(l Limits) int64 { return l.Bytes + 8<<10*int64(l.Names) + 1<<20 }

// apply unpacks one archive.
func (u *unpacker) apply(from io.Reader) error {
	u.seen = map[string]bool{}
	plain, done, err := plainly(from)
	if err != nil {
		return err
	}
	defer done()
	if u.unpacked != nil {
		plain = io.TeeReader(plain, u.unpacked)
	}
	bound := &bounded{r: plain, room: maxRoom(u.tally.limits), most: u.tally.limits.Bytes}
	t := tar.NewReader(bound)
	for {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		h, err := t.Next()
		if err == io.EOF && !bound.ended() {
			return refuse("get it anew", "it is cut: the mark of its end is not there")
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return broken(err)
		}
		if err := u.entry(h, t); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, bound) // to the end, so that all of it is counted and hashed
	return broken(err)
}

// broken is what a reader says of an archive that is none.
func broken(err error) error {
	own := (*refusal)(nil)
	switch {
	case err == nil || errors.As(err, &own) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return refuse("", "it is no archive that can be read: %.200v", err)
}

// plainly is an archive unpacked, by what its first bytes say; done gives what
// that took back.
func plainly(from io.Reader) (r io.Reader, done func(), err error) {
	b := bufio.NewReaderSize(from, 64<<10)
	head, _ := b.Peek(4)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, nil, broken(err)
		}
		return z, func() { z.Close() }, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(128<<20), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil, broken(err)
		}
		return z, z.Close, nil
	}
	return b, func() {}, nil
}

// bounded refuses to read more than room, and knows how much of what it read last
// was zeros.
type bounded struct {
	r          io.Reader
	room, most int64
	zeros      int
}

// ended says whether an archive's mark of its end was read last (POSIX pax, "ustar
// Interchange Format": two blocks of zeros).
func (b *bounded) ended() bool { return b.zeros >= 1024 }

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.room <= 0 {
		return 0, refuse("take out of it what programs do not need", "it unpacks to far more than %s", amount(b.most))
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.room)])
	b.room -= int64(n)
	rest := len(bytes.TrimRight(p[:n], "\x00"))
	if rest > 0 {
		b.zeros = 0
	}
	b.zeros += n - rest
	return n, err
}

func (u *unpacker) entry(h *tar.Header, from io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := goodName(h.Name)
	if err != nil {
		return err
	}
	size := h.Size
	if !regular(h) {
		size = 0
	}
	if name == "." {
		if h.Typeflag != tar.TypeDir {
			return refuse("", "its root is no directory")
		}
		return nil
	}
	if err := u.tally.add(name, size); err != nil || below(name) {
		return err
	}
	dir, base := path.Dir(name), path.Base(name)
	if u.layers && strings.HasPrefix(base, ".wh.") {
		return u.whiteout(dir, strings.TrimPrefix(base, ".wh."), name)
	}
	if u.seen[name] && h.Typeflag != tar.TypeDir {
		return refuse("make it anew: `tar -r` leaves the older file in it", "it has %s twice", quoted(name))
	}
	for p := name; p != "."; p = path.Dir(p) {
		u.seen[p] = true
	}
	parent, err := u.parent(dir, true)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	return u.put(parent, base, name, h, from)
}

func regular(h *tar.Header) bool {
	return h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeGNUSparse || h.Typeflag == tar.TypeCont
}

// put makes one name in the open folder parent, in place of what an archive
// below had there.
func (u *unpacker) put(parent int, base, name string, h *tar.Header, from io.Reader) error {
	m := uint32(h.Mode & 0o7777)
	if h.Typeflag == tar.TypeDir {
		return putFolder(parent, base, mode(m, 0o700))
	}
	if kind := map[byte]uint32{tar.TypeChar: unix.S_IFCHR, tar.TypeBlock: unix.S_IFBLK, tar.TypeFifo: unix.S_IFIFO}[h.Typeflag]; kind != 0 {
		return refuseKind(name, kind)
	}
	target := -1
	if h.Typeflag == tar.TypeLink { // before what it replaces is gone, which may be itself
		fd, err := u.linked(name, h.Linkname)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		target = fd
	}
	if err := removeAll(parent, base); err != nil {
		return err
	}
	switch {
	case target >= 0:
		return named(name, unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", target), parent, base, unix.AT_SYMLINK_FOLLOW))
	case h.Typeflag == tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) > maxLink {
			return goodLink(name, h.Linkname)
		}
		return named(name, unix.Symlinkat(h.Linkname, parent, base))
	case regular(h):
		if m&(unix.S_ISUID|unix.S_ISGID) != 0 {
			u.notes.special(name)
		}
		if h.PAXRecords["SCHILY.xattr.security.capability"] != "" {
			u.notes.capable(name)
		}
		return named(name, putFile(parent, base, mode(m, 0o400), h, from))
	}
	return refuse("", "%s is of the kind %q, which is no file", quoted(name), h.Typeflag)
}

// named says where an error happened; what an archive itself is at fault for
// keeps its words.
func named(name string, err error) error {
	if err == nil {
		return nil
	}
	if _, own := err.(*refusal); own {
		return err
	}
	return fmt.Errorf("%s: %w", quoted(name), err)
}

func putFolder(parent int, base string, mode os.FileMode) error {
	var st unix.Stat_t
	err := unix.Fstatat(parent, base, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.Unlinkat(parent, base, 0)
		if err == nil {
			err = unix.ENOENT
		}
	}
	if err == unix.ENOENT {
		err = unix.Mkdirat(parent, base, 0o700)
	}
	if err != nil {
		return err
	}
	fd, err := openBelow(parent, base, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmod(fd, uint32(mode))
}

func putFile(parent int, base string, mode os.FileMode, h *tar.Header, from io.Reader) error {
	fd, err := unix.Openat(parent, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), base)
	defer f.Close()
	n, err := io.Copy(f, from)
	if err != nil {
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			return err
		}
		return broken(err)
	}
	if n != h.Size {
		return refuse("", "%s is shorter than it says", quoted(h.Name))
	}
	at := unix.NsecToTimeval(h.ModTime.UnixNano())
	return errors.Join(f.Chmod(mode), unix.Futimes(fd, []unix.Timeval{at, at}))
}

// linked opens the regular file inside that a hard link is another name of.
func (u *unpacker) linked(name, to string) (int, error) {
	clean, err := goodName(to)
	if err != nil || clean == "." {
		return -1, refuse("", "%s is a second name of %s, which is not in it", quoted(name), quoted(to))
	}
	missing := refuse("", "%s is a second name of %s, which is no file in it", quoted(name), quoted(to))
	dir, err := u.parent(path.Dir(clean), false)
	if err != nil {
		return -1, missing
	}
	defer unix.Close(dir)
	fd, err := openBelow(dir, path.Base(clean), unix.O_PATH)
	if err != nil {
		return -1, missing
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return -1, missing
	}
	return fd, nil
}

// parent opens a folder inside, making it and those above it where they are
// missing, if it should.
func (u *unpacker) parent(dir string, make bool) (int, error) {
	fd, err := openInside(u.root, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	switch {
	case err == nil:
		return fd, nil
	case err != unix.ENOENT || !make || dir == ".":
		return -1, refuse("", "%s is no directory in it (%v)", quoted(dir), err)
	}
	above, err := u.parent(path.Dir(dir), make)
	if err != nil {
		return -1, err
	}
	defer unix.Close(above)
	if err := u.tally.add(dir, 0); err != nil {
		return -1, err
	}
	if err := unix.Mkdirat(above, path.Base(dir), 0o755); err != nil {
		return -1, refuse("", "%s is no directory in it (%v)", quoted(dir), err)
	}
	return openBelow(above, path.Base(dir), unix.O_RDONLY|unix.O_DIRECTORY)
}

// whiteout takes away what archives below had by a name, or with the name .opq
// all that they had in the folder.
func (u *unpacker) whiteout(dir, what, name string) error {
	opaque := what == ".wh..opq"
	if !opaque && (what == "" || what == "." || what == ".." || strings.HasPrefix(what, ".wh.")) {
		return refuse("", "%s takes away what is no name", quoted(name))
	}
	fd, err := openInside(u.root, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil // there is nothing
	}
	defer unix.Close(fd)
	if opaque {
		return u.empty(fd, dir)
	}
	return u.lose(fd, what, path.Join(dir, what))
}

// lose takes one name away, but for what the archive at hand has there.
func (u *unpacker) lose(dir int, base, name string) error {
	if !u.seen[name] {
		return removeAll(dir, base)
	}
	fd, err := openBelow(dir, base, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil // a file of the archive at hand
	}
	defer unix.Close(fd)
	return u.empty(fd, name)
}

func (u *unpacker) empty(fd int, name string) error {
	list, err := os.ReadDir(fmt.Sprintf("/proc/self/fd/%d", fd))
	for _, e := range list {
		if err == nil {
			err = u.lose(fd, e.Name(), path.Join(name, e.Name()))
		}
	}
	return err
}

// removeAll takes a name in the open folder dir away, with what is below it.
func removeAll(dir int, base string) error {
	if err := unix.Unlinkat(dir, base, 0); err == nil || err == unix.ENOENT {
		return nil
	}
	return os.RemoveAll(fmt.Sprintf("/proc/self/fd/%d/%s", dir, base))
}
