//go:build linux && peers

package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/frontend/model/codingtest"
)

// The coding hosts from npm. Their programs are in packages of this machine's kind.
const (
	npmClaude = "@anthropic-ai/claude-code@2.1.332"
	npmCodex  = "@openai/codex@0.171.0"
)

const (
	// hostsDir names the directory in which the hosts are installed already, if anywhere.
	hostsDir = "HOLDFAST_TEST_HOSTS"
	// recordDir names the directory to which recordings are written, if any: testdata of codingtest.
	recordDir = "HOLDFAST_TEST_RECORD"
)

var codingHosts = sync.OnceValues(installCodingHosts)

func installCodingHosts() (string, error) {
	if dir := os.Getenv(hostsDir); dir != "" {
		return dir, nil
	}
	dir, err := shared()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "hosts")
	install := exec.Command("npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", npmClaude,
		npmCodex)
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm install: %w\n%s", err, out)
	}
	return dir, nil
}

// codingHost is a host of coding agents, and how it is run.
type codingHost struct {
	program string // below node_modules, a pattern
	env     []string
	script  string // runs it with the prompt in $1
	// list returns what the host printed of the calls of tools, their results and texts, without identifiers.
	list func(t *testing.T, out []byte) []string
}

var codingHostsByName = map[string]codingHost{
	"claude": {program: "@anthropic-ai/claude-code-*/claude",
		env: []string{"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"},
		script: `claude -p "$1" --output-format stream-json --verbose --setting-sources user ` +
			`--allowedTools Bash,Read,Edit,Write`,
		list: listClaudeCalls},
	"codex": {program: "@openai/codex-*/vendor/*/bin/codex",
		script: `codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox ` +
			`-c model=gpt-5.4 -c model_provider=scripted -c model_providers.scripted.name=scripted ` +
			`-c "model_providers.scripted.base_url=\"$OPENAI_BASE_URL\"" ` +
			`-c model_providers.scripted.wire_api=responses ` +
			`-c model_providers.scripted.env_key=OPENAI_API_KEY -c web_search=disabled "$1"`,
		list: listCodexCalls},
}

// listClaudeCalls lists the calls, results and texts of Claude Code's stream of JSON.
func listClaudeCalls(t *testing.T, out []byte) (list []string) {
	for line := range bytes.Lines(out) {
		var v struct {
			Type    string
			Message struct {
				Content []struct {
					Type, Text, Name string
					Input, Content   json.RawMessage
					IsError          bool `json:"is_error"`
				}
			}
		}
		if json.Unmarshal(line, &v) != nil {
			continue
		}
		for _, c := range v.Message.Content {
			if c.Type != "thinking" {
				list = append(list, fmt.Sprintf("%s %s %s %s %s %v", v.Type, c.Type, c.Text+c.Name, c.Input,
					c.Content, c.IsError))
			}
		}
	}
	return list
}

// listCodexCalls lists the calls, results and texts of Codex's stream of JSON.
func listCodexCalls(t *testing.T, out []byte) (list []string) {
	for line := range bytes.Lines(out) {
		var v struct{ Item map[string]any }
		if json.Unmarshal(line, &v) != nil || v.Item == nil || v.Item["type"] == "reasoning" {
			continue
		}
		delete(v.Item, "id")
		text, err := json.Marshal(v.Item)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(text))
	}
	return list
}

// codingRun is what a host did: what it printed of its calls, the files of its work tree, and the commits.
type codingRun struct{ calls, files, commits []string }

// codingSite is a site with the two providers and a work tree.
type codingSite struct {
	*site
	programs string
	tree     string
	provider *httptest.Server
	model    *codingtest.Model
}

// newCodingSite starts a provider that listens with TLS, and Holdfast before it.
func newCodingSite(t *testing.T, seed uint64) *codingSite {
	t.Helper()
	s := &codingSite{programs: builtOnce(t, codingHosts), model: &codingtest.Model{Seed: seed}}
	s.provider = httptest.NewTLSServer(s.model)
	t.Cleanup(s.provider.Close)
	_, port, err := net.SplitHostPort(s.provider.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	row := "    '%s.example.com:" + port +
		"': {type: llm, models: {provider: %s}, addresses: [127.0.0.1], roots: roots.pem}\n"
	s.site = newSite(t, "version: 1\n"+anyRepeats+"\nlisten: {pages: none}\n"+
		"boundaries:\n  - {boundary: run/*, risk: LOW, "+hostedWalls+"}\negress:\n  domains:\n"+
		fmt.Sprintf(row, "claude", "anthropic")+fmt.Sprintf(row, "gpt", "openai"))
	s.write("roots.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: s.provider.Certificate().Raw})))
	s.tree = filepath.Join(s.dir, "tree")
	s.start("up", "up", "--no-operator")
	s.after("up", "listening")
	return s
}

// makeTree makes the work tree from scratch.
func (s *codingSite) makeTree() {
	s.t.Helper()
	if err := os.RemoveAll(s.tree); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Mkdir(s.tree, 0o755); err != nil {
		s.t.Fatal(err)
	}
	for name, text := range codingtest.Tree() {
		if err := os.WriteFile(filepath.Join(s.tree, name), []byte(text), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	name, mail, _ := strings.Cut(strings.TrimSuffix(codingtest.Author, ">"), " <")
	s.runGit("init", "-q", "-b", "main")
	s.runGit("add", "-A")
	s.runGit("-c", "user.name="+name, "-c", "user.email="+mail, "commit", "-qm", "Begin",
		"--date", "2026-11-01T10:00:00Z")
}

// runGit runs git in the work tree and returns what it prints.
func (s *codingSite) runGit(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", s.tree}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-11-01T10:00:00Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// runHost runs a host on a new work tree, with Holdfast or without, and returns what it did.
func (s *codingSite) runHost(host codingHost, holdfast bool) (run codingRun, told string) {
	s.t.Helper()
	s.makeTree()
	found, err := filepath.Glob(filepath.Join(s.programs, "node_modules", host.program))
	if err != nil || len(found) == 0 {
		s.t.Fatalf("no program %s: %v", host.program, err)
	}
	path := "PATH=" + filepath.Dir(found[0]) + ":/usr/local/bin:/usr/bin:/bin"
	args := []string{"/bin/sh", "-c", host.script, "host", codingtest.Prompt}
	var cmd *exec.Cmd
	if holdfast {
		flags := []string{"run", "--dir", s.tree, "--toolbox", filepath.Join(s.programs, "node_modules"),
			"--timeout", "200s"}
		for _, v := range host.env {
			flags = append(flags, "--env", v)
		}
		cmd = s.command(append(append(flags, "--"), args...)...)
		cmd.Env = append(cmd.Env, path)
		cmd.Dir = s.tree
	} else {
		server := httptest.NewServer(s.model)
		defer server.Close()
		cmd = exec.Command(args[0], args[1:]...)
		cmd.Dir = s.tree
		cmd.Env = append([]string{path, "HOME=" + s.t.TempDir(), "ANTHROPIC_BASE_URL=" + server.URL, "LANG=C.UTF-8",
			"ANTHROPIC_API_KEY=none", "OPENAI_BASE_URL=" + server.URL + "/v1", "OPENAI_API_KEY=none"}, host.env...)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("with Holdfast %v: %v\n%s\n%s", holdfast, err, out.Bytes(), errs.Bytes())
	}
	run.calls = host.list(s.t, out.Bytes())
	err = filepath.WalkDir(s.tree, func(path string, d fs.DirEntry, err error) error {
		if d.Name() == ".git" {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		run.files = append(run.files, filepath.Base(path)+":\n"+string(text))
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	run.commits = strings.Split(s.runGit("log", "--format=%T %an <%ae> %B"), "\n")
	return run, errs.String()
}

// checkSame fails where a host did something else with Holdfast than without.
func checkSame(t *testing.T, what string, without, with []string) {
	t.Helper()
	if len(without) == 0 || len(without) != len(with) {
		t.Errorf("%d %s without Holdfast, %d with it", len(without), what, len(with))
	}
	for i := range min(len(without), len(with)) {
		if without[i] != with[i] {
			t.Errorf("%s\nwithout %s\n   with %s", what, without[i], with[i])
		}
	}
}

// lastLine is what a run ends with.
var lastLine = regexp.MustCompile(`^holdfast: models: \d+ values replaced by placeholders ` +
	`\(card, email, (personal, )?phone, secret\), \d+ restored$`)

// TestCodingHostsWorkTheSameInARun: Claude Code and Codex do the same with Holdfast before their model as without,
// and the model's provider sees none of the values that they work with.
func TestCodingHostsWorkTheSameInARun(t *testing.T) {
	t.Parallel()
	for name, host := range codingHostsByName {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			s := newCodingSite(t, seed)
			without, _ := s.runHost(host, false)
			before := len(s.model.Asked())
			if dir := os.Getenv(recordDir); dir != "" {
				if err := codingtest.WriteRecording(filepath.Join(dir, name+".jsonl"), s.model.Asked(),
					s.tree); err != nil {
					t.Fatal(err)
				}
			}
			with, told := s.runHost(host, true)
			checkSame(t, "calls", without.calls, with.calls)
			checkSame(t, "files", without.files, with.files)
			checkSame(t, "commits", without.commits, with.commits)
			if len(with.files) < 7 || len(with.commits) < 4 {
				t.Errorf("the task was not done: %d files, commits %q\n%s", len(with.files), with.commits,
					strings.Join(with.calls, "\n"))
			}
			asked := s.model.Asked()[before:]
			for i, a := range asked {
				header, _ := json.Marshal(a.Header)
				if leaks := codingtest.ListLeaks(a.Path + string(header) + string(a.Body)); len(leaks) > 0 {
					t.Errorf("request %d holds %s", i, strings.Join(leaks, ", "))
				}
			}
			if len(asked) < 9 || slices.ContainsFunc(with.calls, func(c string) bool {
				return strings.Contains(c,
					"UNKNOWN")
			}) {
				t.Errorf("%d requests", len(asked))
			}
			lines := strings.Split(strings.TrimSpace(told), "\n")
			if !lastLine.MatchString(lines[len(lines)-1]) {
				t.Errorf("the run's last line is not a report of placeholders:\n%s", told)
			}
		})
	}
}
