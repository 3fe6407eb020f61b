package main

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/cli/inflighttest"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// The document's integration test "emergency stop", with everything in flight at
// once that can be: tool calls over stdio and HTTP, one that waits for a person, code
// in its sandboxes, a program on a work tree, a download, a tunnel, a WebSocket and a
// model's answer. Nothing takes effect once the halt is acknowledged (haltAll looks
// at where each has its effects), each is recorded as halted, with what had gone by
// until then, and nothing begins before a person resumes; by the command, and by the
// document's touch of a file.
func Test001_Integration_EmergencyStop_everything_in_flight(t *testing.T) {
	// Ten hands at once are enough for a machine: it runs beside no other test.
	s := newSite(t, "")
	w := worldOf(t, s.dir, inflighttest.Config{Watch: inflighttest.WatchesNothing})
	if !testrepeat.Enduring {
		w.LeaveOut(posture.TierContainer, errors.New("TestContainersEndToEnd halts a container"))
	}
	hands, missing, err := w.Possible(t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range missing {
		// Containers, guests and Python are not everywhere; TestContainersEndToEnd and TestTiersEndToEnd have them.
		if !strings.Contains(m.Name, "code ") {
			t.Errorf("%s: %s", m.Name, m.Why)
		}
	}
	want := map[string]int{}
	for _, halt := range []func() error{nil, func() error { return os.WriteFile(filepath.Join(w.State, "HALT"), nil, 0o600) }} {
		w.Stop = halt
		if _, _, err := w.HaltAll(hands); err != nil {
			t.Fatal(err)
		}
		for _, h := range hands {
			if h.Boundary != inflighttest.HeldBoundary { // it had not begun: its review waits on
				want[h.Boundary]++
			}
		}
	}
	text := recorded(w, t, want)
	for line := range strings.Lines(text) {
		words := strings.Fields(line) // date, time, mark, outcome, boundary
		if len(words) < 5 || words[3] != "halted" {
			continue
		}
		if strings.HasPrefix(words[4], "egress/") && !strings.Contains(line, " bytes ") && !strings.Contains(line, " B ") && !strings.Contains(line, "was left behind") {
			t.Errorf("it is not said what had gone by: %s", line)
		}
	}
	if out, err := w.Output("ledger", "tail", "-n", "1000", "--events"); err != nil || strings.Count(out, "everything by ") < 4 {
		t.Errorf("%v: who halted is not recorded:\n%s", err, out)
	}
	if _, err := w.Output("ledger", "verify", "--semantics"); err != nil {
		t.Error(err)
	}
}

// worldOf is a world that ends with the test. No guest is made in it: that takes a
// minute, and TestTiersEndToEnd has them.
func worldOf(t *testing.T, dir string, c inflighttest.Config) *inflighttest.World {
	t.Helper()
	self, err := exec.LookPath("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	server, err := exec.LookPath("recordingserver")
	if err != nil {
		t.Fatal(err)
	}
	c.VM.Kernel = filepath.Join(dir, "no-kernel")
	if err := shareRoots(filepath.Join(dir, "s")); err != nil {
		t.Fatal(err)
	}
	w, err := inflighttest.OpenWorld(t.Context(), inflighttest.Programs{Holdfast: self, Server: []string{server}}, dir, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// recorded waits until the ledger has so many crossings of each boundary as halted,
// and no more, and returns what it says of everything.
func recorded(w *inflighttest.World, t *testing.T, want map[string]int) string {
	t.Helper()
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		text, err := w.Output("ledger", "tail", "-n", "1000", "--agent", w.Agent)
		if err != nil {
			t.Fatal(err)
		}
		got := halted(text, want)
		if maps.Equal(got, want) {
			return text
		}
		if time.Since(start) > time.Minute {
			flights, err := w.Flights("")
			t.Fatalf("halted should be %v, and are %v; in flight are %v, %v\n%s", want, got, flights, err, text)
		}
	}
}

// halted counts what the ledger has as halted of those boundaries.
func halted(text string, of map[string]int) map[string]int {
	got := map[string]int{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line) // date, time, mark, outcome, boundary
		if len(words) < 5 || words[3] != "halted" {
			continue
		}
		for boundary := range of {
			if words[4] == boundary || strings.HasPrefix(words[4], boundary+":") || boundary == "exec/python3" && strings.HasPrefix(words[4], boundary+".") {
				got[boundary]++
			}
		}
	}
	return got
}
