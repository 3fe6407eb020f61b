package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/durable"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// Drop removes a snapshot. What commits or other snapshots hold as well stays.
func (k *Keeper) Drop(ctx context.Context, id string) error {
	m, err := k.Read(id)
	if err != nil {
		return err
	}
	// The manifest goes first: a crash leaves versions that nobody names.
	if err := os.Remove(filepath.Join(k.opt.Dir, id+manifestEnd)); err != nil {
		return err
	}
	if err := durable.SyncDir(k.opt.Dir); err != nil {
		return err
	}
	for _, p := range m.Trees {
		r, err := k.repo(ctx, p.Path)
		if err != nil {
			return err
		}
		r.mu.Lock()
		_, err = r.git.run(ctx, nil, 1<<16, "update-ref", "-d", "refs/snapshots/"+id)
		r.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// tidyTime bounds the packing of one repository.
const tidyTime = 30 * time.Minute

// Tidy packs the repositories, and lets go of what no version holds for a day.
func (k *Keeper) Tidy(ctx context.Context) error {
	k.mu.Lock()
	var list []*repo
	for _, r := range k.repos {
		list = append(list, r)
	}
	k.mu.Unlock()
	var errs []error
	for _, r := range list {
		errs = append(errs, r.pack(ctx))
	}
	return errors.Join(errs...)
}

func (r *repo) pack(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, tidyTime)
	defer cancel()
	need, err := sizeOf(r.git.dir) // all of it stands there twice for a while
	if err == nil {
		err = Room(r.dir, need)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	cmd := r.git.command(ctx, "gc", "--quiet", "--prune=1.day.ago")
	said := excerpt.NewFirst(saidMost)
	cmd.Stderr = said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", r.path, r.git.failure(ctx, "gc", err, said.String()))
	}
	return nil
}

// sizeOf is how many bytes the files below a folder have.
func sizeOf(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
