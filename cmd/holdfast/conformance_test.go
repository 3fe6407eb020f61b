//go:build peers

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The peers from npm, and the server that the official SDK brings for the
// suite.
const (
	npmNode   = "node@22"
	npmSuite  = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
	npmClient = "@modelcontextprotocol/sdk@1.32.2"
	suiteMain = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
	reference = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"
)

// npmDir is where the peers are installed already, if anywhere.
const npmDir = "HOLDFAST_TEST_NPM"

// What these tests need of other programs is made once for all of them, below shared.
var (
	peers  = sync.OnceValues(installPeers)
	theirs = sync.OnceValues(func() (string, error) { return goBuild("everything", reference) })
)

func installPeers() (string, error) {
	dir := os.Getenv(npmDir)
	if dir != "" {
		return dir, nil
	}
	dir, err := shared()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "npm")
	if out, err := exec.Command("npm", "install", "--prefix", dir, "--no-audit", "--no-fund", npmNode, npmSuite, npmClient).CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w\n%s", err, out)
	}
	return dir, nil
}

// npm installs the peers from npm and returns where.
func npm(t *testing.T) (dir, node string) {
	t.Helper()
	dir = builtOnce(t, peers)
	return dir, filepath.Join(dir, "node_modules", ".bin", "node")
}

// everything builds the SDK's server.
func everything(t *testing.T) string {
	t.Helper()
	return builtOnce(t, theirs)
}

// serveEverything runs the SDK's server over HTTP, and returns its address.
func serveEverything(t *testing.T, bin string, stateless bool) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(bin, "-http="+addr, fmt.Sprintf("-stateless=%t", stateless))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 200 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return "http://" + addr + "/mcp"
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatal("the server does not listen")
	return ""
}

// suitePolicy is what an owner writes for a server that may do all it can: its
// tools, what stands beside a call's arguments, and what it asks of the client.
const suitePolicy = `version: 1
` + anyRepeats + `
listen:
  pages: none
boundaries:
  - {boundary: "mcp/everything/*", risk: LOW}
  - {boundary: mcp/everything/tools/call, risk: LOW}
  - {boundary: client/everything/roots/list, risk: LOW}
  - {boundary: client/everything/sampling/createMessage, risk: LOW}
  - {boundary: client/everything/elicitation/create, risk: LOW}
`

// through puts a server behind the gates with the real command and its daemon,
// and returns the address. At the end the command takes all down, and what it
// recorded is verified.
func through(t *testing.T, holdfast string, server ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hf") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, dir) })
	config := filepath.Join(dir, "holdfast.yaml")
	if err := os.WriteFile(config, []byte(suitePolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command(holdfast, append([]string{"--config", config}, args...)...)
		cmd.Env = append(os.Environ(), "HOLDFAST_STATE="+filepath.Join(dir, "s"))
		cmd.Stderr = t.Output()
		return cmd
	}
	cmd := run(append([]string{"mcp", "--http", "127.0.0.1:0", "--name", "everything"}, server...)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("holdfast mcp --http ended with %v", err)
		}
		if out, err := run("ledger", "verify").Output(); err != nil {
			t.Errorf("holdfast ledger verify: %v\n%s", err, out)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url := address.FindString(lines.Text()); url != "" {
			return url
		}
	}
	t.Fatal("holdfast mcp --http printed no address")
	return ""
}

var address = regexp.MustCompile(`http://\S+/mcp`)

// check is one line of the suite's verdict.
type verdict struct{ ID, Name, Status, ErrorMessage string }

func (c verdict) String() string { return c.ID + " " + c.Name + " " + c.Status }

var whenRun = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[0-9-]+Z$`)

// suite runs the official suite and returns its checks by scenario.
func suite(t *testing.T, dir, node, url, revision string) map[string][]verdict {
	t.Helper()
	out := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, filepath.Join(dir, suiteMain), "server", "--url", url, "--requirements", revision, "-o", out)
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// It answers 1 where a check failed; what counts is in its files.
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatalf("the suite: %v\n%s", err, said.String())
	}
	found := map[string][]verdict{}
	files, _ := filepath.Glob(filepath.Join(out, "*", "checks.json"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var cs []verdict
		if err := json.Unmarshal(b, &cs); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		// INFO tells what came over the wire, and judges nothing.
		cs = slices.DeleteFunc(cs, func(c verdict) bool { return c.Status == "INFO" })
		found[whenRun.ReplaceAllString(filepath.Base(filepath.Dir(f)), "")] = cs
	}
	if len(found) < 20 {
		t.Fatalf("the suite ran %d scenarios:\n%s", len(found), said.String())
	}
	return found
}

// TestConformanceIsEqual: the official suite says of the gateway, check by
// check, what it says of the server behind it.
func TestConformanceIsEqual(t *testing.T) {
	dir, node := npm(t)
	bin, holdfast := everything(t), buildCommand(t)
	for _, c := range []struct {
		revision  string
		stateless bool
		passed    int
	}{{"2026-07-28", true, 165}, {"2025-11-25", false, 82}} {
		t.Run(c.revision, func(t *testing.T) {
			direct := suite(t, dir, node, serveEverything(t, bin, c.stateless), c.revision)
			for name, server := range map[string][]string{
				"http": {serveEverything(t, bin, c.stateless)}, "stdio": {"--", bin}} {
				t.Run(name, func(t *testing.T) {
					url := through(t, holdfast, server...)
					passed, different := compare(direct, suite(t, dir, node, url, c.revision))
					if len(different) > 0 {
						// The suite gives some answers half a second. What differs
						// for want of time does not differ twice.
						t.Logf("again, since these differ: %s", different)
						direct = suite(t, dir, node, serveEverything(t, bin, c.stateless), c.revision)
						passed, different = compare(direct, suite(t, dir, node, url, c.revision))
					}
					for _, d := range different {
						t.Error(d)
					}
					t.Logf("%d checks passed through the gateway", passed)
					if passed < c.passed {
						t.Errorf("%d checks passed, at least %d should: the suite saw too little", passed, c.passed)
					}
				})
			}
		})
	}
}

// TestTypeScriptClient: the client that npm has sees through the gateway, line
// by line, what it sees of the server itself.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	dir, node := npm(t)
	work := t.TempDir()
	script := filepath.Join(work, "client.mjs")
	b, err := os.ReadFile(filepath.Join("testdata", "client.mjs"))
	if err == nil {
		err = os.WriteFile(script, b, 0o600)
	}
	if err == nil {
		err = os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(work, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	sees := func(t *testing.T, url string) []string {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, node, script, url)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("the client: %v\n%s", err, errs.String())
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	bin, holdfast := everything(t), buildCommand(t)
	want := sees(t, serveEverything(t, bin, false))
	if last := want[len(want)-1]; last != `{"terminated":true}` {
		t.Fatalf("directly the client came to %s", last)
	}
	for name, server := range map[string][]string{"http": {serveEverything(t, bin, false)}, "stdio": {"--", bin}} {
		t.Run(name, func(t *testing.T) {
			got := sees(t, through(t, holdfast, server...))
			for i := range max(len(want), len(got)) {
				at := func(lines []string) string {
					if i < len(lines) {
						return lines[i]
					}
					return "nothing"
				}
				if at(want) != at(got) {
					t.Errorf("directly: %.500s\n through: %.500s", at(want), at(got))
				}
			}
		})
	}
}

// compare returns how many checks passed, and every scenario that differs.
func compare(direct, behind map[string][]verdict) (passed int, different []string) {
	for scenario, want := range direct {
		got := behind[scenario]
		if !slices.EqualFunc(want, got, func(a, b verdict) bool { return a.String() == b.String() }) {
			different = append(different, scenario+"\n"+difference(want, got))
		}
		for _, c := range got {
			if c.Status == "SUCCESS" {
				passed++
			}
		}
	}
	for scenario := range behind {
		if _, ok := direct[scenario]; !ok {
			different = append(different, scenario+" ran only through the gateway")
		}
	}
	return passed, different
}

func difference(want, got []verdict) string {
	var b strings.Builder
	for i := range max(len(want), len(got)) {
		at := func(cs []verdict) (verdict, string) {
			if i < len(cs) {
				return cs[i], cs[i].String()
			}
			return verdict{}, "nothing"
		}
		w, ws := at(want)
		g, gs := at(got)
		if ws != gs {
			fmt.Fprintf(&b, "  direct:  %s %.300s\n  through: %s %.600s\n", ws, w.ErrorMessage, gs, g.ErrorMessage)
		}
	}
	return b.String()
}
