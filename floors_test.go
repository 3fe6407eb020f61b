package holdfast_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/holdfast-dev/holdfast"

// floors is the whole architecture: a package may import packages on lower
// floors and its own parent directory, nothing sideways, nothing up. Every
// package stands here; one that does not fails the test.
var floors = map[string]int{
	// 0: the words, types and codes, on the standard library only.
	"":                      0,
	"internal/leaf/excerpt": 0,

	// What tests hold the cost of hostile input against, and how often they do
	// what they do again and again.
	"internal/leaf/testgrowth": 0,
	"internal/leaf/testrepeat": 0,

	// 1, tools: rules, masks, tokens, payloads, schemas, operator keys.
	"constitution":                    1,
	"internal/redact":                 1,
	"internal/redact/sample":          1,
	"internal/leaf/token":             1,
	"internal/leaf/payload":           1,
	"internal/leaf/schema":            1,
	"internal/leaf/operator":          1,
	"internal/frontend/model/dialect": 1,

	// The code executor's messages, made from executor.proto.
	"executorpb": 1,

	// A kernel for tests of what stands behind the gateway.
	"internal/frontend/mcp/gatewaytest": 1,

	// 2, judges: facts in, opinion out. The ledger and the latch stand beside.
	"internal/policy/budget":   2,
	"internal/policy/trust":    2,
	"internal/policy/review":   2,
	"internal/leaf/latch":      2,
	"internal/sandbox":         2,
	"internal/policy/domain":   2,
	"internal/policy/history":  2,
	"internal/policy/watch":    2,
	"internal/policy/health":   2,
	"internal/policy/goalrule": 2,
	"internal/policy/nat":      2,
	"ledger":                   2,

	"internal/assure/dissimilar": 2,

	// 3: the crossing machine, and what a record holds, told to people.
	"kernel":                   3,
	"internal/leaf/configpath": 3, // where the configuration is
	"internal/cli/filter":      3, // texts and documents, read and written changed
	"internal/assure/ruletest": 3, // tests of rules that are written down
	"internal/observe/story":   3,

	// 3: what several tiers of the sandbox share.
	"internal/sandbox/scratch":      3,
	"internal/sandbox/copies":       3,
	"internal/sandbox/copies/image": 3,
	"internal/sandbox/heir":         3,

	// 4, doors: a protocol becomes a call on the kernel.
	"internal/frontend/api":         4,
	"internal/frontend/mcp":         4,
	"internal/frontend/mcp/gateway": 4,
	"internal/frontend/console":     4,
	"internal/frontend/executor":    4,

	// 4, hands: what touches the world. storetest is what a store must pass.
	"internal/frontend/mcp/remote": 4,
	"internal/frontend/mcp/code":   4,
	"internal/frontend/mcp/server": 4,
	"internal/store/sqlite":        4,
	"internal/feature/keyset":      4,
	"internal/frontend/egress":     4,
	"internal/feature/judge":       4,
	"internal/worktree/snapshot":   4,
	"internal/observe/notify":      4,
	"internal/sandbox/process":     4,
	"internal/sandbox/container":   4,
	"internal/sandbox/vm":          4,
	// The attempts that every tier of the sandbox must withstand.
	"internal/sandbox/sandboxtest": 4,
	"storetest":                    4,
	"internal/leaf/syncwatch":      4,

	// What the command runs before most packages are initialised.
	"internal/cli/early":           3,
	"internal/cli/early/filters":   4,
	"internal/cli/early/buildinfo": 4,

	// A provider of models that answers as the public ones do.
	"internal/frontend/model/providertest": 4,

	// 5: configuration, wiring, start and stop.
	"daemon": 5,

	// 6: the command, one file for each subcommand; and what its tests and the
	// benchmarks bring into flight.
	"cmd/holdfast":              6,
	"internal/cli/inflighttest": 6,
}

// homes says which packages may import a dependency that must not spread, and
// why.
var homes = map[string]struct {
	in  []string
	why string
}{
	"cel.dev/cel-go":                         {[]string{"constitution"}, "no other package sees a CEL type (D44)"},
	"modernc.org/sqlite":                     {[]string{"internal/store/sqlite"}, "the kernel knows no database"},
	"github.com/santhosh-tekuri/jsonschema":  {nil, "its package initialisation is slow; internal/leaf/schema has it as a peer in tests"},
	"github.com/golang-jwt/jwt":              {[]string{"internal/leaf/token"}, "a token is verified in one place"},
	"github.com/MicahParks":                  {[]string{"internal/feature/keyset"}, "key sets are fetched in one place"},
	"filippo.io/age":                         {[]string{"internal/leaf/operator"}, "the person's key is opened in one place"},
	"github.com/prometheus":                  {[]string{"daemon"}, "the kernel tells an Observer, and knows no metrics"},
	"go.yaml.in/yaml":                        {[]string{"constitution", "daemon", "internal/assure/ruletest"}, "only rules, their tests and configuration are YAML"},
	"github.com/nicholas-fedor/shoutrrr":     {[]string{"internal/observe/notify"}, "people are told in one place"},
	"github.com/wneessen/go-mail":            {[]string{"internal/observe/notify"}, "people are told in one place"},
	module + "/internal/notify":              {[]string{"daemon"}, "the daemon introduces a hand to what is to be told"},
	"github.com/fsnotify/fsnotify":           {[]string{"daemon"}, "timers and watchers are the daemon's"},
	"go.opentelemetry.io/otel/sdk":           {[]string{"daemon"}, "the kernel speaks only the API"},
	"go.opentelemetry.io/otel/exporters":     {[]string{"daemon"}, "the kernel speaks only the API"},
	"github.com/modelcontextprotocol/go-sdk": {nil, "frames are relayed by our own JSON; the SDK is a peer in tests"},
	"database/sql":                           {[]string{"internal/store/sqlite"}, "the kernel knows no database"},
	module + "/internal/sqlite":              {[]string{"daemon", "cmd/holdfast"}, "the daemon introduces a hand to the kernel; the command only reads"},
	module + "/internal/mcp/server":          {[]string{"daemon", "cmd/holdfast"}, "the daemon starts servers behind the gateway; the command only makes a clean environment"},
	module + "/internal/mcp/remote":          {[]string{"daemon"}, "the daemon reaches servers behind the gateway"},
	module + "/internal/snapshot":            {[]string{"daemon", "cmd/holdfast"}, "the daemon keeps versions of work trees; the command reads its manifests and archives, and asks for git"},
	module + "/internal/keyset":              {[]string{"daemon"}, "the daemon introduces a hand to the kernel"},
	"golang.org/x/sys/unix":                  {[]string{"internal/redact", "internal/leaf/latch", "internal/frontend/api", "internal/frontend/mcp/server", "internal/sandbox/process", "internal/sandbox/container", "internal/sandbox/vm", "internal/sandbox/scratch", "internal/sandbox/copies", "internal/sandbox/copies/image", "internal/sandbox/heir", "internal/worktree/snapshot", "internal/leaf/syncwatch", "daemon"}, "the system is for doors, hands, what tiers of the sandbox share, and the daemon; below them the latch is a file, and redaction locks the memory that registered secrets stand in"},
	"github.com/elastic/go-seccomp-bpf":      {[]string{"internal/sandbox/process"}, "the names of system calls are a wall's"},
	"golang.org/x/net/idna":                  {[]string{"internal/policy/domain"}, "a host is made canonical in one place (D22)"},
	"golang.org/x/net/publicsuffix":          {[]string{"internal/policy/domain"}, "what a wildcard covers is decided in one place"},
	"os/exec":                                {[]string{"internal/frontend/mcp/server", "internal/feature/judge", "internal/worktree/snapshot", "internal/sandbox/process", "internal/sandbox/container", "internal/sandbox/vm", "internal/sandbox/heir", "internal/sandbox/sandboxtest", "internal/leaf/syncwatch", "internal/cli/inflighttest", "daemon", "cmd/holdfast"}, "starting a process is a hand's work"},
}

// impure are what floors 0 to 2 do without: they do no I/O. TestPureFloors looks
// for goroutines and clocks.
var impure = []string{"os", "net", "net/http", "os/exec", "database/sql", "log"}

func TestFloors(t *testing.T) {
	pkgs := imports(t)
	for dir, imps := range pkgs {
		floor, known := floors[dir]
		if !known {
			t.Errorf("package %q has no floor: add it to floors, on the lowest one that its imports allow", dir)
			continue
		}
		for _, imp := range imps {
			checkFloor(t, dir, floor, imp)
			checkHome(t, dir, imp)
		}
	}
	for dir := range floors {
		if _, there := pkgs[dir]; !there {
			t.Errorf("floors names %q, which is not there", dir)
		}
	}
}

func checkFloor(t *testing.T, dir string, floor int, imp string) {
	if floor == 0 && strings.Contains(strings.Split(imp, "/")[0], ".") {
		t.Errorf("%s (floor 0) imports %s: it holds words, and the standard library is enough for them", cmp.Or(dir, "the root package"), imp)
	}
	if floor <= 2 && dir != "internal/leaf/latch" {
		for _, bad := range impure {
			if imp == bad {
				t.Errorf("%s (floor %d) imports %s: judges and tools are pure", dir, floor, imp)
			}
		}
	}
	own, ok := strings.CutPrefix(imp, module)
	if !ok {
		return
	}
	own = strings.TrimPrefix(own, "/")
	other, known := floors[own]
	if !known {
		t.Errorf("%s imports %s, which has no floor", dir, imp)
		return
	}
	if other >= floor && own != filepath.ToSlash(filepath.Dir(dir)) {
		t.Errorf("%s (floor %d) imports %s (floor %d): nothing sideways, nothing up", dir, floor, own, other)
	}
}

func checkHome(t *testing.T, dir, imp string) {
	for dep, home := range homes {
		if imp != dep && !strings.HasPrefix(imp, dep+"/") {
			continue
		}
		allowed := false
		for _, in := range home.in {
			allowed = allowed || in == dir
		}
		if !allowed {
			t.Errorf("%s imports %s: %s", dir, imp, home.why)
		}
	}
}

// imports reads every package's imports outside tests, on every platform.
// Programs beside the command are no packages: nothing can import them.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string]map[string]bool{}
	sources(t, func(path string, f *ast.File, _ *token.FileSet) {
		if f.Name.Name == "main" && !strings.HasPrefix(path, "cmd/") {
			return
		}
		dir := packageOf(path)
		if found[dir] == nil {
			found[dir] = map[string]bool{}
		}
		for _, imp := range f.Imports {
			p, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			found[dir][p] = true
		}
	})
	out := map[string][]string{}
	for dir, set := range found {
		out[dir] = slices.Sorted(maps.Keys(set)) // it is there, even where it imports nothing
	}
	return out
}

// packageOf is the package that a file belongs to, as floors writes it.
func packageOf(path string) string {
	if dir := filepath.ToSlash(filepath.Dir(path)); dir != "." {
		return dir
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestOnlyTheKernelUpdates holds two halves of D1 against the source: nothing
// but the kernel opens an update of a store (a call of a method Update with a
// function, outside the kernel and the stores themselves), and the hands stand on
// a floor that only the daemon and the command are above (TestFloors); homes says
// which of them the command may not import.
func TestOnlyTheKernelUpdates(t *testing.T) {
	sources(t, func(path string, f *ast.File, fset *token.FileSet) {
		for _, may := range []string{"kernel/", "storetest/", "internal/store/sqlite/"} {
			if strings.HasPrefix(path, may) {
				return
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if ok && sel.Sel.Name == "Update" && len(call.Args) == 2 {
				t.Errorf("%s calls Update: only the kernel writes to a store", fset.Position(call.Pos()))
			}
			return true
		})
	})
}

// TestPureFloors looks at what imports cannot show: on floors 0 to 2 nobody
// starts a goroutine or asks the clock. halt is left out: the latch must be
// readable without anything else, and it alone touches a file.
func TestPureFloors(t *testing.T) {
	clock := map[string]bool{"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true,
		"Tick": true, "NewTimer": true, "NewTicker": true}
	sources(t, func(path string, f *ast.File, fset *token.FileSet) {
		dir := packageOf(path)
		if floor, known := floors[dir]; !known || floor > 2 || dir == "internal/leaf/latch" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine on floor %d", fset.Position(n.Pos()), floors[dir])
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && clock[n.Sel.Name] {
					t.Errorf("%s asks the clock on floor %d", fset.Position(n.Pos()), floors[dir])
				}
			}
			return true
		})
	})
}

// sources calls look with every file of the module outside tests.
func sources(t *testing.T, look func(path string, f *ast.File, fset *token.FileSet)) {
	t.Helper()
	all, err := parseModule()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if !strings.HasSuffix(f.path, "_test.go") {
			look(f.path, f.syntax, f.set)
		}
	}
}

// sourceFile is a Go file of this module.
type sourceFile struct {
	path   string // with slashes
	syntax *ast.File
	set    *token.FileSet
}

// parseModule returns each Go file of this module, which is parsed once for all tests.
var parseModule = sync.OnceValues(func() (all []sourceFile, err error) {
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != "." && (exists(filepath.Join(path, "go.mod")) || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		all = append(all, sourceFile{filepath.ToSlash(path), f, set})
		return err
	})
	return all, err
})
