// Package scratch brings files out of the folder that a run could write, which
// nothing about it may be believed of.
package scratch

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

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

// Collect returns the files below the open folder scratch that are not what was
// given, at most sandbox.MaxFiles of together sandbox.MaxOutputBytes, and of what
// stays behind why, by quoted name. It follows no link and leaves no file system.
func Collect(scratch int, given map[string][]byte) (files map[string][]byte, skipped map[string]string) {
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

// MaxSkipped is of how many names Collect says why they stayed.
const MaxSkipped = 100

func (o *outputs) skip(name, why string) {
	if len(o.skipped) < MaxSkipped {
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
