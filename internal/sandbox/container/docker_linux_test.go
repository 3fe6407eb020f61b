//go:build linux

package container_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
	"github.com/holdfast-dev/holdfast/internal/sandbox/container"
	"github.com/holdfast-dev/holdfast/internal/sandbox/process"
	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// docker is an engine of its own, Debian's, with nothing of the host's.
type docker struct {
	dir, socket string
	engine      *exec.Cmd
	http        *http.Client
}

// startDocker starts one, which ends with the test.
func startDocker(t *testing.T) *docker {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts an engine")
	}
	if os.Geteuid() != 0 {
		t.Skip("an engine is started by root")
	}
	dir, err := os.MkdirTemp("", "hfd") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	d := &docker{dir: dir, socket: filepath.Join(dir, "d.sock")}
	t.Cleanup(func() { d.clear(t) })
	shims := filepath.Join(dir, "c.sock")
	below := d.start(t, "containerd", "--root", filepath.Join(dir, "cr"), "--state", filepath.Join(dir, "cs"), "--address", shims)
	t.Cleanup(func() { end(t, below) })
	await(t, shims)
	d.startEngine(t)
	t.Cleanup(func() { end(t, d.engine) })
	d.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.socket)
	}}}
	t.Cleanup(d.http.CloseIdleConnections)
	return d
}

// start starts a program that writes into a log of its own.
func (d *docker) start(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	log, err := os.Create(filepath.Join(d.dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: `make deps` installs it", err)
	}
	return cmd
}

func (d *docker) startEngine(t *testing.T) {
	t.Helper()
	d.engine = d.start(t, "dockerd", "--data-root", filepath.Join(d.dir, "d"), "--exec-root", filepath.Join(d.dir, "e"), "-H", "unix://"+d.socket, "--pidfile", filepath.Join(d.dir, "pid"), "--containerd", filepath.Join(d.dir, "c.sock"),
		"--iptables=false", "--ip6tables=false", "--bridge=none", "--storage-driver=overlay2")
	await(t, d.socket)
}

func await(t *testing.T, socket string) {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

// end asks a program to end, and is not put off.
func end(t *testing.T, cmd *exec.Cmd) {
	cmd.Process.Signal(syscall.SIGTERM)
	hard := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer hard.Stop()
	cmd.Wait()
}

// clear takes away what outlived the engine: a shim does, where the engine died
// in the middle of something.
func (d *docker) clear(t *testing.T) {
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range processes {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(d.dir+"/c.sock")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			for _, p := range append(sandboxtest.Below(pid), pid) {
				syscall.Kill(p, syscall.SIGKILL)
			}
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], d.dir+"/") {
			syscall.Unmount(f[4], syscall.MNT_DETACH)
		}
	}
	if err := os.RemoveAll(d.dir); err != nil {
		t.Error(err)
	}
}

// ask calls the engine's API past Holdfast, and returns what it says.
func (d *docker) ask(t *testing.T, method, path string, in io.Reader) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://d"+path, in)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPost && strings.Contains(path, "images") {
		req.Header.Set("Content-Type", "application/x-tar")
	}
	resp, err := d.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %d %s %v", method, path, resp.StatusCode, b, err)
	}
	return string(b)
}

// importFolders makes an image of folders, and of changes in a Dockerfile's words.
func (d *docker) importFolders(t *testing.T, name, change string, folders ...string) {
	t.Helper()
	r, w := io.Pipe()
	go func() { w.CloseWithError(pack(w, folders)) }()
	path := "/v1.41/images/create?fromSrc=-&repo=" + name
	path += encodeChanges(change)
	if out := d.ask(t, http.MethodPost, path, r); !strings.Contains(out, "sha256:") {
		t.Fatal(out)
	}
}

// deriveImage makes an image of another one and of changes, without unpacking it again.
func (d *docker) deriveImage(t *testing.T, name, from, change string) {
	t.Helper()
	var made struct{ ID string }
	out := d.ask(t, http.MethodPost, "/v1.41/containers/create", strings.NewReader(`{"Image":"`+from+`","Cmd":["none"]}`))
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.ID == "" {
		t.Fatalf("%v in %s", err, out)
	}
	out = d.ask(t, http.MethodPost, "/v1.41/commit?container="+made.ID+"&repo="+name+encodeChanges(change), nil)
	if !strings.Contains(out, "sha256:") {
		t.Fatal(out)
	}
	d.ask(t, http.MethodDelete, "/v1.41/containers/"+made.ID, nil)
}

// encodeChanges returns changes in a Dockerfile's words as a query has them.
func encodeChanges(change string) string {
	if change == "" {
		return ""
	}
	encode := strings.NewReplacer(" ", "%20", "&changes=", "&changes=", "=", "%3D", "\"", "%22",
		"/", "%2F", "[", "%5B", "]", "%5D")
	return "&changes=" + encode.Replace(change)
}

func pack(w io.Writer, folders []string) error {
	tw := tar.NewWriter(w)
	seen := map[string]bool{}
	for _, root := range folders {
		err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
			name, _ := filepath.Rel(root, p)
			if err != nil || name == "." || seen[name] {
				return err
			}
			seen[name] = true
			info, err := e.Info()
			if err != nil {
				return err
			}
			link := ""
			if info.Mode().Type() == fs.ModeSymlink {
				if link, err = os.Readlink(p); err != nil {
					return err
				}
			}
			h, err := tar.FileInfoHeader(info, link)
			if err != nil {
				return err
			}
			h.Name = name
			if err := tw.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
				return err
			}
			f, err := os.Open(p)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.Copy(tw, f)
			return err
		})
		if err != nil {
			return err
		}
	}
	return tw.Close()
}

// root is a language's private copy.
func rootOf(t *testing.T, p *process.Tier, language string) string {
	t.Helper()
	prog, err := p.Program(t.Context(), language, nil)
	if err != nil {
		t.Fatal(err)
	}
	return prog.Root
}

// pythonOf is Python's root as the engine unpacks it: whole only for all attempts.
func pythonOf(t *testing.T, p *process.Tier) string {
	t.Helper()
	root := rootOf(t, p, "python3")
	if testrepeat.Enduring {
		return root
	}
	slim := filepath.Join(t.TempDir(), "slim")
	sandboxtest.CopySlimRoot(t, slim, root)
	return slim
}

// open returns a tier behind the engine.
func (d *docker) open(t *testing.T, p *process.Tier, change func(*container.DockerConfig)) *container.Docker {
	t.Helper()
	cfg := container.DockerConfig{Dir: filepath.Join(t.TempDir(), "docker"), Host: "unix://" + d.socket, Image: "languages", Programs: p, Secret: func(string) bool { return false }, Warn: func(s string) { t.Log(s) }}
	if change != nil {
		change(&cfg)
	}
	c, err := container.OpenDocker(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestDocker runs what must hold of Debian's engine, started once.
func TestDocker(t *testing.T) {
	d, p := startDocker(t), programs(t)
	roots := []string{pythonOf(t, p)}
	if testrepeat.Enduring { // the engine unpacks 100 MB for Node.js
		roots = append(roots, rootOf(t, p, "node"))
	}
	d.importFolders(t, "languages", "", roots...)
	for _, part := range []struct {
		name string
		f    func(*testing.T, *docker, *process.Tier)
	}{{"runs", dockerRuns}, {"images", dockerImages}, {"stops", dockerStops}, {"suite", dockerSuite}, {"inherited", dockerInherited}, {"swept", dockerSwept}, {"dies", dockerDies}} {
		t.Run(part.name, func(t *testing.T) { part.f(t, d, p) })
	}
}

func dockerRuns(t *testing.T, d *docker, p *process.Tier) {
	c := d.open(t, p, nil)
	t.Logf("%+v", c.Posture())
	for name, tc := range map[string]struct {
		code  string
		spec  sandbox.Spec
		want  posture.State
		why   posture.Reason
		exit  int
		out   string
		files map[string]string
	}{
		"hello": {code: "import socket, sys, threading\nprint('hello')\nt=threading.Thread(target=print,args=['thread']); t.start(); t.join()\ntry: socket.socket()\nexcept OSError as e: print(e.errno)\nsys.exit(3)",
			want: posture.Completed, exit: 3, out: "hello\nthread\n13\n"},
		"node":    {code: "console.log(6*7)", spec: sandbox.Spec{Language: "node"}, want: posture.Completed, out: "42\n"},
		"timeout": {code: "while True: pass", spec: sandbox.Spec{Timeout: 300 * time.Millisecond}, want: posture.Timeout, why: posture.ReasonWall, exit: 137},
		"oom":     {code: "b=bytearray(200<<20)\nfor i in range(0,len(b),4096): b[i]=1\nprint('held')", spec: sandbox.Spec{MemoryMB: 48}, want: posture.OOM, why: posture.ReasonOOM, exit: 137},
		"output":  {code: "import os\nwhile True: os.write(1,b'y'*65536)", want: posture.Completed, why: posture.ReasonOutput, exit: 137},
		"unnamed": {code: "import ctypes; print('now',flush=True); ctypes.CDLL(None).ptrace(0,0,0,0); print('reached')", want: posture.SyscallBlocked, why: posture.ReasonSyscall, exit: 159, out: "now\n"},
		"files":   {code: "open('a/b.txt','w').write('x'); print(open('a/f').read()); import os, sys; os.symlink('/etc','l'); sys.exit(137)", spec: sandbox.Spec{Files: map[string][]byte{"a/f": []byte("given")}}, want: posture.Completed, exit: 137, out: "given\n", files: map[string]string{"a/b.txt": "x"}},
	} {
		if name == "node" && !testrepeat.Enduring {
			continue
		}
		t.Run(name, func(t *testing.T) {
			spec := tc.spec
			spec.ID, spec.Code = "run", []byte(tc.code)
			if spec.Language == "" {
				spec.Language = "python3"
			}
			res, err := c.Run(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if res.State != tc.want || res.Reason != tc.why || res.ExitCode != tc.exit || tc.out != "" && string(res.Stdout) != tc.out {
				t.Errorf("ended as %s %q %d with %.200q %.900q", res.State, res.Reason, res.ExitCode, res.Stdout, res.Stderr)
			}
			for name, text := range tc.files {
				if string(res.OutputFiles[name]) != text {
					t.Errorf("%s is %q, skipped %v", name, res.OutputFiles[name], res.Skipped)
				}
			}
			if len(res.States) == 0 || len(res.Around) == 0 || res.MemoryPeak < 1<<20 || res.UserTime+res.SystemTime <= 0 {
				t.Errorf("its trails are %v and %v, its figures %d bytes, %v, %v", res.States, res.Around, res.MemoryPeak, res.UserTime, res.SystemTime)
			}
			t.Log(res.Stages)
		})
	}
	if said := c.Troubles(); len(said) > 0 {
		t.Errorf("troubles: %q", said)
	}
	d.empty(t)
}

// empty: nothing of any run is left in the engine, nor in the control groups.
func (d *docker) empty(t *testing.T) {
	t.Helper()
	if left := d.ask(t, http.MethodGet, "/v1.41/containers/json?all=1", nil); strings.TrimSpace(left) != "[]" {
		t.Errorf("containers are left: %.400s", left)
	}
}
