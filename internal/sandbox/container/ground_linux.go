package container

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/copies/image"
)

// ground is what a run finds of the host: its code and its workspace, and of
// root a network namespace without an interface that is up.
type ground struct {
	code, work, network string
	scratch             int // the workspace, open
}

// lay makes the ground in the run's folder home. As root it is called on a thread
// of its own, in whose mount namespace the workspace is memory; otherwise the
// workspace is a folder of the disk.
func lay(home string, root bool, name string, spec sandbox.Spec) (g ground, err error) {
	g.scratch = -1
	base := filepath.Join(home, "ground")
	if err := os.Mkdir(base, 0o755); err != nil {
		return g, err
	}
	if root {
		if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWNET); err != nil {
			return g, fmt.Errorf("namespaces of its own: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return g, err
		}
		for dir, size := range map[string]int{"code": len(spec.Code) + 1<<16, "work": sandbox.ScratchBytes} {
			at := filepath.Join(base, dir)
			if err := os.Mkdir(at, 0o755); err != nil {
				return g, err
			}
			if err := unix.Mount("holdfast", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=0755,size=%d,nr_inodes=%d", size, sandbox.ScratchInodes)); err != nil {
				return g, &posture.Tmpfs{Err: err}
			}
		}
		g.network = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
	}
	g.code, g.work = filepath.Join(base, "code"), filepath.Join(base, "work")
	if err := errors.Join(os.MkdirAll(g.code, 0o755), os.MkdirAll(g.work, 0o755)); err != nil {
		return g, err
	}
	if err := put(filepath.Join(g.code, name), spec.Code, 0o555, false); err != nil {
		return g, err
	}
	if err := fill(g.work, spec.Files, root); err != nil {
		return g, err
	}
	g.scratch, err = unix.Open(g.work, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return g, err
}

// fill writes a request's files, whose names were found good, into a folder that
// nobody else has seen yet.
func fill(dir string, files map[string][]byte, root bool) error {
	if err := give(dir, root); err != nil {
		return err
	}
	made := map[string]bool{".": true}
	var folder func(string) error
	folder = func(name string) error {
		if made[name] {
			return nil
		}
		made[name] = true
		if err := folder(path.Dir(name)); err != nil {
			return err
		}
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return err
		}
		return give(filepath.Join(dir, name), root)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := folder(path.Dir(name)); err != nil {
			return err
		}
		if err := put(filepath.Join(dir, name), files[name], 0o644, root); err != nil {
			return err
		}
	}
	return nil
}

func put(name string, b []byte, mode fs.FileMode, root bool) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return give(name, root)
}

// give makes the workload the owner.
func give(name string, root bool) error {
	if !root {
		return nil
	}
	return os.Lchown(name, workload, workload)
}

// skeleton returns a folder of empty mount points for a root, and what is to be
// mounted there, making it in dir where it is not there yet. The root itself is
// never written, which a runtime would do for mount points that it misses.
func skeleton(dir, root string) (string, []entry, error) {
	list, err := os.ReadDir(root)
	if err != nil {
		return "", nil, err
	}
	h := sha256.New()
	var entries []entry
	links := map[string]string{}
	var files []string
	for _, e := range list {
		name := e.Name()
		switch {
		case image.Own(name):
			continue
		case e.Type()&fs.ModeSymlink != 0:
			if links[name], err = os.Readlink(filepath.Join(root, name)); err != nil {
				return "", nil, err
			}
		case e.Type().IsRegular():
			files = append(files, name)
			entries = append(entries, entry{name, filepath.Join(root, name)})
		case e.IsDir():
			entries = append(entries, entry{name, filepath.Join(root, name)})
		default:
			continue // no device, socket or FIFO
		}
		fmt.Fprintf(h, "%q %v %q\n", name, e.Type(), links[name])
	}
	home := filepath.Join(dir, hex.EncodeToString(h.Sum(nil)[:12]))
	if info, err := os.Stat(home); err == nil && info.IsDir() {
		return home, entries, nil
	}
	return home, entries, raise(dir, home, entries, files, links)
}

// raise makes a skeleton under another name first: who finds it finds it whole.
func raise(dir, home string, entries []entry, files []string, links map[string]string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft)
	errs := []error{os.Chmod(draft, 0o755)}
	for _, name := range []string{"proc", "dev", "tmp", insideCode, insideWorkspace} {
		errs = append(errs, os.Mkdir(filepath.Join(draft, name), 0o755))
	}
	for _, e := range entries {
		if slices.Contains(files, e.name) {
			errs = append(errs, os.WriteFile(filepath.Join(draft, e.name), nil, 0o444))
			continue
		}
		errs = append(errs, os.Mkdir(filepath.Join(draft, e.name), 0o755))
	}
	for name, to := range links {
		errs = append(errs, os.Symlink(to, filepath.Join(draft, name)))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := os.Rename(draft, home); err != nil {
		if info, there := os.Stat(home); there == nil && info.IsDir() {
			return nil // another one was quicker
		}
		return err
	}
	return nil
}
