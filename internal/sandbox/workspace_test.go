package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/policy/posture"
)

// TestCheckWorkspaceRefuses: what may not be asked for on a work tree, each with
// what would do; and what nothing was said of has its default.
func TestCheckWorkspaceRefuses(t *testing.T) {
	asked := func() Workspace { return Workspace{ID: "w-1", Argv: []string{"/bin/sh"}, Tree: "/srv/tree"} }
	var tools []string
	for i := range maxToolbox + 1 {
		tools = append(tools, fmt.Sprint("/opt/", i))
	}
	const protocol, limit = holdfast.KindProtocol, holdfast.KindLimit
	for name, tc := range map[string]struct {
		kind   holdfast.Kind
		change func(*Workspace)
	}{
		"no id":                   {protocol, func(w *Workspace) { w.ID = "" }},
		"an id with a path":       {protocol, func(w *Workspace) { w.ID = "../w" }},
		"no program":              {protocol, func(w *Workspace) { w.Argv = nil }},
		"a program without name":  {protocol, func(w *Workspace) { w.Argv = []string{""} }},
		"an argument with NUL":    {protocol, func(w *Workspace) { w.Argv = append(w.Argv, "a\x00b") }},
		"too many arguments":      {protocol, func(w *Workspace) { w.Argv = append(w.Argv, make([]string, maxArgv)...) }},
		"too long arguments":      {protocol, func(w *Workspace) { w.Argv = append(w.Argv, strings.Repeat("a", maxArgvBytes)) }},
		"no tree":                 {protocol, func(w *Workspace) { w.Tree = "" }},
		"the whole machine":       {protocol, func(w *Workspace) { w.Tree = "/" }},
		"the toolbox as tree":     {protocol, func(w *Workspace) { w.Tree = "/usr" }},
		"a tree among processes":  {protocol, func(w *Workspace) { w.Tree = "/proc/1/root" }},
		"a tree below /etc":       {protocol, func(w *Workspace) { w.Tree = "/etc/x" }},
		"a tree that climbs":      {protocol, func(w *Workspace) { w.Tree = "/srv/../etc" }},
		"a tree by a short name":  {protocol, func(w *Workspace) { w.Tree = "srv" }},
		"a tree with NUL":         {protocol, func(w *Workspace) { w.Tree = "/srv\x00" }},
		"work beside the tree":    {protocol, func(w *Workspace) { w.Dir = "/srv/tree2" }},
		"too many tools":          {protocol, func(w *Workspace) { w.Toolbox = tools }},
		"everything as a tool":    {protocol, func(w *Workspace) { w.Toolbox = []string{"/"} }},
		"processes as tools":      {protocol, func(w *Workspace) { w.Toolbox = []string{"/proc"} }},
		"a tool in the tree":      {protocol, func(w *Workspace) { w.Toolbox = []string{"/srv/tree/bin"} }},
		"the tree among tools":    {protocol, func(w *Workspace) { w.Toolbox = []string{"/srv"} }},
		"the loader's ways":       {protocol, func(w *Workspace) { w.Environment = map[string]string{"LD_PRELOAD": "x"} }},
		"memory below none":       {limit, func(w *Workspace) { w.MemoryMB = -1 }},
		"too little memory":       {limit, func(w *Workspace) { w.MemoryMB = 1 }},
		"more than all memory":    {limit, func(w *Workspace) { w.MemoryMB = maxWorkspaceMB + 1 }},
		"processors below none":   {limit, func(w *Workspace) { w.Processors = -1 }},
		"processes without end":   {limit, func(w *Workspace) { w.Processes = maxProcesses + 1 }},
		"a time before now":       {limit, func(w *Workspace) { w.Timeout = -1 }},
		"a time too short to run": {limit, func(w *Workspace) { w.Timeout = time.Microsecond }},
		"a wall nobody knows":     {limit, func(w *Workspace) { w.Need = []posture.Wall{"moat"} }},
	} {
		w := asked()
		tc.change(&w)
		_, err := CheckWorkspace(w, never)
		var e *holdfast.Error
		if !errors.As(err, &e) || e.Kind != tc.kind || e.Hint == "" {
			t.Errorf("%s: %v, want %s with a hint", name, err, tc.kind)
		}
	}
	w, err := CheckWorkspace(asked(), never)
	if err != nil || w.Name != "/bin/sh" || w.Dir != w.Tree || w.Timeout != 0 || w.MemoryMB != 4096 || w.Processors != 2 || w.Processes != 1024 {
		t.Errorf("%+v %v", w, err)
	}
}

// TestNetworkIsChecked: a network that could not be one is refused.
func TestNetworkIsChecked(t *testing.T) {
	const cert = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	for name, tc := range map[string]struct {
		n  *Network
		ok bool
	}{
		"none":                {nil, true},
		"one":                 {&Network{Authority: []byte(cert), Ports: []uint16{8443, 22}}, true},
		"two authorities":     {&Network{Authority: []byte(cert + "\n" + cert)}, true},
		"no authority":        {&Network{}, false},
		"words around it":     {&Network{Authority: []byte("trust me\n" + cert)}, false},
		"words behind it":     {&Network{Authority: []byte(cert + "and me")}, false},
		"a key beside it":     {&Network{Authority: []byte(cert + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")}, false},
		"too large":           {&Network{Authority: []byte(strings.Repeat(cert, 2000))}, false},
		"port 0":              {&Network{Authority: []byte(cert), Ports: []uint16{0}}, false},
		"the proxy's port":    {&Network{Authority: []byte(cert), Ports: []uint16{ProxyPort}}, true},
		"more ports than fit": {&Network{Authority: []byte(cert), Ports: make([]uint16, 100)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := Workspace{ID: "t", Argv: []string{"/usr/bin/true"}, Tree: "/work", Network: tc.n}
			if _, err := CheckWorkspace(w, func(string) bool { return false }); (err == nil) != tc.ok {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestHeardPortsAreEachThereOnce(t *testing.T) {
	n := &Network{Ports: []uint16{8443, 443, 8443, ProxyPort, 22}}
	if got := n.Heard(); !slices.Equal(got, []uint16{443, 80, 8443, 22}) {
		t.Errorf("%v", got)
	}
}
