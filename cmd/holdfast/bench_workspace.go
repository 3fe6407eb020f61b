package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// workspaceStarts measures what `holdfast run` adds to the start of a program,
// from the command line to its end, with a daemon that is up: in turns with the
// program alone, and in bubblewrap with the same tree.
func (b *bench) workspaceStarts() (_ []figure, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	state, config, tree := filepath.Join(b.dir, "ws"), filepath.Join(b.dir, "ws.yaml"), filepath.Join(b.dir, "tree")
	// Only what stands without a right to control groups is demanded, so that the
	// figures are had without one too.
	text := "version: 1\nlisten: {pages: none}\nboundaries:\n  - {boundary: run/*, risk: MEDIUM, permissions: [\"exec:run\"], walls: [pid, net, mount, seccomp]}\n"
	if err := errors.Join(os.Mkdir(tree, 0o755), os.WriteFile(config, []byte(text), 0o600)); err != nil {
		return nil, err
	}
	up := exec.CommandContext(b.ctx, self, "up", "--no-operator", "--state", state, "--config", config)
	up.Cancel = func() error { return up.Process.Signal(syscall.SIGTERM) }
	out, err := up.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := up.Start(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end(up)) }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("the daemon did not start: %w", err)
	}
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + b.dir}
	program := []string{"/bin/sh", "-c", "echo 42"}
	list := []*contender{
		{name: "run", run: func(int) error {
			_, err := b.answered(env, self, append([]string{"run", "--state", state, "--config", config, "--dir", tree, "--"}, program...))
			return err
		}},
		{name: "the program alone", run: func(int) error { _, err := b.answered(env, program[0], program[1:]); return err }},
		b.wrapped(env, tree, program),
	}
	if err := b.inTurns(list, b.rounds(100)); err != nil {
		return nil, err
	}
	return workspaceFigures(list), nil
}

// answered runs a program and wants 42 of its standard output.
func (b *bench) answered(env []string, program string, args []string) (time.Duration, error) {
	cmd := exec.CommandContext(b.ctx, program, args...)
	cmd.Env, cmd.Dir = env, b.dir
	from := time.Now()
	out, err := cmd.Output()
	if err == nil && string(out) != "42\n" {
		err = fmt.Errorf("it said %.80q", out)
	}
	return time.Since(from), err
}

// wrapped is the program in bubblewrap, with the same tree.
func (b *bench) wrapped(env []string, tree string, program []string) *contender {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return absent("bubblewrap")
	}
	args := []string{"--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", tree, tree}
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc/alternatives", "/etc/ssl", "/etc/ld.so.cache"} {
		if there(dir) {
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	return &contender{name: "bubblewrap", run: func(int) error {
		_, err := b.answered(env, bwrap, append(args, program...))
		return err
	}}
}

func workspaceFigures(list []*contender) []figure {
	ours, bare := list[0], list[1]
	least := millis(at(bare.took, 50))
	f := figure{Name: "run adds to a program's start, p50", Measured: millis(at(ours.took, 50)) - least, Unit: "ms", Target: "<= 50 ms"}
	f.Met = f.Measured <= 50
	all := []figure{f, figure{Name: "run, p50", Measured: millis(at(ours.took, 50)), Unit: "ms"}.ratioTo(least, bare.name),
		figure{Name: "run, p95", Measured: millis(at(ours.took, 95)), Unit: "ms"}.ratioTo(millis(at(bare.took, 95)), bare.name)}
	if c := list[2]; c.why != "" {
		all = append(all, figure{Name: c.name, Note: c.why})
	} else {
		all = append(all, figure{Name: c.name + ", p50", Measured: millis(at(c.took, 50)), Unit: "ms"}.ratioTo(least, bare.name))
	}
	return all
}
