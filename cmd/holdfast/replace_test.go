package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestReplaceIsWholeOrNot: whoever reads while several write finds one of the
// texts, whole, and nothing is left beside it.
func TestReplaceIsWholeOrNot(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if err := writeNew(path, bytes.Repeat([]byte("0"), 4096)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, c := range "12345678" {
		all.Go(func() {
			for range 8 {
				if err := replace(path, bytes.Repeat([]byte(string(c)), 4096)); err != nil {
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
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestReplaceLeavesWhatItCannotReplace: a failed one leaves nothing of its own.
func TestReplaceLeavesWhatItCannotReplace(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "key")
	if err := os.MkdirAll(filepath.Join(taken, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replace(taken, []byte("x")); err == nil {
		t.Error("a directory was replaced")
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
	if err := replace(filepath.Join(dir, "nowhere", "key"), []byte("x")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
