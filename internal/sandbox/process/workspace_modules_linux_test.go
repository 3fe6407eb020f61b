package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the host's git reads of a submodule, of one within it, and of a linked
// work tree cannot be changed by a run, nor brought in where it was not.
func TestWorkspaceKeepsSubmodules(t *testing.T) {
	runRootless(t)
	dir := repository(t)
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "begin")
	for _, at := range [][2]string{{".git/modules/lib", "lib"}, {".git/modules/lib/modules/inner", "lib/inner"}} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(at[0])), 0o755); err != nil {
			t.Fatal(err)
		}
		git(t, dir, "init", "-q", "--separate-git-dir", at[0], at[1])
	}
	git(t, dir, "worktree", "add", "-q", "--detach", "linked")
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	files := []string{".git/modules/lib/config", ".git/modules/lib/modules/inner/config", ".git/worktrees/linked/commondir", ".git/worktrees/linked/gitdir"}
	before := map[string]string{}
	for _, f := range files {
		before[f] = read(f)
	}
	absent := []string{".git/modules/lib/commondir", ".git/modules/lib/modules/inner/commondir", ".git/modules/lib/config.worktree", ".git/worktrees/linked/config.worktree"}
	got := workIn(t, dir, `
try() { "$@" 2>/dev/null && echo "did: $*"; }
for f in `+strings.Join(files, " ")+`; do try sh -c "echo x >> $f"; try mv $f x; try rm $f; done
try mv .git/modules/lib/modules/inner x
try mv .git/modules/lib x
try sh -c 'echo x > .git/modules/lib/modules/inner/hooks/post-index-change'
for f in `+strings.Join(absent, " ")+`; do echo x > $f; done
echo end`, "")
	if got.out != "end\n" {
		t.Errorf("%q %q", got.out, got.errs)
	}
	for _, f := range files {
		if now := read(f); now != before[f] {
			t.Errorf("%s is another now: %q", f, now)
		}
	}
	for _, name := range absent {
		if _, err := os.Lstat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s is left behind: %v", name, err)
		}
		if !strings.Contains(string(got.Stderr), name) {
			t.Errorf("nothing is said of %s: %q", name, got.Stderr)
		}
	}
}
