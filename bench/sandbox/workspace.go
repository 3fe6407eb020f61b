package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// measureWorkspace measures what `holdfast run` adds to the start of a program,
// from the command line to its end, with a daemon that is up: in turns with the
// program alone, and in bubblewrap with the same tree.
func measureWorkspace(b *measure.Run) (_ []measure.Figure, err error) {
	holdfast, err := programs.FindHoldfast(b)
	if err != nil {
		return nil, err
	}
	tree := filepath.Join(b.Dir, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return nil, err
	}
	// Only what stands without a right to control groups is demanded, so that the
	// figures are had without one too.
	g, err := programs.StartDaemonWith(b, "ws", "boundaries:\n  - {boundary: run/*, risk: MEDIUM, permissions: [\"exec:run\"], walls: [pid, net, mount, seccomp]}\n")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + b.Dir}
	program := []string{"/bin/sh", "-c", "echo 42"}
	run := append([]string{"run", "--state", g.State, "--config", g.Config, "--dir", tree, "--"}, program...)
	told := &workspaceParts{}
	list := []*contender{
		{name: "run", run: func(int) error { _, err := runAnswered(b, env, holdfast, run); return err }},
		{name: "the program alone", run: func(int) error { _, err := runAnswered(b, env, program[0], program[1:]); return err }},
		newWrapped(b, env, tree, program),
		{name: "the command's own start", run: func(int) error { return exec.CommandContext(b.Ctx, holdfast, "version").Run() }},
		{name: "run, telling of itself", run: func(int) error { return told.add(b, env, holdfast, run) }},
	}
	if err := inTurns(b, list, b.Rounds(100)); err != nil {
		return nil, err
	}
	all := workspaceFigures(list)
	for _, c := range list[3:] {
		if c.why != "" {
			return nil, fmt.Errorf("%s: %s", c.name, c.why)
		}
	}
	all[0].Limits = told.parts(measure.Millis(measure.Percentile(list[0].took, 50)), measure.Millis(measure.Percentile(list[3].took, 50)))
	return all, nil
}

// workspaceParts are what the results of runs say of where their time went.
type workspaceParts struct{ walls, program []time.Duration }

// add makes one run more, which prints its result where errors stand.
func (p *workspaceParts) add(b *measure.Run, env []string, self string, args []string) error {
	cmd := exec.CommandContext(b.Ctx, self, append([]string{args[0], "--json"}, args[1:]...)...)
	cmd.Env, cmd.Dir = env, b.Dir
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return err
	}
	var x struct {
		Result struct {
			Wall   posture.Seconds `json:"wall_time"`
			Stages []posture.Stage `json:"stages"`
		} `json:"result"`
	}
	_, text, found := strings.Cut(said.String(), "{")
	if !found {
		return errors.New("a run printed no result")
	}
	if err := json.Unmarshal([]byte("{"+text), &x); err != nil {
		return fmt.Errorf("read a run's result: %w", err)
	}
	program := stageOf(&posture.Result{Stages: x.Result.Stages}, "program")
	p.walls, p.program = append(p.walls, time.Duration(x.Result.Wall)-program), append(p.program, program)
	return nil
}

// parts are those of a run of so many milliseconds, whose command takes so many
// to start.
func (p *workspaceParts) parts(whole, start float64) []measure.Part {
	walls, program := measure.Millis(measure.Percentile(p.walls, 50)), measure.Millis(measure.Percentile(p.program, 50))
	return measure.PartsOf("ms", map[string]float64{"the command's own start": start, "its walls, launcher and tree": walls, "the program in them": program,
		"the daemon, gates, commits and all else": whole - start - walls - program})
}

// runAnswered runs a program and wants 42 of its standard output.
func runAnswered(b *measure.Run, env []string, program string, args []string) (time.Duration, error) {
	cmd := exec.CommandContext(b.Ctx, program, args...)
	cmd.Env, cmd.Dir = env, b.Dir
	from := time.Now()
	out, err := cmd.Output()
	if err == nil && string(out) != "42\n" {
		err = fmt.Errorf("it said %.80q", out)
	}
	return time.Since(from), err
}

// newWrapped is the program in bubblewrap, with the same tree.
func newWrapped(b *measure.Run, env []string, tree string, program []string) *contender {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return absent("bubblewrap")
	}
	args := []string{"--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", tree, tree}
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc/alternatives", "/etc/ssl", "/etc/ld.so.cache"} {
		if programs.Exists(dir) {
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	return &contender{name: "bubblewrap", run: func(int) error {
		_, err := runAnswered(b, env, bwrap, append(args, program...))
		return err
	}}
}

func workspaceFigures(list []*contender) []measure.Figure {
	ours, bare := list[0], list[1]
	least := measure.Millis(measure.Percentile(bare.took, 50))
	f := measure.Figure{Name: "run adds to a program's start, p50", Measured: measure.Millis(measure.Percentile(ours.took, 50)) - least, Unit: "ms", Target: "<= 50 ms"}
	f.Met = f.Measured <= 50
	all := []measure.Figure{f, measure.Figure{Name: "run, p50", Measured: measure.Millis(measure.Percentile(ours.took, 50)), Unit: "ms"}.RatioTo(least, bare.name),
		measure.Figure{Name: "run, p95", Measured: measure.Millis(measure.Percentile(ours.took, 95)), Unit: "ms"}.RatioTo(measure.Millis(measure.Percentile(bare.took, 95)), bare.name)}
	if c := list[2]; c.why != "" {
		all = append(all, measure.Figure{Name: c.name, Note: c.why})
	} else {
		all = append(all, measure.Figure{Name: c.name + ", p50", Measured: measure.Millis(measure.Percentile(c.took, 50)), Unit: "ms"}.RatioTo(least, bare.name))
	}
	return all
}
