package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// measureContainer measures a Python program in a container, from request to result,
// in turns with the runtime alone on a bundle of the same root and filter: of the first runtime that
// works, and of gVisor's. Where no container runs it says why.
func measureContainer(b *measure.Run) (all []measure.Figure, err error) {
	err = withTier(b, "python3", hello, func(t *process.Tier, _ func(int) error) error {
		for _, c := range []struct {
			name, runtime string
			rounds        int
		}{{"container", "", 100}, {"gvisor", "runsc", 20}} {
			list, err := measureRuntime(b, t, c.name, c.runtime, c.rounds)
			if err != nil {
				return err
			}
			all = append(all, list...)
		}
		return nil
	})
	return all, err
}

// measureRuntime measures one runtime.
func measureRuntime(b *measure.Run, t *process.Tier, name, runtime string, rounds int) (all []measure.Figure, err error) {
	c, err := container.Open(b.Ctx, container.Config{Dir: filepath.Join(b.Dir, name), Runtime: runtime, Programs: t, Secret: func(string) bool { return false }})
	if err != nil {
		return []measure.Figure{{Name: name + ", python", Note: excerpt.Printable(err.Error())}}, nil
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	alone, err := newAlone(b, t, c, name)
	if err != nil {
		return nil, err
	}
	return besideRuntime(b, c, alone, name, b.Rounds(rounds))
}

// newAlone is the tier's runtime alone: over a copy of a run's root, with as many rules
// in its filter as a run's, but none that asks. What is called is then allowed where a
// run would be asked about it. gVisor has no filter in a run either.
func newAlone(b *measure.Run, t *process.Tier, c *container.Tier, name string) (*contender, error) {
	with, err := t.Beside(b.Ctx, "python3")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.Dir, name+"-alone")
	script := filepath.Join(dir, "code", "main.py")
	if err := errors.Join(os.MkdirAll(filepath.Dir(script), 0o755), os.WriteFile(script, []byte(hello), 0o644)); err != nil {
		return nil, err
	}
	root := filepath.Join(dir, "root") // it is written to
	if out, err := exec.CommandContext(b.Ctx, "cp", "-a", with.Root, root).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot copy the root: %w: %s", err, excerpt.Printable(string(out)))
	}
	with.Root = root
	program, _, _ := strings.Cut(c.Runtime(), " ")
	var filter any
	var flags []string
	if _, platform, found := strings.Cut(c.Runtime(), "platform "); found { // gVisor's
		flags = []string{"--network=none", "--platform=" + platform}
	} else {
		p, err := t.Program(b.Ctx, "python3", nil)
		if err != nil {
			return nil, err
		}
		filter = newFilter(sandbox.Fewer(p.Rules, maxRules))
	}
	alone := newBundled(b, program, with, script, filter, flags...)
	alone.name = c.Runtime() + " alone"
	if alone.why != "" {
		return nil, fmt.Errorf("%s: %s", alone.name, alone.why)
	}
	return alone, nil
}

// maxRules is how many rules a call may have in the filter of a container's run.
const maxRules = 45

// newFilter is rules as an OCI bundle has them, with what asks allowed.
func newFilter(rules []sandbox.Rule) any {
	type m = map[string]any
	var calls []m
	for _, r := range rules {
		c := m{"names": []string{r.Call}, "action": "SCMP_ACT_ALLOW"}
		if r.Action == sandbox.RuleFeign {
			c["action"], c["errnoRet"] = "SCMP_ACT_ERRNO", 0
		}
		var args []m
		for _, w := range r.When {
			args = append(args, m{"index": w.Arg, "value": w.Mask, "valueTwo": w.Value, "op": "SCMP_CMP_MASKED_EQ"})
		}
		if args != nil {
			c["args"] = args
		}
		calls = append(calls, c)
	}
	arch := "SCMP_ARCH_X86_64"
	if runtime.GOARCH == "arm64" {
		arch = "SCMP_ARCH_AARCH64"
	}
	return m{"defaultAction": "SCMP_ACT_KILL_PROCESS", "architectures": []string{arch}, "syscalls": calls}
}

func besideRuntime(b *measure.Run, c *container.Tier, alone *contender, name string, rounds int) ([]measure.Figure, error) {
	spec := func(i int) sandbox.Spec {
		return sandbox.Spec{ID: fmt.Sprintf("bench-%d", i), Language: "python3", Code: []byte(hello), Need: c.Posture().Up}
	}
	ours := &contender{name: name, run: func(i int) error {
		res, err := c.Run(b.Ctx, spec(i))
		if err == nil && string(res.Stdout) != "42\n" {
			err = fmt.Errorf("a run ended as %s: %s", res.State, excerpt.Printable(string(res.Stderr)))
		}
		return err
	}}
	if err := inTurns(b, []*contender{ours, alone}, rounds); err != nil {
		return nil, err
	}
	f := measure.Figure{Name: name + ", python, p50", Measured: measure.Millis(measure.Percentile(ours.took, 50)), Unit: "ms", Target: "<= 1.2 x"}.RatioTo(measure.Millis(measure.Percentile(alone.took, 50)), alone.name)
	f.Met = f.Ratio <= 1.2
	slow := measure.Figure{Name: name + ", python, p95", Measured: measure.Millis(measure.Percentile(ours.took, 95)), Unit: "ms"}.RatioTo(measure.Millis(measure.Percentile(alone.took, 95)), alone.name)
	return []measure.Figure{f, slow}, nil
}
