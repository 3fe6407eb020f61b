package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/review"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// someHands are a tool call, a program on a work tree and a download.
func someHands() []haltHand {
	return []haltHand{
		{"a tool call", "mcp/stdio/work", (*haltWorld).callStdio},
		{"a program", "run/sh", (*haltWorld).program},
		{"a download", "egress/" + egressHost, (*haltWorld).download},
	}
}

// mostHands are those and a tunnel, and code where there is Python.
func (w *haltWorld) mostHands(t *testing.T) []haltHand {
	t.Helper()
	all := append(someHands(), haltHand{"a tunnel", "egress/opaque." + egressHost, (*haltWorld).tunnel})
	if err := w.runsIn(sandbox.TierProcess); err != nil {
		t.Logf("no code runs here: %v", err)
		return all
	}
	return append(all, haltHand{"code", "exec/python3", func(w *haltWorld) (*inFlight, error) { return w.code(sandbox.TierProcess) }})
}

// brought are hands in flight until the test ends.
func (w *haltWorld) brought(t *testing.T, hands []haltHand) []*inFlight {
	t.Helper()
	all, err := w.bring(hands)
	t.Cleanup(func() { endAll(all) })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// peered is an MCP client of the agent's until the test ends.
func (w *haltWorld) peered(t *testing.T, name string) *peer {
	t.Helper()
	p, err := (&bench{ctx: w.ctx}).peer(w.command(w.gateway(name)...).Args)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.end() })
	return p
}

const echoSame, echoOther = `"method":"tools/call","params":{"name":"echo","arguments":{"same":1}}`,
	`"method":"tools/call","params":{"name":"echo","arguments":{"other":1}}`

// loops asks for the same until it is told that it was stopped.
func (w *haltWorld) loops(t *testing.T, p *peer) {
	t.Helper()
	for start := time.Now(); ; {
		if _, err := p.send(echoSame); err != nil {
			t.Fatal(err)
		}
		_, line, err := p.answer()
		if err != nil {
			t.Fatal(err)
		}
		if w.told(line) == nil {
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatalf("it asks for the same for a minute, and is answered %s", line)
		}
	}
}

// allEnded sees that each was stopped, and by what it was to be.
func allEnded(t *testing.T, hands []haltHand, all []*inFlight) {
	t.Helper()
	for i, x := range all {
		if err := x.ended(); err != nil {
			t.Errorf("%s: %v", hands[i].name, err)
		}
	}
}

func oneOfEach(hands []haltHand) map[string]int {
	want := map[string]int{}
	for _, h := range hands {
		want[h.boundary]++
	}
	return want
}

// The document's integration test "anomaly response", on a daemon with real hands in
// flight: an agent that asks an MCP server for the same again and again is paused,
// and whatever else of it is in flight - a call, a program, a download, a tunnel, code
// in a sandbox - is cut and recorded as halted; another agent's goes on; a person is
// asked, and the approval lets the agent go on.
func Test001_Integration_AnomalyResponse_with_hands_in_flight(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	w := worldOf(t, s.dir, haltConfig{})
	w.cut = "paused"
	other := w.as(haltOther)
	other.tree = filepath.Join(s.dir, "another-tree")
	if err := os.Mkdir(other.tree, 0o755); err != nil {
		t.Fatal(err)
	}
	others := other.brought(t, someHands())
	of, err := other.flights("")
	if err != nil || len(of) != len(others) {
		t.Fatalf("%v, %v", of, err)
	}
	p := w.peered(t, "again")
	hands := w.mostHands(t)
	all := w.brought(t, hands)

	w.loops(t, p)
	allEnded(t, hands, all)
	w.recorded(t, oneOfEach(hands))
	if now, err := w.flights(""); err != nil || len(now) != 0 {
		t.Errorf("in flight are %v, %v", now, err)
	}
	out, err := w.says("ledger", "tail", "-n", "1000", "--events", "--json")
	found := 0
	for line := range strings.Lines(out) {
		// The haste of a loop is recorded as its consequence, once it has held for a while.
		if strings.Contains(line, `"anomaly_found"`) && !strings.Contains(line, `"cause":"loop"`) {
			found++
		}
	}
	if err != nil || found != 1 || !strings.Contains(out, "the same action 5 times") {
		t.Errorf("%v: what was found is recorded %d times:\n%s", err, found, out)
	}

	for i, x := range others {
		select {
		case <-x.over:
			t.Errorf("another's was stopped too: %s: %v", someHands()[i].name, x.err)
		default:
		}
	}
	if now, err := other.flights(""); err != nil || !maps.Equal(now, of) {
		t.Errorf("of another are in flight %v, %v, and were %v", now, err, of)
	}
	_, came, _ := others[2].effects.look()
	ticks, _ := filepath.Glob(filepath.Join(other.tree, "ticks-*"))
	for _, file := range append(ticks, other.record("stdio")) {
		was := size(t, file)
		s.soon("more in "+file, func() bool { return size(t, file) > was })
	}
	s.soon("more of another's download", func() bool { _, n, _ := others[2].effects.look(); return n > came })

	waiting, err := w.api.Reviews(t.Context(), holdfast.Local, review.Pending)
	if err != nil || len(waiting) != 1 || waiting[0].Agent != w.agent || waiting[0].About != review.AboutAnomaly {
		t.Fatalf("a person is asked %+v, %v", waiting, err)
	}
	if _, err := p.ask(echoOther); err == nil {
		t.Error("it goes on before a person has answered")
	}
	if _, err := w.says("review", "approve", waiting[0].ID, "--credential-file", w.pass, "--reason", "it was a test"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.ask(echoOther); err != nil {
		t.Errorf("the approval lets nothing go on: %v", err)
	}
	w.brought(t, []haltHand{hands[2]})
	if out, err := w.says("ledger", "tail", "-n", "1000", "--agent", other.agent); err != nil || strings.Contains(out, "halted") {
		t.Errorf("%v: of another was stopped\n%s", err, out)
	}
	if _, err := w.says("ledger", "verify", "--semantics"); err != nil {
		t.Error(err)
	}
}

func size(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// The document's integration test "rollback", on a daemon with real hands in flight: a
// program and an MCP server change a tracked tree, beside a download, a tunnel and code
// in a sandbox; everything is halted; a person goes back to before the first of them.
// The tree is what it was; the latch, the ledger and what was spent are not touched, and
// what a person resumes goes on.
func Test001_Integration_Rollback_with_hands_in_flight(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	w := worldOf(t, s.dir, haltConfig{watch: watchesNothing,
		boundaries: "  - {boundary: run/sh, risk: LOW, permissions: ['exec:run'], walls: [pid, net, mount, seccomp], consumes: {file_writes: 100}}\n",
		more:       "budgets:\n  - {scope: tenant, resource: file_writes, amount: 150, window: 24h}\nsnapshots:\n  trees: [{path: tree, kind: state, agents: [bench]}]\n"})
	w.records = w.tree
	w.harm = "echo bad > main.go; rm -r docs; echo new > new; "
	for name, text := range map[string]string{"main.go": "good\n", "docs/a.md": "text\n"} {
		path := filepath.Join(w.tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hands := w.mostHands(t) // code is tried before there is anything to go back to
	before := contents(t, w.tree)
	if _, err := w.says("snapshot", "take", "before the harm"); err != nil {
		t.Fatal(err)
	}
	all := w.brought(t, hands)
	first := w.earliest(t)
	if _, _, _, err := w.halt(); err != nil {
		t.Fatal(err)
	}
	allEnded(t, hands, all)
	w.recorded(t, oneOfEach(hands))
	if now := contents(t, w.tree); now["main.go"] != "bad\n" || now["docs/a.md"] != "" || now["new"] != "new\n" || now[filepath.Base(w.record("stdio"))] == "" {
		t.Errorf("nothing was changed: %v", slices.Sorted(maps.Keys(now)))
	}

	out, err := w.says("rollback", "--before", first, "--credential-file", w.pass, "--reason", "mended")
	if err != nil {
		t.Fatal(err)
	}
	if now := contents(t, w.tree); !maps.Equal(now, before) {
		t.Errorf("the tree holds %v: %s", slices.Sorted(maps.Keys(now)), out)
	}
	if st, err := w.api.Status(t.Context()); err != nil || !st.Halted {
		t.Errorf("the halt was rolled back: %+v, %v", st, err)
	}
	if _, err := w.says("ledger", "verify", "--semantics"); err != nil {
		t.Error(err)
	}
	w.recorded(t, oneOfEach(hands))

	if err := w.resume(); err != nil {
		t.Fatal(err)
	}
	again := w.command("run", "--agent", w.agent, "--dir", w.tree, "--", "sh", "-c", "echo more > more")
	if out, _ := again.CombinedOutput(); again.ProcessState.ExitCode() != exitRefused || !strings.Contains(string(out), "file_writes per tenant") {
		t.Errorf("what was spent was given back: %d, %s", again.ProcessState.ExitCode(), out)
	}
	if _, err := w.peered(t, "again").ask(echoSame); err != nil {
		t.Errorf("what was resumed does not go on: %v", err)
	}
	if _, err := w.says("ledger", "verify", "--semantics"); err != nil {
		t.Error(err)
	}
}

// earliest is the agent's crossing in flight that began first.
func (w *haltWorld) earliest(t *testing.T) string {
	t.Helper()
	st, err := w.api.Status(t.Context())
	if err != nil || len(st.Flights) == 0 {
		t.Fatalf("nothing is in flight: %v", err)
	}
	first := st.Flights[0]
	for _, f := range st.Flights {
		if f.Since.Before(first.Since) {
			first = f
		}
	}
	return first.Crossing
}

// contents are the files of a tree.
func contents(t *testing.T, tree string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(tree, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(tree, path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		out[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
