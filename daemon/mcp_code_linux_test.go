package daemon

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/frontend/api"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func callCode(t *testing.T, s *sdk.ClientSession, args map[string]any) (*sdk.CallToolResult, string) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "run_code", Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, c := range r.Content {
		if x, ok := c.(*sdk.TextContent); ok {
			text += x.Text
		}
	}
	return r, text
}

// checkCodeOverMCP: a model runs code by a tool, with either generation of MCP;
// each call is a crossing of the tool and one of exec/LANGUAGE.
func checkCodeOverMCP(t *testing.T, d *Daemon, c *api.Client, at string) {
	tool, runs := d.boundaryEntries(t, "mcp/code/run_code"), d.boundaryEntries(t, "exec/python3")
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		s := reachMCP(t, at+"/mcp/code", version, &asking{giveToken(t, c, "nightly").Token})
		list, err := s.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "run_code" {
			t.Fatalf("%v %+v", err, list)
		}
		r, text := callCode(t, s, map[string]any{"language": "python3", "code": "print(6*7, open('in.txt').read())\nopen('out.txt','w').write('made')", "files": map[string]string{"in.txt": "given"}})
		if r.IsError || !strings.HasPrefix(text, "42 given\n") || !strings.Contains(text, "[file out.txt]\nmade") {
			t.Errorf("%v %q", r.IsError, text)
		}
		b, _ := json.Marshal(r.StructuredContent)
		var got struct {
			ExitCode int               `json:"exit_code"`
			Files    map[string]string `json:"files"`
			Crossing string            `json:"crossing"`
		}
		if err := json.Unmarshal(b, &got); err != nil || got.Files["out.txt"] != "made" || got.Crossing == "" {
			t.Errorf("%v %s", err, b)
		}
		r, text = callCode(t, s, map[string]any{"language": "python3", "code": "raise SystemExit(3)"})
		if !r.IsError || !strings.Contains(text, "[exit code 3, COMPLETED]") {
			t.Errorf("%v %q", r.IsError, text)
		}
		for want, args := range map[string]map[string]any{
			"cannot be run here": {"language": "cobol", "code": "x"},
			"is no text":         {"language": "static", "code": "x"},
			"not allowed":        {"language": "python3", "code": "x", "memory_mb": 513},
			"no code":            {"language": "python3", "code": ""},
		} {
			r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "run_code", Arguments: args})
			if err != nil {
				continue // the gateway's own judgement of the arguments
			}
			if b, _ := json.Marshal(r); !r.IsError || !strings.Contains(string(b), want) && !strings.Contains(string(b), "K1") {
				t.Errorf("%s: %s", want, b)
			}
		}
	}
	if n, m := d.boundaryEntries(t, "mcp/code/run_code")-tool, d.boundaryEntries(t, "exec/python3")-runs; n < 4 || m != 4 {
		t.Errorf("%d crossings of the tool, %d of the sandbox", n, m)
	}
}

// checkEscapeOverMCP: the pause cuts the tool's own call too, and its
// answer says all that is known.
func checkEscapeOverMCP(t *testing.T, c *api.Client, at string) {
	for agent, version := range map[string]string{"newer": "2026-07-28", "older": "2025-11-25"} {
		s := reachMCP(t, at+"/mcp/code", version, &asking{giveToken(t, c, agent).Token})
		r, text := callCode(t, s, map[string]any{"language": "python3", "code": "import os\nprint('before', flush=True)\nos.chroot('/')"})
		for _, want := range []string{"the agent is paused", "the code tried to leave its sandbox with chroot", "was ended", "hint: a person looks at it", "holdfast agent unpause " + agent} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %s", version, want, text)
			}
		}
		if !r.IsError || strings.Contains(text, "not known") || strings.Contains(text, "before") {
			t.Errorf("%s: %v %s", version, r.IsError, text)
		}
	}
}

// checkStopOverMCP: a client that takes its call back ends the run.
func checkStopOverMCP(t *testing.T, d *Daemon, c *api.Client, at string) {
	s := reachMCP(t, at+"/mcp/code", "2025-11-25", &asking{giveToken(t, c, "nightly").Token})
	callCode(t, s, map[string]any{"language": "python3", "code": "print(1)"})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for len(d.Kernel.Flights()) < 2 && ctx.Err() == nil { // the tool's crossing, and the run's
			time.Sleep(5 * time.Millisecond)
		}
		stop()
	}()
	endless := map[string]any{"language": "python3", "code": "import time\ntime.sleep(600)"}
	if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "run_code", Arguments: endless}); err == nil {
		t.Error("it came to an end")
	}
	for end := time.Now().Add(time.Minute); len(d.Kernel.Flights()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it still runs: %+v", d.Kernel.Flights())
		}
	}
}
