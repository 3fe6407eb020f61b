package language

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"golang.org/x/sys/unix"
)

// small is a language of two files, quick to build.
func small(t *testing.T) (Language, string) {
	t.Helper()
	src := t.TempDir()
	for _, n := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(src, n), []byte(n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(src, "out")); err != nil {
		t.Fatal(err)
	}
	return Language{Name: "small", Exact: "small1", parts: func(m *manifest) error {
		return m.tree(src, "/usr/lib/small", func(string) bool { return false })
	}}, src
}

func TestRootIsBuiltOnce(t *testing.T) {
	l, _ := small(t)
	dir := t.TempDir()
	var notes []string
	note := func(s string) { notes = append(notes, s) }
	for range 3 {
		r, err := l.Root(context.Background(), dir, note)
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
	}
	if len(notes) != 1 {
		t.Errorf("%q", notes)
	}
	r, _ := l.Root(context.Background(), dir, note)
	defer r.Release()
	if _, err := os.Lstat(filepath.Join(r.Path, "usr/lib/small/out")); err == nil {
		t.Error("a link that leads out of the tree was followed")
	}
}

// TestChangedRootIsNoticed: whatever is done to a root's tree, it is built anew.
func TestChangedRootIsNoticed(t *testing.T) {
	l, _ := small(t)
	for what, do := range map[string]func(root string) error{
		"a changed file": func(root string) error {
			p := filepath.Join(root, "usr/lib/small/a")
			info, err := os.Stat(p)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(p, []byte("X"), 0o644), os.Chtimes(p, info.ModTime(), info.ModTime()))
		},
		"an added file":  func(root string) error { return os.WriteFile(filepath.Join(root, "usr/new"), nil, 0o644) },
		"a removed file": func(root string) error { return os.Remove(filepath.Join(root, "usr/lib/small/b")) },
		"a link":         func(root string) error { return os.Symlink("/", filepath.Join(root, "host")) },
		"another mode":   func(root string) error { return os.Chmod(filepath.Join(root, "dev/null"), 0o666) },
		"no list":        func(root string) error { return os.Remove(filepath.Join(root, "../files")) },
		"a broken list":  func(root string) error { return os.WriteFile(filepath.Join(root, "../files"), []byte("{"), 0o600) },
		"an empty list":  func(root string) error { return os.WriteFile(filepath.Join(root, "../files"), []byte("{}"), 0o600) },
		"no tree":        func(root string) error { return os.RemoveAll(root) },
	} {
		dir := t.TempDir()
		r, err := l.Root(context.Background(), dir, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
		if err := do(r.Path); err != nil {
			t.Fatal(what, err)
		}
		var notes []string
		r, err = l.Root(context.Background(), dir, func(s string) { notes = append(notes, s) })
		if err != nil {
			t.Fatal(what, err)
		}
		r.Release()
		if len(notes) != 2 || !strings.Contains(notes[0], "anew") {
			t.Errorf("%s: %q", what, notes)
		}
		if b, err := os.ReadFile(filepath.Join(r.Path, "usr/lib/small/a")); string(b) != "a" {
			t.Errorf("%s: %q, %v", what, b, err)
		}
	}
}

// TestNewRuntimeMakesNewRoot: a host that changed gets another root, and the old
// one goes when nobody uses it.
func TestNewRuntimeMakesNewRoot(t *testing.T) {
	l, src := small(t)
	dir := t.TempDir()
	old, err := l.Root(context.Background(), dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(src, "a"), []byte("newer"), 0o600); err != nil {
		t.Fatal(err)
	}
	next, err := l.Root(context.Background(), dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Release()
	if next.Path == old.Path {
		t.Fatal("the root does not follow the host")
	}
	if _, err := os.Stat(old.Path); err != nil {
		t.Errorf("a root in use was removed: %v", err)
	}
	old.Release()
	again, err := l.Root(context.Background(), dir, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Release()
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("left in the directory: %v", entries)
	}
}

func TestManyBuildAtOnce(t *testing.T) {
	l, _ := small(t)
	dir := t.TempDir()
	var wg sync.WaitGroup
	paths, errs := make([]string, 16), make([]error, 16)
	for i := range paths {
		wg.Go(func() {
			r, err := l.Root(context.Background(), dir, func(string) {})
			paths[i], errs[i] = r.Path, err // held to the end
		})
	}
	wg.Wait()
	for i := range paths {
		if errs[i] != nil || paths[i] != paths[0] {
			t.Errorf("%s, %v", paths[i], errs[i])
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left in the directory: %v", entries)
	}
}

// TestBuilderIsOvertaken: while one builds, another is there first, and what the host
// has changes, so that a third takes away what nobody uses: the first gets what the
// second has built, and the third keeps its own.
func TestBuilderIsOvertaken(t *testing.T) {
	quick, src := small(t)
	slow, dir := quick, t.TempDir()
	var second, third Root
	var between []string
	slow.finish = func(ctx context.Context, _ string) (err error) {
		note := func(s string) { between = append(between, s) }
		if second, err = quick.Root(ctx, dir, note); err != nil {
			return err
		}
		file := filepath.Join(src, "a")
		if err := os.WriteFile(file, []byte("newer"), 0o600); err != nil {
			return err
		}
		third, err = quick.Root(ctx, dir, note)
		return err
	}
	first, err := slow.Root(t.Context(), dir, func(s string) { t.Errorf("it says %q of what others did", s) })
	if err != nil {
		t.Fatal(err)
	}
	if first.Path != second.Path || first.Path == third.Path || len(between) != 2 {
		t.Errorf("%s, %s, %s: %q", first.Path, second.Path, third.Path, between)
	}
	second.Release()
	for _, r := range []Root{first, third} {
		if err := whole(r.Copy.Home); err != nil {
			t.Errorf("%s: %v", r.Path, err)
		}
		r.Release()
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left in the directory: %v", entries)
	}
}

// TestFullDiskIsNamed builds on a file system of 1 MB, in a mount namespace of
// its own where the kernel gives one, else by the error alone.
func TestFullDiskIsNamed(t *testing.T) {
	err := mountError("python3.11", "/x", fmt.Errorf("copy: %w", unix.ENOSPC))
	var e *holdfast.Error
	if !errors.As(err, &e) || e.Kind != holdfast.KindMount || !strings.Contains(e.Hint, "free space") {
		t.Errorf("%v", err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk here")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("no small disk: ", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	l := installed(t, "python3")
	_, err = l.Root(context.Background(), dir, func(string) {})
	if !errors.As(err, &e) || e.Kind != holdfast.KindMount || !strings.Contains(e.Hint, "free space") {
		t.Errorf("%v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("a half-built root was left: %v", entries)
	}
}

func TestHaltedBuildLeavesNothing(t *testing.T) {
	l, _ := small(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	if _, err := l.Root(ctx, dir, func(string) {}); err == nil {
		t.Error("built though it was stopped")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left: %v", entries)
	}
}
