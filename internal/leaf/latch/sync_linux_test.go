package latch

import (
	"errors"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/syncwatch"
)

// TestLatchIsSynced: a halt and its end survive a power cut. The content is on disk
// before its name.
func TestLatchIsSynced(t *testing.T) {
	w := syncwatch.StartAlone(t)
	if w == nil {
		return
	}
	l := latch(t)
	dir := regexp.QuoteMeta(filepath.Dir(l.Path()))
	temp := dir + `/\.HALT-.*\.tmp`
	if err := l.Set("maria", "runaway loop", noon); err != nil {
		t.Fatal(err)
	}
	w.Want(t, "a halt", temp, dir)
	if err := l.Reword("maria", "another reason"); err != nil {
		t.Fatal(err)
	}
	w.Want(t, "another reason", temp, dir)
	if err := l.Clear(); err != nil {
		t.Fatal(err)
	}
	w.Want(t, "the end of a halt", dir)
	if set, err := l.bare(errors.New("the disk is full")); !set {
		t.Fatal(err)
	}
	w.Want(t, "a halt without a reason", regexp.QuoteMeta(l.Path()), dir)
}
