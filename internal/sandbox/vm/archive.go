package vm

import (
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// archive writes a file system in the form that the kernel unpacks into a
// guest's memory (cpio "newc": the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst). What it is given
// in the same order it writes as the same bytes: nothing of the clock or of who
// runs it is in them.
type archive struct {
	w    io.Writer
	ino  int
	dirs map[string]bool
	err  error
}

// The kinds of entries, as stat(2) has them in a mode.
const (
	modeDir  = 0o040000
	modeChar = 0o020000
	modeFile = 0o100000
	trailer  = "TRAILER!!!"
	maxEntry = 1<<32 - 1 // the format has eight hexadecimal digits for a size
)

// entry is what an archive says of a file beside its name and content.
type entry struct {
	mode, major, minor uint32
	mtime              time.Time
}

func newArchive(w io.Writer) *archive { return &archive{w: w, dirs: map[string]bool{}} }

// put writes one entry with its content, of exactly size bytes, and before it
// the directories above it. The first error stays, and close returns it.
func (a *archive) put(name string, e entry, size int64, content io.Reader) {
	name = path.Clean("/" + name)[1:]
	if dir := path.Dir(name); dir != "." {
		a.dir(dir)
	}
	if a.err == nil && (name == "" || name == trailer || strings.IndexByte(name, 0) >= 0 || size < 0 || size > maxEntry) {
		a.err = fmt.Errorf("%q with %d bytes cannot be in a guest's file system", name, size)
	}
	a.write(name, e, size, content)
}

func (a *archive) write(name string, e entry, size int64, content io.Reader) {
	if a.err != nil {
		return
	}
	a.ino++
	stamp := uint32(0)
	if !e.mtime.IsZero() {
		stamp = uint32(e.mtime.Unix())
	}
	_, a.err = fmt.Fprintf(a.w, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.ino, e.mode, 0, 0, 1, stamp, size, 0, 0, e.major, e.minor, len(name)+1, 0, name)
	a.pad(110 + int64(len(name)) + 1)
	if a.err == nil && size > 0 {
		var n int64
		if n, a.err = io.Copy(a.w, io.LimitReader(content, size)); a.err == nil && n != size {
			a.err = fmt.Errorf("%s has %d bytes and had %d", name, n, size)
		}
	}
	a.pad(size)
}

func (a *archive) pad(n int64) {
	if a.err == nil {
		_, a.err = a.w.Write(make([]byte, -n&3))
	}
}

// dir writes a directory, once, and those above it.
func (a *archive) dir(name string) {
	name = path.Clean("/" + name)[1:]
	if name == "" || a.dirs[name] {
		return
	}
	a.dirs[name] = true
	a.put(name, entry{mode: modeDir | 0o755}, 0, nil)
}

// close ends the archive.
func (a *archive) close() error {
	a.write(trailer, entry{}, 0, nil)
	return a.err
}
