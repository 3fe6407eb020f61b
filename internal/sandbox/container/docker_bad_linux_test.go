//go:build linux

package container_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
)

const goodVersion = `{"Version":"20.10.24","ApiVersion":"1.41","MinAPIVersion":"1.12","Os":"linux"}`

// TestDockerBadEngine: whatever is at the socket, Holdfast refuses it by name, in
// time, and has read a bounded part of what it says.
func TestDockerBadEngine(t *testing.T) {
	dir, err := os.MkdirTemp("", "hfd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	reply := func(body string) func(string) string {
		return func(string) string {
			return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	}
	for name, c := range map[string]struct {
		say  func(path string) string // nil: nothing, for ever
		want string
	}{
		"hangs":       {nil, "does not answer GET /version in time"},
		"garbage":     {func(string) string { return "\x00\x01 SSH-2.0 what?\r\n\r\n" }, "malformed HTTP"},
		"closes":      {func(string) string { return "" }, "EOF"},
		"no json":     {reply("<html>"), "its answer cannot be read"},
		"huge":        {reply(`{"Version":"` + strings.Repeat("x", 5<<20) + `"}`), "larger than 4 MB"},
		"huge header": {func(string) string { return "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 1<<20) + "\r\n\r\n" }, "exceeded"},
		"breaks off":  {func(string) string { return "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{" }, "broke off"},
		"somewhere else": {func(string) string {
			return "HTTP/1.1 302 Found\r\nLocation: http://evil/\r\nContent-Length: 0\r\n\r\n"
		}, "another address"},
		"an old engine": {reply(`{"Version":"19.03","ApiVersion":"1.40","MinAPIVersion":"1.12","Os":"linux"}`), "1.41 (20.10) is the oldest"},
		"no version":    {reply(`{"Version":"x","ApiVersion":"best"}`), "no version"},
		"Windows":       {reply(`{"Version":"27","ApiVersion":"1.47","MinAPIVersion":"1.24","Os":"windows"}`), "windows"},
		"words for a terminal": {func(string) string {
			return "HTTP/1.1 500 E\r\nContent-Length: 26\r\n\r\n{\"message\":\"\\u001b[2Jbad\"}"
		}, "the engine says (500):  [2Jbad"},
		"garbage later": {func(path string) string {
			if path == "/version" {
				return reply(goodVersion)(path)
			}
			return reply("[1,2")(path)
		}, "its answer cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			serve(t, socket, c.say)
			ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			if c.say != nil {
				ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
			}
			defer cancel()
			refusedDocker(t, ctx, "unix://"+socket, c.want)
		})
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		"unix://" + file:                      "is no socket",
		"unix://" + dir + "/nothing":          "no such file",
		"unix://relative":                     "only an engine behind a socket",
		"tcp://127.0.0.1:2375":                "only an engine behind a socket",
		"ssh://somebody@host":                 "only an engine behind a socket",
		"unix://" + dir + "/\x00":             "only an engine behind a socket",
		"unix:///" + strings.Repeat("a", 200): "only an engine behind a socket",
	} {
		refusedDocker(t, t.Context(), host, want)
	}
}

// serve answers each connection at a socket with what say says of the path asked
// for.
func serve(t *testing.T, socket string, say func(string) string) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				line, err := in.ReadString('\n')
				for err == nil && strings.TrimSpace(line) != "" {
					if f := strings.Fields(line); len(f) == 3 && strings.HasPrefix(f[2], "HTTP/") && say != nil {
						defer conn.Write([]byte(say(f[1])))
					}
					line, err = in.ReadString('\n')
				}
				if say == nil {
					in.ReadByte() // until the other one goes
				}
			}()
		}
	}()
}

func refusedDocker(t *testing.T, ctx context.Context, host, want string) {
	t.Helper()
	c, err := container.OpenDocker(ctx, container.DockerConfig{Dir: t.TempDir(), Host: host, Image: "x", Programs: new(process.Tier)})
	if err == nil {
		c.Close()
		t.Fatalf("%.60q is used", host)
	}
	own := (*holdfast.Error)(nil)
	if !errors.As(err, &own) || own.Kind != holdfast.KindSpawn || own.Hint == "" || !strings.Contains(own.Why, want) || strings.ContainsRune(own.Why, 0x1b) {
		t.Errorf("%.60q: %.300q, want %q", host, err, want)
	}
}

// dockerImages: an image cannot lessen the floor, and one that would is refused.
func dockerImages(t *testing.T, d *docker, p *process.Tier) {
	open := func(image string) error {
		c, err := container.OpenDocker(t.Context(), container.DockerConfig{Dir: t.TempDir(), Host: "unix://" + d.socket, Image: image, Programs: p, Warn: func(s string) { t.Log(s) }})
		if err == nil {
			c.Close()
		}
		return err
	}
	d.importFolders(t, "volumes", "VOLUME /data", t.TempDir())
	for image, want := range map[string]string{"": "none is named", "nothing": "has no image", "../../containers/json?": "no name of an image", "languages/../x": "no name of an image", "volumes": "declares volumes"} {
		own := (*holdfast.Error)(nil)
		if err := open(image); !errors.As(err, &own) || !strings.Contains(own.Why, want) || own.Hint == "" {
			t.Errorf("image %q: %v", image, err)
		} else if image == "" && !strings.Contains(own.Hint, "docker import") {
			t.Errorf("the hint does not say how to make one: %s", own.Hint)
		}
	}
	d.deriveImage(t, "bent", "languages", "ENV LD_PRELOAD=/evil.so PYTHONSTARTUP=/x SECRET=1&changes=ENTRYPOINT [\"/bin/false\"]&changes=USER root&changes=WORKDIR /etc&changes=HEALTHCHECK --interval=1s CMD false")
	c := d.open(t, p, func(cfg *container.DockerConfig) { cfg.Image = "bent" })
	res, err := c.Run(t.Context(), sandbox.Spec{ID: "bent", Language: "python3", Code: []byte("import os; print(os.getuid(), os.getcwd(), sorted(set(os.environ)&{'LD_PRELOAD','PYTHONSTARTUP','SECRET'}))")})
	if err != nil || string(res.Stdout) != "2013265920 /workspace []\n" {
		t.Errorf("%v %+v", err, res)
	}
	d.importFolders(t, "bare", "", t.TempDir())
	c = d.open(t, p, func(cfg *container.DockerConfig) { cfg.Image = "bare" })
	res, err = c.Run(t.Context(), sandbox.Spec{ID: "bare", Language: "python3", Code: []byte("1")})
	own := (*holdfast.Error)(nil)
	if !errors.As(err, &own) || !strings.Contains(own.Hint, "must have the program of python3") || res == nil || res.State != posture.SpawnError {
		t.Errorf("an image without the interpreter: %v, %+v", err, res)
	}
	d.empty(t)
}

// dockerStops: a caller who goes, and a tier that is closed, end the run.
func dockerStops(t *testing.T, d *docker, p *process.Tier) {
	dir := filepath.Join(t.TempDir(), "docker")
	c := d.open(t, p, func(cfg *container.DockerConfig) { cfg.Dir = dir })
	spec := sandbox.Spec{ID: "stop", Language: "python3"}
	ctx, cancel := context.WithCancel(t.Context())
	for _, by := range []struct {
		name string
		stop func()
	}{{"caller", cancel}, {"tier", func() { c.Close() }}} {
		spec.Code = fmt.Appendf(nil, "open(%q,'w').write('x')\nimport time; time.sleep(600)", by.name)
		go func() {
			if awaitFile(t.Context(), dir, by.name) {
				by.stop()
			}
		}()
		res, err := c.Run(ctx, spec)
		if err != nil || res.Reason != posture.ReasonHalt || res.ExitCode != 137 {
			t.Errorf("stopped by its %s: %v %+v", by.name, err, res)
		}
		ctx = t.Context()
	}
	if _, err := c.Run(t.Context(), spec); err == nil {
		t.Error("a closed tier runs")
	}
	d.empty(t)
}

const victimEnv = "HOLDFAST_TEST_DOCKER_VICTIM"

// TestDockerVictim is a Holdfast that is killed while it runs code.
func TestDockerVictim(t *testing.T) {
	host, dir, ok := strings.Cut(os.Getenv(victimEnv), " ")
	if !ok {
		return // only another test starts it so
	}
	p := programs(t)
	c, err := container.OpenDocker(t.Context(), container.DockerConfig{Dir: dir, Host: host, Image: "languages", Programs: p, Secret: func(string) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if awaitFile(t.Context(), dir, "runs") {
			fmt.Println("RUNNING")
		}
	}()
	c.Run(t.Context(), sandbox.Spec{ID: "victim", Language: "python3", Code: []byte("open('runs','w').write('x')\nimport time; time.sleep(600)")})
}

// awaitFile waits until a program has written a file into its workspace below a tier's
// directory, and reports whether that was before ctx ended.
func awaitFile(ctx context.Context, dir, name string) bool {
	for ctx.Err() == nil {
		found, _ := filepath.Glob(filepath.Join(dir, "docker", "*", "ground", "work", name))
		if len(found) > 0 {
			if info, err := os.Stat(found[0]); err == nil && info.Size() > 0 {
				return true
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// victim is a Holdfast in whose folder dir a program runs that does not end.
func (d *docker) victim(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestDockerVictim$", "-test.v")
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), victimEnv+"=unix://"+d.socket+" "+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "RUNNING" {
		t.Log(lines.Text())
	}
	return cmd
}

// dockerInherited: what a killed Holdfast left is taken away by its heir.
func dockerInherited(t *testing.T, d *docker, _ *process.Tier) {
	dir := filepath.Join(t.TempDir(), "docker")
	cmd := d.victim(t, dir)
	heirs := heirsOf(t, cmd.Process.Pid)
	if left := d.ask(t, "GET", "/v1.41/containers/json?all=1", nil); !strings.Contains(left, "victim") || len(heirs) != 1 {
		t.Fatalf("there is no container, or no heir (%v): %.300s", heirs, left)
	}
	cmd.Process.Kill()
	cmd.Wait()
	eventually(t, "its heir has ended", func() bool { return len(still(heirs)) == 0 })
	d.empty(t)
	if left, _ := os.ReadDir(filepath.Join(dir, "docker")); len(left) > 0 {
		t.Errorf("folders are left: %v", left)
	}
	if mounts, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(mounts), dir) {
		t.Error("a mount is left")
	}
	if left := groupsOf(cmd.Process.Pid); len(left) > 0 {
		t.Errorf("control groups are left: %v", left)
	}
}

// dockerSwept: what a killed Holdfast and its killed heir left is taken away by the
// next one.
func dockerSwept(t *testing.T, d *docker, p *process.Tier) {
	dir := filepath.Join(t.TempDir(), "docker")
	cmd := d.victim(t, dir)
	kill(t, heirsOf(t, cmd.Process.Pid), unix.SIGKILL)
	cmd.Process.Kill()
	cmd.Wait()
	if left := d.ask(t, "GET", "/v1.41/containers/json?all=1", nil); !strings.Contains(left, "victim") {
		t.Fatalf("nothing was left to be swept: %.300s", left)
	}
	stranger := d.open(t, p, nil) // of another folder: it is not its business
	stranger.Close()
	if left := d.ask(t, "GET", "/v1.41/containers/json?all=1", nil); !strings.Contains(left, "victim") {
		t.Error("a Holdfast of another folder swept it")
	}
	c := d.open(t, p, func(cfg *container.DockerConfig) { cfg.Dir = dir })
	d.empty(t)
	if left, _ := os.ReadDir(filepath.Join(dir, "docker")); len(left) > 0 {
		t.Errorf("folders are left: %v", left)
	}
	c.Close()
	d.noGroups(t)
}

// noGroups: no control group of any run is left, in any hierarchy.
func (d *docker) noGroups(t *testing.T) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 4 && strings.Contains(line, " - cgroup") {
			if left, _ := filepath.Glob(filepath.Join(f[4], fmt.Sprintf("holdfast-oci-%d-*", os.Getpid()))); len(left) > 0 {
				t.Errorf("groups are left: %q", left)
			}
		}
	}
}

// dockerDies: the engine is killed while a program runs, which then ends too.
func dockerDies(t *testing.T, d *docker, p *process.Tier) {
	dir := filepath.Join(t.TempDir(), "docker")
	c := d.open(t, p, func(cfg *container.DockerConfig) { cfg.Dir = dir })
	go func() {
		if awaitFile(t.Context(), dir, "f") {
			d.engine.Process.Kill()
		}
	}()
	started := time.Now()
	res, err := c.Run(t.Context(), sandbox.Spec{ID: "orphan", Language: "python3", Code: []byte("open('f','w').write('x')\nimport time; time.sleep(600)"), Timeout: 5 * time.Minute})
	if err != nil || res.ExitCode != 137 || res.Reason != posture.ReasonSignal || !strings.Contains(res.Err, "the engine does not say") || string(res.OutputFiles["f"]) != "x" {
		t.Errorf("%v %+v", err, res)
	}
	if len(c.Troubles()) == 0 {
		t.Error("that a container is left in the engine is told nowhere")
	}
	if took := time.Since(started); took > 4*time.Minute {
		t.Errorf("the program outlived its engine for %v", took)
	}
	own := (*holdfast.Error)(nil)
	later := sandbox.Spec{ID: "later", Language: "python3", Code: []byte("print(1)")}
	if _, err = c.Run(t.Context(), later); !errors.As(err, &own) || own.Kind != holdfast.KindSpawn {
		t.Errorf("without an engine: %v", err)
	}
	d.engine.Wait()
	os.Remove(filepath.Join(d.dir, "pid"))
	d.startEngine(t)
	if res, err = c.Run(t.Context(), later); err != nil || string(res.Stdout) != "1\n" {
		t.Errorf("with an engine again: %v %+v", err, res)
	}
	d.empty(t)
	c.Close()
	d.noGroups(t)
}
