package language

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/sandbox/process/seccomp"
)

const nodeAsk = `JSON.stringify({exe:require('fs').realpathSync(process.execPath),version:process.versions.node,kind:process.release.name,detect:process.allowedNodeEnvironmentFlags.has('--experimental-detect-module')})`

// node is a runtime by its own account.
type node struct {
	Exe, Version, Kind string
	Detect             bool // it can tell an ES module by its syntax
}

// nodeName: exact is the major version, as in node20.
var nodeName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^node(js|[0-9]+)?$`)
})

// learnNode is the row of the Node.js at path.
func learnNode(ctx context.Context, path string) (Language, error) {
	n, err := askNode(ctx, path)
	if err != nil {
		return Language{}, err
	}
	return n.language(), nil
}

func askNode(ctx context.Context, path string) (node, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-p", nodeAsk)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin", "HOME=/"}
	out, err := cmd.Output()
	var n node
	if err == nil {
		err = json.Unmarshal(out, &n)
	}
	if err != nil {
		return n, fmt.Errorf("it does not say what it is: %w", err)
	}
	if n.Kind != "node" || n.Version == "" || !filepath.IsAbs(n.Exe) {
		return n, fmt.Errorf("it is %q %q at %q, not Node.js", n.Kind, n.Version, n.Exe)
	}
	return n, nil
}

// language: io_uring is off, because its calls are not in the allowlist, and
// code may be a module of either kind.
func (n node) language() Language {
	major, _, _ := strings.Cut(n.Version, ".")
	l := Language{
		Name: "node", Exact: "node" + major, version: n.Version,
		loose:   []string{"node", "nodejs"},
		Program: "/usr/bin/node", Host: n.Exe, CodeName: "main.js",
		Asks: "console.log(process.release.name+process.versions.node.split('.')[0])",
		env:  common, fixed: []string{"UV_USE_IO_URING=0"},
		parts:  func(m *manifest) error { return m.program(n.Exe, "/usr/bin/node") },
		Allows: seccomp.NodeProfile(),
	}
	if n.Detect {
		l.Flags = []string{"--experimental-detect-module"}
	}
	return l
}
