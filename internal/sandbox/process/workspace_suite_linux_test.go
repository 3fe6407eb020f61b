//go:build linux

package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// TestEscapeSuiteWorkspace runs the suite on work trees, behind the profile that
// they have. What it may do there by right stands in sandboxtest.Workspace.
func TestEscapeSuiteWorkspace(t *testing.T) {
	onlyHere(t)
	t.Parallel()
	part := choosePart(sandboxtest.EachWall())
	sandboxtest.Workspace(t, part, func(t *testing.T, program string) sandboxtest.Runner {
		return workspaces(t, program)
	})
}

// TestEscapeSuiteConnectedWorkspace runs it where they have a network, which is
// that of their launcher.
func TestEscapeSuiteConnectedWorkspace(t *testing.T) {
	onlyHere(t)
	t.Parallel()
	part := sandboxtest.Named("network/a connection", "node/a name by its own question", "files/read /etc/resolv.conf",
		"network/bluetooth", "network/packets", "files/read /etc/passwd", "namespace/unshare net", "kernel/bpf")
	sandboxtest.Connected(t, choosePart(part), func(t *testing.T, program string) sandboxtest.Runner {
		w := workspaces(t, program)
		w.connected = true
		return w
	})
}

// workspaceRunner makes of a run of code a run of its interpreter on a tree of
// its own, in which the code is a file.
type workspaceRunner struct {
	*Workspaces
	dir    string // where the trees are made
	tricks string // the compiled program, in a toolbox of its own

	connected bool // they have a network
}

func workspaces(t *testing.T, program string) *workspaceRunner {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &workspaceRunner{Workspaces: OpenWorkspaces(), dir: dir, tricks: program}
	t.Cleanup(func() { w.Close() })
	return w
}

func (w *workspaceRunner) Run(ctx context.Context, s sandbox.Spec) (*posture.Result, error) {
	tree, err := os.MkdirTemp(w.dir, "tree")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tree)
	spec := sandbox.Workspace{ID: s.ID, Tree: tree, Toolbox: []string{filepath.Dir(w.tricks)}, Timeout: s.Timeout, Need: s.Need,
		MemoryMB: cmp.Or(s.MemoryMB, sandbox.DefaultMemoryMB), Processors: 1, Processes: 66,
		Environment: map[string]string{"PATH": "/usr/bin:/bin", "HOME": sandbox.WorkspaceHome}}
	if w.connected {
		connected(&spec)
	}
	if s.CPUQuota > s.CPUPeriod {
		spec.Processors = int((s.CPUQuota + s.CPUPeriod - 1) / s.CPUPeriod)
	}
	for k, v := range s.Environment {
		spec.Environment[k] = v
	}
	if spec.Argv, err = w.argv(tree, s); err != nil {
		return nil, err
	}
	if spec, err = sandbox.CheckWorkspace(spec, func(string) bool { return false }); err != nil {
		return nil, err
	}
	res, err := w.streams(ctx, spec)
	return res, errors.Join(err, kept(tree))
}

// argv puts the code into the tree, and says what runs it.
func (w *workspaceRunner) argv(tree string, s sandbox.Spec) ([]string, error) {
	put := func(name string) error { return os.WriteFile(filepath.Join(tree, name), s.Code, 0o644) }
	switch s.Language {
	case "python3":
		return []string{"/usr/bin/python3", "-B", "-S", "-s", "main.py"}, put("main.py")
	case "node":
		node := onPath("node", "/usr/local/bin:/usr/bin:/bin")
		if node == "" {
			return nil, &holdfast.Error{Kind: holdfast.KindLanguage, Why: "the toolbox has no Node.js"}
		}
		return []string{node, "main.js"}, put("main.js")
	case sandbox.Static:
		return []string{w.tricks}, nil
	}
	return nil, fmt.Errorf("nothing runs %q on a tree", s.Language)
}

// streams runs spec with pipes, and puts what came through them into the result:
// Holdfast's own words behind the program's.
func (w *workspaceRunner) streams(ctx context.Context, spec sandbox.Workspace) (*posture.Result, error) {
	in, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	std := sandbox.Streams{In: in}
	var texts [2][]byte
	var reads sync.WaitGroup
	for i, f := range []**os.File{&std.Out, &std.Err} {
		from, to, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		*f = to
		reads.Go(func() {
			defer from.Close()
			texts[i], _ = io.ReadAll(io.LimitReader(from, 4<<20))
			io.Copy(io.Discard, from)
		})
	}
	echo := &echoing{}
	defer echo.close()
	res, err := w.Workspaces.RunConnected(ctx, spec, std, echo.hand)
	std.Out.Close()
	std.Err.Close()
	reads.Wait()
	if err != nil {
		return nil, err
	}
	res.Stdout, res.Stderr = texts[0], append(texts[1], res.Stderr...)
	return res, nil
}

// kept says what of a tree a run may not have made of it: files that are not its
// owner's, that run as somebody, or that are devices.
func kept(tree string) error {
	owner, err := os.Stat(tree)
	if err != nil {
		return err
	}
	own := owner.Sys().(*syscall.Stat_t)
	return filepath.WalkDir(tree, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		switch s := st.Sys().(*syscall.Stat_t); {
		case s.Uid != own.Uid || s.Gid != own.Gid:
			return fmt.Errorf("IT LEFT A FILE of user %d and group %d in the tree: %q", s.Uid, s.Gid, p)
		case st.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeDevice) != 0:
			return fmt.Errorf("IT LEFT A FILE of mode %v in the tree: %q", st.Mode(), p)
		case st.IsDir():
			os.Chmod(p, 0o700) // so that it can be looked into, and removed
		}
		return nil
	})
}
