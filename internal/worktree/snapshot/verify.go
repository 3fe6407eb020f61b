package snapshot

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Verified is what came of restoring one tree of a snapshot.
type Verified struct {
	Path string `json:"path"`
	OK   bool   `json:"ok"`
	Why  string `json:"why,omitempty"`
}

// Verify restores every tree of a snapshot into a folder of its own and compares
// names, modes, links and contents with what the manifest says. m is as Read gave
// it; that its Sum is what the ledger has is the caller's to compare. An error says nothing
// about the snapshot: there is no room for that folder, or it would leave the ledger too
// little (disk/full), git is missing, the time is over. There is none where another tree
// is damaged: that is known of the snapshot then, and of the tree that it was not looked at.
func (k *Keeper) Verify(ctx context.Context, m *Manifest) ([]Verified, error) {
	var out []Verified
	var unseen error
	isDamage := false
	for i := range m.Trees {
		p := &m.Trees[i]
		v := Verified{Path: p.Path}
		err := context.Cause(ctx)
		if err == nil {
			err = Room(k.opt.Dir, 2*p.Bytes)
		}
		if err == nil {
			err = k.verify(ctx, p)
		}
		switch {
		case err == nil:
			v.OK = true
		case isDamaged(err):
			v.Why, isDamage = err.Error(), true
		default:
			v.Why = "it could not be looked at: " + err.Error()
			if unseen == nil {
				unseen = err
			}
		}
		out = append(out, v)
	}
	if isDamage || unseen == nil {
		return out, nil
	}
	return nil, unseen
}

func (k *Keeper) verify(ctx context.Context, p *Part) (err error) {
	r, err := k.repo(ctx, p.Path)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := k.within(ctx, Tree{Path: p.Path})
	defer cancel()
	want, err := r.list(ctx, p.Commit)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(r.dir, "staged-*")
	if err != nil {
		return full(err)
	}
	defer func() { err = errors.Join(err, removeAll(scratch)) }()
	contents, tree := scratch+"/contents", scratch+"/tree"
	if err := errors.Join(os.Mkdir(contents, 0o700), os.Mkdir(tree, 0o700)); err != nil {
		return full(err)
	}
	if err := r.stage(ctx, want, nil, contents); err != nil {
		return err
	}
	if content(want) != p.Content {
		return damaged("its content is not what was kept")
	}
	return k.restored(ctx, r, want, contents, tree, p.Content)
}

// restored writes the version into the empty folder and looks at what is there.
func (k *Keeper) restored(ctx context.Context, r *repo, want []entry, contents, tree, sum string) error {
	if _, err := r.put(ctx, Tree{Path: tree}, contents, &version{}, planOf(nil, want)); err != nil {
		return full(err)
	}
	root, err := openTree(tree)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	s, err := walk(ctx, root, Tree{Path: tree}, k.limits, nil, 0)
	if err != nil {
		return err
	}
	look := &keeping{r: r, s: s, root: folders{root: root}, limits: k.limits}
	defer look.root.close()
	for i := range s.entries {
		if err := look.sum(&s.entries[i]); err != nil {
			return err
		}
	}
	if content(s.entries) != sum {
		return damaged("what was restored of it is not what was kept")
	}
	return nil
}

// removeAll removes a folder of which some folders may not be written to.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if err == nil {
		return nil
	}
	root, oerr := openTree(path)
	if oerr != nil {
		return err
	}
	defer unix.Close(root)
	open(root)
	return os.RemoveAll(path)
}

// open lets the owner into every folder below.
func open(fd int) {
	_ = unix.Fchmod(fd, 0o700) // RemoveAll says what is wrong
	list, err := names(fd, 1<<30)
	if err != nil {
		return
	}
	for _, name := range list {
		if st, err := statAt(fd, name); err != nil || uint32(st.Mode)&unix.S_IFMT != unix.S_IFDIR {
			continue
		}
		_ = unix.Fchmodat(fd, name, 0o700, 0)
		if sub, err := openAt(fd, name, folderFlags); err == nil {
			open(sub)
			unix.Close(sub)
		}
	}
}
