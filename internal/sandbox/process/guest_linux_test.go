package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/sandbox/sandboxtest"
)

// What the machines that TestInGuests boots set for a scene: see
// sandboxtest.GuestInit.
const (
	sceneEnv = "HOLDFAST_GUEST_SCENE" // a scene's name, for the tests in it
	enterEnv = "HOLDFAST_GUEST_ENTER" // what a scene does before its tests: see enterGuest
)

// guestUser is who the rootless scenes run as.
const guestUser = 1000

// guestInit does not return where this is a guest's first process.
func guestInit() {
	enterGuest()
	sandboxtest.GuestInit(func(guest string) error {
		for _, s := range scenesOf(guest) {
			if err := s.perform(); err != nil {
				return err
			}
		}
		return nil
	})
}

// scene is one way in which Holdfast is started, and the tests that have to
// pass there.
type scene struct {
	name string
	// place returns the version 2 group that the tests' process is born in, or
	// "" for the first process's own.
	place func() (string, error)
	user  int
	enter string // for enterGuest
	// groups says that the tests are those of package cgroup.
	groups bool
	tests  []string // names, or a name and patterns below it; TestScene alone if nil
	brief  bool     // TestScene tries one wall of the groups: it is known that the others come with it
	want   stand
}

// stand is what has to stand in a scene.
type stand struct {
	groups string   // v2, v1 or none
	up     []string // of the controllers, which walls
	why    string   // is in what is told of the others
}

// perform runs a scene's tests, and says what came of them.
func (s scene) perform() error {
	dir, err := s.place()
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	attr := &os.ProcAttr{
		Env: []string{"PATH=/usr/bin", "HOME=/tmp", "TMPDIR=/tmp", sceneEnv + "=" + s.name, enterEnv + "=" + s.enter,
			rootsEnv + "=/tmp/roots-" + strconv.Itoa(s.user), sandboxtest.TricksEnv + "=" + guestTricks, sandboxtest.TwinsEnv + "=yes"},
		Sys: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(s.user), Gid: uint32(s.user)}},
	}
	if dir != "" {
		d, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer d.Close()
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(d.Fd())
	}
	program := sandboxtest.GuestSelf
	if s.groups {
		program = guestGroups
	}
	return sandboxtest.PlayScene(s.name, program, s.pattern(), attr)
}

// pattern is for the names of exactly its tests.
func (s scene) pattern() string {
	var all []string
	for _, name := range s.tests {
		top, below, some := strings.Cut(name, "/")
		name = "^" + top + "$"
		if some {
			name += "/" + below
		}
		all = append(all, name)
	}
	return strings.Join(all, "|")
}

// enterGuest does what a scene needs in its own process, before any thread of
// the tests is there, and starts it again.
func enterGuest() {
	what := os.Getenv(enterEnv)
	if what == "" {
		return
	}
	runtime.LockOSThread()
	var err error
	switch what {
	case "namespace": // as in a container with control groups of its own
		err = errors.Join(unix.Unshare(unix.CLONE_NEWCGROUP|unix.CLONE_NEWNS),
			unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Unmount("/sys/fs/cgroup", unix.MNT_DETACH),
			unix.Mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, ""))
	case "no mount":
		err = errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Unmount("/sys/fs/cgroup", unix.MNT_DETACH))
	case "child": // something that it has started before lives in the same group
		_, err = os.StartProcess("/usr/bin/sleep", []string{"sleep", "600"}, &os.ProcAttr{})
	case "command": // it was started by a command of its own, which waits for it
		os.Setenv(enterEnv, "")
		os.Exit(waitFor(os.StartProcess(sandboxtest.GuestSelf, os.Args, &os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stdout}})))
	}
	os.Setenv(enterEnv, "")
	if err == nil {
		err = unix.Exec("/proc/self/exe", os.Args, os.Environ())
	}
	fmt.Println("guest: failed:", what, err)
	os.Exit(1)
}

func waitFor(p *os.Process, err error) int {
	if err == nil {
		var state *os.ProcessState
		if state, err = p.Wait(); err == nil {
			return state.ExitCode()
		}
	}
	fmt.Println("guest: failed:", err)
	return 1
}

func handOut(dir, controllers string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(controllers), 0)
}

// newGroup makes a group, with those above it, as a service manager does: all
// but the last hand the controllers down.
func newGroup(top, path, controllers string) (string, error) {
	dir := top
	for _, part := range strings.Split(path, "/") {
		if err := handOut(dir, controllers); err != nil {
			return "", err
		}
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
	return dir, nil
}

// delegate gives a group to a user, as systemd does with Delegate=yes.
func delegate(dir string, user int) error {
	for _, f := range []string{".", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
		if err := os.Chown(filepath.Join(dir, f), user, user); err != nil {
			return err
		}
	}
	return nil
}

// placed is a scene's group in a unified hierarchy; delegated to a user where
// that is not root.
func placed(path string, user int) func() (string, error) {
	return func() (string, error) {
		if err := sandboxtest.UnifyGroups(); err != nil {
			return "", err
		}
		if path == "" {
			return "", nil
		}
		dir, err := newGroup("/sys/fs/cgroup", path, "+cpu +memory +pids")
		if err == nil && user != 0 {
			err = delegate(dir, user)
		}
		return dir, err
	}
}

// beside is a group in which a stranger lives.
func beside(path string) func() (string, error) {
	return func() (string, error) {
		dir, err := placed(path, 0)()
		if err != nil {
			return "", err
		}
		d, err := os.Open(dir)
		if err != nil {
			return "", err
		}
		defer d.Close()
		_, err = os.StartProcess("/usr/bin/sleep", []string{"sleep", "600"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(d.Fd())}})
		return dir, err
	}
}

// hybrid mounts memory in version 1 and the others in version 2.
func hybrid() (string, error) {
	top := "/sys/fs/cgroup"
	for _, m := range []struct{ name, kind, data string }{{"memory", "cgroup", "memory"}, {"unified", "cgroup2", ""}} {
		dir := filepath.Join(top, m.name)
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, os.ErrExist) {
			continue // by the scene before
		}
		if err := errors.Join(err, unix.Mount(m.kind, dir, m.kind, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, m.data)); err != nil {
			return "", fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	return newGroup(top+"/unified", "holdfast", "+cpu +pids")
}
