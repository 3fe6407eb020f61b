package versions

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
)

// openDaily is a daemon whose daily snapshot was due half a day ago, and not before.
func openDaily(t *testing.T) *trackedSite {
	t.Helper()
	return openTracked(t, fmt.Sprintf("  daily_at: %q\n", time.Now().UTC().Add(-12*time.Hour).Format("15:04")))
}

// spoiltGit is a git that gives no content back while it is spoilt, and is git else.
func spoiltGit(t *testing.T) (spoil, mend func()) {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	flag := filepath.Join(dir, "spoilt")
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *' cat-file '*) [ ! -e %s ] || exit 1;; esac\nexec %s \"$@\"\n", flag, real)
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() {
			if err := os.WriteFile(flag, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, func() {
			if err := os.Remove(flag); err != nil {
				t.Fatal(err)
			}
		}
}

// dailies are the daily snapshots, the newest first, each with how often it was found
// whole and damaged.
func (s *trackedSite) dailies() (told string) {
	s.t.Helper()
	k, err := s.d.snapshots.hand()
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := k.List()
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range list {
		if list[i].Reason != snapshot.Daily {
			continue
		}
		for _, ev := range s.events(list[i].ID, eventVerified) {
			told += fmt.Sprintf("%v ", ev["ok"])
		}
		told += "; "
	}
	return told
}

// TestDailySnapshotThatDoesNotVerify is verified again on the same day, and another is
// taken in its place, within bounds; status and the condition stay until one verifies.
func TestDailySnapshotThatDoesNotVerify(t *testing.T) {
	spoil, mend := spoiltGit(t)
	s := openDaily(t)
	s.write("a", "good")
	var day days
	now := time.Now()
	look := func(after time.Duration, want string, trouble bool) {
		t.Helper()
		now = now.Add(after)
		day.look(t.Context(), s.d.snapshots, now)
		told := s.dailies()
		p := strings.Join(s.d.snapshots.Problems(), "")
		if told != want || strings.Contains(p, ofDay.String()) != trouble || s.told(watch.SnapshotMissing) != trouble {
			t.Fatalf("%q, not %q; %q", told, want, p)
		}
	}
	spoil()
	look(0, "false ; ", true)
	look(dailyAgain-time.Second, "false ; ", true) // it waits
	look(time.Second, "false ; false false ; ", true)
	mend()
	look(dailyAgain, "false ; false false ; ", true) // it waits longer
	look(dailyAgain, "false true ; false false ; ", false)
	look(0, "false true ; false false ; ", false)
}

// TestDailySnapshotSaysWhyItIsMissing: the reason is told to its end, once, behind a
// path of usual length.
func TestDailySnapshotSaysWhyItIsMissing(t *testing.T) {
	s := openDaily(t)
	if err := os.Rename(s.tree, s.tree+".away"); err != nil {
		t.Fatal(err)
	}
	new(days).look(t.Context(), s.d.snapshots, time.Now())
	if p := strings.Join(s.d.snapshots.Problems(),
		""); !strings.HasSuffix(p, "the tree "+s.tree+" cannot be opened: no such file or directory") {
		t.Errorf("%q", p)
	}
}

// TestDailySnapshotAfterAChange: a configuration that changed is a reason to try again
// what failed, at once and once.
func TestDailySnapshotAfterAChange(t *testing.T) {
	s := openDaily(t)
	if err := os.Rename(s.tree, s.tree+".away"); err != nil {
		t.Fatal(err)
	}
	var l looks
	look := func(what string, trouble bool) {
		t.Helper()
		if l.look(t.Context(), s.d.snapshots, time.Now()); s.d.snapshots.troubled(ofDay) != trouble {
			t.Fatalf("%s: %q", what, s.d.snapshots.Problems())
		}
	}
	look("the tree is away", true)
	s.d.snapshots.Reloaded()
	look("it still is", true)
	if err := os.Rename(s.tree+".away", s.tree); err != nil {
		t.Fatal(err)
	}
	look("it waits", true)
	s.d.snapshots.Reloaded()
	look("the configuration changed", false)
}

// TestTroubleIsOfOneTree: that one tree is well says nothing of another whose path
// begins alike.
func TestTroubleIsOfOneTree(t *testing.T) {
	s := openDaily(t)
	long := "/srv/" + strings.Repeat("agents/", 16)
	s.d.snapshots.fail(ofActionIn(long+"one"), "no room")
	s.d.snapshots.fail(ofActionIn(long+"two"), "")
	if p := s.d.snapshots.Problems(); len(p) != 1 || !strings.Contains(p[0], long+"one") {
		t.Errorf("%q", p)
	}
}

// told says whether a condition holds.
func (s *trackedSite) told(name watch.Name) bool {
	s.t.Helper()
	return slices.ContainsFunc(s.d.watching.Watch.Hold(), func(h watch.State) bool { return h.Condition == name })
}

// TestDailySnapshotThatNobodyVerified: one that Holdfast was killed behind is verified
// at the next look, and no other is taken; one that somebody edited is replaced.
func TestDailySnapshotThatNobodyVerified(t *testing.T) {
	t.Parallel()
	s := openDaily(t)
	s.write("a", "good")
	today := func(want string) {
		t.Helper()
		err := s.d.snapshots.today(t.Context(), time.Now())
		if told := s.dailies(); err != nil || told != want {
			t.Fatalf("%q, not %q, %v", told, want, err)
		}
	}
	one := func() *snapshot.Manifest {
		t.Helper()
		m, err := s.d.snapshots.take(t.Context(), snapshot.Manifest{Reason: snapshot.Daily})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	one()
	today("true ; ")
	today("true ; ")
	path := filepath.Join(s.d.snapshots.Dir, one().ID+".json")
	b, err := os.ReadFile(path)
	if err := errors.Join(err, os.WriteFile(path, append(b, ' '), 0o600)); err != nil {
		t.Fatal(err)
	}
	today("true ; ; true ; ")
}

// TestSnapshotThatIsVerifiedOften: the last time counts, however many there were.
func TestSnapshotThatIsVerifiedOften(t *testing.T) {
	s := openDaily(t)
	s.write("a", "good")
	id := s.taken().ID
	for i, ok := range append(slices.Repeat([]bool{false}, 120), true, false) {
		if err := s.d.Kernel.Record(kernel.Event{Tenant: holdfast.Local, Crossing: id,
			Name: eventVerified, Who: s.d.snapshots.Person, Subject: id, Data: map[string]any{"ok": ok}}); err != nil {
			t.Fatal(err)
		}
		if i < 119 {
			continue
		}
		b, err := s.d.snapshots.Show(t.Context(), id)
		var shown shownSnapshot
		if err := errors.Join(err, json.Unmarshal(b, &shown)); err != nil {
			t.Fatal(err)
		}
		if (shown.Verified != "") != ok || (shown.Damaged != "") == ok || !shown.Recorded {
			t.Errorf("after %d, the last %v: %s", i+1, ok, b)
		}
	}
}
