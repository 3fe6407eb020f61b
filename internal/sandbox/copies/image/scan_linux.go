package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// item is one name of a root, and what stood there when it was looked at.
type item struct {
	name string
	st   unix.Stat_t
	link string
}

func (i item) is(kind uint32) bool { return i.st.Mode&unix.S_IFMT == kind }

// scanner reads what stands in a folder, and follows nothing.
type scanner struct {
	ctx   context.Context
	tally tally
	notes notes
	// home is Holdfast's own folder, which no image may hold.
	home unix.Stat_t
	dev  uint64
	list []item
}

// scan returns every name below the open folder root in the order of names, but
// for those below the container's own, which are not looked at. What is neither
// directory, regular file nor good link is refused.
func scan(ctx context.Context, root int, limits Limits, home unix.Stat_t) (*scanner, error) {
	s := &scanner{ctx: ctx, tally: tally{limits: limits}, home: home}
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		return nil, err
	}
	s.dev = st.Dev
	fd, err := openBelow(root, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	if err := s.folder(fd, ""); err != nil {
		return nil, err
	}
	slices.SortFunc(s.list, func(a, b item) int { return strings.Compare(a.name, b.name) })
	return s, nil
}

// folder reads one folder and closes it; below is its name with a slash.
func (s *scanner) folder(fd int, below string) error {
	dir := os.NewFile(uintptr(fd), below)
	defer dir.Close()
	top := 0
	for {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		names, err := dir.Readdirnames(512)
		for _, name := range names {
			if below == "" && Own(name) {
				continue
			}
			if below == "" {
				if top++; top > s.tally.limits.Tops {
					return refuse("put them into directories", "it has more than %d names at its top", s.tally.limits.Tops)
				}
				if err := goodTop(name); err != nil {
					return err
				}
			}
			if err := s.entry(fd, name, below+name); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *scanner) entry(dir int, base, name string) error {
	i := item{name: name}
	if err := unix.Fstatat(dir, base, &i.st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return changed(name, err)
	}
	size := i.st.Size
	if !i.is(unix.S_IFREG) {
		size = 0
	}
	if err := s.tally.add(name, size); err != nil {
		return err
	}
	switch i.st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return s.below(dir, base, i)
	case unix.S_IFLNK:
		to := make([]byte, maxLink+1)
		n, err := unix.Readlinkat(dir, base, to)
		if err != nil {
			return changed(name, err)
		}
		i.link = string(to[:n])
		if err := goodLink(name, i.link); err != nil {
			return err
		}
	case unix.S_IFREG:
		s.bits(dir, base, i)
	default:
		return refuseKind(name, i.st.Mode)
	}
	s.list = append(s.list, i)
	return nil
}

func (s *scanner) below(dir int, base string, i item) error {
	switch {
	case i.st.Dev != s.dev:
		return refuse("unmount it, or name a copy", "another file system is mounted in it, at %s", quoted(i.name))
	case s.home.Ino != 0 && i.st.Dev == s.home.Dev && i.st.Ino == s.home.Ino:
		return refuse("name a folder that holds a root and nothing else", "it holds Holdfast's own directory, at %s", quoted(i.name))
	}
	fd, err := openBelow(dir, base, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == unix.EACCES {
		s.notes.hidden(i.name)
		return nil
	}
	if err != nil {
		return changed(i.name, err)
	}
	s.list = append(s.list, i)
	return s.folder(fd, i.name+"/")
}

// bits notes what of a file its copy will not have.
func (s *scanner) bits(dir int, base string, i item) {
	if i.st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		s.notes.special(i.name)
	}
	if i.st.Mode&0o111 == 0 {
		return
	}
	if n, err := unix.Lgetxattr(fmt.Sprintf("/proc/self/fd/%d/%s", dir, base), "security.capability", nil); err == nil && n > 0 {
		s.notes.capable(i.name)
	}
}

func refuseKind(name string, mode uint32) error {
	kind := map[uint32]string{unix.S_IFCHR: "device", unix.S_IFBLK: "device", unix.S_IFIFO: "FIFO", unix.S_IFSOCK: "socket"}[mode&unix.S_IFMT]
	if kind == "" {
		kind = "thing that is no file"
	}
	return refuse("take it out: a container has its own /dev, and nobody listens in an image", "%s is a %s", quoted(name), kind)
}

// changed is an error that means that somebody writes where an image is read.
func changed(name string, err error) error {
	if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP || err == nil {
		return refuse("let nobody write there meanwhile, and try again", "%s changed while it was read", quoted(name))
	}
	if err == unix.EXDEV {
		return refuse("unmount it, or name a copy", "another file system is mounted in it, at %s", quoted(name))
	}
	return fmt.Errorf("%s: %w", quoted(name), err)
}

// key is another one for whatever else stands in a folder, or stood there at
// another time.
func (s *scanner) key() string {
	h := sha256.New()
	for _, i := range s.list {
		fmt.Fprintf(h, "%q %d %o %d %d %d %q\n", i.name, i.st.Ino, i.st.Mode, i.st.Size, i.st.Mtim.Nano(), i.st.Ctim.Nano(), i.link)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// digest is that of a root's content: names, kinds, permissions, links and bytes,
// whoever owns them and whenever they were made.
func (s *scanner) digest(root int) (string, error) {
	h := sha256.New()
	for _, i := range s.list {
		if err := s.ctx.Err(); err != nil {
			return "", err
		}
		if err := i.sum(root, h); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (i item) sum(root int, h hash.Hash) error {
	switch i.st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		fmt.Fprintf(h, "d %o %q\n", i.st.Mode&0o777, i.name)
	case unix.S_IFLNK:
		fmt.Fprintf(h, "l %q %q\n", i.name, i.link)
	default:
		f, err := openItem(root, i)
		if err != nil {
			return err
		}
		defer f.Close()
		of := sha256.New()
		if n, err := io.Copy(of, f); err != nil || n != i.st.Size {
			return changed(i.name, err)
		}
		fmt.Fprintf(h, "f %o %q %d %x\n", i.st.Mode&0o777, i.name, i.st.Size, of.Sum(nil))
	}
	return nil
}

// openItem opens the regular file that was looked at, and no other.
func openItem(root int, i item) (*os.File, error) {
	fd, err := openBelow(root, i.name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		if errors.Is(err, unix.EACCES) {
			return nil, err
		}
		return nil, changed(i.name, err)
	}
	f := os.NewFile(uintptr(fd), path.Base(i.name))
	if !i.same(fd) {
		f.Close()
		return nil, changed(i.name, nil)
	}
	return f, nil
}

// same says whether an open file is the one that was looked at, unchanged.
func (i item) same(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Dev == i.st.Dev && st.Ino == i.st.Ino && st.Mode == i.st.Mode && st.Size == i.st.Size && st.Mtim == i.st.Mtim && st.Ctim == i.st.Ctim
}

// openBelow opens a name below dir, and follows nothing.
func openBelow(dir int, name string, flags int) (int, error) {
	return retried(func() (int, error) {
		return unix.Openat2(dir, name, &unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW),
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV})
	})
}

// openInside opens a name as a program finds it whose root is dir: links are
// followed inside, and never out of it.
func openInside(dir int, name string, flags int) (int, error) {
	return retried(func() (int, error) {
		return unix.Openat2(dir, name, &unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV})
	})
}

// retried asks again what the kernel could not be sure of while something was
// renamed.
func retried(open func() (int, error)) (fd int, err error) {
	for range 64 {
		if fd, err = open(); err != unix.EAGAIN && err != unix.EINTR {
			break
		}
	}
	return fd, err
}
