package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/programs"
	"github.com/holdfast-dev/holdfast/internal/leaf/excerpt"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// absent is a contender that is not on this machine.
func absent(name string) *contender {
	return &contender{name: name, why: name + " is not on PATH"}
}

// newBubblewrap runs the host's own interpreter, with the folders that it needs
// bound read-only.
func newBubblewrap(b *measure.Run, with process.Beside, script string) *contender {
	program, err := exec.LookPath("bwrap")
	if err != nil {
		return absent("bubblewrap")
	}
	args := []string{"--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--tmpfs", "/tmp", "--dev", "/dev", "--ro-bind", script, "/code/main.py"}
	prefix := filepath.Dir(filepath.Dir(with.Program))
	for _, dir := range []string{"/usr", "/lib", "/lib64", prefix} {
		if programs.Exists(dir) {
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	args = append(append(append(args, with.Program), with.Flags...), "/code/main.py")
	return &contender{name: "bubblewrap", run: func(int) error { return timedOut(b, with.Env, program, args...) }}
}

// newBundled runs the interpreter in an OCI bundle over a copy of the sandbox's
// root, behind a filter where there is one.
func newBundled(b *measure.Run, name string, with process.Beside, script string, seccomp any, flags ...string) *contender {
	program, err := exec.LookPath(name)
	if err != nil {
		return absent(name)
	}
	c := &contender{name: name}
	dir, err := os.MkdirTemp(b.Dir, "bundle-"+name+"-")
	if err != nil {
		c.why = err.Error()
		return c
	}
	if err := writeBundle(dir, with, script, seccomp); err != nil {
		c.why = err.Error()
		return c
	}
	own := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.Dir}
	flags = append(flags, "--root", filepath.Join(dir, "state"), "run", "--bundle", dir)
	c.run = func(i int) error {
		return timedOut(b, own, program, append(slices.Clone(flags), fmt.Sprintf("holdfast-bench-%s-%d-%d", name, os.Getpid(), i))...)
	}
	return c
}

// writeBundle writes a bundle of that interpreter; seccomp is its filter, nil for none.
func writeBundle(dir string, with process.Beside, script string, seccomp any) error {
	type m = map[string]any
	var spaces []m
	for _, s := range []string{"pid", "network", "ipc", "uts", "mount", "cgroup"} {
		spaces = append(spaces, m{"type": s})
	}
	linux := m{"namespaces": spaces}
	if seccomp != nil {
		linux["seccomp"] = seccomp
	}
	config, err := json.Marshal(m{
		"ociVersion": "1.0.2",
		"root":       m{"path": with.Root, "readonly": true},
		"process": m{"user": m{"uid": 65534, "gid": 65534}, "cwd": "/", "noNewPrivileges": true, "env": with.Env,
			"args": append(append([]string{with.Inside}, with.Flags...), "/code/main.py")},
		"mounts": []m{
			{"destination": "/proc", "type": "proc", "source": "proc"},
			{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755", "size=64k"}},
			{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "nodev", "size=100m"}},
			{"destination": "/code", "type": "bind", "source": filepath.Dir(script), "options": []string{"bind", "ro"}},
		},
		"linux": linux,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600)
}

// newDocker runs the interpreter in an image made of the sandbox's own root, where
// a daemon answers.
func newDocker(b *measure.Run, with process.Beside, script string) *contender {
	program, err := exec.LookPath("docker")
	if err != nil {
		return absent("docker")
	}
	c := &contender{name: "docker"}
	if out, err := exec.CommandContext(b.Ctx, program, "info", "--format", "{{.ServerVersion}}").CombinedOutput(); err != nil {
		c.why = "its daemon does not answer: " + excerpt.Printable(strings.TrimSpace(string(out)))
		return c
	}
	own := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.Dir}
	const image = "holdfast-bench"
	if out, err := exec.CommandContext(b.Ctx, "sh", "-c", `tar -C "$1" -c . | "$2" import - "$3"`, "sh", with.Root, program, image).CombinedOutput(); err != nil {
		c.why = "the image could not be made: " + excerpt.Printable(string(out))
		return c
	}
	args := append([]string{"run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp", "-v", filepath.Dir(script) + ":/code:ro", image, with.Inside}, with.Flags...)
	c.run = func(int) error { return timedOut(b, own, program, append(args, "/code/main.py")...) }
	return c
}
