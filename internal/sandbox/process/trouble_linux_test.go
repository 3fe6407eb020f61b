package process

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/bystander"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/cgroup"
)

// TestTroublesAreSaidSometimes: the first at once, then each kind once a minute,
// with how many there were between; and all are counted.
func TestTroublesAreSaidSometimes(t *testing.T) {
	var said []string
	now := time.Unix(1_800_000_000, 0)
	x := &troubles{say: func(s string) { said = append(said, s) }, now: func() time.Time { return now }}
	for range 1000 {
		x.groupLeft(errors.New("busy"))
	}
	x.seatFailed(errors.New("no room"))
	now = now.Add(saidEvery)
	x.groupLeft(errors.New("busy"))
	want := []string{"left behind: busy", "made nothing ready for the next run: no room", "left behind: busy (999 more like it since)"}
	if !slices.Equal(said, want) {
		t.Errorf("said %q", said)
	}
	want = []string{"the sandbox left 1001 control groups behind: busy", "the sandbox cannot make ready for runs: no room"}
	if got := x.list(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	x.seatMade()
	if got := x.list(); !slices.Equal(got, want[:1]) {
		t.Errorf("%q after a seat was made", got)
	}
}

// TestAGroupThatStaysIsTold: what still lives in a seat's group when the seat is
// freed is killed, so that the group goes; one that cannot be removed even so is
// told.
func TestAGroupThatStaysIsTold(t *testing.T) {
	t.Parallel()
	b := tier(t)
	if !slices.Contains(b.Posture().Up, posture.WallPids) {
		t.Skip("there are no control groups here")
	}
	share := sandbox.Share{Memory: 64 << 20, Period: 100 * time.Millisecond,
		Quota: 100 * time.Millisecond, Pids: 32}
	seat := func(id string) *seat {
		g, err := b.groups.Create(id, share)
		if err != nil {
			t.Fatal(err)
		}
		return &seat{group: g, init: -1, tapeFD: -1, troubles: &b.troubles}
	}
	s := seat("stayer")
	dir, _ := s.group.Dir()
	p, err := bystander.Start(dir, s.group.Entrances())
	if err != nil {
		t.Fatal(err)
	}
	s.free()
	var status unix.WaitStatus
	if _, err := unix.Wait4(p.PID, &status, 0, nil); err != nil || status.Signal() != unix.SIGKILL {
		t.Errorf("%v, status %x", err, status)
	}
	p.End()
	if got := b.Troubles(); len(got) != 0 {
		t.Errorf("a group that went is told: %q", got)
	}

	s = seat("nested")
	nested, _ := filepath.Glob(b.groups.Homes()[0] + "/*-nested")
	if len(nested) != 1 {
		t.Fatalf("the groups are %q", nested)
	}
	inner := nested[0] + "/inner"
	if err := unix.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	s.free()
	if got := b.Troubles(); len(got) != 1 || !strings.Contains(got[0], "left 1 control groups behind") || !strings.Contains(got[0], nested[0]) {
		t.Errorf("%q", got)
	}
	if err := errors.Join(unix.Rmdir(inner), unix.Rmdir(nested[0])); err != nil {
		t.Error(err)
	}
}

// TestSeatsThatCannotBeMadeAreTold, until they can be again.
func TestSeatsThatCannotBeMadeAreTold(t *testing.T) {
	b := withoutGroups(t)
	l, err := b.language(t.Context(), sandbox.Static)
	if err != nil {
		t.Fatal(err)
	}
	z, err := b.launcher(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	none, base := b.groups, t.TempDir()
	if b.groups, err = cgroup.NewUntried(base, "pids"); err != nil {
		t.Fatal(err)
	}
	defer b.groups.Close()
	b.refill(z)
	b.making.Wait()
	if got := b.Troubles(); len(got) != 1 || !strings.Contains(got[0], "cannot make ready for runs") || !strings.Contains(got[0], base) {
		t.Errorf("%q", got)
	}
	b.groups = none
	b.refill(z)
	b.making.Wait()
	if got := b.Troubles(); len(got) != 0 || len(z.seats) != seatsReady {
		t.Errorf("%q, and %d seats wait", got, len(z.seats))
	}
}
