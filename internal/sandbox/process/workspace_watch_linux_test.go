//go:build linux

package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestWorkspaceWatches: what the host's git would learn from what to execute is
// taken away while the run goes on, and a run that makes it again and again ends.
func TestWorkspaceWatches(t *testing.T) {
	dir := repository(t)
	got := workIn(t, dir, "mkdir evil; echo ../evil > .git/commondir; for i in $(seq 200); do [ -e .git/commondir ] || { echo taken; break; }; sleep 0.01; done; mv evil .git/commondir; sleep 0.2; ls -d .git/commondir 2>/dev/null", "")
	if got.out != "taken\n" || got.ExitCode == 137 {
		t.Errorf("%d %q %q", got.ExitCode, got.out, got.errs)
	}
	if n := strings.Count(string(got.Stderr), ".git/commondir, from which git learns"); n != 1 {
		t.Errorf("said %d times: %q", n, got.Stderr)
	}
	start := time.Now()
	got = workIn(t, dir, "while :; do echo x > .git/config.worktree; done 2>/dev/null", "")
	if got.ExitCode != 137 || !strings.Contains(string(got.Stderr), "the run was ended, because it went on") || time.Since(start) > 20*time.Second {
		t.Errorf("%d %q %q after %v", got.ExitCode, got.out, got.Stderr, time.Since(start))
	}
	for _, name := range []string{"commondir", "config.worktree"} {
		if _, err := os.Lstat(filepath.Join(dir, ".git", name)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
}
