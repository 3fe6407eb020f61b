package versions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/kernel"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
	"github.com/holdfast-dev/holdfast/internal/worktree/snapshot"
	"github.com/holdfast-dev/holdfast/ledger"
)

// tracked is a daemon with one tracked tree.
type trackedSite struct {
	t    *testing.T
	d    *testDaemon
	opt  testOptions
	tree string
}

func openTracked(t *testing.T, more string) *trackedSite {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &trackedSite{t: t, tree: filepath.Join(base, "tree"),
		opt: testOptions{State: filepath.Join(base, "state"), Config: filepath.Join(base, "holdfast.yaml")}}
	text := fmt.Sprintf(`version: 1
listen: {pages: none}
boundaries:
  - {boundary: test/act, risk: MEDIUM}
  - {boundary: test/look, risk: LOW}
  - {boundary: test/careful, risk: MEDIUM, on_error: rollback}
snapshots:
  trees:
    - {path: %s, kind: state, agents: [coder]}
%s`, s.tree, more)
	if err := errors.Join(os.Mkdir(s.tree, 0o755), os.WriteFile(s.opt.Config, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	s.open()
	t.Cleanup(func() {
		if s.d != nil {
			if err := s.d.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

func (s *trackedSite) open() {
	s.t.Helper()
	d, err := openDaemon(s.t.Context(), s.opt)
	if err != nil {
		s.t.Fatal(err)
	}
	s.d = d
}

func (s *trackedSite) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.tree, name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *trackedSite) holds(name, text string) {
	s.t.Helper()
	if b, err := os.ReadFile(filepath.Join(s.tree, name)); string(b) != text {
		s.t.Fatalf("%s holds %q, not %q (%v)", name, b, text, err)
	}
}

// act makes a crossing of that agent, whose hand is do.
func (s *trackedSite) act(agent, boundary string, do func() error) (*holdfast.Outcome, error) {
	s.t.Helper()
	token, err := s.d.Mint(holdfast.Identity{Agent: agent})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.d.Kernel.Cross(s.t.Context(), holdfast.Request{Boundary: boundary, Payload: []byte(`{}`), Token: token},
		func(context.Context) (holdfast.Output, error) { return holdfast.Output{Body: []byte("{}")}, do() })
}

// events are those of that name about a snapshot or a crossing.
func (s *trackedSite) events(id, name string) []map[string]any {
	s.t.Helper()
	var out []map[string]any
	err := s.d.snapshots.events(s.t.Context(), id, func(e *ledger.Event, data map[string]any) {
		if e.Name == name {
			out = append(out, data)
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// Test001_Layer3_CommitPerAction: each significant action results in a commit, in the
// document's form, of the agent's own; what looks makes none, and neither does
// another agent.
func Test001_Layer3_CommitPerAction(t *testing.T) {
	t.Parallel()
	s := openTracked(t, "")
	s.write("state.md", "one")
	out, err := s.act("coder", "test/act", func() error { s.write("state.md", "two"); s.write("more", "x"); return nil })
	if err != nil {
		t.Fatal(err)
	}
	s.d.snapshots.lookAfter(t.Context())
	kept := s.events(out.Crossing, eventKept)
	if len(kept) != 1 || kept[0]["files"] != 2.0 || kept[0]["agent"] != "coder" {
		t.Fatalf("%v", kept)
	}
	// The commit is a crossing of Holdfast's own.
	id, _ := kept[0]["crossing"].(string)
	err = s.d.store.View(t.Context(), func(tx kernel.Tx) error {
		list, err := tx.Crossing(holdfast.Local, id)
		if err == nil && (len(list) != 2 || list[1].Kind != ledger.KindEntry || !strings.Contains(string(list[1].Record), snapshotCommit)) {
			t.Errorf("%v", list)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	git := exec.Command("git", "--git-dir", s.repository(), "log", "-1", "--format=%B", "agent/coder")
	b, err := git.Output()
	if err != nil || !strings.HasPrefix(string(b), "state: coder test/act 20") || !strings.Contains(string(b), "Holdfast-Crossing: "+out.Crossing) {
		t.Fatalf("%s, %v", b, err)
	}
	for agent, boundary := range map[string]string{"coder": "test/look", "other": "test/act"} {
		out, err := s.act(agent, boundary, func() error { s.write("state.md", agent); return nil })
		if err != nil {
			t.Fatal(err)
		}
		s.d.snapshots.lookAfter(t.Context())
		if kept := s.events(out.Crossing, eventKept); len(kept) != 0 {
			t.Fatalf("%s at %s: %v", agent, boundary, kept)
		}
	}
	// Without a daemon that looks after it, it is kept before the state is given back.
	out, err = s.act("coder", "test/act", func() error { s.write("state.md", "three"); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := s.d.Close(); err != nil {
		t.Fatal(err)
	}
	s.open()
	if kept := s.events(out.Crossing, eventKept); len(kept) != 1 {
		t.Fatalf("%v", kept)
	}
	// And there is a way back to before each of them.
	g, err := s.d.snapshots.before(t.Context(), out.Crossing, "")
	if err != nil || len(g) != 1 {
		t.Fatalf("%v, %v", g, err)
	}
	if _, err := s.d.snapshots.back(t.Context(), g[0], "ann", "", nil); err != nil {
		t.Fatal(err)
	}
	s.holds("state.md", "two")
}

func (s *trackedSite) repository() string {
	s.t.Helper()
	list, err := filepath.Glob(filepath.Join(s.d.snapshots.Dir, "trees", "*", "git"))
	if err != nil || len(list) != 1 {
		s.t.Fatalf("%v, %v", list, err)
	}
	return list[0]
}

// Test001_Layer5_FilesPerCommit: more than ten files in one commit, or than the
// configuration says, are an anomaly of the agent whose action it was, and name that
// action; the first version of a tree is none.
func Test001_Layer5_FilesPerCommit(t *testing.T) {
	t.Parallel()
	t.Run("the document's limit", func(t *testing.T) { filesPerCommit(t, "", 20, 10, 11) })
	t.Run("a tighter one", func(t *testing.T) { filesPerCommit(t, "watch: {files_per_commit: 3}", 20, 3, 4) })
}

// filesPerCommit makes commits of so many files each, of which only the last is found.
func filesPerCommit(t *testing.T, more string, commits ...int) {
	s := openTracked(t, more)
	found := func() bool {
		ok := false
		err := s.d.store.View(t.Context(), func(tx kernel.Tx) error {
			return tx.Leaves(holdfast.Local, 0, 1<<40, func(l ledger.Stored) error {
				ok = ok || strings.Contains(string(l.Record), "anomaly_found") && strings.Contains(string(l.Record), "files_per_commit")
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	last := ""
	for _, n := range commits {
		if found() {
			t.Fatalf("it was found before %d files", n)
		}
		out, err := s.act("coder", "test/act", func() error {
			for i := range n {
				s.write(fmt.Sprint("f", i), fmt.Sprint(n, " of it ", strings.Repeat("x", n)))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s.d.snapshots.lookAfter(t.Context())
		s.d.watching.Settle(t.Context())
		last = out.Crossing
	}
	if g := s.d.eventsNamed(
		t, "anomaly_found", 1,
	)[0]; g["condition"] != string(watch.FilesPerCommit) || g["response"] != "alert" || g["severity"] != "MEDIUM" ||
		g["found_in"] != last || g["agent"] != "coder" || !strings.Contains(fmt.Sprint(g["why"]),
		fmt.Sprint(commits[len(commits)-1])) {
		t.Errorf("%+v", g)
	}
}

// Test001_Layer3_OnError: on an error the work tree goes back to the last good state,
// which is recorded and told; what was refused, or went well, is left alone.
func Test001_Layer3_OnError(t *testing.T) {
	s := openTracked(t, "")
	s.write("code", "good")
	out, err := s.act("coder", "test/careful", func() error { s.write("code", "half"); s.write("new", "x"); return errors.New("the disk was full") })
	if holdfast.KindOf(err) != holdfast.KindOperation || !strings.Contains(err.Error(), "the disk was full; its work tree was rolled back to before it (2 names)") {
		t.Fatalf("%v", err)
	}
	s.holds("code", "good")
	if _, err := os.Lstat(filepath.Join(s.tree, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	rolled := s.events(out.Crossing, eventRolled)
	if len(rolled) != 1 || rolled[0]["done"] != true || rolled[0]["crossing"] == nil || rolled[0]["before"] == nil {
		t.Fatalf("%v", rolled)
	}
	// What the act had made is not lost either.
	m, _, err := s.d.snapshots.read(t.Context(), rolled[0]["before"].(string))
	if err != nil || m.Trees[0].Files != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := s.act("coder", "test/careful", func() error { s.write("code", "better"); return nil }); err != nil {
		t.Fatal(err)
	}
	s.holds("code", "better")
	if _, err := s.act("coder", "test/act", func() error { s.write("code", "as it is"); return errors.New("no") }); err == nil || strings.Contains(err.Error(), "rolled back") {
		t.Fatalf("%v", err)
	}
	s.holds("code", "as it is")
	// Where nothing can be kept first, the act does not begin.
	began := false
	if _, err := s.act("other", "test/careful", func() error { began = true; return nil }); began || err == nil || !strings.Contains(err.Error(), "no work tree of other is tracked") {
		t.Fatalf("%v, %v", began, err)
	}
	if err := os.Rename(s.tree, s.tree+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.act("coder", "test/careful", func() error { began = true; return nil }); began || err == nil || !strings.Contains(err.Error(), "cannot be opened") {
		t.Fatalf("%v, %v", began, err)
	}
	if err := os.Rename(s.tree+".away", s.tree); err != nil {
		t.Fatal(err)
	}
}

// Test001_Layer3_DailySnapshot: one a day, also one that was missed while nobody ran,
// whatever the clock does; it is restored to verify it.
func Test001_Layer3_DailySnapshot(t *testing.T) {
	s := openTracked(t, "  daily_at: \"00:00\"\n")
	s.write("a", "1")
	count := func() int {
		t.Helper()
		k, err := s.d.snapshots.hand()
		if err != nil {
			t.Fatal(err)
		}
		list, err := k.List()
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if ev := s.events(list[i].ID, eventVerified); len(ev) != 1 || ev[0]["ok"] != true {
				t.Fatalf("%v", ev)
			}
		}
		return len(list)
	}
	for i, at := range []struct {
		now  time.Time
		want int
	}{{time.Now(), 1}, {time.Now(), 1}, {time.Now().Add(24 * time.Hour), 2}, {time.Now().Add(-48 * time.Hour), 3}} {
		if err := s.d.snapshots.today(t.Context(), at.now); err != nil {
			t.Fatal(err)
		}
		if n := count(); n != at.want {
			t.Fatalf("%d: %d snapshots, not %d", i, n, at.want)
		}
	}
	// One that cannot be taken is a problem that status names, until one is.
	if err := os.Rename(s.tree, s.tree+".away"); err != nil {
		t.Fatal(err)
	}
	if err := s.d.snapshots.today(t.Context(), time.Now().Add(96*time.Hour)); holdfast.KindOf(err) != holdfast.KindNotFound {
		t.Fatalf("%v", err)
	}
	s.d.snapshots.fail(ofDay, "gone")
	if !slices.ContainsFunc(s.d.snapshots.Problems(),
		func(p string) bool { return strings.Contains(p, "the snapshot of the day is missing") }) {
		t.Fatalf("%v", s.d.snapshots.Problems())
	}
	if err := os.Rename(s.tree+".away", s.tree); err != nil {
		t.Fatal(err)
	}
}

// Test001_Layer3_Retention: snapshots 30 days, the first of each week a year, the
// newest for ever.
func Test001_Layer3_Retention(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	var list []snapshot.Manifest
	for days := range 500 {
		list = append(list, snapshot.Manifest{ID: fmt.Sprint(days), At: now.Add(-time.Duration(days) * 24 * time.Hour), Reason: snapshot.Daily, Trees: []snapshot.Part{{Path: "/a"}}})
	}
	list[400].Trees = append(list[400].Trees, snapshot.Part{Path: "/gone"})
	gone := map[string]bool{}
	for _, id := range outdated(list, now, 30*24*time.Hour) {
		gone[id] = true
	}
	kept, inWeek := 0, map[int]int{}
	for days := range 500 {
		switch stays := !gone[fmt.Sprint(days)]; {
		case days <= 30 && !stays, days > 366 && days != 400 && stays, days == 400 && !stays:
			t.Errorf("day %d: %v", days, stays)
		case days > 30 && days <= 366 && stays:
			y, w := list[days].At.ISOWeek()
			inWeek[y*100+w]++
			kept++
		}
	}
	if kept < 46 || kept > 49 || len(inWeek) != kept {
		t.Errorf("%d of %d weeks", kept, len(inWeek))
	}
	if out := outdated([]snapshot.Manifest{{ID: "x", At: now.Add(-9000 * time.Hour), Trees: []snapshot.Part{{Path: "/a"}}}}, now, time.Hour); len(out) != 0 {
		t.Errorf("the last one is dropped")
	}
	if out := outdated(list[:5], now.Add(-9000*time.Hour), time.Hour); len(out) != 0 {
		t.Errorf("the clock was set back, and %v are dropped", out)
	}
	// The clock jumped ahead by years, and one was taken by it.
	jumped := append([]snapshot.Manifest{{ID: "ahead", At: now.Add(9 * year), Reason: snapshot.Daily, Trees: list[0].Trees}}, list...)
	out := outdated(jumped, now.Add(9*year), 30*24*time.Hour)
	stay := slices.DeleteFunc(jumped, func(m snapshot.Manifest) bool { return slices.Contains(out, m.ID) })
	if n := len(stay); n < 29+weeks-6 || n > 30+weeks+1 || !stay[29].At.After(now.Add(-30*24*time.Hour)) {
		t.Errorf("the clock jumped ahead, and %d stay", n)
	}
	// Of a week, one that lacks a tree is kept only where there is no better one.
	failed := []snapshot.Left{{Path: "/a", Why: "it was gone"}}
	monday := time.Date(2026, 8, 3, 2, 0, 0, 0, time.UTC)
	week := func(lack ...bool) []string {
		var list []snapshot.Manifest
		for days := range 30 {
			list = append(list, snapshot.Manifest{ID: fmt.Sprint("newest", days), At: now.Add(-time.Duration(days) * 24 * time.Hour), Reason: snapshot.Daily, Trees: []snapshot.Part{{Path: "/a"}}})
		}
		for day := len(lack) - 1; day >= 0; day-- {
			m := snapshot.Manifest{ID: fmt.Sprint(day), At: monday.Add(time.Duration(day) * 24 * time.Hour), Reason: snapshot.Daily}
			if lack[day] {
				m.Failed = failed
			}
			list = append(list, m)
		}
		return outdated(list, now, 30*24*time.Hour)
	}
	if out := week(true, true, false, false, true); !slices.Equal(out, []string{"4", "3", "1", "0"}) {
		t.Errorf("the first that lacks nothing is not kept: %v go", out)
	}
	if out := week(true, true); !slices.Equal(out, []string{"1"}) {
		t.Errorf("the first is not kept: %v go", out)
	}
}

// TestD40_RollbackLeavesLatchLedgerAndLimits: a tracked tree holds the state; neither
// the latch, nor the store, nor what was spent goes back with it (finding 5.2.15), and
// the stop file is not a file of the tree that an agent works in (finding 5.2.16).
func TestD40_RollbackLeavesLatchLedgerAndLimits(t *testing.T) {
	s := openTracked(t, "")
	if err := s.d.Close(); err != nil {
		t.Fatal(err)
	}
	s.opt.State = filepath.Join(s.tree, "own")
	s.open()
	s.write("code", "good")
	m, err := s.d.snapshots.take(t.Context(), snapshot.Manifest{Who: "ann", Reason: "asked for"})
	if err != nil {
		t.Fatal(err)
	}
	if p := m.Trees[0]; p.Files != 1 || p.LeftOut.Names != 1 || !strings.Contains(p.LeftOut.First[0].Why, "Holdfast's own") {
		t.Fatalf("%+v", p)
	}
	if _, err := s.d.Kernel.Halt("ann", "stop"); err != nil {
		t.Fatal(err)
	}
	before, err := s.d.snapshots.position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.write("code", "bad")
	g, err := s.d.snapshots.resolve(t.Context(), Subject{ID: m.ID}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.d.snapshots.back(t.Context(), g[0], "ann", "", nil); err != nil {
		t.Fatal(err)
	}
	s.holds("code", "good")
	after, err := s.d.snapshots.position(t.Context())
	if err != nil || after.Size <= before.Size || !s.d.latch.Halted() {
		t.Fatalf("%d, then %d; %v", before.Size, after.Size, err)
	}
	for _, path := range []string{s.d.Paths.Halt, s.d.Paths.DB, s.d.Paths.LedgerKey} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestAgentsCannotKeepOrRollBack: no agent's token crosses what is Holdfast's own, and
// no configuration gives it away.
func TestAgentsCannotKeepOrRollBack(t *testing.T) {
	s := openTracked(t, "")
	for _, b := range []string{snapshotTake, snapshotCommit, snapshotRollback, snapshotArchive} {
		out, err := s.act("coder", b, func() error { t.Error("it acted"); return nil })
		if holdfast.KindOf(err) != holdfast.KindPermission || out.Verdict != holdfast.Deny {
			t.Errorf("%s: %v", b, err)
		}
	}
	for text, why := range map[string]string{
		"boundaries:\n  - {boundary: snapshot/rollback, risk: LOW}":               "Holdfast's own",
		"snapshots: {daily_at: noon}":                                             "no time of day",
		"snapshots: {trees: [{path: /}]}":                                         "no work tree",
		"snapshots: {trees: [{kind: code}]}":                                      "path",
		"snapshots: {trees: [{path: /a/b}, {path: /a}]}":                          "within each other",
		"snapshots: {trees: [{path: /a, kind: other}]}":                           "kind",
		"snapshots: {trees: [{path: /a, agents: ['']}]}":                          "no name for an agent",
		"boundaries:\n  - {boundary: test/x, risk: LOW, on_error: ignore}":        "on_error",
		"snapshots: {trees: [{path: /a, agents: [\"*\"]}], archive: {path: x}}":   "unknown key \"path\"",
		"snapshots: {trees: [{path: /a}], archive: {folder: /x, command: [y]}}":   "a folder and a command",
		"snapshots: {archive: {folder: /x}}":                                      "no work tree is tracked",
		"snapshots: {trees: [{path: /a}], archive: {timeout: 1m}}":                "neither a folder nor a command",
		"snapshots: {trees: [{path: /a}], archive: {folder: /x, timeout: 1m}}":    "are a command's",
		"snapshots: {trees: [{path: /a}], archive: {command: ['']}}":              "without a program",
		"snapshots: {trees: [{path: /a}], archive: {command: [x], verify: ['']}}": "without a program",
		"snapshots: {trees: [{path: /a}], archive: {verify: [x]}}":                "neither a folder nor a command",
		"snapshots: {trees: [{path: /a}], archive: {folder: /x, verify: [x]}}":    "are a command's",
		"snapshots: {trees: [{path: /a}], archive: {command: [x], timeout: 2h}}":  "between 0 and 1h",
		"snapshots: {trees: [{path: /a}], archive: {command: [x], env: [A=b]}}":   "no name of an environment variable",
		"snapshots: {trees: [{path: /a}], archive: {folder: /a/x}}":               "within each other",
		"snapshots: {trees: [{path: /a/b}], archive: {folder: /a}}":               "within each other",
		"snapshots: {trees: [{path: /a}], archive: {folder: /}}":                  "cannot be",
	} {
		if _, err := loadConfig(t, "version: 1\n"+text+"\n"); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", text, err)
		}
	}
	l, err := loadConfig(t, "version: 1\nsnapshots: {keep_days: 7, trees: [{path: /srv/a}]}\n")
	if err != nil || len(l.Policy.Weakened) != 1 || !strings.Contains(l.Policy.Weakened[0], "7 days, not 30") {
		t.Errorf("%v, %v", l, err)
	}
	var m snapshot.Manifest
	if b, err := s.d.snapshots.List(t.Context()); err != nil || string(b) != "[]" || json.Unmarshal([]byte("{}"), &m) != nil {
		t.Errorf("%s, %v", b, err)
	}
}
