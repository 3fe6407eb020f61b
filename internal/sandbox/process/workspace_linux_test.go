//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// said is what a program in a workspace came to.
type said struct {
	*posture.Result
	out, errs string
}

// workIn runs a shell's script in a workspace on tree.
func workIn(t *testing.T, tree, script, stdin string, change ...func(*sandbox.Workspace)) said {
	t.Helper()
	got, err := tryWork(t, t.Context(), tree, script, stdin, change...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func tryWork(t *testing.T, ctx context.Context, tree, script, stdin string, change ...func(*sandbox.Workspace)) (said, error) {
	t.Helper()
	w := OpenWorkspaces()
	defer w.Close()
	return tryWorkOn(t, ctx, w, nil, tree, script, stdin, change...)
}

// tryWorkOn is tryWork of w, with hand to serve its network.
func tryWorkOn(t *testing.T, ctx context.Context, w *Workspaces, hand Hand, tree, script, stdin string, change ...func(*sandbox.Workspace)) (said, error) {
	t.Helper()
	spec := sandbox.Workspace{ID: "t", Argv: []string{"/bin/bash", "-c", script}, Tree: tree, Need: anyWalls,
		Environment: map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": sandbox.WorkspaceHome}}
	for _, c := range change {
		c(&spec)
	}
	spec, err := sandbox.CheckWorkspace(spec, func(string) bool { return false })
	if err != nil {
		return said{}, err
	}
	var std sandbox.Streams
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() { io.WriteString(feed, stdin); feed.Close() }()
	std.In = in
	defer in.Close()
	texts := make(chan [2]string, 2)
	for i, f := range []**os.File{&std.Out, &std.Err} {
		from, to, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		*f = to
		go func() {
			b, _ := io.ReadAll(from)
			from.Close()
			texts <- [2]string{string(rune('0' + i)), string(b)}
		}()
	}
	res, err := w.RunConnected(ctx, spec, std, hand)
	std.Out.Close()
	std.Err.Close()
	got := said{Result: res}
	for range 2 {
		if s := <-texts; s[0] == "0" {
			got.out = s[1]
		} else {
			got.errs = s[1]
		}
	}
	return got, err
}

// repository makes a git work tree that its owner could have made.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "-q")
	git(t, dir, "config", "user.email", "a@example.com")
	git(t, dir, "config", "user.name", "a")
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// runRootless runs the test again as an ordinary user, if the tests run as root: a few
// tests always, all with the tag endure.
func runRootless(t *testing.T) {
	t.Helper()
	few := []string{"TestNetwork_Accept1", "TestWorkspaceEnds", "TestWorkspaceIsUnderLandlock", "TestWorkspaceNetwork",
		"TestWorkspaceOwnsWhatItMakes", "TestWorkspaceProcIsReadOnly"}
	if os.Geteuid() == 0 && (testrepeat.Enduring || slices.Contains(few, t.Name())) {
		name := t.Name()
		t.Run("rootless", func(t *testing.T) { asRootless(t, name) })
	}
}

// asRootless runs a test again as an ordinary user.
func asRootless(t *testing.T, name string) {
	t.Helper()
	const nobody = 65534
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, tmp := filepath.Join(dir, "self"), filepath.Join(dir, "tmp")
	copyTo(t, self, "/proc/self/exe")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(tmp, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+name+"$", "-test.v")
	cmd.Dir = tmp
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"), "HOME=" + tmp, "TMPDIR=" + tmp}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
}

// TestWorkspaceEnds: output, errors and status come out as without a sandbox.
func TestWorkspaceEnds(t *testing.T) {
	runRootless(t)
	dir := repository(t)
	for name, tc := range map[string]struct {
		script, in, out, errs string
		exit, signal          int
	}{
		"three streams":        {script: "cat; echo out; echo oops >&2; exit 7", in: "given\n", out: "given\nout\n", errs: "oops\n", exit: 7},
		"streams by name":      {script: "cat /dev/stdin; echo out >/dev/stdout; echo oops | /usr/bin/tee /dev/stderr >/dev/null", in: "given\n", out: "given\nout\n", errs: "oops\n"},
		"killed":               {script: "kill -9 $$", exit: 137, signal: 9},
		"terminated":           {script: "kill -TERM $$", exit: 143, signal: 15},
		"a child killed":       {script: "exec 2>/dev/null; sh -c 'kill -SEGV $$'; exit $?", exit: 139},
		"pipes inside":         {script: "seq 1 100000 | tail -1 | tr 0 x; exit ${PIPESTATUS[0]}", out: "1xxxxx\n"},
		"left in background":   {script: "sleep 1000 & echo $!", out: "3\n"},
		"orphans are reaped":   {script: "for i in 1 2 3 4 5; do (sh -c 'sleep 0.05' & ); done; sleep 0.4; ps -e -o stat= | grep -c Z", out: "0\n", exit: 1},
		"who it is":            {script: "whoami; cd; pwd; hostname; umask | wc -c", out: "agent\n/home/agent\nworkspace\n5\n"},
		"input that is unread": {script: "exec 0<&-; echo done", in: strings.Repeat("x", 1<<20), out: "done\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := workIn(t, dir, tc.script, tc.in)
			if got.ExitCode != tc.exit || got.out != tc.out || got.errs != tc.errs || got.Signal != tc.signal || got.State != posture.Completed {
				t.Errorf("%d (signal %d, %s) %q %q %q, want %d %q %q", got.ExitCode, got.Signal, got.State, got.out, got.errs, got.Stderr, tc.exit, tc.out, tc.errs)
			}
		})
	}
}

// TestWorkspaceReachesNothingElse: what gets through outside does not inside.
func TestWorkspaceReachesNothingElse(t *testing.T) {
	runRootless(t)
	dir := repository(t)
	out := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(out, []byte("reached\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{filepath.Dir(out), filepath.Dir(filepath.Dir(out)), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(out, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte("#!/bin/sh\necho reached\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sleeper.Process.Kill(); sleeper.Wait() })
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tcp.Close() })
	abstract, err := net.Listen("unix", "@holdfast-test-"+filepath.Base(filepath.Dir(out)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { abstract.Close() })
	port := tcp.Addr().(*net.TCPAddr).Port
	for name, script := range map[string]string{
		"a file beside the tree":       "cat " + out,
		"a link in the tree":           "cat link",
		"the way up":                   "cat ../../$(basename $(dirname $(dirname " + out + ")))/002/secret",
		"a file by the host's root":    "cat /proc/1/root" + out + " || cat /proc/self/root" + out,
		"a process":                    fmt.Sprintf("kill -0 %d && echo reached", sleeper.Process.Pid),
		"a process by its name":        "ps -e -o args= | grep -q '[s]leep 1000' && echo reached",
		"a port":                       fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && echo reached", port),
		"an abstract socket":           fmt.Sprintf("/usr/bin/python3 -c 'import socket; s=socket.socket(socket.AF_UNIX); s.connect(%q); print(\"reached\")'", "\x00"+abstract.Addr().String()[1:]),
		"people":                       "getent passwd root | grep -q /root && echo reached",
		"the environment":              "test -n \"$HOLDFAST_TEST_SECRET\" && echo reached",
		"a script of the tree":         "./script",
		"a program put in /tmp":        "cp /bin/echo /tmp/e.$$ && /tmp/e.$$ reached; rm -f /tmp/e.$$",
		"memory without a name":        "/usr/bin/python3 -c 'import os; f=os.memfd_create(\"x\",0); os.write(f,open(\"/bin/echo\",\"rb\").read()); os.execve(f,[\"echo\",\"reached\"],{})'",
		"a debugger's hold of a child": "/usr/bin/python3 -c 'import ctypes,os,sys; l=ctypes.CDLL(None); p=os.fork(); p or sys.exit(l.ptrace(0,0,0,0)); sys.exit(os.waitstatus_to_exitcode(os.waitpid(p,0)[1]))' && echo reached",
		"a page of the toolbox":        "test -w /usr/bin/env && echo reached; touch $(dirname " + out + ")/x && echo reached",
	} {
		t.Run(name, func(t *testing.T) {
			twin := exec.Command("/bin/bash", "-c", script)
			twin.Dir = dir
			twin.Env = append(os.Environ(), "HOLDFAST_TEST_SECRET=x")
			b, _ := twin.CombinedOutput()
			if !strings.Contains(string(b), "reached") {
				t.Fatalf("outside it does not get through either: %s", b)
			}
			got := workIn(t, dir, script, "")
			if strings.Contains(got.out+got.errs, "reached") {
				t.Errorf("it got through: %q %q", got.out, got.errs)
			}
			if got.Reason != "" && got.Reason != posture.ReasonSignal {
				t.Errorf("it was ended: %s %+v", got.Reason, got.Call)
			}
		})
	}
}

// TestWorkspaceIsUnderLandlock: only Landlock refuses the character device 0:0.
// Linux lets anyone make it (a whiteout), and the mounts and the filter let mknod
// pass, which makes named pipes too.
func TestWorkspaceIsUnderLandlock(t *testing.T) {
	runRootless(t)
	if landlockABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
	dir := repository(t)
	const script = `
import errno, os, stat, sys
os.mkfifo(sys.argv[1] + "/pipe")
try: os.mknod(sys.argv[1] + "/device", stat.S_IFCHR | 0o600, 0); print("made")
except OSError as e: print(errno.errorcode[e.errno])
`
	b, err := exec.Command("python3", "-c", script, t.TempDir()).CombinedOutput()
	if err != nil || string(b) != "made\n" {
		t.Fatalf("outside the device is not made either: %v %s", err, b)
	}
	for _, at := range []string{"/tmp", dir} {
		got := workIn(t, dir, "exec /usr/bin/python3 - "+at, script)
		if got.out != "EACCES\n" || got.ExitCode != 0 {
			t.Errorf("in %s: %d %q %q", at, got.ExitCode, got.out, got.errs)
		}
	}
}

// TestWorkspaceProcIsReadOnly: the settings of the kernel in /proc are mounted
// read-only. chmod fails by that before Linux asks who owns the file.
func TestWorkspaceProcIsReadOnly(t *testing.T) {
	runRootless(t)
	const script = `
import errno, os
for p in ("sys", "sysrq-trigger", "irq", "bus", "fs"):
    try: os.chmod("/proc/" + p, 0o500); print("changed", p)
    except FileNotFoundError: pass
    except OSError as e: e.errno == errno.EROFS or print(p, e)
print("asked")
`
	got := workIn(t, repository(t), "exec /usr/bin/python3 -", script)
	if got.out != "asked\n" || got.ExitCode != 0 {
		t.Errorf("%d %q %q", got.ExitCode, got.out, got.errs)
	}
}

// TestWorkspaceEscapes: what only a way out needs ends the whole run, named.
func TestWorkspaceEscapes(t *testing.T) {
	runRootless(t)
	dir := repository(t)
	const call = "/usr/bin/python3 -c 'import ctypes; print(ctypes.CDLL(None).syscall(%s))'"
	for want, script := range map[string]string{
		"mount":             "mount -t tmpfs x /tmp",
		"umount2":           fmt.Sprintf(call, "166,0,0"),
		"unshare":           "unshare -r true",
		"setns":             "nsenter -t 1 -m true || " + fmt.Sprintf(call, "308,0,0"),
		"pivot_root":        fmt.Sprintf(call, "155,0,0"),
		"open_by_handle_at": fmt.Sprintf(call, "304,-1,0,0"),
		"bpf":               fmt.Sprintf(call, "321,0,0,0"),
		"clone":             fmt.Sprintf(call, "56,0x10000011,0,0,0,0"),
		"move_mount":        fmt.Sprintf(call, "429,-1,0,-1,0,0"),
		"init_module":       fmt.Sprintf(call, "175,0,0,0"),
		"socket":            "/usr/bin/python3 -c 'import socket; socket.socket(38,5)'",
		"ioctl":             "/usr/bin/python3 -c 'import fcntl; fcntl.ioctl(0,0x5412,b\"x\")'",
	} {
		t.Run(want, func(t *testing.T) {
			got := workIn(t, dir, "("+script+"); echo went on", "")
			if got.Reason != posture.ReasonEscape || got.Call == nil || got.Call.Name != want || got.ExitCode != 159 || strings.Contains(got.out, "went on") {
				t.Errorf("%s %+v %d %q %q", got.Reason, got.Call, got.ExitCode, got.out, got.errs)
			}
			var e *posture.Escape
			if !errors.As(got.Broke(), &e) {
				t.Error("no attempt is told of")
			}
		})
	}
}

// TestWorkspaceRefuses: what programs merely try is refused, and counted.
func TestWorkspaceRefuses(t *testing.T) {
	got := workIn(t, repository(t), "/usr/bin/python3 -c 'import ctypes,socket\nl=ctypes.CDLL(None)\nl.syscall(425,1,0); l.syscall(101,0,0,0,0); l.syscall(9999)\ntry: socket.socket(17,3)\nexcept OSError as e: print(e.errno)'; echo on", "")
	if got.ExitCode != 0 || got.out != "13\non\n" {
		t.Errorf("%d %q %q", got.ExitCode, got.out, got.errs)
	}
	have := map[string]string{}
	for _, r := range got.Refused {
		have[r.Name] = r.Errno
	}
	for name, errno := range map[string]string{"io_uring_setup": "ENOSYS", "ptrace": "EPERM", "socket": "EACCES", "syscall_9999": "ENOSYS"} {
		if have[name] != errno {
			t.Errorf("%s is %q in %v", name, have[name], have)
		}
	}
}

// TestWorkspaceNetwork: servers of test runners work, by name and by number.
func TestWorkspaceNetwork(t *testing.T) {
	runRootless(t)
	got := workIn(t, repository(t), `echo page > index.html; /usr/bin/python3 -m http.server 8000 >/dev/null 2>&1 & sleep 0.1
/usr/bin/python3 -c '
import urllib.request,time,socket
for i in range(50):
    try: print(urllib.request.urlopen("http://localhost:8000/").read().decode().strip()); break
    except OSError: time.sleep(0.1)
s=socket.socket(socket.AF_INET6); s.bind(("::1",0)); print([n for _,n in socket.if_nameindex()])
try: socket.create_connection(("192.0.2.1",80),2)
except OSError as e: print(e.errno)'`, "")
	if got.out != "page\n['lo']\n101\n" {
		t.Errorf("%q %q %v", got.out, got.errs, got.Refused)
	}
}
