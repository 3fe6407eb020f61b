package process

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process/hostlimit"
)

// TestTrialsAgreeWithPosture: every wall that the tier says stands, stands, and
// of the others each is told with what to do.
func TestTrialsAgreeWithPosture(t *testing.T) {
	b := tier(t)
	up := b.Posture().Up
	// One that hangs ends with its context, and is then not known.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	found := b.Trials(ctx)
	for range 2 { // a busy machine may need longer than they are given
		if len(found) > 1 {
			break
		}
		t.Logf("%+v", found)
		found = b.Trials(ctx)
	}
	var walls []posture.Wall
	for _, f := range found {
		walls = append(walls, f.Wall)
		if f.Why == "" {
			t.Errorf("%s says nothing", f.Wall)
		}
		if f.Holds != slices.Contains(up, f.Wall) || f.Holds == f.Known {
			t.Errorf("%+v, and the posture has %v", f, up)
		}
		if !f.Holds && f.Hint == "" {
			t.Errorf("%s: nothing is said about what to do", f.Wall)
		}
	}
	if !slices.Equal(walls, posture.Walls()) {
		t.Errorf("%v", walls)
	}
}

// TestTrialsFindABrokenWall: the same calls outside the walls get other answers,
// and each is told of as the wall's failure.
func TestTrialsFindABrokenWall(t *testing.T) {
	for _, tr := range trials() {
		if tr.ask.nr == unix.SYS_PRCTL && tr.ask.args[0] == unix.PR_CAPBSET_READ {
			if tr.want(1) {
				t.Errorf("%s: a capability that is there passes", tr.what)
			}
			continue
		}
		if tr.want(7) || tr.want(noAnswer) || tr.want(-int64(unix.EPERM)) {
			t.Errorf("%s: any answer passes", tr.what)
		}
	}
	x := &examination{t: tier(t), ctx: t.Context(), broken: map[posture.Wall]string{}}
	x.fail(posture.WallNet, "making a socket: the answer was %s", answerWords(3))
	x.fail(posture.WallNet, "a second reason")
	for _, f := range x.found() {
		if f.Wall == posture.WallNet && (f.Holds || f.Known || f.Why != "making a socket: the answer was 3" || f.Hint == "") {
			t.Errorf("%+v", f)
		}
	}
}

// TestAdvice: what a system says of itself leads to what to do about it.
func TestAdvice(t *testing.T) {
	namespace := &holdfast.Error{Kind: holdfast.KindNamespace, Why: "no", Hint: "run `holdfast doctor`"}
	namespace.Err = hostlimit.SeeDoctor{Cause: errors.New("no")}
	for want, c := range map[string]struct {
		err   error
		files map[string]string
	}{
		"kernel.unprivileged_userns_clone=1": {namespace, map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0"}},
		"AppArmor":                           {namespace, map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}},
		"user.max_user_namespaces":           {namespace, map[string]string{"/proc/sys/user/max_user_namespaces": "0"}},
		"systempaths=unconfined":             {namespace, map[string]string{"/proc/self/mountinfo": "9 8 0:5 / /proc/kcore rw - tmpfs tmpfs rw\n"}},
		"seccomp=unconfined":                 {namespace, map[string]string{"/proc/self/status": "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1"}},
		"seccomp user notification":          {&holdfast.Error{Kind: holdfast.KindSeccomp}, map[string]string{"/proc/sys/kernel/seccomp/actions_avail": "kill_process kill_thread errno allow"}},
		"another program that watches":       {&holdfast.Error{Kind: holdfast.KindSeccomp}, map[string]string{"/proc/sys/kernel/seccomp/actions_avail": "kill_process user_notif allow"}},
		"need Linux 5.14":                    {errors.New("no"), nil},
	} {
		if got := advice(c.err, func(path string) string { return c.files[path] }); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if f := unusable(namespace); f.Holds || !f.Known || !strings.Contains(f.Why, "no code can be run here: no") || strings.Contains(f.Hint, "holdfast doctor") {
		t.Errorf("%+v", f)
	}
}

// TestTraceSees what a run could leave behind, each thing by itself.
func TestTraceSees(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b := tier(t)
	before := b.Trace()
	f, err := os.CreateTemp("", "left")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if after := b.Trace(); after.Files != before.Files+1 || after.Descriptors <= before.Descriptors {
		t.Errorf("%+v, before %+v", after, before)
	}
	if _, err := b.Run(t.Context(), sandbox.Spec{ID: "one", Language: sandbox.Static, Code: probe(), Need: anyWalls}); err != nil {
		t.Fatal(err)
	}
	b.Settle(t.Context())
	after := b.Trace()
	// A launcher, with four that wait.
	if after.Processes != before.Processes+1+seatsReady || after.Namespaces < before.Namespaces+6*seatsReady || after.Mounts <= before.Mounts || after.Descriptors <= before.Descriptors {
		t.Errorf("%+v, before %+v", after, before)
	}
	groups := before.Groups + seatsReady*len(b.groups.Homes())
	for _, home := range b.groups.Homes() {
		if _, err := os.Stat(home + "/cgroup.controllers"); err == nil { // of version 2
			groups++ // the launcher's
		}
	}
	if after.Groups != groups {
		t.Errorf("%d groups, before %d", after.Groups, before.Groups)
	}
}

// TestManyRunsLeaveNothing: after 10 000 runs there is what there was before.
func TestManyRunsLeaveNothing(t *testing.T) {
	runs := testrepeat.Times(10_000, 60) / 3 * 3
	t.Setenv("TMPDIR", t.TempDir())
	b := tier(t)
	spec := sandbox.Spec{ID: "many", Language: sandbox.Static, Need: anyWalls,
		Code: probe(asking(unix.SYS_OPENAT, unix.AT_FDCWD, "/tmp/left", unix.O_WRONLY|unix.O_CREAT, 0o600))}
	all := func(n int) {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range n / 3 {
					res, err := b.Run(t.Context(), spec)
					if err != nil || res.ExitCode != 0 || len(res.OutputFiles) != 1 || answers(res.Stdout, 1)[0] != 3 {
						t.Error(err, res)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	all(30)
	b.Settle(t.Context())
	before, start := b.Trace(), time.Now()
	all(runs)
	took := time.Since(start)
	leftAsBefore(t, b, before)
	t.Logf("%d runs, %v each", runs, took/time.Duration(runs))
}
