package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// integration is the configuration of a daemon with a real MCP server behind it, whose
// calls cost what their price says. A cost of more than $5 an hour would pause an agent
// before its budgets do: that is loosened.
const integration = `version: 1
listen: {pages: none}
unsafe: {watch_looser: true}
watch: {money_micro_per_hour: 100000000}
boundaries:
  - {boundary: agent/step, risk: LOW, permissions: ["agent:step"], consumes: {iterations: 1}}
  - {boundary: mcp/notes/*, risk: LOW, permissions: ["mcp:call"]}
mcp:
  servers:
    notes: {command: [mcpserver, .], env: [PATH], cwd: .}
prices:
  calls:
    - {boundary: mcp/notes/*, money: $0}
    - {boundary: mcp/notes/write, money: $4}
budgets:
  - {scope: tenant, resource: money_micro, amount: 17000000, window: 24h}
`

// overDaemon is a site with a daemon that runs, of that configuration.
func overDaemon(t *testing.T) *site {
	t.Helper()
	s := newSite(t, integration)
	s.write("a", "hello")
	s.start("up", "up", "--no-operator")
	s.soon("the daemon", func() bool { return there(filepath.Join(s.dir, "s", "sock")) })
	return s
}

// calls has an agent call a tool in a session, and returns what it was told.
func (s *site) calls(agent, session, tool, args string) string {
	s.t.Helper()
	program, err := exec.LookPath("mcpcall")
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := s.command("mcp", "--agent", agent, "--session", session, "notes")
	cmd.Path, cmd.Args = program, append([]string{"mcpcall", tool, args}, cmd.Args...)
	out, _ := cmd.CombinedOutput() // an error of the tool's is looked at by who asks
	return string(out)
}

// The document's integration test "runaway loop": whoever loops is stopped by the
// limit of its kind, and goes
// nowhere by trying again; others go on.
func Test001_Integration_RunawayLoop(t *testing.T) {
	t.Parallel()
	s := overDaemon(t)
	n := 0
	for ; n < 50; n++ {
		if out, code := s.run("step", "loop", "again", "--kind", "code", "--session", "s1"); code != exitYes {
			if code != exitRefused || !strings.Contains(out, "iterations per session") {
				t.Errorf("exit %d: %s", code, out)
			}
			break
		}
	}
	if n != 3 {
		t.Errorf("it went on for %d steps, not 3", n)
	}
	if out, code := s.run("step", "calm", "once", "--kind", "code"); code != exitYes {
		t.Errorf("another is stopped too: %d %s", code, out)
	}
	if tail := s.must("ledger", "tail", "--agent", "loop"); strings.Count(tail, " done ") != 3 || strings.Count(tail, " denied ") != 1 {
		t.Errorf("the ledger has:\n%s", tail)
	}
}

// The document's integration test "budget exhaustion": real calls at $4 each spend the
// session's $10, which pauses the agent and asks a person, then the day's, which
// refuses everybody; what was refused was not done.
func Test001_Integration_BudgetExhaustion(t *testing.T) {
	t.Parallel()
	s := overDaemon(t)
	write := func(agent, session, name string) string {
		return s.calls(agent, session, "write", fmt.Sprintf(`{"path":%q,"text":"x"}`, name))
	}
	for i := range 2 {
		if out := write("ada", "s1", fmt.Sprint("ada", i)); !strings.Contains(out, "written") {
			t.Fatalf("%d: %s", i, out)
		}
	}
	if out := write("ada", "s1", "too-much"); !strings.Contains(out, "money_micro per session") {
		t.Errorf("the third: %s", out)
	}
	if out := s.calls("ada", "s2", "read", `{"path":"a"}`); !strings.Contains(out, "the agent ada is paused") {
		t.Errorf("in another session: %s", out)
	}
	if out := s.must("review", "ls"); !strings.Contains(out, "ada") {
		t.Errorf("nobody is asked: %s", out)
	}
	for _, agent := range []string{"bea", "cid"} {
		if out := write(agent, "s1", agent); !strings.Contains(out, "written") {
			t.Fatalf("%s: %s", agent, out)
		}
	}
	if out := write("dan", "s1", "beyond-the-day"); !strings.Contains(out, "money_micro per tenant") {
		t.Errorf("beyond the day: %s", out)
	}
	if out := s.calls("emil", "s1", "read", `{"path":"a"}`); !strings.Contains(out, "every agent of the tenant is refused until") {
		t.Errorf("anybody: %s", out)
	}
	for _, name := range []string{"too-much", "beyond-the-day"} {
		if there(filepath.Join(s.dir, name)) {
			t.Errorf("%s was refused, and done", name)
		}
	}
	s.must("ledger", "verify", "--semantics")
}
