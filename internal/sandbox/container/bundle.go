package container

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sandbox"
)

// The fields of the OCI runtime specification (1.0.2, config.md and
// config-linux.md) that are used.
type ociSpec struct {
	Version  string     `json:"ociVersion"`
	Process  ociProcess `json:"process"`
	Root     ociRoot    `json:"root"`
	Hostname string     `json:"hostname"`
	Mounts   []ociMount `json:"mounts"`
	Linux    ociLinux   `json:"linux"`
}

type ociProcess struct {
	Terminal        bool                `json:"terminal"`
	User            ociUser             `json:"user"`
	Args            []string            `json:"args"`
	Env             []string            `json:"env"`
	Cwd             string              `json:"cwd"`
	Capabilities    map[string][]string `json:"capabilities"`
	Rlimits         []ociRlimit         `json:"rlimits"`
	NoNewPrivileges bool                `json:"noNewPrivileges"`
	OOMScoreAdj     int                 `json:"oomScoreAdj"`
}

type ociUser struct {
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
}

type ociRlimit struct {
	Type string `json:"type"`
	Hard uint64 `json:"hard"`
	Soft uint64 `json:"soft"`
}

type ociRoot struct {
	Path     string `json:"path"`
	Readonly bool   `json:"readonly"`
}

type ociMount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type"`
	Source      string   `json:"source"`
	Options     []string `json:"options"`
}

type ociLinux struct {
	UIDMappings   []ociMapping   `json:"uidMappings,omitempty"`
	GIDMappings   []ociMapping   `json:"gidMappings,omitempty"`
	Namespaces    []ociNamespace `json:"namespaces"`
	Resources     *ociResources  `json:"resources,omitempty"`
	CgroupsPath   string         `json:"cgroupsPath,omitempty"`
	Seccomp       *ociSeccomp    `json:"seccomp,omitempty"`
	MaskedPaths   []string       `json:"maskedPaths"`
	ReadonlyPaths []string       `json:"readonlyPaths"`
}

type ociMapping struct {
	ContainerID uint32 `json:"containerID"`
	HostID      uint32 `json:"hostID"`
	Size        uint32 `json:"size"`
}

type ociNamespace struct {
	Type string `json:"type"`
	Path string `json:"path,omitempty"`
}

type ociResources struct {
	Devices []ociDevice `json:"devices"`
	Memory  ociMemory   `json:"memory"`
	CPU     ociCPU      `json:"cpu"`
	Pids    ociPids     `json:"pids"`
}

type ociDevice struct {
	Allow  bool   `json:"allow"`
	Access string `json:"access"`
}

type ociMemory struct {
	Limit int64 `json:"limit"`
}

type ociCPU struct {
	Quota  int64  `json:"quota"`
	Period uint64 `json:"period"`
}

type ociPids struct {
	Limit int64 `json:"limit"`
}

type ociSeccomp struct {
	DefaultAction string       `json:"defaultAction"`
	Architectures []string     `json:"architectures"`
	ListenerPath  string       `json:"listenerPath,omitempty"`
	Syscalls      []ociSyscall `json:"syscalls"`
}

type ociSyscall struct {
	Names  []string `json:"names"`
	Action string   `json:"action"`
	Errno  *uint    `json:"errnoRet,omitempty"`
	Args   []ociArg `json:"args,omitempty"`
}

type ociArg struct {
	Index    uint   `json:"index"`
	Value    uint64 `json:"value"` // of MASKED_EQ the mask
	ValueTwo uint64 `json:"valueTwo"`
	Op       string `json:"op"`
}

// Names inside a container.
const (
	insideCode      = "/code"
	insideWorkspace = "/workspace"
)

// entry is one name at the top of the root, and what is mounted there.
type entry struct {
	name, source string
}

// bundle is what one container is made of; the zero value of a field takes
// nothing away of the floor.
type bundle struct {
	id        string
	args, env []string
	user      ociUser
	// self is the user of the host that the container's only identity is, where
	// Holdfast is not root; nil asks for no user namespace.
	self *ociUser
	// rootfs is a folder of empty mount points; entries are mounted there.
	rootfs  string
	entries []entry
	// code and work are the folders that become /code and /workspace.
	code, work string
	// network is the path of a network namespace without an interface that is
	// up; empty makes one, in which the runtime raises the loopback.
	network string
	memory  int64 // bytes
	period  time.Duration
	quota   time.Duration
	// group is the control group's path; empty leaves limits to rlimits.
	group    string
	rlimits  []ociRlimit
	arch     string // in the specification's words
	listener string // where the runtime hands the filter's listener to; empty is no filter
	rules    []sandbox.Rule
}

// maxPids bounds processes and threads: the language's threads, and those of the
// runtime before it executes the program.
const maxPids = 128

// firstToGo has the kernel end a program before all else where the machine's memory
// is short, Holdfast among it, whose own mark programs would have otherwise.
const firstToGo = 1000

// config is the bundle's config.json: the floor of spec 000 "Sandboxing model"
// (no network, read-only root, /tmp in memory, one workspace mount), no
// capability and no new privileges, whatever is asked for.
func (b bundle) config() ociSpec {
	s := ociSpec{
		Version: "1.0.2",
		Process: ociProcess{
			User: b.user, Args: b.args, Env: b.env, Cwd: insideWorkspace, NoNewPrivileges: true, Rlimits: b.rlimits, OOMScoreAdj: firstToGo,
			Capabilities: map[string][]string{"bounding": {}, "effective": {}, "permitted": {}, "inheritable": {}, "ambient": {}},
		},
		Root:     ociRoot{Path: b.rootfs, Readonly: true},
		Hostname: hostname(b.id),
		Mounts:   b.mounts(),
		Linux: ociLinux{
			Namespaces:    []ociNamespace{{Type: "pid"}, {Type: "network", Path: b.network}, {Type: "ipc"}, {Type: "uts"}, {Type: "mount"}, {Type: "cgroup"}},
			MaskedPaths:   masked,
			ReadonlyPaths: []string{"/proc/sys", "/proc/sysrq-trigger"},
			CgroupsPath:   b.group,
		},
	}
	if b.self != nil {
		// Its devices are the host's own, by mounts: what is written to a device
		// passes, and what is said of the device itself does not.
		for _, name := range []string{"full", "null", "random", "tty", "urandom", "zero"} {
			s.Linux.ReadonlyPaths = append(s.Linux.ReadonlyPaths, "/dev/"+name)
		}
		s.Linux.Namespaces = append(s.Linux.Namespaces, ociNamespace{Type: "user"})
		s.Linux.UIDMappings = []ociMapping{{ContainerID: b.user.UID, HostID: b.self.UID, Size: 1}}
		s.Linux.GIDMappings = []ociMapping{{ContainerID: b.user.GID, HostID: b.self.GID, Size: 1}}
	}
	if b.group != "" {
		s.Linux.Resources = &ociResources{
			Devices: []ociDevice{{Access: "rwm"}},
			Memory:  ociMemory{Limit: b.memory},
			CPU:     ociCPU{Quota: b.quota.Microseconds(), Period: uint64(b.period.Microseconds())},
			Pids:    ociPids{Limit: maxPids},
		}
	}
	if b.listener != "" {
		s.Linux.Seccomp = b.seccomp()
	}
	return s
}

// masked are the files of /proc that tell of the host, or reach its kernel: what
// changes there with what others do, one run could read of another.
var masked = []string{"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore", "/proc/keys", "/proc/kmsg", "/proc/latency_stats", "/proc/modules", "/proc/mounts", "/proc/sched_debug", "/proc/scsi", "/proc/sysvipc", "/proc/timer_list", "/proc/timer_stats", "/proc/version", "/proc/cmdline", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/diskstats", "/proc/vmstat", "/proc/config.gz",
	"/proc/buddyinfo", "/proc/bus", "/proc/cgroups", "/proc/consoles", "/proc/devices", "/proc/dma", "/proc/driver", "/proc/fb", "/proc/fs", "/proc/iomem", "/proc/ioports", "/proc/irq", "/proc/key-users", "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/locks", "/proc/mdstat", "/proc/misc", "/proc/mtrr", "/proc/pagetypeinfo", "/proc/partitions", "/proc/pressure", "/proc/schedstat", "/proc/slabinfo", "/proc/softirqs", "/proc/swaps", "/proc/tty", "/proc/vmallocinfo", "/proc/zoneinfo",
	"/proc/sys/fs", "/proc/sys/kernel/pty", "/proc/sys/kernel/random"}

// hostname is as long as Linux takes one.
func hostname(id string) string {
	name := "sandbox_" + id
	return name[:min(len(name), 64)]
}

func (b bundle) mounts() []ociMount {
	own := "uid=" + strconv.Itoa(int(b.user.UID)) + ",gid=" + strconv.Itoa(int(b.user.GID))
	list := []ociMount{
		{"/proc", "proc", "proc", []string{"nosuid", "noexec", "nodev"}},
		{"/dev", "tmpfs", "tmpfs", []string{"nosuid", "noexec", "strictatime", "mode=755", "size=65536k", "ro"}},
		{"/tmp", "tmpfs", "tmpfs", append([]string{"nosuid", "nodev", "noexec", "mode=700", "size=" + strconv.Itoa(sandbox.ScratchBytes), "nr_inodes=" + strconv.Itoa(sandbox.ScratchInodes)}, strings.Split(own, ",")...)},
	}
	for _, e := range b.entries {
		list = append(list, bind("/"+e.name, e.source, "ro"))
	}
	return append(list, bind(insideCode, b.code, "ro"), bind(insideWorkspace, b.work, "rw", "noexec"))
}

func bind(at, source string, options ...string) ociMount {
	return ociMount{at, "bind", source, append([]string{"bind", "nosuid", "nodev"}, options...)}
}

// seccomp is the filter: what the rules name passes, is feigned or is put to
// Holdfast; a number without a name kills. A call of another architecture is
// killed by the runtime's library, which is told of this one alone.
func (b bundle) seccomp() *ociSeccomp {
	f := &ociSeccomp{DefaultAction: "SCMP_ACT_KILL_PROCESS", Architectures: []string{b.arch}, ListenerPath: b.listener}
	plain := map[sandbox.RuleAction][]string{}
	for _, r := range b.rules {
		if len(r.When) == 0 {
			plain[r.Action] = append(plain[r.Action], r.Call)
			continue
		}
		c := call(r.Action, r.Call)
		for _, w := range r.When {
			c.Args = append(c.Args, ociArg{Index: w.Arg, Value: w.Mask, ValueTwo: w.Value, Op: "SCMP_CMP_MASKED_EQ"})
		}
		f.Syscalls = append(f.Syscalls, c)
	}
	for _, action := range []sandbox.RuleAction{sandbox.RuleAllow, sandbox.RuleFeign, sandbox.RuleAsk} {
		if len(plain[action]) > 0 {
			f.Syscalls = slices.Insert(f.Syscalls, 0, call(action, plain[action]...))
		}
	}
	return f
}

func call(action sandbox.RuleAction, names ...string) ociSyscall {
	switch action {
	case sandbox.RuleAllow:
		return ociSyscall{Names: names, Action: "SCMP_ACT_ALLOW"}
	case sandbox.RuleFeign:
		return ociSyscall{Names: names, Action: "SCMP_ACT_ERRNO", Errno: new(uint)} // of no error: success
	}
	return ociSyscall{Names: names, Action: "SCMP_ACT_NOTIFY"}
}

// workload is whom a container's program is on the host where Holdfast is root:
// a number that nobody has.
const workload = 2013265920
