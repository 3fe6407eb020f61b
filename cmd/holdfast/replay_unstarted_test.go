package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/kernel"
)

// What began and is found later never to have started is no history, for `rules
// replay` and `rules explain` as for the kernel: also where another began between
// its begin and its entry.
func TestReplayCountsNothingThatNeverStarted(t *testing.T) {
	t.Parallel()
	s := newSite(t, noCooldown)
	rules := func(most string) string {
		return s.write("rules"+most+".yaml", "rules:\n  - {id: few, on: request, boundary: agent/step, when: 'past(\"agent/step\", \"1h\").count() >= "+most+"', message: enough}\n")
	}
	d, err := daemon.Open(t.Context(), daemon.Options{State: filepath.Join(s.dir, "s"), Config: filepath.Join(s.dir, "holdfast.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	cross := func(hand kernel.Act) error {
		tok, err := d.Mint(holdfast.Identity{Agent: "ada", Kind: "ops"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Kernel.Cross(t.Context(), holdfast.Request{Boundary: "agent/step", Payload: []byte(`{"action":"go"}`), Token: tok}, hand)
		return err
	}
	acts := func(context.Context) (holdfast.Output, error) { return holdfast.Output{Body: []byte(`{}`)}, nil }
	begun, go1, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- cross(func(context.Context) (holdfast.Output, error) {
			close(begun)
			<-go1
			return holdfast.Output{}, holdfast.ErrNotStarted
		})
	}()
	<-begun
	if err := cross(acts); err != nil { // beside it
		t.Fatal(err)
	}
	close(go1)
	if err := <-ended; err == nil {
		t.Fatal("what did not start passed")
	}
	if err := cross(acts); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	// Before the last stood one that acted, and one that did not.
	for most, refused := range map[string]int{"2": 0, "1": 2} {
		out := s.must("rules", "replay", "--rules", rules(most), "--json")
		var v struct {
			Same    int `json:"same"`
			Refused int `json:"newly_refused"`
		}
		if err := json.Unmarshal([]byte(out), &v); err != nil || v.Same+v.Refused != 3 || v.Refused != refused {
			t.Errorf("at %s: %v\n%s", most, err, out)
		}
	}
	// Explain counts the two that acted.
	s.write("holdfast.yaml", noCooldown+"rules:\n  files: [rules2.yaml]\n")
	if out := s.must("rules", "explain", "agent/step", `{"action":"go"}`); !regexp.MustCompile(`count\(\) +=  2\n`).MatchString(out) {
		t.Errorf("%s", out)
	}
}
