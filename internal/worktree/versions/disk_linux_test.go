package versions

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testdisk"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
)

// TestVersionsLeaveRoomForTheLedger: where a version would take what is the ledger's,
// though the disk has room for it, nothing of it is written and it is said; the act is
// not harmed by it, but for one whose contract asks for versions, which does not begin.
// With room it goes on.
func TestVersionsLeaveRoomForTheLedger(t *testing.T) {
	if testdisk.RunOnSmallDisk(t, "96m") { // of which 6 are the ledger's
		return
	}
	s := openTracked(t, "")
	s.write("a", "good")
	if _, err := s.act("coder", "test/act", func() error { s.write("a", "better"); return nil }); err != nil {
		t.Fatal(err)
	}
	s.d.snapshots.lookAfter(t.Context())
	s.write("one", string(noise(6<<20)))
	s.write("two", string(noise(6<<20+1)))
	free := allBut(t, filepath.Dir(s.tree), 16<<20)
	before := packs(t, s.repository())
	out, err := s.act("coder", "test/act", func() error { s.write("a", "best"); return nil })
	if err != nil {
		t.Fatal(err)
	}
	s.d.snapshots.lookAfter(t.Context())
	if p := s.d.snapshots.Problems(); len(p) != 1 || !strings.Contains(p[0], ofActionIn(s.tree).String()) ||
		!strings.Contains(p[0], "no room") {
		t.Fatalf("%q", p)
	}
	if ev := s.events(out.Crossing, eventKept); len(ev) != 0 {
		t.Fatalf("%v", ev)
	}
	noRoomIn := func(err error) {
		t.Helper()
		var e *holdfast.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "no room") || !strings.Contains(err.Error(), "are the ledger's") {
			t.Fatalf("%v", err)
		}
	}
	_, err = s.d.snapshots.Take(t.Context(), "me", "")
	noRoomIn(err)
	_, err = s.act("coder", "test/careful", func() error { t.Error("it began"); return nil })
	noRoomIn(err)
	var list []snapshot.Manifest
	b, err := s.d.snapshots.List(t.Context())
	if err := errors.Join(err, json.Unmarshal(b, &list)); err != nil || len(list) != 0 || !slices.Equal(packs(t, s.repository()), before) {
		t.Fatalf("%v, %v, %v", list, packs(t, s.repository()), err)
	}
	free()
	if out, err = s.act("coder", "test/act", func() error { s.write("a", "the end"); return nil }); err != nil {
		t.Fatal(err)
	}
	s.d.snapshots.lookAfter(t.Context())
	if ev := s.events(out.Crossing, eventKept); len(ev) != 1 || len(s.d.snapshots.Problems()) != 0 {
		t.Fatalf("%v, %v", ev, s.d.snapshots.Problems())
	}
	s.taken()
}

// packs are the files in which a repository has its objects.
func packs(t *testing.T, repository string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(repository, "objects", "*", "*"))
	if err != nil || len(list) == 0 {
		t.Fatalf("%v, %v", list, err)
	}
	for i, path := range list {
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Fatalf("%s, %v", list[i], err)
		}
	}
	return list
}
