package sandboxtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Archive writes the file system of a guest's memory, in the format that the
// kernel unpacks (cpio "newc": the kernel's Documentation/driver-api/early-userspace/buffer-format.rst).
type Archive struct {
	w    *bufio.Writer
	f    *os.File
	ino  int
	dirs map[string]bool
	err  error
}

// archived is one file of an archive.
type archived struct {
	mode, major, minor uint32
	mtime              time.Time
}

// put writes one archived with its content, of size bytes, and the directories
// above it.
func (a *Archive) put(name string, e archived, size int64, content io.Reader) {
	name = path.Clean("/" + name)[1:]
	if dir := path.Dir(name); dir != "." && !a.dirs[dir] && name != "TRAILER!!!" {
		a.Dir(dir)
	}
	if a.err != nil {
		return
	}
	a.ino++
	stamp := uint32(0)
	if !e.mtime.IsZero() {
		stamp = uint32(e.mtime.Unix())
	}
	fmt.Fprintf(a.w, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00", a.ino, e.mode, 0, 0, 1, stamp, size, 0, 0, e.major, e.minor, len(name)+1, 0, name)
	a.pad(110 + len(name) + 1)
	if size > 0 {
		var n int64
		if n, a.err = io.Copy(a.w, content); a.err == nil && n != size {
			a.err = fmt.Errorf("%s has %d bytes and had %d", name, n, size)
		}
	}
	a.pad(int(size))
}

func (a *Archive) pad(n int) { a.w.Write(make([]byte, -n&3)) }

// Dir puts an empty directory.
func (a *Archive) Dir(name string) {
	name = path.Clean("/" + name)[1:]
	if a.dirs[name] {
		return
	}
	a.dirs[name] = true
	a.put(name, archived{mode: syscall.S_IFDIR | 0o755}, 0, nil)
}

// Link puts a symbolic link.
func (a *Archive) Link(name, to string) {
	a.put(name, archived{mode: syscall.S_IFLNK | 0o777}, int64(len(to)), strings.NewReader(to))
}

// File puts a copy of the file from, of that time where it is not zero.
func (a *Archive) File(name, from string, exec bool, mtime time.Time) {
	f, err := os.Open(from)
	if err != nil {
		a.err = err
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		a.err = err
		return
	}
	mode := uint32(syscall.S_IFREG | 0o644)
	if exec {
		mode |= 0o111
	}
	a.put(name, archived{mode: mode, mtime: mtime}, info.Size(), f)
}

// GuestLeft is what of Python's library the tests in a guest need nothing of:
// copying it is slow where every instruction is emulated.
var GuestLeft = regexp.MustCompile(`^/usr/share/zoneinfo/|/lib(crypto|ssl|sqlite3|db|tinfo|ncurses\w*|panelw|readline)[-.][^/]*$|/python3[^/]*/(asyncio|concurrent|curses|dbm|distutils|email|html|http|lib2to3|logging|multiprocessing|pydoc_data|sqlite3|tomllib|unittest|urllib|venv|wsgiref|xml|xmlrpc|zoneinfo)/|/encodings/(__pycache__/)?(big5|cp|euc|gb|hp|hz|iso|johab|koi|kz|mac|palmos|ptcp|shift|tis)`)

// NewArchive begins a guest's file system in the file out: its first process
// self, and what that mounts upon.
func NewArchive(t *testing.T, out, self string) *Archive {
	t.Helper()
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	a := &Archive{w: bufio.NewWriterSize(f, 1<<20), f: f, dirs: map[string]bool{}}
	for _, d := range []string{"dev", "new", "proc", "sys", "tmp", "root"} {
		a.Dir(d)
	}
	a.put("dev/console", archived{mode: syscall.S_IFCHR | 0o600, major: 5, minor: 1}, 0, nil)
	a.File(GuestSelf, self, true, time.Time{})
	return a
}

// Close ends the archive, and fails the test where anything of it was not
// written.
func (a *Archive) Close(t *testing.T) {
	t.Helper()
	a.put("TRAILER!!!", archived{}, 0, nil)
	if a.err == nil {
		a.err = a.w.Flush()
	}
	if err := errors.Join(a.err, a.f.Close()); err != nil {
		t.Fatal(err)
	}
}
