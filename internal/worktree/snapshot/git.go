package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
)

// gitTime bounds a call of git that only looks.
const gitTime = 2 * time.Minute

// saidMost is how much is kept of what a program says of its failure, in bytes.
const saidMost = 2 << 10

// git runs the program on Holdfast's own repository dir. Nothing of the machine's
// or a tree's configuration counts, and nothing that git could start is started.
type git struct {
	program string
	dir     string // GIT_DIR
	tree    string // GIT_WORK_TREE, where names alone are read; "" is none
	index   string // GIT_INDEX_FILE; "" is none
}

// settings are in force for every call, above any file's. Not by batches: of objects that
// it could not put in their places then, git 2.39 answers that it did.
var settings = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=false", "core.attributesFile=/dev/null", "core.excludesFile=/dev/null",
	"core.pager=cat", "core.askPass=true", "core.sshCommand=false", "core.quotePath=true", "core.precomposeUnicode=false",
	"core.fsync=committed,loose-object,reference", "core.fsyncMethod=fsync", "core.compression=1", "core.logAllRefUpdates=false",
	"protocol.allow=never", "credential.helper=", "gc.auto=0", "gc.autoDetach=false", "maintenance.auto=false", "commit.gpgSign=false", "submodule.recurse=false",
}

func (g git) command(ctx context.Context, args ...string) *exec.Cmd {
	var own []string
	for _, s := range settings {
		own = append(own, "-c", s)
	}
	cmd := exec.CommandContext(ctx, g.program, append(own, args...)...)
	cmd.Dir = g.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "TZ=UTC0", "GIT_DIR=" + g.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_SYSTEM=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_LITERAL_PATHSPECS=1"}
	if g.tree != "" {
		cmd.Env, cmd.Dir = append(cmd.Env, "GIT_WORK_TREE="+g.tree), g.tree
	}
	if g.index != "" {
		cmd.Env = append(cmd.Env, "GIT_INDEX_FILE="+g.index)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// run gives input and returns at most limit bytes of what was answered.
func (g git) run(ctx context.Context, input []byte, limit int64, args ...string) ([]byte, error) {
	out := &bounded{left: limit}
	err := g.into(ctx, input, out, args...)
	if out.over {
		return nil, refused(holdfast.KindBounds, "", "git %s answered more than %d bytes", args[0], limit)
	}
	return out.b.Bytes(), err
}

// into gives input and writes what is answered to out, whose error ends git.
func (g git) into(ctx context.Context, input []byte, out io.Writer, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	cmd := g.command(ctx, args...)
	said := excerpt.NewFirst(saidMost)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), out, said
	return g.failure(ctx, args[0], cmd.Run(), said.String())
}

// failure is the letter of a call that failed.
func (g git) failure(ctx context.Context, what string, err error, said string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist) && !errors.Is(err, context.DeadlineExceeded):
		return &holdfast.Error{Kind: holdfast.KindNotFound, Rule: "git/missing", Why: fmt.Sprintf("the program %s is not there, which keeps versions", g.program),
			Hint: "install git " + MinGit + " or newer", Err: err}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &holdfast.Error{Kind: holdfast.KindTimeout, Rule: "git/time", Why: "git " + what + " took too long and was ended", Err: err}
	case ctx.Err() != nil:
		return &holdfast.Error{Kind: holdfast.KindCanceled, Why: "git " + what + " was ended", Err: context.Cause(ctx)}
	}
	said = fmt.Sprintf("%.300s", strings.TrimSpace(said))
	hint := "see the log; `holdfast snapshot verify` says what is damaged"
	if strings.Contains(said, "No space left") || strings.Contains(said, "Out of diskspace") || errors.Is(err, syscall.ENOSPC) {
		return &holdfast.Error{Kind: holdfast.KindInternal, Rule: "disk/full", Why: "there is no room left for versions", Hint: "make room where the state is", Err: err}
	}
	return &holdfast.Error{Kind: holdfast.KindInternal, Rule: "git/failed", Why: fmt.Sprintf("git %s failed: %s", what, said), Hint: hint, Err: err}
}

// Git looks whether the program is there and new enough, and returns its version.
func Git(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if program == "" {
		program = "git"
	}
	g := git{program: program, dir: os.TempDir()}
	b, err := g.run(ctx, nil, 1<<10, "version")
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(b))
	if len(fields) < 3 || !atLeast(fields[2], MinGit) {
		return "", refused(holdfast.KindNotFound, "install git "+MinGit+" or newer", "%s is no git, or too old: %.100q", program, b)
	}
	return fields[2], nil
}

// atLeast compares the first two numbers of versions.
func atLeast(have, want string) bool {
	h, w := strings.Split(have, "."), strings.Split(want, ".")
	for i := range w {
		if i >= len(h) {
			return false
		}
		a, err := strconv.Atoi(h[i])
		b, _ := strconv.Atoi(w[i])
		if err != nil {
			return false
		}
		if a != b {
			return a > b
		}
	}
	return true
}

// bounded keeps so many bytes.
type bounded struct {
	b    bytes.Buffer
	left int64
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		b.over = true
		return 0, io.ErrShortWrite
	}
	b.left -= int64(len(p))
	return b.b.Write(p)
}
