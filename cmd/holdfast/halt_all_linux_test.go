package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
	self, err := exec.LookPath("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "")
	w, err := openHaltWorld(t.Context(), self, s.dir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	hands, missing, err := w.possible(&bench{ctx: t.Context(), dir: s.dir, say: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range missing {
		// Containers, guests and Python are not everywhere; TestTiersEndToEnd has them.
		if !strings.Contains(m.Name, "code in") {
			t.Errorf("%s: %s", m.Name, m.Note)
		}
	}
	want := map[string]int{}
	for _, halt := range []func() error{nil, func() error { return os.WriteFile(filepath.Join(w.state, "HALT"), nil, 0o600) }} {
		w.stop = halt
		if _, _, err := w.haltAll(hands); err != nil {
			t.Fatal(err)
		}
		for _, h := range hands {
			if h.boundary != "mcp/asks/work" { // it had not begun: its review waits on
				want[h.boundary]++
			}
		}
	}
	wanted := 0
	for _, n := range want {
		wanted += n
	}
	text := ""
	s.soon("what was left behind in the ledger", func() bool {
		text, err = w.says("ledger", "tail", "-n", "1000")
		return err != nil || strings.Count(text, "✗ halted") >= wanted
	})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line) // date, time, mark, outcome, boundary
		if len(words) < 5 || words[3] != "halted" {
			continue
		}
		for boundary := range want {
			if words[4] == boundary || strings.HasPrefix(words[4], boundary+":") || boundary == "exec/python3" && strings.HasPrefix(words[4], boundary+".") {
				want[boundary]--
			}
		}
		if strings.HasPrefix(words[4], "egress/") && !strings.Contains(line, " bytes ") && !strings.Contains(line, " B ") && !strings.Contains(line, "was left behind") {
			t.Errorf("it is not said what had gone by: %s", line)
		}
	}
	for boundary, n := range want {
		if n != 0 {
			t.Errorf("of %s %d more should be recorded as halted:\n%s", boundary, n, text)
		}
	}
	if out, err := w.says("ledger", "tail", "-n", "1000", "--events"); err != nil || strings.Count(out, "everything by ") < 4 {
		t.Errorf("%v: who halted is not recorded:\n%s", err, out)
	}
	if _, err := w.says("ledger", "verify", "--semantics"); err != nil {
		t.Error(err)
	}
}
