package container

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// The parts of the Docker engine's API (1.41, "containers/create" and
// "images/json") that are used.
type dockerCreate struct {
	Hostname        string
	User            string
	Env             []string
	Entrypoint, Cmd []string
	Image           string
	WorkingDir      string
	Labels          map[string]string
	NetworkDisabled bool
	AttachStdout    bool
	AttachStderr    bool
	Healthcheck     dockerHealth
	StopSignal      string
	HostConfig      dockerHost
}

type dockerHealth struct{ Test []string }

type dockerHost struct {
	Runtime        string `json:",omitempty"`
	NetworkMode    string
	IpcMode        string
	CgroupnsMode   string
	ReadonlyRootfs bool
	Privileged     bool
	Memory         int64
	MemorySwap     int64
	CPUPeriod      int64 `json:"CpuPeriod"`
	CPUQuota       int64 `json:"CpuQuota"`
	PidsLimit      int64
	CapDrop        []string
	SecurityOpt    []string
	Tmpfs          map[string]string
	Mounts         []dockerMount
	MaskedPaths    []string
	ReadonlyPaths  []string
	Ulimits        []dockerLimit
	LogConfig      dockerLog
	CgroupParent   string `json:",omitempty"`
	OomScoreAdj    int

	// Never asked for, and looked at in what was made.
	CapAdd         []string `json:",omitempty"`
	Devices        []any    `json:",omitempty"`
	DeviceRequests []any    `json:",omitempty"`
	Binds          []string `json:",omitempty"`
	VolumesFrom    []string `json:",omitempty"`
	PidMode        string   `json:",omitempty"`
	UTSMode        string   `json:",omitempty"`
	UsernsMode     string   `json:",omitempty"`
}

type dockerMount struct {
	Type, Source, Target string
	ReadOnly             bool
	BindOptions          dockerBind
}

type dockerBind struct{ Propagation string }

type dockerLimit struct {
	Name       string
	Soft, Hard int64
}

type dockerLog struct{ Type string }

type dockerImage struct {
	ID     string `json:"Id"`
	Os     string
	Size   int64
	Config dockerImageConfig
}

type dockerImageConfig struct {
	Env     []string
	Volumes map[string]any
}

// The labels by which a container of Holdfast is known: whose it is, of what
// run, and in what folder: nobody but that folder's next one sweeps it.
const (
	labelOwner = "dev.holdfast.owner"
	labelRun   = "dev.holdfast.run"
	labelDir   = "dev.holdfast.dir"
)

// dockerRun is what one container of the engine is made of.
type dockerRun struct {
	name, owner, dir string
	spec             sandbox.Spec
	program          sandbox.Program
	image            dockerImage
	code, work       string // the folders of the host that become /code and /workspace
	uid, gid         int
	runtime          string
	group            string // above the container's own control group; may be empty
}

// suits says whether containers of an image can be held to the floor.
func (i dockerImage) suits(name string) error {
	refuse := func(hint, why string, args ...any) error {
		return &holdfast.Error{Kind: holdfast.KindSpawn, Why: fmt.Sprintf("the image %.80q cannot be used: ", name) + fmt.Sprintf(why, args...), Hint: hint}
	}
	switch {
	case !strings.HasPrefix(i.ID, "sha256:"):
		return refuse("name an image that `docker images` lists", "the engine says %.80q of what it is", i.ID)
	case i.Os != "linux":
		return refuse("name an image of Linux programs", "it is of %.20q", i.Os)
	case len(i.Config.Volumes) > 0:
		v := slices.Sorted(maps.Keys(i.Config.Volumes))
		return refuse("make it anew without them: `docker create --name x IMAGE; docker export x | docker import - NAME`", "it declares volumes (%.80q), which could be written without a bound", v[0])
	}
	return nil
}

// environment is the program's own and nothing of the image's: a name without a
// value takes it away.
func (r dockerRun) environment() []string {
	own := map[string]string{}
	for _, v := range r.program.Environment(r.spec.Environment) {
		name, value, _ := strings.Cut(v, "=")
		own[name] = value
	}
	if _, there := own["PATH"]; !there {
		own["PATH"] = "/usr/local/bin:/usr/bin:/bin"
	}
	var list []string
	for _, k := range slices.Sorted(maps.Keys(own)) {
		list = append(list, k+"="+own[k])
	}
	for _, v := range append([]string{"HOSTNAME="}, r.image.Config.Env...) { // which the engine adds
		if name, _, _ := strings.Cut(v, "="); name != "" {
			if _, ours := own[name]; !ours && !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// create is what the engine is asked for: the floor of spec 000 "Sandboxing
// model" (no network, read-only root, /tmp in memory, one workspace mount,
// processors, memory), no capability and no new privileges, whatever the image
// says of its own entry point, user, environment and health.
func (r dockerRun) create() dockerCreate {
	return dockerCreate{
		Hostname: hostname(r.spec.ID), User: fmt.Sprintf("%d:%d", r.uid, r.gid), Env: r.environment(),
		Entrypoint: r.program.Argv[:1], Cmd: r.program.Argv[1:], Image: r.image.ID, WorkingDir: insideWorkspace,
		Labels:          map[string]string{labelOwner: r.owner, labelRun: r.spec.ID, labelDir: r.dir},
		NetworkDisabled: true, AttachStdout: true, AttachStderr: true,
		Healthcheck: dockerHealth{Test: []string{"NONE"}}, StopSignal: "SIGKILL",
		HostConfig: r.host(),
	}
}

func (r dockerRun) host() dockerHost {
	memory := r.spec.MemoryMB << 20
	return dockerHost{
		Runtime: r.runtime, NetworkMode: "none", IpcMode: "private", CgroupnsMode: "private", ReadonlyRootfs: true,
		Memory: memory, MemorySwap: memory, CPUPeriod: r.spec.CPUPeriod.Microseconds(), CPUQuota: r.spec.CPUQuota.Microseconds(), PidsLimit: maxPids,
		CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges", "seccomp=" + string(dockerFilter(r.program.Rules))},
		Tmpfs: map[string]string{"/tmp": fmt.Sprintf("rw,nosuid,nodev,noexec,mode=700,uid=%d,gid=%d,size=%d,nr_inodes=%d", r.uid, r.gid, sandbox.ScratchBytes, sandbox.ScratchInodes)},
		Mounts: []dockerMount{
			{Type: "bind", Source: r.code, Target: insideCode, ReadOnly: true, BindOptions: dockerBind{"private"}},
			{Type: "bind", Source: r.work, Target: insideWorkspace, BindOptions: dockerBind{"private"}},
			// The engine makes files here that tell of the host.
			r.emptied("/etc/resolv.conf"), r.emptied("/etc/hosts"), r.emptied("/etc/hostname"),
		},
		MaskedPaths: append(slices.Clone(masked), "/sys"), ReadonlyPaths: []string{"/proc/sys", "/proc/sysrq-trigger"},
		Ulimits: []dockerLimit{
			{"core", 1, 1}, // not 0 where cores are piped: the host's handler would have them
			{"nofile", sandbox.OpenFiles, sandbox.OpenFiles}, {"fsize", sandbox.ScratchBytes, sandbox.ScratchBytes},
			{"memlock", 0, 0}, {"msgqueue", 0, 0}, {"sigpending", 256, 256},
		},
		LogConfig: dockerLog{"none"}, CgroupParent: r.group, OomScoreAdj: firstToGo,
	}
}

func (r dockerRun) emptied(name string) dockerMount {
	return dockerMount{Type: "bind", Source: path.Join(path.Dir(r.code), "empty"), Target: name, ReadOnly: true, BindOptions: dockerBind{"private"}}
}

// dockerFilter is the language's profile in the engine's own format. Nobody
// listens there: the engine has its own agent or none. So what Holdfast would
// answer is answered ahead, and where it would end the program the kernel does.
func dockerFilter(rules []sandbox.Rule) []byte {
	f := ociSeccomp{DefaultAction: "SCMP_ACT_KILL_PROCESS", Architectures: []string{}}
	plain := map[string]*ociSyscall{}
	var order []string
	for _, r := range rules {
		c := unasked(r)
		if len(r.When) > 0 {
			for _, w := range r.When {
				c.Args = append(c.Args, ociArg{Index: w.Arg, Value: w.Mask, ValueTwo: w.Value, Op: "SCMP_CMP_MASKED_EQ"})
			}
			f.Syscalls = append(f.Syscalls, c)
			continue
		}
		key := c.Action
		if c.Errno != nil {
			key = fmt.Sprint(key, *c.Errno)
		}
		if plain[key] == nil {
			plain[key] = &ociSyscall{Action: c.Action, Errno: c.Errno}
			order = append(order, key)
		}
		plain[key].Names = append(plain[key].Names, r.Call)
	}
	for _, k := range order {
		f.Syscalls = append(f.Syscalls, *plain[k])
	}
	b, err := json.Marshal(f)
	if err != nil {
		return []byte(`{"defaultAction":"SCMP_ACT_KILL_PROCESS"}`) // nothing starts by it
	}
	return b
}

// unasked is what becomes of a call that nobody is there to be asked about.
func unasked(r sandbox.Rule) ociSyscall {
	c := ociSyscall{Names: []string{r.Call}, Action: "SCMP_ACT_ALLOW"}
	switch {
	case r.Action == sandbox.RuleAllow || r.Action == sandbox.RuleAsk && r.Unasked == sandbox.UnaskedAllow:
	case r.Action == sandbox.RuleFeign:
		c.Action, c.Errno = "SCMP_ACT_ERRNO", new(uint) // of no error: success
	case r.Unasked > 0:
		errno := uint(r.Unasked)
		c.Action, c.Errno = "SCMP_ACT_ERRNO", &errno
	default:
		c.Action = "SCMP_ACT_KILL_PROCESS"
	}
	return c
}
