package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Repositories that a run makes or changes within its tree, of which the host's
// git would execute what they say, are named when it ends; those that it leaves
// as they were are not.
func TestWorkspaceNamesRepositories(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	for _, at := range []string{"vendored", "turned", "hooked"} {
		git(t, dir, "init", "-q", at)
	}
	git(t, dir, "init", "-q", "--bare", "mirror")
	if err := os.Mkdir(filepath.Join(dir, "plain"), 0o755); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond) // what changed just before is taken for the run's
	got := workIn(t, dir, `
git init -q made
git init -q --bare naked
echo 'gitdir: ../made/.git' > plain/.git
git -C turned config core.fsmonitor ./x
echo '#!/bin/sh' > hooked/.git/hooks/post-index-change
echo end`, "")
	if got.out != "end\n" {
		t.Fatalf("%q %q", got.out, got.errs)
	}
	said := string(got.Stderr)
	for _, name := range []string{"made/.git", "naked", "plain/.git", "turned/.git", "hooked/.git"} {
		if !strings.Contains(said, filepath.Join(dir, name)+":") {
			t.Errorf("nothing is said of %s: %q", name, said)
		}
	}
	for _, name := range []string{"vendored", "mirror", dir + "/.git"} {
		if strings.Contains(said, name) {
			t.Errorf("%s is named, and nothing changed it: %q", name, said)
		}
	}
}

// A tree that is a bare repository itself, or what a .git holds, keeps what
// git executes as well.
func TestWorkspaceKeepsBareRepository(t *testing.T) {
	dir := repository(t)
	got := workIn(t, filepath.Join(dir, ".git"), `
try() { "$@" 2>/dev/null && echo "did: $*"; }
try sh -c 'echo x >> config'
try touch hooks/post-index-change
touch here
echo end`, "")
	if got.out != "end\n" {
		t.Errorf("%q %q", got.out, got.errs)
	}
	if _, err := os.Stat(filepath.Join(dir, ".git/here")); err != nil {
		t.Errorf("nothing else can be written: %v", err)
	}
}
