package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// floodBytes is how much output is read and thrown away before a run that goes
// on writing is ended.
const floodBytes = 64 << 20

// cutMark ends an output that was cut.
const cutMark = "\n[holdfast: cut here, 1 MB is kept]\n"

// stream keeps the first megabyte of what a run writes and reads on, so that the
// program does not notice, until it is a flood.
type stream struct {
	kept    []byte
	total   int64
	flooded atomic.Bool
	flood   func()
	from    *os.File
}

// read takes everything until the end of r, and closes it.
func (s *stream) read(r *os.File, wg *sync.WaitGroup) {
	defer wg.Done()
	defer r.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		s.keep(buf[:n])
		if s.total > floodBytes && s.flooded.CompareAndSwap(false, true) {
			s.flood()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.rest(r, buf)
			return
		}
		if err != nil {
			return
		}
	}
}

// quiet ends the reading of a pipe into which nobody writes any more, though it
// is still open: what is in it is read first.
func (s *stream) quiet() { s.from.SetReadDeadline(time.Unix(1, 0)) } // one that has ended is read

// rest takes what is in the pipe now.
func (s *stream) rest(r *os.File, buf []byte) {
	c, err := r.SyscallConn()
	if err != nil {
		return
	}
	c.Control(func(fd uintptr) {
		for {
			n, err := unix.Read(int(fd), buf)
			if err == unix.EINTR {
				continue
			}
			if n <= 0 {
				return
			}
			s.keep(buf[:n])
		}
	})
}

// keep takes what was read.
func (s *stream) keep(b []byte) {
	s.total += int64(len(b))
	if room := sandbox.MaxOutput - len(s.kept); room > 0 {
		s.kept = append(s.kept, b[:min(len(b), room)]...)
	}
}

// text is what was kept, with a mark where it was cut.
func (s *stream) text() []byte {
	if s.total <= sandbox.MaxOutput {
		return s.kept
	}
	return append(s.kept, cutMark...)
}

// cutStreams names those of which only the first megabyte was kept.
func cutStreams(stdout, stderr *stream) (cut []string) {
	if stdout.total > sandbox.MaxOutput {
		cut = append(cut, "stdout")
	}
	if stderr.total > sandbox.MaxOutput {
		cut = append(cut, "stderr")
	}
	return cut
}

// outputs brings the files out that a run left in its scratch: new or changed
// regular files, by names that a request may also use, while they fit. Nothing
// runs there any more.
type outputs struct {
	given   map[string][]byte
	files   map[string][]byte
	skipped map[string]string
	room    int64
	seen    int
}

const maxDepth = 32

func collect(scratch int, given map[string][]byte) (map[string][]byte, map[string]string) {
	o := &outputs{given: given, files: map[string][]byte{}, skipped: map[string]string{}, room: sandbox.MaxOutputBytes}
	o.folder(scratch, ".", 0)
	return o.files, o.skipped
}

func (o *outputs) folder(parent int, name string, depth int) {
	fd, err := openBelow(parent, path.Base(name), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		o.skip(name, "its folder cannot be read")
		return
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(256)
		for _, e := range entries {
			if o.seen++; o.seen > 2*sandbox.MaxFiles {
				o.skip("...", fmt.Sprintf("there are more than %d names", 2*sandbox.MaxFiles))
				return
			}
			o.entry(fd, path.Join(name, e.Name()), e, depth)
		}
		if err != nil {
			return
		}
	}
}

func (o *outputs) entry(dir int, name string, e os.DirEntry, depth int) {
	switch {
	case !sandbox.GoodName(name):
		o.skip(name, "its name cannot be used outside")
	case e.IsDir() && depth >= maxDepth:
		o.skip(name, "it lies too deep")
	case e.IsDir():
		o.folder(dir, name, depth+1)
	case !e.Type().IsRegular():
		o.skip(name, "it is no regular file")
	default:
		o.file(dir, name)
	}
}

func (o *outputs) file(dir int, name string) {
	fd, err := openBelow(dir, path.Base(name), unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		o.skip(name, "it cannot be read")
		return
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG:
		o.skip(name, "it is no regular file")
	case st.Nlink != 1:
		o.skip(name, "it has a second name (hard link)")
	case st.Size > o.room || len(o.files) >= sandbox.MaxFiles:
		o.skip(name, "it goes beyond 10000 files of together 100 MB")
	default:
		b, err := io.ReadAll(io.LimitReader(f, st.Size))
		if err != nil {
			o.skip(name, "it cannot be read")
			return
		}
		if old, was := o.given[name]; was && bytes.Equal(old, b) {
			return
		}
		o.files[name] = b
		o.room -= int64(len(b))
	}
}

const maxSkipped = 100

func (o *outputs) skip(name, why string) {
	if len(o.skipped) < maxSkipped {
		o.skipped[fmt.Sprintf("%.200q", name)] = why
	}
}

// openBelow opens one name below dir and follows nothing.
func openBelow(dir int, name string, flags int) (int, error) {
	return unix.Openat2(dir, name, &unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
}
