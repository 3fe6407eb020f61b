package versions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/ledger"
)

// openArchived is a daemon with one tracked tree, whose archives go to a folder.
func openArchived(t *testing.T) (s *trackedSite, folder string) {
	t.Helper()
	s = openTracked(t, "  archive: {folder: archives}\n")
	folder = filepath.Join(filepath.Dir(s.tree), "archives")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("a", "good")
	return s, folder
}

// configure changes where archives go.
func (s *trackedSite) configure(change func(*Archive)) {
	c := s.d.snapshots.current()
	change(&c.Archive)
	s.d.snapshots.Set(c)
}

func (s *trackedSite) taken() *snapshot.Manifest {
	s.t.Helper()
	m, err := s.d.snapshots.take(s.t.Context(), snapshot.Manifest{Who: "me", Reason: "asked for"})
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// files are the names in a folder.
func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		out = append(out, f.Name())
	}
	return out
}

// Test001_Layer3_WeeklyArchive: once a week a snapshot goes to another folder, with
// the ledger, and is verified by restoring it; anybody can verify it who has the
// public key, and no other key is in it.
func Test001_Layer3_WeeklyArchive(t *testing.T) {
	t.Parallel()
	s, folder := openArchived(t)
	var w weekly
	w.look(t.Context(), s.d.snapshots, time.Now())
	if list := files(t, folder); len(list) != 0 {
		t.Fatalf("%v, before there is a daily snapshot", list)
	}
	if err := s.d.snapshots.today(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	id, err := newestOf(s.d.snapshots.keeper)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := s.d.snapshots.read(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.look(t.Context(), s.d.snapshots, m.At)
		if p := s.d.snapshots.Problems(); len(p) != 0 {
			t.Fatal(p)
		}
		if list := files(t, folder); len(list) != 1 || list[0] != snapshot.ArchiveName(id) {
			t.Fatalf("%v", list)
		}
		w = weekly{} // as after a restart
	}
	w.look(t.Context(), s.d.snapshots, m.At.Add(7*24*time.Hour))
	file := filepath.Join(folder, snapshot.ArchiveName(id))
	info, err := os.Lstat(file)
	if list := files(t, folder); len(list) != 1 || err != nil || info.Mode() != 0o600 {
		t.Fatalf("%v, %v, %v", list, info, err)
	}
	r, err := VerifyArchive(t.Context(), file, t.TempDir(), s.d.signer.Verifier())
	if err != nil {
		t.Fatal(err)
	}
	ev := s.events(id, eventArchived)
	if len(ev) != 1 || ev[0]["done"] != true || ev[0]["sha256"] != r.SHA256 || ev[0]["bytes"] != float64(r.Bytes) || ev[0]["verified"] != readBack || ev[0]["crossing"] == nil {
		t.Fatalf("%v, %+v", ev, r)
	}
	if r.Manifest.ID != id || r.Leaves < 4 || r.OwnKey {
		t.Errorf("%+v", r)
	}
	other, err := ledger.GenerateKey(strings.NewReader(strings.Repeat("x", 64)), s.d.runtime)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyArchive(t.Context(), file, t.TempDir(), other.Verifier()); holdfast.KindOf(err) != holdfast.KindConflict {
		t.Errorf("under another key: %v", err)
	}
	s.holdsNoKey(file)
	if left, err := filepath.Glob(filepath.Join(s.d.snapshots.Dir, scratchName+"*")); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// holdsNoKey looks for every key of the state in what an archive holds.
func (s *trackedSite) holdsNoKey(file string) {
	s.t.Helper()
	f, err := os.Open(file)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	dir := s.t.TempDir()
	if _, err := snapshot.Unpack(s.t.Context(), f, dir); err != nil {
		s.t.Fatal(err)
	}
	var held strings.Builder
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		held.Write(b)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, path := range []string{s.d.Paths.LedgerKey, s.d.Paths.SealKey, s.d.Paths.TokenKey} {
		b, err := os.ReadFile(path)
		if err != nil {
			s.t.Fatal(err)
		}
		f := strings.Fields(string(b))
		if key := f[len(f)-1]; len(key) < 40 || strings.Contains(held.String(), key[len(key)-30:]) {
			s.t.Errorf("%s is in it", path)
		}
	}
}

// Test001_Layer3_ArchiveRetention: archives stay for a year. Only what this ledger
// has, byte for byte, is dropped, each recorded, and never the newest 52.
func Test001_Layer3_ArchiveRetention(t *testing.T) {
	s, folder := openArchived(t)
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	put := func(at time.Time, text, recorded string) string {
		t.Helper()
		id := at.Format("20060102-150405-") + "5f0c1e"
		if err := os.WriteFile(filepath.Join(folder, snapshot.ArchiveName(id)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if recorded != "" {
			sum := newSummed(&strings.Builder{})
			fmt.Fprint(sum, recorded)
			err := s.d.Kernel.Record(kernel.Event{Tenant: holdfast.Local, Crossing: id, Name: eventArchived, Who: keeperAgent, Subject: snapshotArchive, Data: map[string]any{"done": true, "sha256": sum.text()}})
			if err != nil {
				t.Fatal(err)
			}
		}
		return id
	}
	old := put(now.Add(-367*24*time.Hour), "old", "old")
	if err := s.d.snapshots.clear(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if list := files(t, folder); len(list) != 1 {
		t.Fatalf("the newest was dropped")
	}
	for i := range weeks - 2 {
		put(now.Add(-time.Duration(7*i)*24*time.Hour), "of a week", "of a week")
	}
	if err := s.d.snapshots.clear(t.Context(), now.Add(9*year)); err != nil { // the clock jumped ahead
		t.Fatal(err)
	}
	if list := files(t, folder); len(list) != 1+weeks-2 {
		t.Fatalf("of %d archives there are %d", 1+weeks-2, len(list))
	}
	for i, more := range []struct{ text, recorded string }{{"of another Holdfast", ""}, {"changed", "as written"}} {
		put(now.Add(-time.Duration(400+i)*24*time.Hour), more.text, more.recorded)
	}
	young := put(now.Add(-364*24*time.Hour), "young", "young")
	put(now.Add(24*time.Hour), "ahead", "ahead")
	if err := os.WriteFile(filepath.Join(folder, "notes of a person"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.d.snapshots.clear(t.Context(), now.Add(-8000*time.Hour)); err != nil { // the clock was set back
		t.Fatal(err)
	}
	if list := files(t, folder); len(list) != 6+weeks-2 {
		t.Fatalf("%v", list)
	}
	if err := s.d.snapshots.clear(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	list := files(t, folder)
	if len(list) != 5+weeks-2 || slices.Contains(list, snapshot.ArchiveName(old)) || !slices.Contains(list, snapshot.ArchiveName(young)) {
		t.Fatalf("%v", list)
	}
	if ev := s.events(old, eventCleared); len(ev) != 1 || ev[0]["bytes"] != 3.0 {
		t.Errorf("%v", ev)
	}
}

// TestArchiveThatCannotBeWritten: where it goes to is no place for it, or something
// else is there. It is named, told of, and nothing is lost; agents go on.
func TestArchiveThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s, folder := openArchived(t)
	m := s.taken()
	fails := func(why string) {
		t.Helper()
		_, err := s.d.snapshots.archive(t.Context(), "me", m.ID, "asked for")
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", why, err)
		}
		ev := s.events(m.ID, eventArchived)
		if last := ev[len(ev)-1]; last["done"] != false || last["error"] == nil {
			t.Errorf("%v", last)
		}
	}
	at := func(path string) {
		s.configure(func(c *Archive) { c.Dir = path })
	}
	at(folder + ".away")
	fails("cannot be used")
	if err := errors.Join(os.Mkdir(folder+".open", 0o755), os.Chmod(folder+".open", 0o777), os.Mkdir(filepath.Join(s.d.Paths.Dir, "in"), 0o700)); err != nil {
		t.Fatal(err)
	}
	at(folder + ".open")
	fails("written by others")
	at(filepath.Join(s.d.Paths.Dir, "in"))
	fails("lies within")
	if err := os.Symlink(s.tree, folder+".link"); err != nil {
		t.Fatal(err)
	}
	at(folder + ".link")
	fails("work tree")
	if err := os.WriteFile(folder+".file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at(folder + ".file")
	fails("cannot be used")

	at(folder)
	file := filepath.Join(folder, snapshot.ArchiveName(m.ID))
	if err := os.WriteFile(file, []byte("a person's"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails("is not the archive of this snapshot")
	if b, err := os.ReadFile(file); string(b) != "a person's" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	// What a crash left half written goes, and the archive comes.
	half := filepath.Join(s.d.snapshots.Dir, scratchName+"half")
	err := errors.Join(os.Remove(file), os.Mkdir(half, 0o700), os.WriteFile(filepath.Join(folder, "."+snapshot.ArchiveName(m.ID)+".tmp"), []byte("half"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		a, err := s.d.snapshots.archive(t.Context(), "me", "", "asked for")
		if err != nil || a.Found != (i == 1) || a.Path != file || a.Bytes == 0 {
			t.Fatalf("%d: %+v, %v", i, a, err)
		}
	}
	if list := files(t, folder); len(list) != 1 {
		t.Errorf("%v", list)
	}
	if _, err := os.Lstat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if out, err := s.act("coder", "test/act", func() error { return nil }); err != nil {
		t.Errorf("%v, %v", out, err)
	}
}

// TestArchiveOfTheWeekThatFails is a problem that status names, until there is one.
func TestArchiveOfTheWeekThatFails(t *testing.T) {
	t.Parallel()
	s, folder := openArchived(t)
	if err := errors.Join(s.d.snapshots.today(t.Context(), time.Now()), os.Remove(folder)); err != nil {
		t.Fatal(err)
	}
	var w weekly
	now := time.Now()
	told := func() bool {
		return slices.ContainsFunc(s.d.snapshots.Problems(),
			func(p string) bool { return strings.HasPrefix(p, ofArchive.String()) })
	}
	w.look(t.Context(), s.d.snapshots, now)
	if !told() || !w.again.After(now) {
		t.Fatal("nobody is told, or it is tried again at once")
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	w.look(t.Context(), s.d.snapshots, now)
	if !told() {
		t.Error("it is tried again at once")
	}
	w.again = now
	w.look(t.Context(), s.d.snapshots, now)
	if told() || len(files(t, folder)) != 1 {
		t.Errorf("%v, %v", s.d.snapshots.Problems(), files(t, folder))
	}
}

// TestArchiveOfTheWeekByAPerson: what a person has archived of a week is the archive
// of the week, from then on.
func TestArchiveOfTheWeekByAPerson(t *testing.T) {
	t.Parallel()
	s, folder := openArchived(t)
	if err := errors.Join(s.d.snapshots.today(t.Context(), time.Now()), os.Remove(folder)); err != nil {
		t.Fatal(err)
	}
	var w weekly
	w.look(t.Context(), s.d.snapshots, time.Now())
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	daily, err := newestOf(s.d.snapshots.keeper)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id   string
		left bool
	}{{s.taken().ID, true}, {daily, false}} {
		if _, err := s.d.snapshots.Archive(t.Context(), "me", c.id); err != nil {
			t.Fatal(err)
		}
		if p := s.d.snapshots.Problems(); (len(p) > 0) != c.left {
			t.Errorf("%q", p)
		}
	}
	w.again = time.Time{}
	w.look(t.Context(), s.d.snapshots, time.Now())
	if list := files(t, folder); len(list) != 2 || w.week == 0 {
		t.Errorf("%v, %+v", list, w)
	}
}

// TestD12_ArchivesAreHoldfastsOwn: no agent has any business with them.
func TestD12_ArchivesAreHoldfastsOwn(t *testing.T) {
	s, folder := openArchived(t)
	if own := s.d.Kernel.Policy().Own; !slices.Contains(own, folder) {
		t.Errorf("%v lacks %s", own, folder)
	}
}

// TestArchiveThatTheLedgerDoesNotHave: an archive whose parts are whole, and whose
// ledger has no record of the snapshot, is none.
func TestArchiveThatTheLedgerDoesNotHave(t *testing.T) {
	s, folder := openArchived(t)
	s.taken()
	m, err := s.d.snapshots.keeper.Take(t.Context(), s.d.snapshots.current().ListTrees(),
		snapshot.Manifest{Reason: "forged"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.d.snapshots.archive(t.Context(), "me", m.ID, "asked for"); err == nil || !strings.Contains(err.Error(), "not the one that the ledger has") {
		t.Errorf("%v", err)
	}
	a := &archived{Archive: snapshot.ArchiveName(m.ID)}
	file, err := s.d.snapshots.packInto(t.Context(), s.d.snapshots.keeper, m, folder, a)
	if err != nil {
		t.Fatal(err)
	}
	var own *holdfast.Error
	if _, err := VerifyArchive(t.Context(), file, "", s.d.signer.Verifier()); !errors.As(err, &own) || own.Rule != "archive/unrecorded" {
		t.Errorf("%v", err)
	}
}

// TestArchiveWhileHalted: what stands still is archived too, and the event alone
// tells of it.
func TestArchiveWhileHalted(t *testing.T) {
	s, _ := openArchived(t)
	m := s.taken()
	if _, err := s.d.Kernel.Halt("me", "look"); err != nil {
		t.Fatal(err)
	}
	b, err := s.d.snapshots.Archive(t.Context(), "me", m.ID)
	var a archived
	if err = errors.Join(err, json.Unmarshal(b, &a)); err != nil {
		t.Fatal(err)
	}
	if ev := s.events(m.ID, eventArchived); len(ev) != 1 || ev[0]["sha256"] != a.SHA256 || ev[0]["crossing"] != nil {
		t.Errorf("%v", ev)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.d.snapshots.Archive(ctx, "me", m.ID); err == nil {
		t.Error("it went on")
	}
}
