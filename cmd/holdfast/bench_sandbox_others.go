package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

// absent is a contender that is not on this machine.
func absent(name string) *contender {
	return &contender{name: name, why: name + " is not on PATH"}
}

// bubblewrap runs the host's own interpreter, with the folders that it needs
// bound read-only.
func (b *bench) bubblewrap(with process.Beside, script string) *contender {
	program, err := exec.LookPath("bwrap")
	if err != nil {
		return absent("bubblewrap")
	}
	args := []string{"--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--tmpfs", "/tmp", "--dev", "/dev", "--ro-bind", script, "/code/main.py"}
	prefix := filepath.Dir(filepath.Dir(with.Program))
	for _, dir := range []string{"/usr", "/lib", "/lib64", prefix} {
		if there(dir) {
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	args = append(append(append(args, with.Program), with.Flags...), "/code/main.py")
	return &contender{name: "bubblewrap", run: func(int) error { return b.timedOut(with.Env, program, args...) }}
}

// bundled runs the interpreter in an OCI bundle over a copy of the sandbox's
// root.
func (b *bench) bundled(name string, with process.Beside, script string) *contender {
	program, err := exec.LookPath(name)
	if err != nil {
		return absent(name)
	}
	dir := filepath.Join(b.dir, "bundle-"+name)
	c := &contender{name: name}
	if err := b.writeBundle(dir, with, script); err != nil {
		c.why = err.Error()
		return c
	}
	own := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir}
	c.run = func(i int) error {
		return b.timedOut(own, program, "--root", filepath.Join(dir, "state"), "run", "--bundle", dir, fmt.Sprintf("holdfast-bench-%s-%d-%d", name, os.Getpid(), i))
	}
	return c
}

func (b *bench) writeBundle(dir string, with process.Beside, script string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	type m = map[string]any
	var spaces []m
	for _, s := range []string{"pid", "network", "ipc", "uts", "mount", "cgroup"} {
		spaces = append(spaces, m{"type": s})
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
		"linux": m{"namespaces": spaces},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600)
}

// docker runs the interpreter in an image made of the sandbox's own root, where
// a daemon answers.
func (b *bench) docker(with process.Beside, script string) *contender {
	program, err := exec.LookPath("docker")
	if err != nil {
		return absent("docker")
	}
	c := &contender{name: "docker"}
	if out, err := exec.CommandContext(b.ctx, program, "info", "--format", "{{.ServerVersion}}").CombinedOutput(); err != nil {
		c.why = "its daemon does not answer: " + clean(strings.TrimSpace(string(out)))
		return c
	}
	own := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir}
	const image = "holdfast-bench"
	if out, err := exec.CommandContext(b.ctx, "sh", "-c", `tar -C "$1" -c . | "$2" import - "$3"`, "sh", with.Root, program, image).CombinedOutput(); err != nil {
		c.why = "the image could not be made: " + clean(string(out))
		return c
	}
	args := append([]string{"run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp", "-v", filepath.Dir(script) + ":/code:ro", image, with.Inside}, with.Flags...)
	c.run = func(int) error { return b.timedOut(own, program, append(args, "/code/main.py")...) }
	return c
}
