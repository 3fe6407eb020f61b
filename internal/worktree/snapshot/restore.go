package snapshot

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
)

// writing puts entries into a tree that an agent may be changing meanwhile: it
// follows no link, makes each file under another name first, and takes away
// nothing but what it was told is there.
type writing struct {
	r      *repo
	dirs   folders
	uid    int
	gid    int
	staged string            // contents, by name of the blob
	was    map[string]*entry // what the version holds that was kept before
	stays  map[string]bool   // what is there and in no version
	never  map[place]bool    // what is Holdfast's own, and not touched
	shut   map[string]uint32 // folders that were not to be written to, and their modes
	serial int
	aside  []string // what was moved out of the way, and where to; the first of it
}

// what a rollback changes, in the order in which it is done.
type plan struct {
	remove []entry // what is there and must not be, the deepest first
	write  []entry // what is not there, or otherwise, parents first
	modes  []entry // folders, the deepest first: their modes come last
}

// planOf compares what is there with what is to be; both in order of paths.
func planOf(now, want []entry) plan {
	at := make(map[string]*entry, len(want))
	for i := range want {
		at[want[i].path] = &want[i]
	}
	var p plan
	is := make(map[string]*entry, len(now))
	for i := len(now) - 1; i >= 0; i-- {
		e := &now[i]
		is[e.path] = e
		w := at[e.path]
		if w == nil || (w.kind == folder) != (e.kind == folder) {
			p.remove = append(p.remove, *e)
		}
	}
	for i := range want {
		w := &want[i]
		e := is[w.path]
		same := e != nil && e.kind == w.kind && e.blob == w.blob && e.perm == w.perm
		if w.kind == folder {
			same = e != nil && e.kind == folder && e.perm == w.perm
		}
		if same {
			continue
		}
		p.write = append(p.write, *w)
	}
	for i := len(p.write) - 1; i >= 0; i-- {
		if p.write[i].kind == folder {
			p.modes = append(p.modes, p.write[i])
		}
	}
	return p
}

// stage brings contents out of the repository, checked, into a folder beside it,
// and fills in the SHA-256 of every entry. have are those that are known, of
// contents that nobody needs; nil needs every one.
func (r *repo) stage(ctx context.Context, want []entry, have map[[20]byte][32]byte, into string) (err error) {
	b, err := r.blobs(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	done := map[[20]byte][32]byte{}
	for i := range want {
		e := &want[i]
		if e.kind == folder {
			continue
		}
		sum, known := have[e.blob]
		if !known {
			sum, known = done[e.blob]
		}
		if known {
			e.sum, e.read = sum, true
			continue
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := r.stageOne(b, e, into); err != nil {
			return err
		}
		done[e.blob] = e.sum
	}
	return nil
}

func (r *repo) stageOne(b *blobs, e *entry, into string) error {
	f, err := os.OpenFile(filepath.Join(into, hexOf(e.blob)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return full(err)
	}
	return full(errors.Join(b.copy(e, f), f.Close()))
}

// apply carries out a plan.
func (w *writing) apply(ctx context.Context, p plan) error {
	err := w.carry(ctx, p)
	if serr := w.shutAgain(); err == nil {
		err = serr
	}
	if err != nil {
		return err
	}
	for _, e := range p.modes {
		dir, err := w.dirs.at(e.path, nil)
		if err == nil {
			err = unix.Fchmod(dir, e.perm)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", shown(e.path), err)
		}
	}
	w.dirs.cut(0)
	unix.Sync()
	return nil
}

// carry carries out what a plan says but for the modes of folders.
func (w *writing) carry(ctx context.Context, p plan) error {
	for _, e := range p.remove {
		if err := w.remove(e); err != nil {
			return err
		}
	}
	for _, e := range p.write {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := w.write(e); err != nil {
			return fmt.Errorf("%s: %w", shown(e.path), full(err))
		}
	}
	return nil
}

// opened is the open folder of that path, in which names may be changed: one of our own
// that is shut is opened until all is done, for whoever works in a tree can shut it.
func (w *writing) opened(path string, make func(int, string) error) (int, error) {
	fd, err := w.dirs.at(path, make)
	if err != nil || os.Geteuid() == 0 {
		return fd, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return -1, err
	}
	mode := uint32(st.Mode) & 0o7777
	if mode&0o300 == 0o300 || int(st.Uid) != os.Geteuid() {
		return fd, nil
	}
	if w.shut == nil {
		w.shut = map[string]uint32{}
	}
	if _, known := w.shut[path]; !known {
		w.shut[path] = mode
	}
	return fd, unix.Fchmod(fd, mode|0o300)
}

// shutAgain gives folders the modes that they had, the deepest first.
func (w *writing) shutAgain() error {
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(w.shut))) {
		fd, err := w.dirs.at(path, nil)
		if err != nil {
			continue // it is gone, or another
		}
		if err := unix.Fchmod(fd, w.shut[path]); err != nil {
			return fmt.Errorf("%s: %w", shown(path), err)
		}
	}
	return nil
}

// errChanged says that a name is not what it was when the version before the
// rollback was kept.
var errChanged = errors.New("it was changed meanwhile")

// remove takes one name away, where it is still what was kept.
func (w *writing) remove(e entry) error {
	dir, name := split(e.path)
	fd, err := w.opened(dir, nil)
	if err != nil {
		return nil // its folder is gone, or another
	}
	if e.kind == folder {
		w.dirs.cut(len(w.dirs.fds))
		err := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
		if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTDIR) {
			return nil // what is in it still was never kept, and stays
		}
		return fmt.Errorf("%s: %w", shown(e.path), err)
	}
	if err := unchanged(fd, name, e); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return fmt.Errorf("%s: %w", shown(e.path), err)
	}
	return unix.Unlinkat(fd, name, 0)
}

// unchanged is an error where a name is not what a version was made of.
func unchanged(dir int, name string, e entry) error {
	st, err := statAt(dir, name)
	if err != nil {
		return err
	}
	if e.seen != (stamp{}) && (stampOf(&st).mtime != e.seen.mtime || uint64(st.Ino) != e.seen.ino || e.kind != link && st.Size != e.size) {
		return errChanged
	}
	return nil
}

// write makes one name what the version has.
func (w *writing) write(e entry) error {
	dir, name := split(e.path)
	fd, err := w.into(dir)
	if err == nil && e.kind == folder {
		if w.was[e.path] == nil && w.stays[e.path] { // a pipe, or a folder that cannot be opened
			err = w.moveAside(fd, name, e.path)
		}
		if err == nil {
			_, err = w.into(e.path)
		}
	}
	if err != nil || e.kind == folder {
		return err
	}
	w.serial++
	fresh := fmt.Sprintf(".holdfast-%d-%d.tmp", os.Getpid(), w.serial)
	err = w.make(fd, fresh, e)
	if err == nil {
		err = w.free(fd, name, e.path) // as late as can be: what is written there until then is not lost
	}
	if err == nil {
		err = unix.Renameat(fd, fresh, fd, name)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(unix.Unlinkat(fd, fresh, 0)))
	}
	return nil
}

// into is the open folder of that path, which is made where it is missing.
func (w *writing) into(path string) (int, error) {
	fd, err := w.opened(path, w.folder)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EEXIST) {
		err = errChanged // somebody put something else where a folder was
	}
	return fd, err
}

// free says whether a name may be replaced: nothing is there, or what was kept. What no
// version holds, such as a pipe or a folder with a repository in it, is moved aside: it
// would keep the tree from going back, and whoever works in a tree can put it there.
func (w *writing) free(dir int, name, path string) error {
	if old := w.was[path]; old != nil && old.kind != folder {
		return ignoreMissing(unchanged(dir, name, *old))
	}
	switch _, err := statAt(dir, name); {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return err
	case w.stays[path]:
		return w.moveAside(dir, name, path)
	}
	return errChanged
}

// moveAside gives what is there another name beside its own, whole.
func (w *writing) moveAside(dir int, name, path string) error {
	st, err := statAt(dir, name)
	if err != nil {
		return ignoreMissing(err)
	}
	if w.never[placeOf(&st)] {
		return ownNow(path)
	}
	var b [4]byte
	rand.Read(b[:])
	to := ".holdfast-aside-" + hex.EncodeToString(b[:])
	// A rename takes the place of what is there: only of what was made for it.
	flags := 0
	if uint32(st.Mode)&unix.S_IFMT == unix.S_IFDIR {
		flags, err = unix.AT_REMOVEDIR, unix.Mkdirat(dir, to, 0o700)
	} else {
		var fd int
		if fd, err = unix.Openat(dir, to, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600); err == nil {
			err = unix.Close(fd)
		}
	}
	if err != nil {
		return err
	}
	if err := unix.Renameat(dir, name, dir, to); err != nil {
		return errors.Join(err, ignoreMissing(unix.Unlinkat(dir, to, flags)))
	}
	if len(w.aside) < maxLeft {
		at, _ := split(path)
		w.aside = append(w.aside, shown(path)+" is now "+shown(strings.TrimPrefix(at+"/"+to, "/")))
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// folder makes one, which only its owner may enter until its mode is set.
func (w *writing) folder(dir int, name string) error {
	if isGit(name) {
		return unix.EPERM
	}
	if err := unix.Mkdirat(dir, name, 0o755); err != nil {
		return err
	}
	return w.own(dir, name)
}

// own gives a name that was just made to the tree's owner.
func (w *writing) own(dir int, name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return unix.Fchownat(dir, name, w.uid, w.gid, unix.AT_SYMLINK_NOFOLLOW)
}

// make makes a new name with the content of e.
func (w *writing) make(dir int, name string, e entry) error {
	from, err := os.Open(filepath.Join(w.staged, hexOf(e.blob)))
	if err != nil {
		return err
	}
	defer from.Close()
	if e.kind == link {
		b, err := io.ReadAll(io.LimitReader(from, 4096))
		if err != nil {
			return err
		}
		if err := unix.Symlinkat(string(b), dir, name); err != nil {
			return err
		}
		return w.own(dir, name)
	}
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = io.Copy(f, from)
	if err == nil && os.Geteuid() == 0 {
		err = f.Chown(w.uid, w.gid)
	}
	if err == nil {
		err = unix.Fchmod(fd, e.perm) // never set-user-ID: perm is of 0777
	}
	return errors.Join(err, f.Close())
}

// between says what a repository in a tree is in the middle of, or "", and what is
// checked out there: both are read and never believed more than as words.
func between(root int) (middle, head string) {
	fd, err := openAt(root, ".git", folderFlags)
	if err != nil {
		if fd, err = linked(root); err != nil {
			return "", ""
		}
	}
	defer unix.Close(fd)
	for _, m := range []struct{ name, what string }{
		{"MERGE_HEAD", "merge"}, {"rebase-merge", "rebase"}, {"rebase-apply", "rebase"}, {"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"}, {"BISECT_LOG", "bisect"}, {"index.lock", "change of its index"},
	} {
		if _, err := statAt(fd, m.name); err == nil {
			middle = m.what
			break
		}
	}
	return middle, short(fd, "HEAD", 300)
}

// linked opens the repository of a tree whose .git is a file, as `git worktree`
// makes it.
func linked(root int) (int, error) {
	dir, ok := strings.CutPrefix(short(root, ".git", 4096), "gitdir: ")
	if !ok || !filepath.IsAbs(dir) {
		return -1, unix.ENOENT
	}
	return openTree(dir)
}

// short reads one line of a small file.
func short(dir int, name string, most int64) string {
	fd, err := openAt(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	b, _ := io.ReadAll(io.LimitReader(f, most))
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// inMiddle refuses a rollback in the middle of something of git's.
func inMiddle(t Tree, what string) error {
	return &holdfast.Error{Kind: holdfast.KindConflict, Rule: "tree/middle", Why: fmt.Sprintf("the repository in %s is in the middle of a %s", t.Path, what),
		Hint: "end or abort it there with git, then roll back; or, where an agent only makes it look so, add --mid-merge: files alone are put back. A snapshot can be taken all the same"}
}
