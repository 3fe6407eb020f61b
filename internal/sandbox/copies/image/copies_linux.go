package image

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox/copies"
)

// What stands in the folder of images: one of each digest, which holds
const (
	rootTree = "root"
	rootMark = "mark" // written last
	// and of each source that was looked at, by what was seen of it, its digest.
	keys = "keys"
)

// mark is what is kept beside a copy.
type mark struct {
	Notes []string `json:"notes"`
	Stamp string   `json:"stamp"` // of every name in it, when it was made
}

// draft is a copy that is being made.
type draft struct {
	home  string
	notes notes
}

func (d *draft) root() string { return filepath.Join(d.home, rootTree) }

func (d *draft) unpacker(ctx context.Context, limits Limits) (*unpacker, error) {
	root, err := unix.Open(d.root(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return &unpacker{ctx: ctx, root: root, tally: &tally{limits: limits}, notes: &d.notes}, err
}

// take takes a copy of a digest, held, if it is whole: nothing in it was changed,
// added or taken away since it was made. One that is not is discarded.
func take(ctx context.Context, c *copies.Copy, digest string, limits Limits) (*Image, error) {
	i := &Image{Digest: "sha256:" + digest, Root: filepath.Join(c.Home, rootTree), copy: c}
	b, err := os.ReadFile(filepath.Join(c.Home, rootMark))
	var m mark
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err == nil {
		var s *scanner
		if s, err = scanAt(ctx, i.Root, limits); err == nil && s.key() != m.Stamp {
			err = errors.New("it is not as it was made")
		}
	}
	switch {
	case err == nil:
		i.Notes = m.Notes
		return i, nil
	case ctx.Err() != nil:
		return nil, errors.Join(err, c.Release())
	}
	return nil, errors.Join(err, c.Discard(ctx))
}

func scanAt(ctx context.Context, root string, limits Limits) (*scanner, error) {
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return scan(ctx, fd, limits, unix.Stat_t{})
}

// build makes a copy in a draft of its own and gives it its name, the digest, which
// it returns, with what has that name then, held: another one where another process
// was first.
func build(ctx context.Context, dir string, o *origin, limits Limits) (_ *copies.Copy, digest string, err error) {
	c, err := copies.Begin(ctx, dir, "")
	if err != nil {
		return nil, "", err
	}
	d := &draft{home: c.Home}
	err = os.Mkdir(d.root(), 0o755)
	if err == nil {
		err = o.fill(d)
	}
	if err == nil {
		digest, err = d.seal(ctx, limits, o.digest)
	}
	if err == nil {
		_, err = c.Finish(ctx, digest)
	}
	if err != nil {
		return nil, "", errors.Join(roomless(err), c.Discard(ctx))
	}
	return c, digest, nil
}

// roomless says what to do where the disk is full.
func roomless(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return &refusal{why: err.Error(), hint: "free space on that disk: as much as the image takes unpacked"}
	}
	return err
}

// seal looks at what was made, forces it to the disk, where a full one shows, and
// writes its mark. It returns the digest, which is that of the content where none
// is given.
func (d *draft) seal(ctx context.Context, limits Limits, digest string) (string, error) {
	root, err := unix.Open(d.root(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(root)
	s, err := scan(ctx, root, limits, unix.Stat_t{})
	if err != nil {
		return "", err
	}
	if len(s.list) == 0 {
		return "", refuse("name the folder whose names are those of a root: bin, lib, usr", "there is nothing in it")
	}
	if digest == "" {
		if digest, err = s.digest(root); err != nil {
			return "", err
		}
	}
	b, err := json.Marshal(mark{d.notes.lines(), s.key()})
	if err != nil {
		return "", err
	}
	if err := unix.Syncfs(root); err != nil {
		return "", err
	}
	return digest, os.WriteFile(filepath.Join(d.home, rootMark), b, 0o600)
}

// sweep removes copies and drafts that nobody uses, and what is known of sources
// whose copies are gone.
func sweep(ctx context.Context, dir string, kept *Image) {
	home := filepath.Base(filepath.Dir(kept.Root))
	copies.Sweep(ctx, dir, func(name string) bool { return name != keys && name != home })
	copies.Behind(ctx, dir, func() error {
		entries, err := os.ReadDir(filepath.Join(dir, keys))
		for _, e := range entries {
			name := filepath.Join(dir, keys, e.Name())
			b, err := os.ReadFile(name)
			_, gone := os.Stat(filepath.Join(dir, filepath.Base(string(b))))
			if strings.HasPrefix(e.Name(), copies.Draft) || err == nil && errors.Is(gone, fs.ErrNotExist) {
				os.Remove(name)
			}
		}
		return err
	})
}

// know keeps the digest of a source: behind the door, so that a draft which sweep
// finds was left by whoever was killed.
func know(ctx context.Context, dir, key, digest string) error {
	return copies.Behind(ctx, dir, func() error {
		name := filepath.Join(dir, keys, key)
		draft := filepath.Join(dir, keys, copies.Draft+key)
		err := os.WriteFile(draft, []byte(digest), 0o600)
		if err == nil {
			err = os.Rename(draft, name)
		}
		if err != nil {
			os.Remove(draft)
		}
		return err
	})
}
