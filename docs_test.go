package holdfast_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/policy/watch"
)

// documents are the pages whose words are held against the tree.
func documents() []string {
	return []string{
		"README.md", "SECURITY.md", "CONTRIBUTING.md", "doc/architecture.md",
		"doc/crossing.md", "doc/threat.md", "doc/principles.md", "doc/ledger-format.md",
		"doc/redaction.md", "doc/sandbox.md", "doc/egress.md", "doc/goals.md", "doc/rules.md",
		"doc/watch.md", "doc/alerts.md", "doc/health.md", "doc/snapshots.md", "doc/models.md",
	}
}

func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDocumentsNameRealTests wants every test that a page names to exist.
func TestDocumentsNameRealTests(t *testing.T) {
	there := testNames(t)
	name := regexp.MustCompile("`((?:Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]*)`")
	for _, doc := range documents() {
		for _, m := range name.FindAllStringSubmatch(page(t, doc), -1) {
			if !there[m[1]] {
				t.Errorf("%s names %s, which is no test", doc, m[1])
			}
		}
	}
}

// testNames are the names of all test functions of this module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	name := regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)`)
	add := func(f *ast.File) {
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && name.MatchString(fn.Name.Name) {
				found[fn.Name.Name] = true
			}
		}
	}
	all, err := parseModule()
	for _, f := range all {
		if strings.HasSuffix(f.path, "_test.go") {
			add(f.syntax)
		}
	}
	if err == nil {
		// Modules of their own have tests too, which a page may name.
		err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() || path == "." || !exists(filepath.Join(path, "go.mod")) {
				return err
			}
			files, err := filepath.Glob(filepath.Join(path, "*_test.go"))
			for _, file := range files {
				f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
				if err != nil {
					return err
				}
				add(f)
			}
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestEveryClaimHasATest wants each cell of SECURITY.md to say one of three
// words, and what is claimed to cite tests that the list below the grid has.
func TestEveryClaimHasATest(t *testing.T) {
	text := page(t, "SECURITY.md")
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^([0-9]+)\\. `Test").FindAllStringSubmatch(text, -1) {
		listed[m[1]] = true
	}
	notes := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^- \(([a-z])\) `).FindAllStringSubmatch(text, -1) {
		notes[m[1]] = true
	}
	cell := regexp.MustCompile(`^(?:(?:prevented|detected) ([0-9]+)|not claimed)((?: \([a-z]\))*)$`)
	used, rows := map[string]bool{}, 0
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| ") || len(cells) != 7 || strings.TrimSpace(cells[0]) == "" {
			continue
		}
		rows++
		for _, c := range cells[1:] {
			m := cell.FindStringSubmatch(strings.TrimSpace(c))
			switch {
			case m == nil:
				t.Errorf("the cell %q of %q says neither prevented, detected nor not claimed", c, cells[0])
				continue
			case m[1] != "" && !listed[m[1]]:
				t.Errorf("the cell %q of %q cites tests that are not listed", c, cells[0])
			}
			used[m[1]] = true
			for _, note := range strings.Fields(m[2]) {
				note = strings.Trim(note, "()")
				if used[note] = true; !notes[note] {
					t.Errorf("the cell %q of %q cites a note that is not there", c, cells[0])
				}
			}
		}
	}
	if rows != 10 {
		t.Errorf("the grid has %d rows, not 10", rows)
	}
	for id := range listed {
		if !used[id] {
			t.Errorf("no cell cites the tests %s", id)
		}
	}
	for id := range notes {
		if !used[id] {
			t.Errorf("no cell cites the note (%s)", id)
		}
	}
}

// TestLinksResolve follows every link of the pages that stays in the tree, and
// every path in backquotes that looks like a file of ours.
func TestLinksResolve(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, doc := range documents() {
		for _, m := range link.FindAllStringSubmatch(page(t, doc), -1) {
			u, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %v", doc, err)
				continue
			}
			if u.Scheme != "" || u.Path == "" {
				continue
			}
			if to := filepath.Join(filepath.Dir(doc), u.Path); !exists(to) {
				t.Errorf("%s links to %s, which is not there", doc, m[1])
			}
		}
	}
}

// TestCodeNamesRealPages wants each page that a comment names to be there.
func TestCodeNamesRealPages(t *testing.T) {
	name, found := regexp.MustCompile(`\b(doc/[a-z-]+\.(?:md|csv))\b`), 0
	sources(t, func(path string, f *ast.File, _ *token.FileSet) {
		for _, group := range f.Comments {
			for _, c := range group.List {
				for _, m := range name.FindAllStringSubmatch(c.Text, -1) {
					if found++; !exists(m[1]) {
						t.Errorf("%s names %s, which is not there", path, m[1])
					}
				}
			}
		}
	})
	if found == 0 {
		t.Error("no comment names a page: is the test blind?")
	}
}

// TestWatchPageHasEveryCondition holds the table of doc/watch.md against the code's, and
// the names in the example of a configuration, which has those that can be set.
func TestWatchPageHasEveryCondition(t *testing.T) {
	var want, got []string
	_, example, _ := strings.Cut(page(t, "internal/config/holdfast.example.yaml"), " Conditions: ")
	example, _, _ = strings.Cut(example, "doc/watch.md")
	for _, c := range watch.Conditions() {
		if named := regexp.MustCompile(`\b` + string(c.Name) + `\b`).MatchString(example); named == c.Answered {
			t.Errorf("internal/config/holdfast.example.yaml: %s is named: %v, and can be set: %v", c.Name, named,
				!c.Answered)
		}
		want = append(want, string(c.Name)+" "+c.Severity.String())
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([A-Z]+) \\|").FindAllStringSubmatch(page(t, "doc/watch.md"), -1) {
		got = append(got, m[1]+" "+m[2])
	}
	if !slices.Equal(got, want) {
		t.Errorf("doc/watch.md has\n%q\nand the code\n%q", got, want)
	}
}

// TestEveryConditionIsFound wants, for each condition, code that says that it holds: by
// its place within the watch, by its name elsewhere. A row that nothing finds would be a
// promise of an alarm.
func TestEveryConditionIsFound(t *testing.T) {
	row, found := map[string]string{}, map[string]bool{} // by a place's constant, that of the name
	sources(t, func(path string, f *ast.File, _ *token.FileSet) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				at, name := identOf(n.Key), ""
				if lit, ok := n.Value.(*ast.CompositeLit); ok && path == "internal/policy/watch/condition.go" && len(lit.Elts) > 0 {
					if first, ok := lit.Elts[0].(*ast.KeyValueExpr); ok {
						name = identOf(first.Value)
					}
				}
				if name != "" {
					row[at] = name
				}
			case *ast.CallExpr:
				switch identOf(n.Fun) {
				case "holds", "Set", "condition":
					for _, arg := range n.Args {
						found[identOf(arg)] = true
					}
				}
			}
			return true
		})
	})
	if all := watch.Conditions(); len(row) != len(all) {
		t.Fatalf("%d rows are read of %d: is the test blind?", len(row), len(all))
	}
	for at, name := range row {
		if !found[at] && !found[name] {
			t.Errorf("nothing says that %s holds", name)
		}
	}
}

// identOf is the last name of what an expression names, "" if it names nothing.
func identOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// TestCrossingPageHasEverySignal holds the table of error kinds in
// doc/crossing.md against the one in code (D14c).
func TestCrossingPageHasEverySignal(t *testing.T) {
	want := map[string]bool{}
	for _, s := range holdfast.Signals() {
		who := s.Gate.String()
		if s.Gate == holdfast.GateHalt {
			who = "act" // no gate raises it
		}
		want["| "+who+" | "+string(s.Kind)+" | "+strings.ToLower(s.Level.String())+" | "+s.Event+" |"] = true
	}
	for line := range strings.Lines(page(t, "doc/crossing.md")) {
		line = strings.TrimSpace(line)
		if !strings.Contains(line, "| trace.") {
			continue
		}
		if !want[line] {
			t.Errorf("doc/crossing.md has %q, the code does not", line)
		}
		delete(want, line)
	}
	for line := range want {
		t.Errorf("doc/crossing.md lacks %q", line)
	}
}

// TestCrossingPageHasEveryState wants every state that a gate can end in to
// stand in doc/crossing.md.
func TestCrossingPageHasEveryState(t *testing.T) {
	files, err := filepath.Glob("internal/kernel/k[1-8]_*.go")
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	text, state, found := page(t, "doc/crossing.md"), regexp.MustCompile(`"([A-Z][A-Z_]{3,})"`), 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range state.FindAllStringSubmatch(page(t, file), -1) {
			found++
			if !strings.Contains(text, m[1]) {
				t.Errorf("doc/crossing.md lacks %s of %s", m[1], file)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d states were found", found)
	}
}

// TestReadmeConfigurationLoads loads the YAML of the README, and of the pages about
// what leaves, models, goals, the watch, alerts and snapshots, as the daemon would, and parses the
// README's JSON.
func TestReadmeConfigurationLoads(t *testing.T) {
	text := page(t, "README.md") + page(t, "doc/egress.md") + page(t, "doc/goals.md") + page(t, "doc/watch.md") + page(t, "doc/snapshots.md") +
		page(t, "doc/models.md") + page(t, "doc/alerts.md")
	blocks := regexp.MustCompile("(?s)```(yaml|json)\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) < 2 {
		t.Fatal("the README has no YAML, or no JSON")
	}
	for _, b := range blocks {
		if b[1] == "json" {
			if !json.Valid([]byte(b[2])) {
				t.Errorf("no JSON: %s", b[2])
			}
			continue
		}
		if strings.HasPrefix(b[2], "rules:\n  -") {
			continue // a file of rules
		}
		dir := t.TempDir()
		for _, name := range []string{"mail.address", "team.address"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("generic+https://example.com/\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(dir, "holdfast.yaml")
		if err := os.WriteFile(file, []byte("version: 1\n"+strings.TrimPrefix(b[2], "version: 1\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(file); err != nil {
			t.Errorf("%v\n%s", err, b[2])
		}
	}
}

// TestReadmeCodeIsCompiled wants every line of the README's Go to stand in the
// example that the tests run.
func TestReadmeCodeIsCompiled(t *testing.T) {
	example := page(t, "daemon/example_test.go")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page(t, "README.md"), -1)
	if len(blocks) == 0 {
		t.Fatal("the README has no Go")
	}
	for _, b := range blocks {
		for line := range strings.Lines(b[1]) {
			if !strings.Contains(example, "\t"+strings.TrimSpace(line)+"\n") {
				t.Errorf("README.md: %q is not in daemon/example_test.go", strings.TrimSpace(line))
			}
		}
	}
}

// TestReadmeSession runs the README's terminal session, in a state of its own,
// and wants what stands there, ids aside.
func TestReadmeSession(t *testing.T) {
	session := regexp.MustCompile("(?s)```\n(\\$ .*?)```").FindStringSubmatch(page(t, "README.md"))
	if session == nil {
		t.Fatal("the README has no session")
	}
	dir := t.TempDir()
	// `go run` keeps what it linked in the build cache, which `go build` does not.
	build := exec.CommandContext(t.Context(), "go", "run", "-exec", "cp", "./cmd/holdfast", filepath.Join(dir, "holdfast"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	id := regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	var got strings.Builder
	for line := range strings.Lines(session[1]) {
		typed, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", typed)
		cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir, "HOLDFAST_STATE=" + filepath.Join(dir, "state")}
		out, err := cmd.CombinedOutput()
		if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
			t.Fatal(err)
		}
		got.WriteString(line + string(out))
	}
	later := regexp.MustCompile(`room again in 5\ds`) // where the machine took seconds for a line
	said := later.ReplaceAllString(id.ReplaceAllString(got.String(), "ID"), "room again in 1m0s")
	if want := id.ReplaceAllString(session[1], "ID"); said != want {
		t.Errorf("the README says\n%s\nand it is\n%s", want, got.String())
	}
}

// TestSandboxPageHasEveryRow holds the table of rows in doc/sandbox.md against the
// code's: every trace event, with its level, state and kinds.
func TestSandboxPageHasEveryRow(t *testing.T) {
	want := map[string]string{}
	row := func(s posture.Signal, state posture.State, kind holdfast.Kind) {
		level := strings.ToLower(s.Level.String())
		if s.Level == holdfast.LevelCritical {
			level = "critical"
		}
		want[s.Event] = fmt.Sprintf("| %s | %s | %s |", state, level, s.Event)
		if kind != "" {
			want[s.Event+" "+string(kind)] = string(kind)
		}
	}
	for _, r := range []posture.Result{{State: posture.Timeout}, {State: posture.OOM}, {State: posture.SyscallBlocked}, {State: posture.Completed, ExitCode: 1}} {
		row(r.Signals()[0], r.State, "")
	}
	row((&posture.Result{State: posture.SyscallBlocked, Reason: posture.ReasonEscape}).Signals()[0], posture.SyscallBlocked, holdfast.KindEscape)
	for _, kind := range []holdfast.Kind{holdfast.KindProtocol, holdfast.KindLanguage, holdfast.KindCodeSize, holdfast.KindLimit,
		holdfast.KindSpawn, holdfast.KindNamespace, holdfast.KindSeccomp, holdfast.KindCgroup, holdfast.KindMount} {
		err := &holdfast.Error{Kind: kind}
		row(posture.Refused(err)[0], posture.StateOf(err), kind)
	}
	scratch := &holdfast.Error{Kind: holdfast.KindMount, Err: &posture.Tmpfs{}}
	row(posture.Refused(scratch)[0], posture.SpawnError, holdfast.KindMount)
	found := map[string]string{}
	for line := range strings.Lines(page(t, "doc/sandbox.md")) {
		if event := regexp.MustCompile(`\| (trace\.[a-z_]+) \|`).FindStringSubmatch(line); event != nil {
			found[event[1]] = line
		}
	}
	for key, part := range want {
		event, _, _ := strings.Cut(key, " ")
		if !strings.Contains(found[event], part) {
			t.Errorf("doc/sandbox.md lacks %q of %s: %q", part, event, found[event])
		}
	}
	if len(found) != 12 {
		t.Errorf("doc/sandbox.md has %d rows, the document 12", len(found))
	}
}
