package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

// The safety check of spec 001, check by check: its script, the longer one of
// findings 5.1 and 5.2, and the faults 1 to 7 that were found when it was run.
// Each is asked of the real command without a daemon, and of a daemon that runs: those
// in which a daemon keeps state of its own in make test, all of them in make endure.
func TestStepIsTheDocumentsSafetyCheck(t *testing.T) {
	t.Parallel()
	for _, check := range []struct {
		name, config string
		ask          func(*script)
	}{
		{"a stop file blocks", noCooldown, theStopFile},
		{"the enabled flag blocks", noCooldown, theEnabledFlag},
		{"the iteration limit blocks", noCooldown, theIterationLimit},
		{"the cooldown blocks", "version: 1\nlisten: {pages: none}\n", theCooldown},
		{"the cooldown ends", strings.Replace(noCooldown, "risk: LOW", "risk: LOW\n    cooldown: 300ms", 1), theCooldownEnds},
		{"the daily budget blocks", noCooldown + fmt.Sprintf(stepsCost, "$9"), theDailyBudget},
		{"the chain budget blocks", noCooldown + fmt.Sprintf(stepsCost, "$4"), theChainBudget},
		{"the session budget blocks", noCooldown + fmt.Sprintf(stepsCost, "$2") + "budgets: [{scope: session, resource: money_micro, amount: 4000000}]\n", theSessionBudget},
		{"the order of the checks", noCooldown, theOrder},
		{"passed", noCooldown, thePass},
		{"without arguments", noCooldown, theArguments},
		{"many at once", noCooldown, theRace},
		{"fault 1 an agent without state", noCooldown, fault1},
		{"fault 2 one limit for every agent", noCooldown, fault2},
		{"fault 3 a counter that is no number", noCooldown, fault3},
		{"fault 4 other words for no", noCooldown, fault4},
		{"fault 5 another directory", noCooldown, fault5},
		{"fault 6 a cooldown of every action", sharedCooldown, fault6},
		{"fault 7 two exit codes for one stop", noCooldown, fault7},
	} {
		for _, daemon := range []bool{false, true} {
			name := check.name
			listed := func(start string) bool { return strings.HasPrefix(name, start) }
			if daemon && !testrepeat.Enduring && !slices.ContainsFunc(ofDaemon, listed) {
				continue
			}
			if daemon {
				name += " (of a daemon)"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := &script{site: newSite(t, check.config)}
				s.in = s.dir
				if daemon {
					s.up = s.start("up", "up", "--no-operator")
					s.soon("the daemon", func() bool { return there(filepath.Join(s.dir, "s", "sock")) })
				}
				check.ask(s)
			})
		}
	}
}

// ofDaemon has the starts of the checks that make test asks of a daemon too: one that blocks for each
// reason, and what a daemon keeps in memory.
var ofDaemon = []string{
	"a stop file blocks", "the enabled flag blocks", "the iteration limit blocks", "the cooldown blocks",
	"the daily budget blocks", "passed", "many", "fault 3",
}

const (
	noCooldown = `version: 1
listen: {pages: none}
boundaries:
  - boundary: agent/step
    risk: LOW
    permissions: ["agent:step"]
    consumes: {iterations: 1}
`
	stepsCost = `prices:
  calls: [{boundary: agent/step, money: %s}]
`
	sharedCooldown = noCooldown + `  - boundary: goal/admit
    risk: LOW
    permissions: ["goal:submit"]
limits: [{scope: tenant, boundary: agent/step, cooldown: 60s}]
`
)

// script is a script that asks before each of its steps, in a directory and with
// an environment of its own.
type script struct {
	*site
	in  string
	env []string
	up  *exec.Cmd // nil without a daemon
}

// says runs holdfast and wants its exit code, and the expressions in what it says
// on standard output and standard error; an empty one wants nothing said.
func (s *script) says(code int, out, why string, args ...string) {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := s.command(args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.in, append(cmd.Env, s.env...), &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		s.t.Fatal(err)
	}
	fits := func(what, text string) bool {
		return what == "" && text == "" || what != "" && regexp.MustCompile(what).MatchString(text)
	}
	if got := cmd.ProcessState.ExitCode(); got != code || !fits(out, stdout.String()) || !fits(why, stderr.String()) {
		s.t.Fatalf("holdfast %q: exit %d, not %d; said %q and %q, not %q and %q", args, got, code, stdout.String(), stderr.String(), out, why)
	}
}

const (
	goOn   = `^allow  agent/step  [0-9a-f-]{36}\n$`
	denied = `^deny  agent/step  [0-9a-f-]{36}\n$`
)

func (s *script) passes(args ...string) {
	s.t.Helper()
	s.says(exitYes, goOn, "", append([]string{"step"}, args...)...)
}

func (s *script) blocks(code int, why string, args ...string) {
	s.t.Helper()
	s.says(code, denied, "(?m)^holdfast: .*"+why, append([]string{"step"}, args...)...)
}

// The document's stop is a file; so is this one, and what cannot be read as one
// is one as well.
func theStopFile(s *script) {
	s.passes("ada", "go")
	latch := filepath.Join(s.dir, "s", "HALT")
	for what, stop := range map[string]func() error{
		"touched":     func() error { return os.WriteFile(latch, nil, 0o600) },
		"not text":    func() error { return os.WriteFile(latch, []byte("\xff\x00{"), 0o600) },
		"a directory": func() error { return os.Mkdir(latch, 0o700) },
		"a dead link": func() error { return os.Symlink("/nowhere", latch) },
	} {
		if err := stop(); err != nil {
			s.t.Fatal(what, err)
		}
		s.blocks(exitHalted, "everything is halted", "bea", "go")
		if err := os.Remove(latch); err != nil {
			s.t.Fatal(what, err)
		}
	}
	s.says(exitYes, "^halted\n$", ".?", "halt", "it loops")
	s.blocks(exitHalted, "everything is halted", "bea", "go")
	pass := s.operator()
	s.says(exitYes, "resumed", ".?", "resume", "--credential-file", pass)
	s.passes("bea", "go")
}

func theEnabledFlag(s *script) {
	s.env = []string{"HOLDFAST_ENABLED=false"}
	s.says(exitHalted, "", `HOLDFAST_ENABLED is "false"`, "step", "ada", "go")
	s.env = []string{"HOLDFAST_ENABLED=true"}
	s.passes("ada", "go")
	s.env = nil
	s.passes("ada", "go")
}

// Five of the document's kind "support" and no sixth; what was refused counts
// nothing, and another session begins anew.
func theIterationLimit(s *script) {
	for i := range 5 { // five times the same would be a loop
		s.passes("ada", fmt.Sprint("implement ", i), "--kind", "support")
	}
	for range 2 {
		s.blocks(exitRefused, `iterations per session \(kind support\): 1 asked, 0 of 5 left`, "ada", "implement", "--kind", "support")
	}
	s.passes("ada", "implement", "--kind", "support", "--session", "tomorrow")
	// The document's caller raises its own limit by its environment.
	s.env = []string{"MAX_ITERATIONS=99", "COOLDOWN_SECONDS=0"}
	s.blocks(exitRefused, "iterations per session", "ada", "implement", "--kind", "support")
}

func theCooldown(s *script) {
	s.passes("ada", "go", "--kind", "ops")
	s.env = []string{"COOLDOWN_SECONDS=0"}
	s.blocks(exitRefused, "cooldown of 1m0s per agent", "ada", "go", "--kind", "ops")
	s.blocks(exitRefused, "cooldown of 1m0s per agent", "ada", "go", "--kind", "ops", "--session", "another")
}

// At its end it is over by itself, and not before.
func theCooldownEnds(s *script) {
	before := time.Now()
	s.passes("ada", "go", "--kind", "ops")
	s.soon("the cooldown's end", func() bool { return s.command("step", "ada", "go", "--kind", "ops").Run() == nil })
	if d := time.Since(before); d < 300*time.Millisecond {
		s.t.Errorf("the second passed after %v", d)
	}
}

func theDailyBudget(s *script) {
	for i := range 5 {
		s.passes(fmt.Sprint("a", i), "go")
	}
	s.blocks(exitRefused, `money_micro per tenant in 24h0m0s`, "bea", "go")
	s.blocks(exitRefused, "every agent of the tenant is refused until", "cid", "go")
}

func theChainBudget(s *script) {
	s.passes("ada", "go", "--chain", "c")
	s.blocks(exitRefused, `money_micro per chain`, "bea", "go", "--chain", "c")
	s.blocks(exitRefused, "the chain c was ended", "cid", "go", "--chain", "c")
	s.passes("cid", "go", "--chain", "d")
}

func theSessionBudget(s *script) {
	s.passes("ada", "go", "--kind", "ops")
	s.passes("ada", "go", "--kind", "ops")
	s.blocks(exitRefused, `money_micro per session`, "ada", "go", "--kind", "ops")
	s.blocks(exitRefused, "the agent ada is paused", "ada", "go", "--kind", "ops", "--session", "another")
	s.says(exitYes, "pending +ada", "", "review", "ls")
	s.passes("bea", "go")
}

// A stop comes before a limit.
func theOrder(s *script) {
	s.passes("ada", "go")
	s.passes("ada", "go")
	s.blocks(exitRefused, "iterations per session", "ada", "go")
	s.says(exitYes, "halted", ".?", "halt")
	s.blocks(exitHalted, "everything is halted", "ada", "go")
	s.env = []string{"HOLDFAST_ENABLED=false"}
	s.says(exitHalted, "", "HOLDFAST_ENABLED", "step", "ada", "go")
}

// What the document prints and forgets is in the ledger: who, and what for.
func thePass(s *script) {
	out, err := s.command("step", "ada", "read the logs", "--json").Output()
	var v struct {
		Outcome struct{ Crossing, Verdict string }
	}
	if json.Unmarshal(out, &v) != nil || v.Outcome.Verdict != "allow" {
		s.t.Fatalf("%v\n%s", err, out)
	}
	s.says(exitYes, `(?s)agent +ada.*asked +\{"action":"read the logs"\}`, "", "ledger", "show", v.Outcome.Crossing)
}

// The document checks an agent called "unknown".
func theArguments(s *script) {
	s.says(exitUsage, "", "2 arguments more", "step")
	s.says(exitUsage, "", "1 argument more", "step", "ada")
	s.says(exitUsage, "", "AGENT is empty", "step", "", "go")
	s.says(exitUsage, "", "ACTION is empty", "step", "ada", "")
	// A path in the document; a name here.
	s.passes("../../etc", "go")
	if there(filepath.Join(s.dir, "..", "etc")) {
		s.t.Error("a name became a path")
	}
}

// The document reads and writes its counter in two acts.
func theRace(s *script) {
	var passed, refused atomic.Int32
	var wg sync.WaitGroup
	ask := func() int {
		cmd := s.command("step", "ada", "go", "--kind", "discovery")
		out, _ := cmd.CombinedOutput()
		switch code := cmd.ProcessState.ExitCode(); code {
		case exitYes:
			passed.Add(1)
		case exitRefused:
			refused.Add(1)
		case exitError: // without a daemon one waits for another, not for ever
		default:
			s.t.Errorf("%s", out)
		}
		return cmd.ProcessState.ExitCode()
	}
	for range 8 {
		wg.Go(func() { ask() })
	}
	wg.Wait()
	for ask() == exitYes {
	}
	if passed.Load() != 3 || refused.Load() == 0 {
		s.t.Errorf("%d passed and %d were refused, where 3 may", passed.Load(), refused.Load())
	}
}

// Found: without the agent's directory it prints that it passed, and fails.
func fault1(s *script) {
	s.passes("never-seen", "go")
	s.env = []string{"HOLDFAST_STATE=" + filepath.Join(s.dir, "fresh", "state")}
	s.says(exitYes, goOn, ".?", "step", "never-seen", "go")
	// Where nothing can be written it fails, and says nothing else.
	s.env = []string{"HOLDFAST_STATE=" + filepath.Join(s.write("file", ""), "state")}
	s.says(exitError, "", "the state directory", "step", "ada", "go")
}

// Found: five for every agent, and nothing counts.
func fault2(s *script) {
	for kind, n := range map[string]int{"discovery": 3, "meta": 2, "nobody-listed-it": 2} {
		for range n {
			s.passes("a-"+kind, "go", "--kind", kind)
		}
		s.blocks(exitRefused, fmt.Sprintf("0 of %d left", n), "a-"+kind, "go", "--kind", kind)
	}
}

// Found: what is no number passes. A daemon that runs goes by what it counted
// itself; here it is started on what was spoilt.
func fault3(s *script) {
	s.passes("ada", "go")
	if s.up != nil {
		s.stop(s.up)
	}
	db, err := sql.Open("sqlite", filepath.Join(s.dir, "s", "holdfast.db")+"?_pragma=ignore_check_constraints(1)")
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, spoilt := range []string{
		`UPDATE counter SET used = -5`,
		`ALTER TABLE counter RENAME TO was;
			CREATE TABLE counter (key TEXT PRIMARY KEY, used, "window") WITHOUT ROWID;
			INSERT INTO counter SELECT key, 'three', "window" FROM was; DROP TABLE was`,
		`DROP TABLE counter`,
	} {
		if _, err := db.Exec("BEGIN; " + spoilt + "; COMMIT"); err != nil {
			s.t.Fatal(spoilt, err)
		}
		if s.up != nil {
			s.up = s.start("up", "up", "--no-operator")
			s.soon("the daemon, or its end", func() bool {
				said, _ := os.ReadFile(filepath.Join(s.dir, "up"))
				return there(filepath.Join(s.dir, "s", "sock")) || bytes.Contains(said, []byte("holdfast: "))
			})
		}
		cmd := s.command("step", "ada", "go")
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code == exitYes || bytes.Contains(out, []byte("allow")) {
			s.t.Errorf("%s: exit %d\n%s", spoilt, code, out)
		}
		if s.up != nil {
			s.stop(s.up)
		}
	}
}

// Found: only the lower-case word "false" stops.
func fault4(s *script) {
	for _, word := range []string{"False", "FALSE", "0", "no", "off", "", "stop"} {
		s.env = []string{"HOLDFAST_ENABLED=" + word}
		s.says(exitHalted, "", "HOLDFAST_ENABLED", "step", "ada", "go")
	}
}

// Found: from another directory a stop is not seen.
func fault5(s *script) {
	s.says(exitYes, "halted", ".?", "halt")
	s.in = s.t.TempDir()
	s.blocks(exitHalted, "everything is halted", "ada", "go")
	s.env = []string{"HOLDFAST_STATE=s"}
	s.says(exitError, "", "HOLDFAST_STATE is the relative path", "step", "ada", "go")
	if there(filepath.Join(s.in, "s")) {
		s.t.Error("a state of its own was made")
	}
}

// Found: it limits every action, and two agents do not share it. Here it is the
// step's alone, and who shares it is the configuration's to say.
func fault6(s *script) {
	s.passes("ada", "go")
	cmd := s.command("goal", "submit", "--agent", "ada")
	cmd.Stdin = strings.NewReader(`{"goal":{"goal_id":"g1","description":"count the notes","priority":"normal","goal_type":"count"}}`)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Errorf("what is no step is kept from acting: %v\n%s", err, out)
	}
	s.blocks(exitRefused, "cooldown of 1m0s per tenant", "bea", "go")
}

// Found: one snippet answers 0 to a stop, and the other 1.
func fault7(s *script) {
	stopped := func(latch bool) {
		for _, args := range [][]string{{"step", "ada", "go"}, {"check", "agent/step", "{}"}, {"explain", "agent/step", "{}"},
			{"goal", "submit"}, {"mcp", "--", "true"}, {"status"}} {
			cmd := s.command(args...)
			cmd.Env = append(cmd.Env, s.env...)
			cmd.Stdin = strings.NewReader(`{"goal":{"goal_id":"g1","description":"count the notes","priority":"normal","goal_type":"count"}}`)
			out, err := cmd.CombinedOutput()
			if _, ok := err.(*exec.ExitError); !ok || cmd.ProcessState.ExitCode() != exitHalted {
				s.t.Errorf("%q, halted by its latch (%v): %v\n%s", args, latch, err, out)
			}
		}
	}
	s.env = []string{"HOLDFAST_ENABLED=0"}
	stopped(false)
	s.env = nil
	s.says(exitYes, "halted", ".?", "halt")
	stopped(true)
}
