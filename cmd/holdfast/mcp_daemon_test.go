package main

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
)

// TestStarterHearsWhyTheDaemonEnds: the command that started a daemon shows its error and
// hint, and its own hint and the process's end if the daemon told nothing.
func TestStarterHearsWhyTheDaemonEnds(t *testing.T) {
	owned := &holdfast.Error{Kind: holdfast.KindConflict, Why: "the state is owned", Hint: "stop the owner"}
	own := "look into /s/log, or try `holdfast up`"
	for _, c := range []struct {
		err       error
		why, hint string
	}{
		{owned, "the daemon did not start:\nthe state is owned", "stop the owner"},
		{fmt.Errorf("open: %w", owned), "the daemon did not start:\nopen: the state is owned", "stop the owner"},
		{errors.New("no space"), "the daemon did not start:\nno space", own},
		{nil, "the daemon did not start: exit status 1", own},
	} {
		heard, told, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer heard.Close()
		tellStarter(told, c.err)
		err = (&app{}).didNotStart(daemon.Paths{Log: "/s/log"}, &starting{heard: heard}, "exit status 1")
		var e *holdfast.Error
		if !errors.As(err, &e) || e.Why != c.why || e.Hint != c.hint {
			t.Errorf("%v: %+v", c.err, e)
		}
	}
}
