//go:build linux

package container_test

import (
	"os"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// guestTests are this package's tests that are run in a guest; TestGuestGroups
// is one there alone.
const guestTests = "^(TestRun|TestKilledHoldfast|TestGuestGroups)$/^(hello|files|timeout|oom|heir)$"

const guestScene = "control groups version 2"

// guestInit does not return where this is a guest's first process.
func guestInit() {
	sandboxtest.GuestInit(func(string) error {
		if err := sandboxtest.UnifyGroups(); err != nil {
			return err
		}
		return sandboxtest.PlayScene(guestScene, sandboxtest.GuestSelf, guestTests, &os.ProcAttr{Env: []string{"PATH=/usr/sbin:/usr/bin", "HOME=/tmp", "TMPDIR=/tmp", sandboxtest.GuestEnv + "=" + guestScene}})
	})
}

// TestGuestGroups: in a guest version 2 keeps the groups, and every limit of a
// container holds; elsewhere it is no test.
func TestGuestGroups(t *testing.T) {
	if os.Getenv(sandboxtest.GuestEnv) == "" {
		return
	}
	c, _ := open(t, nil)
	if p := c.Posture(); p.Groups != "v2" || p.Down["memory"]+p.Down["cpu"]+p.Down["pids"] != "" {
		t.Errorf("%+v", p)
	}
}
