//go:build linux

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// TestWorkspaceOwnsWhatItMakes: files made inside are the tree's owner's on disk,
// and none sets an identity.
func TestWorkspaceOwnsWhatItMakes(t *testing.T) {
	runRootless(t)
	dir := repository(t)
	owner := os.Geteuid()
	if owner == 0 {
		owner = 4321
		if out, err := exec.Command("chown", "-R", "4321:4322", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	got := workIn(t, dir, `mkdir d; echo x > d/f; chmod 4755 d/f || echo refused; chmod 2755 d/f || echo refused; chmod 755 d/f
/usr/bin/python3 -c 'import os; os.close(os.open("g",os.O_CREAT|os.O_WRONLY,0o4755))' 2>/dev/null || echo refused
stat -c %u:%a d/f; id -u; git -c user.name=a -c user.email=b add -A && git -c user.name=a -c user.email=b commit -qm one && git log --oneline | wc -l`, "")
	lines := strings.Fields(got.out)
	if len(lines) != 6 || lines[0] != "refused" || lines[2] != "refused" || lines[3] != lines[4]+":755" || lines[5] != "1" {
		t.Errorf("%q %q %v", got.out, got.errs, got.Refused)
	}
	for _, name := range []string{"d", "d/f", ".git/HEAD", ".git/objects", ".git/COMMIT_EDITMSG"} {
		st, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if uid := int(st.Sys().(*syscall.Stat_t).Uid); uid != owner || st.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			t.Errorf("%s is %d's (%v), not %d's", name, uid, st.Mode(), owner)
		}
	}
}

// TestWorkspaceKeepsTheRepository: what the host's git would execute later stays
// as it is, in every way to change it that there is.
func TestWorkspaceKeepsTheRepository(t *testing.T) {
	runRootless(t)
	dir := repository(t)
	if err := os.Mkdir(filepath.Join(dir, ".husky"), 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "config", "core.hooksPath", ".husky")
	git(t, dir, "config", "include.path", "../included")
	for _, f := range []string{"included", ".husky/pre-commit"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	config, err := os.ReadFile(filepath.Join(dir, ".git/config"))
	if err != nil {
		t.Fatal(err)
	}
	got := workIn(t, dir, `
try() { "$@" 2>/dev/null && echo "did: $*"; }
try touch .git/hooks/pre-commit
try rm -rf .git/hooks
try mv .git/hooks .git/h
try mv .git elsewhere
try sh -c 'echo "[core] fsmonitor = ./x" >> .git/config'
try git config core.fsmonitor ./x
try cp /dev/null .git/config
try mv .git/config .git/c
try ln -sf ../x .git/config
try sh -c 'echo x >> .husky/pre-commit'
try mv .husky .h
try sh -c 'echo x >> included'
mkdir -p evil; echo ../evil > .git/commondir; touch .git/config.worktree
echo end`, "")
	if got.out != "end\n" {
		t.Errorf("%q %q", got.out, got.errs)
	}
	if now, err := os.ReadFile(filepath.Join(dir, ".git/config")); err != nil || string(now) != string(config) {
		t.Errorf("the configuration is another now: %q %v", now, err)
	}
	for _, name := range []string{".git/commondir", ".git/config.worktree"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s is left behind: %v", name, err)
		}
		if !strings.Contains(string(got.Stderr), name) {
			t.Errorf("nothing is said of %s: %q", name, got.Stderr)
		}
	}
}

// TestWorkspaceLinkedTree: a linked work tree and a submodule bring their
// repository with them; one that only says so brings nothing.
func TestWorkspaceLinkedTree(t *testing.T) {
	runRootless(t)
	main := repository(t)
	git(t, main, "commit", "-q", "--allow-empty", "-m", "first")
	side := filepath.Join(filepath.Dir(main), "side")
	git(t, main, "worktree", "add", "-q", side)
	git(t, main, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", main, "sub")
	for name, dir := range map[string]string{"worktree": side, "submodule": filepath.Join(main, "sub")} {
		t.Run(name, func(t *testing.T) {
			got := workIn(t, dir, `echo x > new; git add new && git -c user.name=a -c user.email=b commit -qm second && git log --oneline | wc -l
g=$(git rev-parse --git-common-dir); touch $g/hooks/x 2>/dev/null || echo kept; echo >> $g/config 2>/dev/null || echo kept; echo gitdir: /tmp > .git 2>/dev/null || echo kept; ls `+main+`/new 2>/dev/null || echo hidden`, "")
			if got.out != "2\nkept\nkept\nkept\nhidden\n" {
				t.Errorf("%q %q %q", got.out, got.errs, got.Stderr)
			}
			if said := git(t, dir, "log", "--oneline"); strings.Count(said, "\n") != 2 {
				t.Errorf("outside there is %q", said)
			}
		})
	}
	other := filepath.Join(filepath.Dir(main), "other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{filepath.Join(main, ".git"), filepath.Join(main, ".git/worktrees/side"), filepath.Join(main, ".git/modules/sub"), "/usr", "../side"} {
		if err := os.WriteFile(filepath.Join(other, ".git"), []byte("gitdir: "+to+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := tryWork(t, t.Context(), other, "true", ""); err == nil || !strings.Contains(err.Error(), "is not used") {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// TestWorkTree: the tree is git's, what was named, or where one stands; never a
// whole machine or home by accident.
func TestWorkTree(t *testing.T) {
	dir := repository(t)
	deep := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	plain, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(plain, "link")
	if err := os.Symlink(deep, link); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		dir, home string
		named     bool
		want      string
	}{
		{deep, "/root", false, dir}, {link, "/root", false, dir}, {deep, "/root", true, deep}, {plain, "/root", false, plain},
		{plain, plain, true, plain}, {plain, plain, false, ""}, {"/", "/root", false, ""}, {deep, dir, false, deep}, {filepath.Join(plain, "none"), "", true, ""},
	} {
		if got, err := WorkTree(tc.dir, tc.home, tc.named); got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%+v: %q %v", tc, got, err)
		}
	}
}

// TestWorkspaceExecTree: with the weakening by name, what the tree holds runs.
func TestWorkspaceExecTree(t *testing.T) {
	dir := repository(t)
	exec := func(w *sandbox.Workspace) { w.ExecTree = true }
	got := workIn(t, dir, "printf '#!/bin/sh\\necho ran\\n' > s; chmod 755 s; ./s; cp s /tmp/s; /tmp/s; cp s ~/s; ~/s; cp s /dev/shm/s; /dev/shm/s 2>/dev/null || echo not", "", exec)
	if got.out != "ran\nran\nran\nnot\n" {
		t.Errorf("%q %q", got.out, got.errs)
	}
}
