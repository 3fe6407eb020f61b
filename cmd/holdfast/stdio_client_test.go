//go:build peers

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTypeScriptClientOverStdio: the client that npm has starts `holdfast mcp`
// in place of a server, and sees what it sees of the server itself; of two
// servers behind one endpoint too, under their names.
func TestTypeScriptClientOverStdio(t *testing.T) {
	t.Parallel()
	dir, node := npm(t)
	bin, holdfast := everything(t), buildCommand(t)
	work, err := os.MkdirTemp("/tmp", "hf") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, work) })
	script, config := filepath.Join(work, "stdio.mjs"), filepath.Join(work, "holdfast.yaml")
	b, err := os.ReadFile(filepath.Join("testdata", "stdio.mjs"))
	if err == nil {
		err = os.WriteFile(script, b, 0o600)
	}
	if err == nil {
		err = os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(work, "node_modules"))
	}
	if err == nil {
		err = os.WriteFile(config, fmt.Appendf(nil, `version: 1
`+anyRepeats+`
listen: {pages: none}
boundaries:
  - {boundary: "mcp/everything/*", risk: LOW}
  - {boundary: "mcp/one/*", risk: LOW}
  - {boundary: "mcp/two/*", risk: LOW}
mcp:
  servers:
    one: {command: [%[1]s]}
    two: {command: [%[1]s]}
`, bin), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	sees := func(before string, command ...string) []string {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, node, append([]string{script, before}, command...)...)
		cmd.Env = append(os.Environ(), "HOLDFAST_STATE="+filepath.Join(work, "s"), "HOLDFAST_CONFIG="+config)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v\n%s\n%s", command, err, out, errs.String())
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	want := sees("", bin)
	if last := want[len(want)-1]; last != `{"closed":true}` {
		t.Fatalf("directly the client came to %s", last)
	}
	for name, got := range map[string][]string{
		"one server": sees("", holdfast, "mcp", "--name", "everything", "--", bin),
		"two, one":   sees("one__", holdfast, "mcp", "--all"),
		"two, other": sees("two__", holdfast, "mcp", "one", "two"),
	} {
		for i := range max(len(want), len(got)) {
			at := func(lines []string) string {
				if i < len(lines) {
					return lines[i]
				}
				return "nothing"
			}
			// Both servers have the resource, so that the router refuses it.
			if strings.HasPrefix(at(want), `{"resource"`) && strings.HasPrefix(name, "two") {
				if at(got) != `{"resource":"refused"}` {
					t.Errorf("%s: a resource that two servers have: %s", name, at(got))
				}
				continue
			}
			// The SDK calls its handler of progress later than it takes a
			// result, so that it drops the last where both come in one read.
			if last := strings.TrimSuffix(at(want), ",100]}") + "]}"; strings.HasPrefix(at(want), `{"progress":[`) && at(got) == last {
				continue
			}
			if at(want) != at(got) {
				t.Errorf("%s\ndirectly: %.500s\n through: %.500s", name, at(want), at(got))
			}
		}
	}
}
