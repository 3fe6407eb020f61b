package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/grant"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/workroot"
)

// twoTrees are a repository to work on, another that nobody named, and the
// directory that holds both.
func twoTrees(t *testing.T) (above, tree, other string) {
	t.Helper()
	above, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree, other = filepath.Join(above, "mid", "tree"), filepath.Join(above, "else", "tree")
	for _, dir := range []string{tree, other} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "init", "-q")
	}
	// What git makes itself, and a run that made it would have to give up.
	for name, text := range map[string]string{"kept": "kept\n", ".git/config.worktree": "[core]\n", ".git/commondir": ".\n"} {
		if err := os.WriteFile(filepath.Join(other, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(other, ".git", "hooks")); err != nil {
		t.Fatal(err)
	}
	return above, tree, other
}

// listing is every name below dir with what it is.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		b.WriteString(path + " " + e.Type().String())
		if e.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b.Write(text)
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestWorkspaceTreeReplaced: a tree that was checked, and in whose place, or on
// the way to which, there is a link when the run begins, or nothing, is named,
// and nothing runs; what the link leads to stays as it was.
func TestWorkspaceTreeReplaced(t *testing.T) {
	runRootless(t)
	for name, c := range map[string]struct {
		swap func(above, tree, other string) error
		says string
	}{
		"a link": {func(_, tree, other string) error {
			return errors.Join(os.RemoveAll(tree), os.Symlink(other, tree))
		}, "it was replaced while the run began"},
		"a short link": {func(_, tree, _ string) error {
			return errors.Join(os.RemoveAll(tree), os.Symlink("../else/tree", tree))
		}, "it was replaced while the run began"},
		"a link on the way": {func(above, _, _ string) error {
			return errors.Join(os.RemoveAll(filepath.Join(above, "mid")), os.Symlink("else", filepath.Join(above, "mid")))
		}, "it was replaced while the run began"},
		"nothing": {func(_, tree, _ string) error { return os.RemoveAll(tree) }, "no such file or directory"},
		"a file": {func(_, tree, _ string) error {
			return errors.Join(os.RemoveAll(tree), os.WriteFile(tree, nil, 0o644))
		}, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			above, tree, other := twoTrees(t)
			w := OpenWorkspaces()
			defer w.Close()
			spec, err := sandbox.CheckWorkspace(sandbox.Workspace{ID: "t", Argv: []string{"/bin/sh", "-c", "echo run > made; rm -f kept .git/config.worktree"}, Tree: tree, Need: anyWalls}, func(string) bool { return false })
			if err != nil {
				t.Fatal(err)
			}
			if err := c.swap(above, tree, other); err != nil {
				t.Fatal(err)
			}
			before, procs := listing(t, other), len(below(t, os.Getpid()))
			res, err := w.RunConnected(t.Context(), spec, sandbox.Streams{}, nil)
			var e *holdfast.Error
			if !errors.As(err, &e) || e.Kind != holdfast.KindUsage || !strings.Contains(e.Why, tree) || !strings.Contains(e.Why, c.says) || e.Hint == "" {
				t.Errorf("%+v %v", res, err)
			}
			if after := listing(t, other); after != before {
				t.Errorf("the other tree was\n%sand is\n%s", before, after)
			}
			if now := len(below(t, os.Getpid())); now != procs {
				t.Errorf("%d processes, and there were %d", now, procs)
			}
		})
	}
}

// TestWorkspaceTreeSwapped: between two looks of one run's beginning a directory
// comes to stand where another was: it is given to nobody.
func TestWorkspaceTreeSwapped(t *testing.T) {
	runRootless(t)
	above, tree, other := twoTrees(t)
	list, err := grant.Open(tree)
	if err != nil {
		t.Fatal(err)
	}
	defer grant.Close(list)
	if err := unix.Renameat2(unix.AT_FDCWD, tree, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	if fd, err := list[0].OpenSame(tree); !errors.Is(err, grant.ErrReplaced) {
		t.Errorf("%d %v", fd, err)
	}
	if os.Geteuid() == 0 {
		if f, err := list[0].Mount(false, renamed); holdfast.KindOf(err) != holdfast.KindUsage {
			t.Errorf("%v %v", f, err)
		}
		return
	}
	_, err = startWorkspaceAt(t, list)
	if err == nil || !strings.Contains(err.Error(), grant.ErrReplaced.Error()) {
		t.Errorf("in %s: %v", above, err)
	}
}

// startWorkspaceAt has a launcher build a root around the trees, and returns how
// it ended.
func startWorkspaceAt(t *testing.T, trees []grant.Tree) (*launcherConn, error) {
	t.Helper()
	z, err := startWorkspace(&workroot.Root{ID: os.Geteuid(), Home: sandbox.WorkspaceHome, Host: "workspace",
		Trees: trees})
	if err != nil {
		return nil, err
	}
	<-z.done
	z.conn.Close()
	return z, ending(z.word(), z.stderr.String())
}

// TestWorkspaceTreeGone: whatever happens to a tree outside while a program works
// on it, the program ends by itself, what comes to stand in its place stays as it
// is, and what the run made in its own is found wherever that is.
func TestWorkspaceTreeGone(t *testing.T) {
	runRootless(t)
	for name, c := range map[string]struct {
		happens func(above, tree, other string) error
		says    string // of what the run made
	}{
		"removed": {happens: func(_, tree, _ string) error {
			return os.RemoveAll(tree)
		}},
		"renamed": {happens: func(above, tree, _ string) error {
			return os.Rename(tree, filepath.Join(above, "elsewhere"))
		}, says: "it was removed"},
		"another in its place": {happens: func(above, tree, other string) error {
			return errors.Join(os.Rename(tree, filepath.Join(above, "elsewhere")), os.Rename(other, tree), os.Mkdir(other, 0o755))
		}, says: "it was removed"},
		"a link in its place": {happens: func(above, tree, other string) error {
			return errors.Join(os.Rename(tree, filepath.Join(above, "elsewhere")), os.Symlink(other, tree))
		}, says: "it was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			above, tree, other := twoTrees(t)
			was := listing(t, other)
			done := make(chan error, 1)
			go func() { // what begins when it has made something, and ends when it is told
				for range 1000 {
					if _, err := os.Stat(filepath.Join(tree, "begun")); err == nil {
						break
					}
					unix.Nanosleep(&unix.Timespec{Nsec: 5_000_000}, nil)
				}
				at, err := os.OpenRoot(tree)
				if err != nil {
					done <- err
					return
				}
				defer at.Close()
				err = c.happens(above, tree, other)
				if name != "removed" {
					err = errors.Join(err, at.WriteFile("stop", nil, 0o644))
				}
				done <- err
			}()
			got := workIn(t, tree, "mkdir -p .git; echo . > .git/commondir; touch begun; while [ -e begun -o -e .git ] && [ ! -e stop ]; do sleep 0.01; done; exit 3", "")
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if got.ExitCode != 3 || !strings.Contains(string(got.Stderr), c.says) || c.says == "" && len(got.Stderr) > 0 && !strings.Contains(string(got.Stderr), "it was removed") {
				t.Errorf("%d %q %q", got.ExitCode, got.errs, got.Stderr)
			}
			at := other
			if name == "another in its place" {
				at = tree
			}
			if now := strings.ReplaceAll(listing(t, at), at, other); now != was {
				t.Errorf("the other tree was\n%sand is\n%s", was, now)
			}
			if made, _ := filepath.Glob(filepath.Join(above, "elsewhere", ".git", "commondir")); len(made) > 0 {
				t.Errorf("left behind: %v", made)
			}
		})
	}
}

// TestWorkspaceTreeUnmounted: a disk that is taken away under a program that
// works on it is another mount inside, and the program ends by itself.
func TestWorkspaceTreeUnmounted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts and unmounts")
	}
	above, _, _ := twoTrees(t)
	tree := filepath.Join(above, "disk")
	if err := errors.Join(os.Mkdir(tree, 0o755), unix.Mount("tmpfs", tree, "tmpfs", 0, "size=1m")); err != nil {
		t.Skip(err)
	}
	defer unix.Unmount(tree, unix.MNT_DETACH)
	done := make(chan error, 1)
	go func() {
		for range 1000 {
			if _, err := os.Stat(filepath.Join(tree, "begun")); err == nil {
				break
			}
			unix.Nanosleep(&unix.Timespec{Nsec: 5_000_000}, nil)
		}
		if err := unix.Unmount(tree, 0); err != unix.EBUSY { // as of any program that works there
			done <- errors.Join(errors.New("it was unmounted under a run"), err)
			return
		}
		at, err := os.OpenRoot(tree)
		if err != nil {
			done <- err
			return
		}
		defer at.Close()
		done <- errors.Join(unix.Unmount(tree, unix.MNT_DETACH), at.WriteFile("stop", nil, 0o644))
	}()
	got := workIn(t, tree, "touch begun; while [ ! -e stop ]; do sleep 0.01; done; exit 3", "")
	if err := <-done; err != nil || got.ExitCode != 3 {
		t.Errorf("%v %d %q %q", err, got.ExitCode, got.errs, got.Stderr)
	}
	if names, err := os.ReadDir(tree); err != nil || len(names) > 0 {
		t.Errorf("below the disk there is %v %v", names, err)
	}
}
