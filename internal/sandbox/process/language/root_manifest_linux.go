package language

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// rootFormat is part of every root's name: a change of how roots are built makes
// new ones.
const rootFormat = 1

// The most that a root may hold: a runtime is far below it.
const (
	maxRootFiles = 50_000
	maxRootBytes = 2 << 30
)

// manifest is what a root will hold: regular files, by their places in it. A
// link on the host becomes the file that it leads to.
type manifest struct {
	files  map[string]source
	bytes  int64
	loader *loader
	libs   string // where libraries go
}

// source is a file of the host.
type source struct {
	path  string
	size  int64
	mtime time.Time
	exec  bool
}

// has says whether the directory dir of the root has something in it.
func (m *manifest) has(dir string) bool {
	for p := range m.files {
		if strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	return false
}

// file adds one file.
func (m *manifest) file(src, dst string) error {
	info, err := os.Stat(src)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", src)
	}
	dst = filepath.Clean("/" + dst)
	if _, twice := m.files[dst]; !twice {
		m.bytes += info.Size()
	}
	m.files[dst] = source{src, info.Size(), info.ModTime(), info.Mode()&0o111 != 0}
	if len(m.files) > maxRootFiles || m.bytes > maxRootBytes {
		return fmt.Errorf("%s and what it needs are more than %d files or %d MB", src, maxRootFiles, maxRootBytes>>20)
	}
	return nil
}

// tree adds the files below the directory src, but for what left says of their
// places below it, and the libraries that they need. Links out of the tree
// stay out: they lead to what is the host's.
func (m *manifest) tree(src, dst string, left func(rel string) bool) error {
	home, err := filepath.EvalSymlinks(src)
	if err != nil {
		return err
	}
	return filepath.WalkDir(home, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(home, p)
		if err != nil || rel == "." {
			return err
		}
		switch {
		case left(rel) && d.IsDir():
			return fs.SkipDir
		case left(rel) || d.IsDir():
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			to, err := filepath.EvalSymlinks(p)
			if err != nil || !strings.HasPrefix(to, home+"/") || isDir(to) {
				return nil
			}
		case !d.Type().IsRegular():
			return nil
		}
		return m.leaf(p, filepath.Join(dst, rel))
	})
}

// leaf adds one file of a tree, and the libraries it needs.
func (m *manifest) leaf(src, dst string) error {
	if err := m.file(src, dst); err != nil {
		return err
	}
	if !strings.Contains(filepath.Base(src), ".so") {
		return nil
	}
	o, ok, err := readObject(src)
	if err != nil || !ok {
		return err
	}
	if err := m.needs(src, o); err != nil {
		delete(m.files, filepath.Clean(dst)) // it would not load on the host either
	}
	return nil
}

// sum names the manifest: every file's place, path, size, time and mode.
func (m *manifest) sum() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s\n", rootFormat, m.libs)
	for _, dst := range slices.Sorted(maps.Keys(m.files)) {
		s := m.files[dst]
		fmt.Fprintf(h, "%q %q %d %d %t\n", dst, s.path, s.size, s.mtime.UnixNano(), s.exec)
	}
	return hex.EncodeToString(h.Sum(nil))[:24]
}

// copyTo writes every file below dir, as a copy: its pages in memory are not
// the host's.
func (m *manifest) copyTo(dir string, stop func() error) error {
	for _, dst := range slices.Sorted(maps.Keys(m.files)) {
		if err := stop(); err != nil {
			return err
		}
		if err := m.files[dst].copyTo(filepath.Join(dir, dst)); err != nil {
			return err
		}
	}
	return nil
}

func (s source) copyTo(dst string) error {
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return err
	}
	in, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, in)
	if info, e := in.Stat(); err == nil && (e != nil || n != s.size || !info.ModTime().Equal(s.mtime)) {
		err = fmt.Errorf("%s changed while it was copied", s.path)
	}
	if e := out.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chtimes(dst, s.mtime, s.mtime)
	}
	return err
}

// stamp is what a finished root's files are known by. The change time cannot
// be set, so a file that was touched since does not match.
type stamp struct {
	Size  int64  `json:"size"`
	Mode  uint32 `json:"mode"`
	Inode uint64 `json:"inode"`
	Ctime int64  `json:"ctime_ns"`
}

// stamps reads the stamps of everything below dir.
func stamps(dir string) (map[string]stamp, error) {
	list := map[string]stamp{}
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return &os.PathError{Op: "lstat", Path: p, Err: err}
		}
		rel, err := filepath.Rel(dir, p)
		list[rel] = stamp{st.Size, st.Mode, st.Ino, st.Ctim.Nano()}
		return err
	})
	return list, err
}
