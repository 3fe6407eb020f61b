package snapshot

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/holdfast-dev/holdfast"
)

// Unpacked is an archive that was read to its end, and restored.
type Unpacked struct {
	Archive
	Manifest *Manifest
	Store    string // where the copy of the store is
	Files    int    // with the archive's own
	Bytes    int64
}

// spoiled is the error of an archive that is not what Pack wrote.
func spoiled(why string) error {
	return &holdfast.Error{Kind: holdfast.KindConflict, Rule: "archive/damaged", Why: "the archive is damaged: " + why,
		Hint: "nothing was changed by it; take another archive, or write one with `holdfast snapshot archive`"}
}

// Unpack reads an archive from r, restores all of it below the empty folder dir,
// and compares every hash: of each file, of each tree and of the manifest, first
// as it is read and then as it was restored. Folders and files below dir are the
// caller's alone, whatever modes they have in the archive, which are compared too.
// That the ledger in the store knows the manifest is the caller's to compare.
// Errors: ConflictError archive/damaged.
func Unpack(ctx context.Context, r io.Reader, dir string) (*Unpacked, error) {
	z, err := zstd.NewReader(&untilEnd{ctx, r}, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return nil, spoiled(err.Error())
	}
	defer z.Close()
	u := &unpacking{tar: tar.NewReader(z), dir: dir}
	if err = u.all(); err == nil {
		var left int64
		if left, err = io.Copy(io.Discard, z); err == nil && left > 0 {
			err = spoiled("something stands behind its end")
		}
	}
	var own *holdfast.Error
	var path *os.PathError
	var two *os.LinkError
	switch {
	case err == nil:
		return &u.out, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(full(err), &own):
		return nil, own
	case errors.As(err, &path), errors.As(err, &two):
		return nil, err // it cannot be restored here, which says nothing about it
	}
	return nil, spoiled(err.Error())
}

// untilEnd reads until its context ends.
type untilEnd struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilEnd) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}

// unpacking is one archive that is being read.
type unpacking struct {
	tar  *tar.Reader
	dir  string
	h    *tar.Header // of the name that comes next; nil at the end
	sums bytes.Buffer
	out  Unpacked
}

func (u *unpacking) next() error {
	h, err := u.tar.Next()
	if u.h = h; errors.Is(err, io.EOF) {
		u.h, err = nil, nil
	}
	if err != nil || u.h == nil {
		return err
	}
	for name := range h.PAXRecords { // of holes, a few bytes make a file of any size
		if strings.HasPrefix(name, "GNU.sparse.") {
			return spoiled(shown(h.Name) + " stands in it with holes")
		}
	}
	return nil
}

func (u *unpacking) all() error {
	if err := u.head(); err != nil {
		return err
	}
	u.out.Store = filepath.Join(u.dir, archiveStore)
	f, err := os.OpenFile(u.out.Store, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := u.toDisk(archiveStore, f); err != nil {
		return err
	}
	var contents []string
	for i := range u.out.Manifest.Trees {
		sum, err := u.tree(i, &u.out.Manifest.Trees[i])
		if err != nil {
			return err
		}
		contents = append(contents, sum)
	}
	if err := u.compared(); err != nil {
		return err
	}
	for i, p := range u.out.Manifest.Trees {
		if contents[i] != p.Content {
			return spoiled("what it holds of " + shown(p.Path) + " is not what was kept")
		}
	}
	return nil
}

// head reads what the archive is, and the manifest.
func (u *unpacking) head() error {
	if err := u.next(); err != nil {
		return err
	}
	var about, manifest bytes.Buffer
	if _, err := u.file(archiveAbout, &bounds{w: &about, left: maxAbout}); err != nil {
		return err
	}
	d := json.NewDecoder(&about)
	d.DisallowUnknownFields()
	if err := d.Decode(&u.out.Archive); err != nil || u.out.Version != 1 || !goodID(u.out.Snapshot) {
		return spoiled("what it holds cannot be read, or is of a newer Holdfast")
	}
	sum, err := u.file(archiveManifest, &bounds{w: &manifest, left: maxManifest})
	if err != nil {
		return err
	}
	if hex.EncodeToString(sum[:]) != u.out.Archive.Manifest {
		return spoiled("its manifest is another one")
	}
	u.out.Manifest, err = parseManifest(manifest.Bytes(), u.out.Snapshot)
	return err
}

// maxAbout bounds archiveAbout in bytes.
const maxAbout = 1 << 20

// bounds takes so many bytes and no more.
type bounds struct {
	w    io.Writer
	left int64
}

func (b *bounds) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, spoiled("a file in it is too long")
	}
	return b.w.Write(p)
}

// file reads the file that comes next, which must have that name, and goes on to the
// name behind it.
func (u *unpacking) file(name string, w io.Writer) (sum [32]byte, err error) {
	if u.h == nil || u.h.Name != name || u.h.Typeflag != tar.TypeReg {
		return sum, spoiled("it lacks " + shown(name))
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, h), u.tar)
	if err != nil {
		return sum, err
	}
	u.out.Files++
	u.out.Bytes += n
	sum = [32]byte(h.Sum(nil))
	u.sums.WriteString(sumLine(name, sum[:]))
	return sum, u.next()
}

// toDisk is file into f, which it closes, where there is room for all of it.
func (u *unpacking) toDisk(name string, f *os.File) (sum [32]byte, err error) {
	if u.h != nil {
		err = Room(u.dir, u.h.Size)
	}
	if err == nil {
		sum, err = u.file(name, f)
	}
	return sum, errors.Join(err, f.Close())
}

// tree restores one tree, and returns what its content comes to.
func (u *unpacking) tree(i int, part *Part) (string, error) {
	top := treeTop(i)
	if u.h == nil || u.h.Name != top || u.h.Typeflag != tar.TypeDir {
		return "", spoiled("it lacks " + shown(part.Path))
	}
	if err := os.MkdirAll(filepath.Join(u.dir, top), 0o700); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(filepath.Join(u.dir, top))
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := u.next(); err != nil {
		return "", err
	}
	var list []entry
	// A manifest that is made up may say any numbers.
	most, before := min(part.Files+part.Links+part.Folders, Limits{}.orDefault().Names), u.out.Bytes
	for u.h != nil && strings.HasPrefix(u.h.Name, top+"/") {
		if len(list) >= most || u.h.Size > part.Bytes-(u.out.Bytes-before) {
			return "", spoiled("it holds more of " + shown(part.Path) + " than its manifest says")
		}
		e, err := u.entry(root, u.h.Name[len(top)+1:])
		if err != nil {
			return "", err
		}
		list = append(list, e)
	}
	return content(list), restoredAs(root, list)
}

// entry restores one name of a tree.
func (u *unpacking) entry(root *os.Root, path string) (entry, error) {
	h := u.h
	e := entry{path: path, perm: uint32(h.Mode) & 0o777, read: true}
	if !goodPath(path) {
		return e, spoiled("it names " + shown(path))
	}
	var err error
	switch h.Typeflag {
	case tar.TypeDir:
		e.kind, err = folder, root.Mkdir(path, 0o700)
	case tar.TypeSymlink:
		e.kind, e.perm, e.sum = link, 0, sha256.Sum256([]byte(h.Linkname))
		err = root.Symlink(h.Linkname, path)
	case tar.TypeReg:
		if e.kind = file; e.perm&0o100 != 0 {
			e.kind = program
		}
		var f *os.File
		if f, err = root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return e, err
		}
		e.sum, err = u.toDisk(h.Name, f)
		return e, err
	default:
		err = spoiled(shown(path) + " is no file, folder or link")
	}
	if err != nil {
		return e, err
	}
	return e, u.next()
}

// restoredAs compares what was restored with what was read.
func restoredAs(root *os.Root, list []entry) error {
	for i := range list {
		sum, err := sumIn(root, &list[i])
		if err != nil {
			return err
		}
		if sum != list[i].sum {
			return spoiled(shown(list[i].path) + " cannot be restored as it is in it")
		}
	}
	return nil
}

func sumIn(root *os.Root, e *entry) (sum [32]byte, err error) {
	switch e.kind {
	case folder:
		info, err := root.Lstat(e.path)
		if err == nil && !info.IsDir() {
			err = spoiled(shown(e.path) + " cannot be restored as a folder")
		}
		return sum, err
	case link:
		to, err := root.Readlink(e.path)
		return sha256.Sum256([]byte(to)), err
	}
	f, err := root.Open(e.path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return [32]byte(h.Sum(nil)), err
}

// compared compares every file with the sums that stand at the archive's end.
func (u *unpacking) compared() error {
	want := u.sums.String()
	var kept bytes.Buffer
	if _, err := u.file(archiveSums, &bounds{w: &kept, left: int64(len(want)) + maxAbout}); err != nil {
		return err
	}
	if u.h != nil {
		return spoiled("it holds " + shown(u.h.Name) + " behind its sums")
	}
	if kept.String() == want {
		return nil
	}
	lines := strings.SplitAfter(kept.String(), "\n")
	for i, line := range strings.SplitAfter(want, "\n") {
		if i >= len(lines) || lines[i] != line {
			_, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
			return spoiled(fmt.Sprintf("%s is not what was packed", shown(name)))
		}
	}
	return spoiled("it lacks files that its sums name")
}
