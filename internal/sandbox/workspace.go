package sandbox

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// Workspace is one request to run a program, and whatever it starts, on a work
// tree (D17, D21a): it may write the tree and what is thrown away afterwards, and
// execute the toolbox. The zero value of a limit is its default.
type Workspace struct {
	// ID names the run in the ledger, in its host name and in its result:
	// 1 to 64 letters, digits, "-" and "_".
	ID string
	// Argv is the program, by its absolute path in the toolbox, and its
	// arguments. Argv[0] stands for Name where that is empty.
	Argv []string
	Name string // what the program finds as its own name; Program where empty
	// Tree is the work tree and Dir the working directory in it: absolute,
	// in their shortest form, no link in them.
	Tree, Dir string
	// Environment is everything that the program finds in its environment.
	Environment map[string]string
	// Toolbox are directories beside /usr, /bin, /sbin and /lib*, read-only,
	// from which programs may be executed.
	Toolbox []string
	// ExecTree lets programs of the tree, of /tmp and of HOME be executed too.
	ExecTree bool
	// Timeout is by the wall; 0 is none: an agent works for hours.
	Timeout time.Duration
	// MemoryMB is 4096 if zero, Processors 2, Processes (and threads) 1024.
	MemoryMB              int64
	Processors, Processes int
	// Need is the least posture; empty means every wall (D20).
	Need []posture.Wall
	// Network is none where nil: a loopback and nothing else.
	Network *Network `json:",omitempty"`
}

// The limits of D21a, and how far they can be raised.
const (
	WorkspaceMemoryMB   = 4096
	WorkspaceProcessors = 2
	WorkspaceProcesses  = 1024
	maxWorkspaceMB      = 1 << 20
	maxProcessors       = 1024
	maxProcesses        = 32 << 10
	maxArgv             = 4096
	maxArgvBytes        = 1 << 20
	maxToolbox          = 32

	// WorkspaceScratch and its inodes bound /tmp, and again HOME and /dev/shm.
	WorkspaceScratch       = 1 << 30
	WorkspaceScratchInodes = 256 << 10
)

// CheckWorkspace returns w with every default in its place, or an error of kind
// ProtocolError or InvalidLimitError. secret says whether a text holds a secret;
// it decides about the environment.
func CheckWorkspace(w Workspace, secret func(string) bool) (Workspace, error) {
	for _, check := range []func(*Workspace) error{checkProgram, checkPlaces, checkShare, checkNetwork} {
		if err := check(&w); err != nil {
			return Workspace{}, err
		}
	}
	if err := checkNeed(&Spec{Need: w.Need}); err != nil {
		return Workspace{}, err
	}
	return w, checkEnvironment(w.Environment, secret)
}

func checkProgram(w *Workspace) error {
	if w.ID == "" || len(w.ID) > 64 || strings.Trim(w.ID, idRunes) != "" {
		return refuse(holdfast.KindProtocol, "give the run an id of 1 to 64 letters, digits, - and _", "the request_id %q is no id of a run", clip(w.ID))
	}
	if len(w.Argv) == 0 || w.Argv[0] == "" {
		return refuse(holdfast.KindProtocol, "name one: holdfast run -- bash", "there is no program to run")
	}
	size := 0
	for _, a := range w.Argv {
		size += len(a) + 1
		if strings.IndexByte(a, 0) >= 0 {
			return refuse(holdfast.KindProtocol, "leave the NUL out", "an argument has a NUL")
		}
	}
	if len(w.Argv) > maxArgv || size > maxArgvBytes {
		return refuse(holdfast.KindProtocol, "give at most 4096 arguments of together 1 MB", "there are %d arguments of %d bytes", len(w.Argv), size)
	}
	if w.Name == "" {
		w.Name = w.Argv[0]
	}
	return nil
}

// taken are places of the sandbox's own: a work tree there would cover them.
var taken = []string{"/proc", "/dev", "/sys", "/etc", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/run"}

func checkPlaces(w *Workspace) error {
	if err := checkPlace("the work tree", w.Tree); err != nil {
		return err
	}
	if w.Tree == "/" || w.Tree == "/usr" || w.Tree == "/tmp" {
		return refuse(holdfast.KindProtocol, "name a directory with --dir", "%s cannot be a work tree", w.Tree)
	}
	for _, t := range taken {
		if within(w.Tree, t) {
			return refuse(holdfast.KindProtocol, "name a directory with --dir", "%s cannot be a work tree: %s is the sandbox's own", clip(w.Tree), t)
		}
	}
	if w.Dir == "" {
		w.Dir = w.Tree
	}
	if err := checkPlace("the working directory", w.Dir); err != nil {
		return err
	}
	if !within(w.Dir, w.Tree) {
		return refuse(holdfast.KindProtocol, "start it in the tree", "the working directory %s is not in %s", clip(w.Dir), clip(w.Tree))
	}
	if len(w.Toolbox) > maxToolbox {
		return refuse(holdfast.KindProtocol, "name at most 32", "there are %d directories of tools", len(w.Toolbox))
	}
	for _, d := range w.Toolbox {
		if err := checkPlace("the toolbox", d); err != nil {
			return err
		}
		if d == "/" || slices.Contains(taken[:4], d) || within(d, w.Tree) || within(w.Tree, d) {
			return refuse(holdfast.KindProtocol, "name a directory that only holds programs", "%s cannot be a toolbox: it is a place of the sandbox's own, or overlaps the work tree", clip(d))
		}
	}
	return nil
}

func checkPlace(what, p string) error {
	if !path.IsAbs(p) || path.Clean(p) != p || strings.IndexByte(p, 0) >= 0 || len(p) > 4000 {
		return refuse(holdfast.KindProtocol, "name it by its absolute path", "%s %q is no absolute path in its shortest form", what, clip(p))
	}
	return nil
}

// within says whether p is dir or lies below it.
func within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

func checkShare(w *Workspace) error {
	type limit struct {
		what        string
		value       *int64
		usual, most int64
	}
	cpus, procs := int64(w.Processors), int64(w.Processes)
	for _, l := range []limit{{"MB of memory", &w.MemoryMB, WorkspaceMemoryMB, maxWorkspaceMB}, {"processors", &cpus, WorkspaceProcessors, maxProcessors}, {"processes", &procs, WorkspaceProcesses, maxProcesses}} {
		if *l.value == 0 {
			*l.value = l.usual
		}
		if *l.value < 1 || *l.value > l.most {
			return refuse(holdfast.KindLimit, fmt.Sprintf("ask for 1 to %d, or nothing for %d", l.most, l.usual), "%d %s are not allowed", *l.value, l.what)
		}
	}
	w.Processors, w.Processes = int(cpus), int(procs)
	if w.MemoryMB < minMemoryMB {
		return refuse(holdfast.KindLimit, "ask for 16 MB or more, or nothing for 4096", "%d MB of memory are not allowed", w.MemoryMB)
	}
	if w.Timeout < 0 || w.Timeout > 0 && w.Timeout < time.Millisecond {
		return refuse(holdfast.KindLimit, "ask for 1ms or more, or nothing for no end", "a timeout of %v is not allowed", w.Timeout)
	}
	return nil
}

// WorkspaceHome is the home directory in a workspace: empty, and thrown away.
const WorkspaceHome = "/home/agent"
