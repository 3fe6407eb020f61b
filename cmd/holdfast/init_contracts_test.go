package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/leaf/payload"
	"github.com/holdfast-dev/holdfast/internal/leaf/schema"
)

// written loads what init writes, as the daemon does.
func written(t *testing.T, servers ...string) (string, map[string]config.BoundaryConfig) {
	t.Helper()
	text, err := configuration(servers)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "holdfast.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	out := map[string]config.BoundaryConfig{}
	for _, b := range l.Config.Boundaries {
		if !strings.HasPrefix(b.Boundary, "mcp/") && !strings.HasPrefix(b.Boundary, "client/") {
			continue // built in
		}
		out[b.Boundary] = b
	}
	return text, out
}

// Every choice of servers loads, has those contracts and no others, and leaves
// everything else as the example has it.
func TestInitWritesWhatLoads(t *testing.T) {
	for _, servers := range [][]string{nil, {"filesystem"}, {"git", "fetch"}, contracted()} {
		text, got := written(t, servers...)
		for name := range got {
			if server := strings.Split(name, "/")[1]; !slices.Contains(servers, server) {
				t.Errorf("%v: a contract for %s", servers, name)
			}
		}
		for _, s := range servers {
			if got["mcp/"+s+"/*"].Risk != holdfast.High {
				t.Errorf("%s: what is not known acts", s)
			}
			for name := range got {
				if strings.HasPrefix(name, "client/") || name == "mcp/"+s+"/tools/call" {
					t.Errorf("%s is opened", name)
				}
			}
		}
		// Whoever switches the commented contracts on as well still has one list.
		if strings.Count(text, "\nboundaries:")+strings.Count(text, "\n#boundaries:") != 1 {
			t.Errorf("%v: the list of boundaries is not one", servers)
		}
		for line := range strings.Lines(text) {
			if !strings.Contains(line, "{") && !strings.Contains(line, "pattern:") && len(line) > 90 {
				t.Errorf("a line of %d columns: %s", len(line), line)
			}
		}
	}
}

// What looks acts, what changes is put to a person, what cannot be taken back
// says so, and a repository is never deleted.
func TestInitRisks(t *testing.T) {
	_, got := written(t, contracted()...)
	looks := []string{"read", "get", "list", "search", "directory_tree", "git_status", "git_diff", "git_log", "git_show", "git_branch",
		"fetch", "find", "issue_read", "pull_request_read", "projects_get", "projects_list", "actions_get", "actions_list", "issue_dependency_read",
		"ui_get", "resources", "prompts", "completion"}
	held := map[string]int{}
	for name, b := range got {
		server, tool, _ := strings.Cut(strings.TrimPrefix(name, "mcp/"), "/")
		look := slices.ContainsFunc(looks, func(p string) bool {
			return tool == p || strings.HasPrefix(tool, p+"_") || strings.HasPrefix(tool, p+"/")
		})
		secret := strings.Contains(tool, "secret_scanning")
		switch {
		case tool == "*":
		case secret && b.Risk != holdfast.High:
			t.Errorf("%s is %s", name, b.Risk)
		case look && !secret && b.Risk != holdfast.Low && b.Risk != holdfast.Medium:
			t.Errorf("%s looks and is %s", name, b.Risk)
		case !look && b.Risk != holdfast.High && b.Risk != holdfast.Prohibited:
			t.Errorf("%s changes something and is %s", name, b.Risk)
		}
		if b.Risk == holdfast.Low && server != "filesystem" && server != "git" {
			t.Errorf("%s leaves the machine and is LOW", name)
		}
		if tool != "*" && b.Risk != holdfast.Prohibited && b.RatePerMinute == 0 {
			t.Errorf("%s has no rate", name)
		}
		if b.Risk == holdfast.High {
			held[server]++
		}
	}
	if got["mcp/github/delete_repository"].Risk != holdfast.Prohibited || !got["mcp/github/merge_pull_request"].Irreversible || !got["mcp/github/delete_file"].Irreversible {
		t.Errorf("what cannot be taken back is not called so")
	}
	if held["filesystem"] < 5 || held["git"] < 6 || held["github"] < 40 {
		t.Errorf("held: %v", held)
	}
}

func TestInitServersFlag(t *testing.T) {
	for flag, want := range map[string]string{"": "filesystem git fetch github", "none": "", "git": "git", "git, filesystem,git": "git filesystem"} {
		if got, err := chosen(flag); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v, %v", flag, got, err)
		}
	}
	for _, flag := range []string{"gti", "git,", "all", " "} {
		if got, err := chosen(flag); err == nil {
			t.Errorf("%q: %v", flag, got)
		}
	}
}

// The schema of fetch lets addresses of the world pass, and those that by their
// text lead to this machine, its network or another scheme not.
func TestInitFetchSchema(t *testing.T) {
	_, got := written(t, "fetch")
	s, err := schema.Compile("fetch", json.RawMessage(got["mcp/fetch/fetch"].Schema))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(doc string) bool {
		d, err := payload.Parse([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		return s.Check(t.Context(), d.Value()) == nil
	}
	for url, want := range map[string]bool{
		"https://example.com":                    true,
		"https://example.com/a?b=c#d":            true,
		"http://example.com:8080/x":              true,
		"HTTPS://Example.COM/":                   true,
		"https://localhost-tools.example/":       true,
		"https://1password.com/":                 true,
		"https://example.com/?next=http://[::1]": true,
		"https://local.example.com/":             true,
		"http://localhost/":                      false,
		"http://LOCALHOST:8000":                  false,
		"http://localhost./":                     false,
		"http://api.localhost/":                  false,
		"http://printer.local":                   false,
		"https://db.internal/":                   false,
		"http://127.0.0.1/":                      false,
		"http://10.1.2.3:80/":                    false,
		"http://169.254.169.254/latest":          false,
		"http://2130706433/":                     false,
		"http://0x7f.1/":                         false,
		"http://127.1":                           false,
		"http://[::1]/":                          false,
		"http://[fd00::1]:80":                    false,
		"https://user:pass@example.com/":         false,
		"https://example.com\\@localhost/":       false,
		"https:// localhost/":                    false,
		"file:///etc/passwd":                     false,
		"ftp://example.com/":                     false,
		"//example.com":                          false,
		"https:example.com":                      false,
		"":                                       false,
	} {
		q, _ := json.Marshal(url)
		if ask(`{"url":`+string(q)+`}`) != want {
			t.Errorf("%s: passes %v", url, !want)
		}
	}
	for doc, want := range map[string]bool{
		`{"url":"https://example.com","max_length":100,"start_index":0,"raw":true}`: true,
		`{"url":"https://example.com","max_length":1000000}`:                        false,
		`{"url":"https://example.com","proxy":"x"}`:                                 false,
		`{}`: false,
	} {
		if ask(doc) != want {
			t.Errorf("%s: passes %v", doc, !want)
		}
	}
}
