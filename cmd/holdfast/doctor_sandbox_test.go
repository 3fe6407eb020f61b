package main

import (
	"debug/elf"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/daemon"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// Where walls are missing doctor names all of them at once, and the contract that
// takes those that stand.
func TestDoctorNamesEveryMissingWall(t *testing.T) {
	every := posture.Posture{Up: posture.Walls()}
	if f := seeExec(every); f.How != "ok" || f.Hint != "" {
		t.Errorf("%+v", f)
	}
	fewer := posture.Posture{Up: slices.DeleteFunc(posture.Walls(), func(w posture.Wall) bool {
		return w == posture.WallMemory || w == posture.WallCPU || w == posture.WallPids
	})}
	if f := seeExec(fewer); f.How != "warn" || !strings.HasSuffix(f.Why, "do not stand: memory, cpu, pids") ||
		!strings.Contains(f.Hint, "walls: [pid, net, mount, uts, ipc, user, seccomp, rights, scratch]}") {
		t.Errorf("%+v", f)
	}
}

// A run that does not come about is a failure with its reason, and only a warning
// where the sandbox is not usable at all; here one comes about.
func TestDoctorTriesARun(t *testing.T) {
	a := &app{ctx: t.Context(), lookup: os.LookupEnv}
	dir := t.TempDir()
	if up, err := a.tryRun(dir); runtime.GOOS == "linux" && (err != nil || len(up.Up) == 0) {
		t.Errorf("%v %+v", err, up)
	}
	if _, err := a.tryRun(filepath.Join(dir, "gone")); bad(err).How != "FAIL" || bad(err).Why == "" || bad(err).Hint == "" {
		t.Errorf("%+v", err)
	}
	t.Setenv("TMPDIR", "/dev/shm") // no place for a work tree
	for usable, how := range map[bool]string{true: "FAIL", false: "warn"} {
		if f := a.seeRun(usable); f.Check != "run" || f.How != how || !strings.Contains(f.Why, "did not run: ") || f.Hint == "" {
			t.Errorf("%+v", f)
		}
	}
}

// The network of a workspace is tried, and what did not hold of it would be said.
func TestDoctorTriesANetwork(t *testing.T) {
	a := &app{ctx: t.Context(), lookup: os.LookupEnv}
	if f := a.seeNetwork(true); runtime.GOOS == "linux" && (f.Check != "network" || f.How == "FAIL") {
		t.Errorf("%+v", f)
	}
	if f := (&app{ctx: t.Context(), lookup: func(string) (string, bool) { return "", true }}).seeNetwork(true); f.How == "FAIL" {
		t.Errorf("%+v", f)
	}
	well := func() []string {
		var said []string
		for _, try := range networkTries {
			if try[2] != "" {
				said = append(said, try[0]+": w "+try[2])
			}
		}
		return said
	}
	for want, n := range map[string]struct {
		from  []string
		reach posture.Reach
		said  []string
	}{
		"":                                   {nil, posture.ReachAll, well()},
		"got into it, from 127.0.0.1:1":      {[]string{"127.0.0.1:1"}, posture.ReachAll, well()},
		"said to names":                      {nil, posture.ReachAll, slices.DeleteFunc(well(), func(l string) bool { return strings.HasPrefix(l, "names") })},
		"a program reached shell":            {nil, posture.ReachPorts, well()},
		`a program reached the host, by TCP`: {nil, posture.ReachAll, append(well(), "the host, by TCP: reached")},
		"said to metadata (tcp/169.254.169.254/80)": {nil, posture.ReachAll, append([]string{"metadata: w meant 10.0.0.1:80"}, well()...)},
	} {
		trial := &networkTrial{word: "w", from: n.from}
		if got := trial.broken(n.said, n.reach); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	t.Setenv("TMPDIR", "/dev/shm") // no place for a work tree
	for usable, how := range map[bool]string{true: "FAIL", false: "warn"} {
		if f := a.seeNetwork(usable); f.How != how || !strings.Contains(f.Why, "did not run: ") {
			t.Errorf("%+v", f)
		}
	}
}

// What the stronger tiers are made of is named, and what is missing, with how to
// have it; neither is a failure.
func TestDoctorNamesTheStrongerTiers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("their walls are those of Linux")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "holdfast.yaml")
	a := &app{ctx: t.Context(), config: config, lookup: os.LookupEnv}
	p, done, err := a.trialTier(daemon.Paths{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	qemu := filepath.Join(dir, "qemu")
	if err := os.WriteFile(qemu, []byte("#!/bin/sh\necho QEMU emulator version 7.2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	// Tests with the race detector are linked with C, and can be in no guest.
	guest := "ok QEMU emulator version 7.2 at " + qemu + ", kernel " + config + ", "
	if linked(t) {
		guest = "warn what needs it is refused: a guest has this program as its first process, and "
	}
	t.Setenv("PATH", dir)
	t.Setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
	for text, want := range map[string][2]string{
		"container: {runtime: runc, image: /nowhere/root}, vm: {qemu: /nowhere/qemu}":  {`warn what needs it is refused: the image "root" (/nowhere/root) cannot be used: there is nothing to be read`, "warn what needs it is refused: "},
		"container: {runtime: runc}, vm: {qemu: " + qemu + ", kernel: " + config + "}": {"ok container tier, runc ", guest},
		"container: {runtime: docker, image: tools}, vm: {kernel: " + config + "}":     {"warn what needs it is refused: ", "warn what needs it is refused: the VM tier needs QEMU, and there is no qemu-system-x86_64"},
		"container: {runtime: /nowhere/runsc}, vm: {qemu: " + qemu + "/none}":          {"warn what needs it is refused: there is no container runtime that can be used: /nowhere/runsc", "warn what needs it is refused: the VM tier needs QEMU"},
		"container: {runtime: /nowhere/runc}, vm: {qemu: /nowhere/qemu}":               {"warn what needs it is refused: ", "warn what needs it is refused: the VM tier needs QEMU, and there is no /nowhere/qemu"},
		"container: {runtime: runc}, vm: {qemu: " + qemu + ", kernel: /nowhere/linux}": {"ok container tier, runc ", "warn what needs it is refused: the VM tier needs a kernel to boot, and there is none at \"/nowhere/linux\""},
	} {
		if err := os.WriteFile(config, []byte("version: 1\nsandbox: {"+text+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got := a.seeStronger(p, "")
		if len(got) != 2 || got[0].Check != "tier container" || got[1].Check != "tier vm" {
			t.Fatalf("%+v", got)
		}
		for i, f := range got {
			if !strings.HasPrefix(f.How+" "+f.Why, want[i]) || f.How == "warn" && f.Hint == "" || f.How == "warn" && !strings.Contains(f.Why, "the image ") && !slices.ContainsFunc([]string{"apt install", "apt-get install", "CGO_ENABLED=0"}, func(how string) bool { return strings.Contains(f.Hint, how) }) {
				t.Errorf("%s: %+v", text, f)
			}
		}
	}
}

// linked says whether this program needs libraries of the system's.
func linked(t *testing.T) bool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}
