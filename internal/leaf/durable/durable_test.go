package durable

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestReplaceWritesContentAndMode: both ways of replacing give the file its content and mode, whether or not a file
// exists, and leave nothing else in the directory.
func TestReplaceWritesContentAndMode(t *testing.T) {
	for name, replace := range map[string]func(string, []byte, fs.FileMode) error{
		"ReplaceFile": ReplaceFile, "ReplaceCache": ReplaceCache,
	} {
		for _, mode := range []fs.FileMode{0o600, 0o644, 0o640, 0o400} {
			path := filepath.Join(t.TempDir(), "file")
			for _, text := range []string{"first, longer", "second", ""} {
				if err := replace(path, []byte(text), mode); err != nil {
					t.Fatalf("%s, mode %o: %v", name, mode, err)
				}
				checkFile(t, path, text, mode)
			}
		}
	}
}

// TestReplaceFileKeepsReadersWhole: a reader finds one of the texts, whole, while several calls write.
func TestReplaceFileKeepsReadersWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := CreateFile(path, bytes.Repeat([]byte("0"), 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, c := range "12345678" {
		all.Go(func() {
			for range 8 {
				if err := ReplaceFile(path, bytes.Repeat([]byte(string(c)), 4096), 0o600); err != nil {
					t.Error(err)
				}
				b, err := os.ReadFile(path)
				if err != nil || len(b) != 4096 || !bytes.Equal(b, bytes.Repeat(b[:1], 4096)) {
					t.Errorf("%d bytes, %v", len(b), err)
				}
			}
		})
	}
	all.Wait()
	if names := listNames(t, filepath.Dir(path)); len(names) != 1 {
		t.Errorf("the directory has %q", names)
	}
}

// TestReplaceFailsWithoutTrace: an error leaves the old file, and no temporary one.
func TestReplaceFailsWithoutTrace(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "file")
	if err := os.MkdirAll(filepath.Join(taken, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceFile(taken, []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if names := listNames(t, dir); len(names) != 1 {
		t.Errorf("the directory has %q", names)
	}
	if err := ReplaceFile(filepath.Join(dir, "missing", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a missing directory: %v", err)
	}
}

// TestFillFileReportsErrors: content that cannot be written is an error of each step that fails.
func TestFillFileReportsErrors(t *testing.T) {
	f, err := os.Open(os.DevNull) // not open for writing
	if err != nil {
		t.Fatal(err)
	}
	if err := fillFile(f, []byte("x"), true); err == nil {
		t.Error("a file that is open for reading was written")
	}
	if err := f.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("the file is still open: %v", err)
	}
}

// TestCreateFileNeverReplaces: the first call wins, and a file that exists keeps its content.
func TestCreateFileNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := CreateFile(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CreateFile(path, []byte("second"), 0o644); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second file: %v", err)
	}
	checkFile(t, path, "first", 0o600)
	if err := CreateFile(filepath.Join(dir, "missing", "file"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a missing directory: %v", err)
	}
	if err := SyncDir(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory is synced: %v", err)
	}
}

// checkFile checks the content and the mode of the only file in a directory.
func checkFile(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || string(b) != text {
		t.Errorf("%s has %q, %v; want %q", path, b, err, text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
		t.Errorf("%s: %v, %v; want mode %o", path, info, err, mode)
	}
	if names := listNames(t, filepath.Dir(path)); len(names) != 1 {
		t.Errorf("the directory has %q", names)
	}
}

func listNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
