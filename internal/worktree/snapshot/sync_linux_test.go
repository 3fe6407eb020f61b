package snapshot

import (
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/syncwatch"
)

// TestVersionIsSynced: a version, a rollback and an archive survive a power cut. Each
// file is on disk before it gets its name.
func TestVersionIsSynced(t *testing.T) {
	w := syncwatch.StartAlone(t)
	if w == nil {
		return
	}
	s := newSite(t)
	kept := regexp.QuoteMeta(s.dir)
	s.write("a", "1")
	w.TakeSynced()
	m := s.take()
	temp := kept + `/\.new-.*\.tmp`
	w.Want(t, "a version", kept+"/.*/objects/.*", kept+`/.*/refs/.*\.lock`, temp, kept)
	s.write("a", "2")
	s.take()
	w.TakeSynced()
	s.back(m)
	w.Want(t, "a rollback", temp, kept, temp, kept, syncwatch.All)
	if err := s.k.Stop(Begun{Tree: s.tree}, errors.New("it was stopped")); err != nil {
		t.Fatal(err)
	}
	w.Want(t, "a rollback that waits", temp, kept)

	archives := t.TempDir()
	f, err := OpenFolder(archives)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	archives = regexp.QuoteMeta(archives)
	name := ArchiveName("20261116-020000-5f0c1e")
	w.TakeSynced()
	if err := f.Put(t.Context(), name, strings.NewReader("1"), func(io.Reader) error { return nil }); err != nil {
		t.Fatal(err)
	}
	w.Want(t, "an archive", filepath.Join(archives, ".+"), archives)
	if err := f.Remove(name); err != nil {
		t.Fatal(err)
	}
	w.Want(t, "an archive's removal", archives)
}
