package container

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

func dockerSample() dockerRun {
	return dockerRun{
		name: "1-2-3", owner: "1-2-3", dir: "/state", uid: 7, gid: 8, code: "/state/code", work: "/state/work", runtime: "runc", group: "/above/1-2-3",
		spec:  sandbox.Spec{ID: "run", MemoryMB: 4096, CPUPeriod: sandbox.DefaultPeriod, CPUQuota: 2 * sandbox.DefaultPeriod, Environment: map[string]string{"A": "own"}},
		image: dockerImage{ID: "sha256:1", Os: "linux", Config: dockerImageConfig{Env: []string{"PATH=/evil", "A=theirs", "LD_PRELOAD=/x", "ODD"}}},
		program: sandbox.Program{Argv: []string{"python3.11", "-B", "/code/main.py"}, Environment: func(own map[string]string) []string { return []string{"A=" + own["A"], "HOME=/tmp"} },
			Rules: []sandbox.Rule{{Call: "read", Action: sandbox.RuleAllow}, {Call: "fsync", Action: sandbox.RuleFeign}, {Call: "ptrace"}, {Call: "socket", Unasked: 13},
				{Call: "futex", Action: sandbox.RuleAllow, When: []sandbox.Bits{{Arg: 1, Mask: 128, Value: 128}}}, {Call: "execve", Unasked: sandbox.UnaskedAllow}}},
	}
}

// TestDockerFloor: what the engine is asked for is the floor of spec 000, whatever
// the image says.
func TestDockerFloor(t *testing.T) {
	c := dockerSample().create()
	h := c.HostConfig
	if !c.NetworkDisabled || h.NetworkMode != "none" || !h.ReadonlyRootfs || h.Privileged || h.Memory != 4<<30 || h.MemorySwap != h.Memory || h.CPUQuota != 2*h.CPUPeriod ||
		!slices.Equal(h.CapDrop, []string{"ALL"}) || !slices.Contains(h.SecurityOpt, "no-new-privileges") || h.Tmpfs["/tmp"] == "" || h.PidsLimit != maxPids || c.User != "7:8" || h.LogConfig.Type != "none" {
		t.Errorf("%+v", c)
	}
	writable := 0
	for _, m := range h.Mounts {
		if !m.ReadOnly {
			writable++
		}
	}
	if writable != 1 || len(h.Mounts) != 5 {
		t.Errorf("mounts: %+v", h.Mounts)
	}
	if want := []string{"A=own", "HOME=/tmp", "PATH=/usr/local/bin:/usr/bin:/bin", "HOSTNAME", "LD_PRELOAD", "ODD"}; !slices.Equal(c.Env, want) {
		t.Errorf("environment %q, want %q", c.Env, want)
	}
	if !slices.Equal(c.Entrypoint, []string{"python3.11"}) || !slices.Equal(c.Healthcheck.Test, []string{"NONE"}) {
		t.Errorf("it starts %q, health %q", c.Entrypoint, c.Healthcheck.Test)
	}
}

// TestDockerFilter: the engine's own filter kills by default, and what it answers
// is the rule's answer.
func TestDockerFilter(t *testing.T) {
	var f ociSeccomp
	if err := json.Unmarshal(dockerFilter(dockerSample().program.Rules), &f); err != nil {
		t.Fatal(err)
	}
	if f.DefaultAction != "SCMP_ACT_KILL_PROCESS" || f.ListenerPath != "" {
		t.Errorf("%+v", f)
	}
	said := map[string]string{}
	for _, s := range f.Syscalls {
		for _, n := range s.Names {
			said[n] = strings.TrimPrefix(s.Action, "SCMP_ACT_")
			if s.Errno != nil && n == "socket" && *s.Errno != 13 || s.Errno != nil && n == "fsync" && *s.Errno != 0 || s.Action == "SCMP_ACT_ERRNO" && s.Errno == nil {
				t.Errorf("%s: %+v", n, s)
			}
			if n == "futex" && (len(s.Args) != 1 || s.Args[0].Op != "SCMP_CMP_MASKED_EQ" || s.Args[0].Value != 128 || s.Args[0].ValueTwo != 128) {
				t.Errorf("%s: %+v", n, s)
			}
		}
	}
	if want := map[string]string{"read": "ALLOW", "fsync": "ERRNO", "ptrace": "KILL_PROCESS", "socket": "ERRNO", "futex": "ALLOW", "execve": "ALLOW"}; !reflect.DeepEqual(said, want) {
		t.Errorf("%v", said)
	}
}

// TestDockerShown: a container that differs from what was asked for in anything
// that holds the program is refused by what differs.
func TestDockerShown(t *testing.T) {
	want := dockerSample().create()
	shown := func() dockerShown {
		var s dockerShown
		s.Image, s.Config.User, s.Config.Env, s.Config.Entrypoint, s.Config.Cmd, s.HostConfig = want.Image, want.User, want.Env, want.Entrypoint, want.Cmd, want.HostConfig
		s.HostConfig.SecurityOpt = slices.Clone(s.HostConfig.SecurityOpt)
		for _, m := range want.HostConfig.Mounts {
			s.Mounts = append(s.Mounts, struct {
				Type, Source, Destination string
				RW                        bool
			}{m.Type, m.Source, m.Target, !m.ReadOnly})
		}
		return s
	}
	if err := shown().is(want); err != nil {
		t.Fatal(err)
	}
	for what, bend := range map[string]func(*dockerShown){
		"image":                func(s *dockerShown) { s.Image = "sha256:2" },
		"user":                 func(s *dockerShown) { s.Config.User = "" },
		"entry point":          func(s *dockerShown) { s.Config.Entrypoint = []string{"/bin/sh"} },
		"environment":          func(s *dockerShown) { s.Config.Env = append(slices.Clone(s.Config.Env), "LD_PRELOAD=/x") },
		"volumes":              func(s *dockerShown) { s.Config.Volumes = map[string]any{"/v": nil} },
		"network":              func(s *dockerShown) { s.HostConfig.NetworkMode = "host" },
		"IPC namespace":        func(s *dockerShown) { s.HostConfig.IpcMode = "host" },
		"read-only root":       func(s *dockerShown) { s.HostConfig.ReadonlyRootfs = false },
		"privileges":           func(s *dockerShown) { s.HostConfig.Privileged = true },
		"memory":               func(s *dockerShown) { s.HostConfig.Memory = 0 },
		"processors":           func(s *dockerShown) { s.HostConfig.CPUQuota = 0 },
		"processes":            func(s *dockerShown) { s.HostConfig.PidsLimit = 0 },
		"capabilities":         func(s *dockerShown) { s.HostConfig.CapAdd = []string{"SYS_ADMIN"} },
		"security options":     func(s *dockerShown) { s.HostConfig.SecurityOpt[1] = "seccomp=unconfined" },
		"devices":              func(s *dockerShown) { s.HostConfig.Devices = []any{"/dev/sda"} },
		"binds":                func(s *dockerShown) { s.HostConfig.Binds = []string{"/:/host"} },
		"namespaces of others": func(s *dockerShown) { s.HostConfig.PidMode = "host" },
		"masked files":         func(s *dockerShown) { s.HostConfig.MaskedPaths = nil },
		"mounts":               func(s *dockerShown) { s.Mounts[0].RW = true },
	} {
		s := shown()
		bend(&s)
		if err := s.is(want); err == nil || !strings.Contains(err.Error(), "its "+what+" differ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
