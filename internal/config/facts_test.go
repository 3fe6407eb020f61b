package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/testfile"
	"github.com/holdfast-dev/holdfast/internal/leaf/usage"
)

const factsText = `version: 1
boundaries:
  - {boundary: mcp/mail/send, risk: LOW}
rules:
  facts:
    peers: {file: peers.json}
    busy:
      command: [/bin/echo, "true"]
      timeout: 3s
      keep: 10s
  inline:
    - {id: peers, on: request, boundary: mcp/mail/*, when: '!(args.to in facts.peers) || facts.busy == true', message: no}
`

func TestMistakesInFacts(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"unknown":          {"facts.peers", "facts.peer", `holdfast.yaml:12:`},
		"meant":            {"facts.peers", "facts.peer", `did you mean "peers"?`},
		"neither":          {"{file: peers.json}", "{}", `holdfast.yaml:6: the fact peers has one of file and command`},
		"both":             {"{file: peers.json}", "{file: peers.json, command: [/x]}", "has one of file and command"},
		"kept file":        {"{file: peers.json}", "{file: peers.json, keep: 1s}", "keep is of a command alone"},
		"file per request": {"{file: peers.json}", "{file: peers.json, per: request}", "of a command alone"},
		"too long":         {"timeout: 3s", "timeout: 6s", "may take at most 5s"},
		"kept per request": {"timeout: 3s", "per: request", "not at all per request"},
		"kept too long":    {"keep: 10s", "keep: 2d", "at most 24h0m0s"},
		"no program":       {`[/bin/echo, "true"]`, "[]", "a command without a program"},
		"a name":           {"peers: {file", "peer-list: {file", `"peer-list" is no name for a fact`},
		"a word":           {"peers: {file", "in: {file", `"in" is no name for a fact`},
		"a schema":         {"{file: peers.json}", "{file: peers.json, schema: {type: lits}}", "the fact peers: schema:"},
		"typed":            {"  inline:", "    more: {file: x, schema: {type: object, additionalProperties: false, properties: {max: {type: number}}}}\n  files: [more.yaml]\n  inline:", `did you mean "max"?`},
		"another key":      {"timeout: 3s", "tiemout: 3s", "tiemout"},
		"a value":          {"timeout: 3s", "env: [\"A=b\"]", "no name of an environment variable"},
	} {
		text := strings.Replace(factsText, c.from, c.to, 1)
		if text == factsText {
			t.Fatalf("%s: nothing was changed", name)
		}
		_, err := load(t, text, "more.yaml", "rules:\n  - {id: more, on: request, when: facts.more.mxa > 1, message: no}\n")
		if err == nil {
			t.Errorf("%s: it was taken", name)
			continue
		}
		if _, hint := usage.Explain(err); !strings.Contains(err.Error()+hint, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestFactsBecomePolicy: a file that is not there yet is no mistake, and one that
// others can write is refused, when it is loaded and whenever it is read.
func TestFactsBecomePolicy(t *testing.T) {
	dir := testfile.Write(t, map[string]string{"holdfast.yaml": factsText})
	l, err := Load(filepath.Join(dir, "holdfast.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	peers := filepath.Join(dir, "peers.json")
	fetch := func(name string) (string, error) {
		f := l.Policy.Facts.Fetch(t.Context(), []string{name}, nil)[name]
		return string(f.Text), f.Err
	}
	if _, err := fetch("peers"); err == nil {
		t.Error("a file that is not there was read")
	}
	if got, err := fetch("busy"); err != nil || got != "true" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(peers, []byte(`["ann"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := fetch("peers"); err != nil || got != `["ann"]` {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Chmod(peers, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := fetch("peers"); err == nil || !strings.Contains(err.Error(), "can be written by others") {
		t.Errorf("%v", err)
	}
	if _, err := Load(filepath.Join(dir, "holdfast.yaml")); err == nil || !strings.Contains(err.Error(), "can be written by others") {
		t.Errorf("%v", err)
	}
	if got := l.Config.FactPaths(); len(got) != 1 || got[0] != peers {
		t.Errorf("%v", got)
	}
}
