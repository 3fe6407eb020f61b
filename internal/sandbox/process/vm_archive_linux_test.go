package process

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// archive writes the file system of a guest's memory, in the format that the
// kernel unpacks (cpio "newc": the kernel's Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	w    *bufio.Writer
	ino  int
	dirs map[string]bool
	err  error
}

// entry is one file of the archive.
type entry struct {
	mode, major, minor uint32
	mtime              time.Time
}

// put writes one entry with its content, of size bytes, and the directories
// above it.
func (a *archive) put(name string, e entry, size int64, content io.Reader) {
	name = path.Clean("/" + name)[1:]
	if dir := path.Dir(name); dir != "." && !a.dirs[dir] && name != "TRAILER!!!" {
		a.dir(dir)
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

func (a *archive) pad(n int) { a.w.Write(make([]byte, -n&3)) }

func (a *archive) dir(name string) {
	name = path.Clean("/" + name)[1:]
	if a.dirs[name] {
		return
	}
	a.dirs[name] = true
	a.put(name, entry{mode: unix.S_IFDIR | 0o755}, 0, nil)
}

func (a *archive) link(name, to string) {
	a.put(name, entry{mode: unix.S_IFLNK | 0o777}, int64(len(to)), strings.NewReader(to))
}

func (a *archive) file(name, from string, exec bool, mtime time.Time) {
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
	mode := uint32(unix.S_IFREG | 0o644)
	if exec {
		mode |= 0o111
	}
	a.put(name, entry{mode: mode, mtime: mtime}, info.Size(), f)
}

// guestLeft is what the tests in a guest need nothing of: copying it is slow
// where every instruction is emulated.
var guestLeft = regexp.MustCompile(`^/usr/share/zoneinfo/|/lib(crypto|ssl|sqlite3|db|tinfo|ncurses\w*|panelw|readline)[-.][^/]*$|/python3[^/]*/(asyncio|concurrent|curses|dbm|distutils|email|html|http|lib2to3|logging|multiprocessing|pydoc_data|sqlite3|tomllib|unittest|urllib|venv|wsgiref|xml|xmlrpc|zoneinfo)/|/encodings/(__pycache__/)?(big5|cp|euc|gb|hp|hz|iso|johab|koi|kz|mac|palmos|ptcp|shift|tis)`)

// packGuest writes the guest's file system to the file out: the test's program
// self, a Python with its library, and what the tests start beside it.
func packGuest(t *testing.T, out, self, tricks string) {
	t.Helper()
	python := installed(t, "python3")
	m := &manifest{files: map[string]source{}, loader: newLoader()}
	if err := python.parts(m); err != nil {
		t.Fatal(err)
	}
	if err := m.program("/usr/bin/sleep", "/usr/bin/sleep"); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a := &archive{w: bufio.NewWriterSize(f, 1<<20), dirs: map[string]bool{}}
	for _, d := range []string{"dev", "new", "proc", "sys", "tmp", "root"} {
		a.dir(d)
	}
	a.put("dev/console", entry{mode: unix.S_IFCHR | 0o600, major: 5, minor: 1}, 0, nil)
	for _, dst := range slices.Sorted(maps.Keys(m.files)) {
		if guestLeft.MatchString(dst) {
			continue
		}
		s := m.files[dst]
		a.file(dst, s.path, s.exec, s.mtime)
	}
	a.link("usr/bin/python3", filepath.Base(python.program))
	a.file(guestSelf, self, true, time.Time{})
	a.file(guestTricks, tricks, true, time.Time{})
	a.put("TRAILER!!!", entry{}, 0, nil)
	if a.err == nil {
		a.err = a.w.Flush()
	}
	if a.err != nil {
		t.Fatal(a.err)
	}
}
