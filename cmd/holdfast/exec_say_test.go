package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/frontend/api"
)

// TestCrossingTellsPutBackOnce: the text about the agent's work is printed unless the failure has it.
func TestCrossingTellsPutBackOnce(t *testing.T) {
	for _, c := range []struct {
		failure *api.Failure
		want    bool
	}{
		{nil, true},
		{&api.Failure{Why: "a task still runs"}, true},
		{&api.Failure{Why: "it broke; it was restored", PutBack: true}, false},
	} {
		var said bytes.Buffer
		a := &app{err: &said}
		a.sayCrossing(&api.Executed{Outcome: &holdfast.Outcome{PutBack: "it was restored"}, Failure: c.failure})
		if got := strings.Contains(said.String(), "it failed, and it was restored"); got != c.want {
			t.Errorf("%+v: said %q", c.failure, said.String())
		}
	}
}
