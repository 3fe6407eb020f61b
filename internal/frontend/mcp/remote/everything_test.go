//go:build peers

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// everything builds and runs the SDK's conformance server as a process of its
// own, and returns its URL.
func everything(t *testing.T, args ...string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "everything")
	build := exec.Command("go", "build", "-o", bin, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // else every dependency is compiled once more
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(bin, append([]string{"-http", addr}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal("the server does not listen")
		}
	}
	return "http://" + addr
}

// view is all that a client of lines and one of the SDK's own transport can
// compare.
func view(t *testing.T, s *sdk.ClientSession) map[string]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := map[string]any{"version": s.InitializeResult().ProtocolVersion, "server": s.InitializeResult().ServerInfo.Name}
	put := func(name string, v any, err error) {
		// The SDK's own transport adds words to an error: what the server
		// said is compared.
		var said *jsonrpc.Error
		switch {
		case errors.As(err, &said):
			v = fmt.Sprintf("error %d: %s %s", said.Code, said.Message, said.Data)
		case err != nil:
			v = "error: " + err.Error()
		}
		b, _ := json.Marshal(v)
		got[name] = string(b)
	}
	tools, err := s.ListTools(ctx, nil)
	put("tools", tools, err)
	resources, err := s.ListResources(ctx, nil)
	put("resources", resources, err)
	prompts, err := s.ListPrompts(ctx, nil)
	put("prompts", prompts, err)
	if tools != nil {
		for _, tool := range tools.Tools {
			// These wait for what no client here gives, or change the lists.
			if slices.ContainsFunc([]string{"sampling", "elicit", "roots", "trigger", "input_required", "reconnection"}, func(part string) bool { return strings.Contains(tool.Name, part) }) {
				continue
			}
			r, err := s.CallTool(ctx, &sdk.CallToolParams{Name: tool.Name, Arguments: map[string]any{"region": "ä", "priority": 3, "verbose": true, "a": 1, "b": 2}})
			put("call "+tool.Name, r, err)
		}
	}
	if resources != nil {
		for _, res := range resources.Resources {
			r, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: res.URI})
			put("read "+res.URI, r, err)
		}
	}
	_, err = s.ReadResource(ctx, &sdk.ReadResourceParams{URI: "test://no/such"})
	put("read none", nil, err)
	_, err = s.CallTool(ctx, &sdk.CallToolParams{Name: "no_such_tool"})
	put("call none", nil, err)
	return got
}

// TestEverythingServer: through lines, the SDK's everything-server looks to the
// SDK's client as it does through the SDK's own transport.
func TestEverythingServer(t *testing.T) {
	for mode, arg := range map[string]string{"stateless": "-stateless=true", "sessions": "-stateless=false"} {
		url := everything(t, arg)
		for _, version := range sdk.SupportedProtocolVersions() {
			t.Run(mode+" "+version, func(t *testing.T) {
				got := view(t, client(t, dial(t, url), version, nil))
				direct, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
					&sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer direct.Close()
				want := view(t, direct)
				if len(want) < 15 {
					t.Errorf("only %d things compared", len(want))
				}
				for name := range want {
					if got[name] != want[name] {
						t.Errorf("%s:\n through lines %s\n directly      %s", name, got[name], want[name])
					}
				}
			})
		}
	}
}
