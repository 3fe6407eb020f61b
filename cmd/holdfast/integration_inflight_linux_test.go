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
	"github.com/holdfast-dev/holdfast/internal/cli/inflighttest"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/policy/review"
)

// someHands are a tool call, a program on a work tree and a download.
func someHands() []inflighttest.Hand {
	return []inflighttest.Hand{
		{Name: "a tool call", Boundary: "mcp/stdio/work", Begin: (*inflighttest.World).CallStdio},
		{Name: "a program", Boundary: "run/sh", Begin: (*inflighttest.World).Program},
		{Name: "a download", Boundary: "egress/" + inflighttest.Host, Begin: (*inflighttest.World).Download},
	}
}

// mostHands are those and a tunnel, and code where there is Python.
func mostHands(w *inflighttest.World, t *testing.T) []inflighttest.Hand {
	t.Helper()
	all := append(someHands(), inflighttest.Hand{Name: "a tunnel", Boundary: "egress/opaque." + inflighttest.Host, Begin: (*inflighttest.World).Tunnel})
	if err := w.RunsIn(posture.TierProcess); err != nil {
		t.Logf("no code runs here: %v", err)
		return all
	}
	return append(all, inflighttest.Hand{Name: "code", Boundary: "exec/python3", Begin: func(w *inflighttest.World) (*inflighttest.InFlight, error) { return w.Code(posture.TierProcess) }})
}

// brought are hands in flight until the test ends.
func brought(w *inflighttest.World, t *testing.T, hands []inflighttest.Hand) []*inflighttest.InFlight {
	t.Helper()
	all, err := w.Bring(hands)
	t.Cleanup(func() { inflighttest.EndAll(all) })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// peered is an MCP client of the agent's until the test ends.
func peered(w *inflighttest.World, t *testing.T, name string) *inflighttest.Client {
	t.Helper()
	p, err := inflighttest.StartClient(w.Ctx, w.Command(w.Gateway(name)...).Args)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

const echoSame, echoOther = `"method":"tools/call","params":{"name":"echo","arguments":{"same":1}}`,
	`"method":"tools/call","params":{"name":"echo","arguments":{"other":1}}`

// loops asks for the same until it is told that it was stopped.
func loops(w *inflighttest.World, t *testing.T, p *inflighttest.Client) {
	t.Helper()
	for start := time.Now(); ; {
		if _, err := p.Send(echoSame); err != nil {
			t.Fatal(err)
		}
		_, line, err := p.Answer()
		if err != nil {
			t.Fatal(err)
		}
		if w.Told(line) == nil {
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatalf("it asks for the same for a minute, and is answered %s", line)
		}
	}
}

// allEnded sees that each was stopped, and by what it was to be.
func allEnded(t *testing.T, hands []inflighttest.Hand, all []*inflighttest.InFlight) {
	t.Helper()
	for i, x := range all {
		if err := x.Ended(); err != nil {
			t.Errorf("%s: %v", hands[i].Name, err)
		}
	}
}

func oneOfEach(hands []inflighttest.Hand) map[string]int {
	want := map[string]int{}
	for _, h := range hands {
		want[h.Boundary]++
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
	w := worldOf(t, s.dir, inflighttest.Config{})
	w.Cut = "paused"
	other := w.As(inflighttest.OtherAgent)
	other.Tree = filepath.Join(s.dir, "another-tree")
	if err := os.Mkdir(other.Tree, 0o755); err != nil {
		t.Fatal(err)
	}
	others := brought(other, t, someHands())
	of, err := other.Flights("")
	if err != nil || len(of) != len(others) {
		t.Fatalf("%v, %v", of, err)
	}
	p := peered(w, t, "again")
	hands := mostHands(w, t)
	all := brought(w, t, hands)

	loops(w, t, p)
	allEnded(t, hands, all)
	recorded(w, t, oneOfEach(hands))
	if now, err := w.Flights(""); err != nil || len(now) != 0 {
		t.Errorf("in flight are %v, %v", now, err)
	}
	out, err := w.Output("ledger", "tail", "-n", "1000", "--events", "--json")
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
		case <-x.Over:
			t.Errorf("another's was stopped too: %s: %v", someHands()[i].Name, x.Err)
		default:
		}
	}
	if now, err := other.Flights(""); err != nil || !maps.Equal(now, of) {
		t.Errorf("of another are in flight %v, %v, and were %v", now, err, of)
	}
	_, came, _ := others[2].Effects.Look()
	ticks, _ := filepath.Glob(filepath.Join(other.Tree, "ticks-*"))
	for _, file := range append(ticks, other.Record("stdio")) {
		was := size(t, file)
		s.soon("more in "+file, func() bool { return size(t, file) > was })
	}
	s.soon("more of another's download", func() bool { _, n, _ := others[2].Effects.Look(); return n > came })

	waiting, err := w.API.Reviews(t.Context(), holdfast.Local, review.Pending)
	if err != nil || len(waiting) != 1 || waiting[0].Agent != w.Agent || waiting[0].About != review.AboutAnomaly {
		t.Fatalf("a person is asked %+v, %v", waiting, err)
	}
	if _, err := p.Ask(echoOther); err == nil {
		t.Error("it goes on before a person has answered")
	}
	if _, err := w.Output("review", "approve", waiting[0].ID, "--credential-file", w.Pass, "--reason", "it was a test"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Ask(echoOther); err != nil {
		t.Errorf("the approval lets nothing go on: %v", err)
	}
	brought(w, t, []inflighttest.Hand{hands[2]})
	if out, err := w.Output("ledger", "tail", "-n", "1000", "--agent", other.Agent); err != nil || strings.Contains(out, "halted") {
		t.Errorf("%v: of another was stopped\n%s", err, out)
	}
	if _, err := w.Output("ledger", "verify", "--semantics"); err != nil {
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
	w := worldOf(t, s.dir, inflighttest.Config{Watch: inflighttest.WatchesNothing,
		Boundaries: "  - {boundary: run/sh, risk: LOW, permissions: ['exec:run'], walls: [pid, net, mount, seccomp], consumes: {file_writes: 100}}\n",
		More:       "budgets:\n  - {scope: tenant, resource: file_writes, amount: 150, window: 24h}\nsnapshots:\n  trees: [{path: tree, kind: state, agents: [bench]}]\n"})
	w.Records = w.Tree
	w.Harm = "echo bad > main.go; rm -r docs; echo new > new; "
	for name, text := range map[string]string{"main.go": "good\n", "docs/a.md": "text\n"} {
		path := filepath.Join(w.Tree, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hands := mostHands(w, t) // code is tried before there is anything to go back to
	before := contents(t, w.Tree)
	if _, err := w.Output("snapshot", "take", "before the harm"); err != nil {
		t.Fatal(err)
	}
	all := brought(w, t, hands)
	first := earliest(w, t)
	if _, _, _, err := w.Halt(); err != nil {
		t.Fatal(err)
	}
	allEnded(t, hands, all)
	recorded(w, t, oneOfEach(hands))
	if now := contents(t, w.Tree); now["main.go"] != "bad\n" || now["docs/a.md"] != "" || now["new"] != "new\n" || now[filepath.Base(w.Record("stdio"))] == "" {
		t.Errorf("nothing was changed: %v", slices.Sorted(maps.Keys(now)))
	}

	out, err := w.Output("rollback", "--before", first, "--credential-file", w.Pass, "--reason", "mended")
	if err != nil {
		t.Fatal(err)
	}
	if now := contents(t, w.Tree); !maps.Equal(now, before) {
		t.Errorf("the tree holds %v: %s", slices.Sorted(maps.Keys(now)), out)
	}
	if st, err := w.API.Status(t.Context()); err != nil || !st.Halted {
		t.Errorf("the halt was rolled back: %+v, %v", st, err)
	}
	if _, err := w.Output("ledger", "verify", "--semantics"); err != nil {
		t.Error(err)
	}
	recorded(w, t, oneOfEach(hands))

	if err := w.Resume(); err != nil {
		t.Fatal(err)
	}
	again := w.Command("run", "--agent", w.Agent, "--dir", w.Tree, "--", "sh", "-c", "echo more > more")
	if out, _ := again.CombinedOutput(); again.ProcessState.ExitCode() != exitRefused || !strings.Contains(string(out), "file_writes per tenant") {
		t.Errorf("what was spent was given back: %d, %s", again.ProcessState.ExitCode(), out)
	}
	if _, err := peered(w, t, "again").Ask(echoSame); err != nil {
		t.Errorf("what was resumed does not go on: %v", err)
	}
	if _, err := w.Output("ledger", "verify", "--semantics"); err != nil {
		t.Error(err)
	}
}

// earliest is the agent's crossing in flight that began first.
func earliest(w *inflighttest.World, t *testing.T) string {
	t.Helper()
	st, err := w.API.Status(t.Context())
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
