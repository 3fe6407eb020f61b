// Package posture describes walls and runs: which walls were really up around a run
// (Posture), what came of it (Result), whether it tried to get out (Escape), and which
// tier a request needs (Choose). The tiers of internal/sandbox report in its words, and
// the kernel decides by them.
//
// Spec 003 sections 2.1 and 2.2, spec 000 "Sandboxing model", decisions D15 to D21a.
package posture

import (
	"slices"
	"strings"
)

// Wall is one layer of isolation (003 2.2).
type Wall string

// The walls. Each is either really up, shown by trying it, or not there.
const (
	WallPID      Wall = "pid"      // no process of the host is visible
	WallNet      Wall = "net"      // no network, not even a loopback that is up
	WallMount    Wall = "mount"    // a root that holds the runtime alone, read-only
	WallUTS      Wall = "uts"      // a host name of its own
	WallIPC      Wall = "ipc"      // no shared memory or queues with others
	WallUser     Wall = "user"     // an identity that owns nothing on the host
	WallSeccomp  Wall = "seccomp"  // system calls by allowlist; whether others are named is Posture.Names
	WallRights   Wall = "rights"   // no capability, none to be had
	WallScratch  Wall = "scratch"  // a scratch of its own, bounded in bytes and inodes
	WallMemory   Wall = "memory"   // a control group bounds memory
	WallCPU      Wall = "cpu"      // a control group bounds processor time
	WallPids     Wall = "pids"     // a control group bounds processes
	WallLandlock Wall = "landlock" // a second wall around files, where the kernel has it
	// WallGVisor is no layer of the document's: a kernel of its own answers the
	// program's calls. It stands where runsc runs it, and is in no list of Walls.
	WallGVisor Wall = "gvisor"
)

// Walls returns all, in the order in which they are told. The slice is the
// caller's.
func Walls() []Wall {
	return []Wall{WallPID, WallNet, WallMount, WallUTS, WallIPC, WallUser, WallSeccomp, WallRights, WallScratch, WallMemory, WallCPU, WallPids, WallLandlock}
}

// Posture is what really stood around a run (D20).
type Posture struct {
	// Tier is which kind of sandbox it was.
	Tier Tier `json:"tier"`
	// Up are the walls that stood.
	Up []Wall `json:"up"`
	// Down says of each other wall why it did not.
	Down map[Wall]string `json:"down,omitempty"`
	// Instead says of a wall that did not stand how what it holds was bounded
	// all the same; it is less than the wall.
	Instead map[Wall]string `json:"instead,omitempty"`
	// Unbound says of each limit of the specification's table that nothing holds
	// here why that is: io.
	Unbound map[string]string `json:"unbounded,omitempty"`
	// Names says that a violation's system call can be named here; where it cannot
	// a note says what becomes of it.
	Names bool `json:"names_violations"`
	// Mode is root or rootless, and Groups how control groups are kept: v2,
	// v1, or none.
	Mode   string `json:"mode"`
	Groups string `json:"cgroups"`
	// Network is what of its connections comes to Holdfast, where a workspace has
	// a network; nothing else is reached by any of them.
	Network Reach `json:"network,omitempty"`
	// Runtime is what raised the walls where Holdfast did not itself, with its
	// version.
	Runtime string `json:"runtime,omitempty"`
	// Image is the root that its operator named, and its digest; empty where the
	// root is the runtime's private copy.
	Image string `json:"image,omitempty"`
	// Notes are what else is to be known of the walls, each a sentence.
	Notes []string `json:"notes,omitempty"`
}

// Missing returns the walls of need that are not up; an empty need is every
// wall that the specification names (Landlock is not one of them).
func (p Posture) Missing(need []Wall) []Wall {
	if len(need) == 0 {
		need = slices.DeleteFunc(Walls(), func(w Wall) bool { return w == WallLandlock })
	}
	var missing []Wall
	for _, w := range need {
		if !slices.Contains(p.Up, w) {
			missing = append(missing, w)
		}
	}
	return missing
}

// Lesser is the contract that takes the walls which stand and no more (D20): one
// entry under `boundaries:` of the configuration, word for word.
func (p Posture) Lesser(boundary string) string {
	return "{boundary: " + boundary + `, risk: MEDIUM, permissions: ["exec:run"], walls: [` + Asked(p.Up) + "]}"
}

// Asked names walls for people and contracts. Landlock is left out: it is told in
// every result and asked of nobody.
func Asked(walls []Wall) string {
	var text []string
	for _, w := range walls {
		if w != WallLandlock {
			text = append(text, string(w))
		}
	}
	return strings.Join(text, ", ")
}

// WallNames returns the names of all walls, for people.
func WallNames() string {
	var names []string
	for _, w := range Walls() {
		names = append(names, string(w))
	}
	return strings.Join(names, ", ")
}

// Reach is how far connections of a workspace come to Holdfast; the others are
// refused by the kernel, because nobody hears them. Empty is a workspace without
// a network.
type Reach string

// The two of them.
const (
	ReachAll   Reach = "every TCP port"   // whatever port is meant
	ReachPorts Reach = "listed TCP ports" // the kernel has no nf_tables with tproxy
)
