//go:build peers

// Package mcpguard_test runs the example, so that what it shows stays true.
package mcpguard_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// run checks each of its expectations itself; its exit code is the answer.
func TestMCPGuard(t *testing.T) {
	if _, err := exec.LookPath("npx"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("npx is missing, and the public MCP server cannot run without it")
		}
		t.Skip("npx is missing: install Node.js to run the public MCP server")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	binary := filepath.Join(t.TempDir(), "holdfast")
	build := exec.CommandContext(ctx, "go", "run", "-exec", "cp", "github.com/holdfast-dev/holdfast/cmd/holdfast", binary)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, "./run")
	cmd.Env = append(os.Environ(), "HOLDFAST="+binary)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}
