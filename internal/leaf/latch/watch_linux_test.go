package latch

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What happens to the name is told, however it comes there or goes; what
// happens to other names, and what is written into files that are there, is not.
func TestD34_Watch(t *testing.T) {
	dir := t.TempDir()
	beside := filepath.Join(dir, "beside")
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(beside)
	ch, stop := Watch(filepath.Join(dir, "HALT"), slog.New(slog.DiscardHandler))
	defer stop()
	told := func(what string, want bool) {
		t.Helper()
		wait := 100 * time.Millisecond
		if want {
			wait = time.Minute
		}
		select {
		case <-ch:
			if !want {
				t.Errorf("told of %s", what)
			}
		case <-time.After(wait):
			if want {
				t.Errorf("not told of %s", what)
			}
		}
	}
	file := filepath.Join(dir, "HALT")
	for range 50 {
		write(beside)
	}
	write(filepath.Join(dir, "HALT-"))
	write(filepath.Join(dir, "halt"))
	told("other files", false)
	write(file)
	told("a file", true)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	told("its removal", true)
	if err := os.Rename(beside, file); err != nil {
		t.Fatal(err)
	}
	told("a file that is moved there", true)
	if err := os.Rename(file, beside); err != nil {
		t.Fatal(err)
	}
	told("a file that is moved away", true)
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	told("a directory", true)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	told("the end of it all", true)
	none, stopNone := Watch(filepath.Join(dir, "nowhere", "HALT"), slog.New(slog.DiscardHandler))
	defer stopNone()
	if none != nil {
		t.Error("a directory that is not there is watched")
	}
}
