package holdfast_test

import (
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

// layers are the directories of the packages, lowest first. A package may import packages
// of lower layers, and of its own layer only the package of its parent directory, what
// orders has before it, and what sideways names.
var layers = [][]string{
	{"", "executorpb"}, // the vocabulary, and the messages made from executor.proto
	{"internal/leaf"},
	{"internal/redact"},
	{"internal/policy"}, // pure decisions
	{"ledger"},
	{"internal/kernel"},
	{"internal/feature", "internal/sandbox", "internal/store", "internal/worktree"},
	{"internal/observe"},
	{"internal/frontend"},
	{"internal/config"},
	{"daemon"},
	{"internal/cli", "internal/assure"},
	{"cmd/holdfast"},
}

// orders are directories with many packages that build on each other, lowest first. One
// may import those before it, and the package of the directory itself all of them.
var orders = map[string][]string{
	"internal/redact": {
		"rule", "char", "span", "finding", "mask", "cursor", "escape", "checksum", "phone", "fieldname", "command",
		"mailhost", "line", "token", "encoded",
		"detector", "memory", "literal", "certain", "engine", "format", "stream", "redactlog",
	},
	"internal/sandbox": {"process", "container", "vm", "tiers"},
	"internal/kernel":  {"checkpoint", "deadline", "flight", "past", "record", "stops", "approval"},
	"internal/frontend/egress": {
		"hangup", "wire", "destination", "headerfield", "refusal", "memory", "aside", "coding", "frames", "pieces",
		"cleaner", "upstream", "authority", "sentinel", "counters", "credential", "service",
	},
	"internal/frontend/mcp": {
		"code", "remote", "server", "redaction", "gateway", "router", "streamable", "service",
	},
	"internal/config":              {"register"},
	"internal/store/sqlite":        {"connection", "schema"},
	"internal/policy/constitution": {"failure", "rulefile", "outputcheck"},
	"internal/sandbox/process":     {"seccomp", "language", "relay", "grant", "workroot", "hostlimit", "bystander", "cgroup"},
}

// isOrdered reports whether orders let the package dir import own.
func isOrdered(dir, own string) bool {
	wing := filepath.ToSlash(filepath.Dir(own))
	order, ok := orders[wing]
	if !ok {
		return false
	}
	at := slices.Index(order, filepath.Base(own))
	if dir == wing {
		return at >= 0
	}
	return at >= 0 && filepath.ToSlash(filepath.Dir(dir)) == wing && at < slices.Index(order, filepath.Base(dir))
}

// sideways are the imports inside one layer, each with its reason.
var sideways = map[[2]string]string{
	{"internal/feature", "internal/feature/erasure"}:    "the list of the features",
	{"internal/feature", "internal/feature/exceed"}:     "the list of the features",
	{"internal/feature", "internal/feature/goal"}:       "the list of the features",
	{"internal/feature", "internal/feature/judge"}:      "the list of the features",
	{"internal/feature", "internal/feature/modelvalue"}: "the list of the features",
	{"internal/feature", "internal/feature/respond"}:    "the list of the features",
	{"internal/feature", "internal/feature/spend"}:      "the list of the features",
	{"internal/feature", "internal/feature/subagent"}:   "the list of the features",
	{"internal/feature", "internal/feature/toolpin"}:    "the list of the features",
	{"internal/leaf/schema", "internal/leaf/excerpt"}:   "an error quotes the place in a document",
	{"internal/policy/contract",
		"internal/policy/constitution/failure"}: "a predicate can fail",
	{"internal/policy/contract",
		"internal/policy/constitution/outputcheck"}: "a contract has predicates of outputs",
	{"internal/policy/contract",
		"internal/policy/constitution"}: "a contract has expressions and predicates",
	{"internal/policy/contract",
		"internal/policy/lookalike"}: "a contract knows the members of its schema",
	{"internal/policy/contract",
		"internal/policy/pricing"}: "a contract can have a price",
	{"internal/policy/contract",
		"internal/policy/review"}: "a pattern of risk may be worse than the contract",
	{"internal/policy/pricing", "internal/policy/budget"}: "the tables of prices",
	{"internal/policy/pricing",
		"internal/policy/constitution"}: "a price is written in the language of rules",
	{"internal/policy/goalrule", "internal/policy/constitution"}:                "a goal's conditions are written in the language of rules",
	{"internal/policy/history", "internal/policy/constitution"}:                 "what rules ask of the past",
	{"internal/feature/survey", "internal/feature/exceed"}:                      "what people granted is part of a budget",
	{"internal/policy/signal", "internal/policy/budget"}:                        "a spent budget is named",
	{"internal/policy/signal", "internal/policy/posture"}:                       "an escape names the system call",
	{"internal/frontend/egress", "internal/frontend/model/modeltext"}:           "the proxy restores texts of events",
	{"internal/frontend/egress", "internal/frontend/model/substitute"}:          "the proxy puts placeholders into requests to models",
	{"internal/frontend/model/substitute", "internal/frontend/model/dialect"}:   "texts are found in the dialect's shapes",
	{"internal/frontend/model/substitute", "internal/frontend/model/modeltext"}: "it replaces and restores texts",
	{"internal/frontend/egress", "internal/frontend/model/dialect"}:             "the proxy reads what is asked of a model",
	{"internal/sandbox/container", "internal/sandbox/copies/image"}:             "the tier unpacks images",
	{"internal/sandbox/container", "internal/sandbox/heir"}:                     "what outlives the tier is removed by an heir",
	{"internal/sandbox/container", "internal/sandbox/scratch"}:                  "tiers share how files come and go",
	{"internal/sandbox/process/language", "internal/sandbox/copies"}:            "tiers share copies of interpreters",
	{"internal/sandbox/process", "internal/sandbox/scratch"}:                    "tiers share how files come and go",
	{"internal/sandbox/tiers", "internal/sandbox/copies/image"}:                 "an image is named by its source",
	{"internal/sandbox/process/cgroup", "internal/sandbox"}:                     "a share is the tiers' word",
	{"internal/sandbox/process/hostlimit", "internal/sandbox"}:                  "a run has as many open files as the tiers give it",
	{"internal/sandbox/process/language", "internal/sandbox"}:                   "the static language has the tiers' name",
	{"internal/sandbox/process/relay", "internal/sandbox"}:                      "streams are the tiers' word",
	{"internal/sandbox/process/seccomp", "internal/sandbox"}:                    "filters that a runtime builds get their rules in the tiers' words",
	{"internal/sandbox/process/workroot", "internal/sandbox"}:                   "what is requested of a workspace",
	{"internal/sandbox/vm", "internal/sandbox/copies"}:                          "tiers share copies of interpreters",
	{"internal/sandbox/vm", "internal/sandbox/heir"}:                            "what outlives the tier is removed by an heir",
	{"internal/cli/early/filters", "internal/cli/filter"}:                       "the filters that start before the command",
	{"internal/policy/pause", "internal/policy/review"}:                         "a pause is answered by a review",
	{"internal/policy/pause", "internal/policy/watch"}:                          "a pause is for a condition",
	{"internal/frontend/egress/service",
		"internal/frontend/api"}: "it answers `holdfast egress` and serves the sockets of runs",
	{"internal/frontend/overview", "internal/frontend/api"}:                 "it makes the answer of `holdfast top`",
	{"internal/frontend/egress/refusal", "internal/frontend/model/dialect"}: "a provider's clients read its own form",
	{"internal/frontend/model/modeltext",
		"internal/frontend/model/dialect"}: "texts are found in the dialect's shapes",
	{"internal/frontend/mcp/service", "internal/frontend/api"}:      "it answers `holdfast mcp`, and runs code as commands do",
	{"internal/frontend/mcp/service", "internal/frontend/bearer"}:   "clients over HTTP bring tokens",
	{"internal/frontend/mcp/service", "internal/frontend/listener"}: "it listens for clients over HTTP",
	{"internal/leaf/guard", "internal/leaf/usage"}:                  "a refused file is an error that a person must fix",
	{"internal/observe/anomaly", "internal/observe/story"}:          "findings are put into words",
	{"internal/observe/metrics", "internal/observe/alert"}:          "the tries of channels are counted",
	{"internal/observe/metrics", "internal/observe/anomaly"}:        "findings and answers are counted",
	{"internal/observe/report", "internal/observe/notify"}:          "a report is sent like an alert",
	{"internal/observe/alert", "internal/observe/notify"}:           "alerts and notices wait in the queue",
	{"internal/observe/halthook", "internal/observe/notify"}:        "halt hooks share the journal",
	{"internal/observe/report", "internal/observe/story"}:           "a report counts what a record cost",
	{"internal/worktree/versions", "internal/feature/command"}:      "archives go through a command",
	{"internal/worktree/versions", "internal/store/sqlite"}:         "an archive holds a copy of the store, which is verified",
	{"internal/worktree/versions", "internal/worktree/snapshot"}:    "versions are kept by snapshots",
	{"internal/worktree/versions", "internal/feature"}:              "a copy of the store has the tables of features",
}

// homes says which packages may import a dependency that must not spread, and
// why.
var homes = map[string]struct {
	in  []string
	why string
}{
	"cel.dev/cel-go": {
		[]string{"internal/policy/constitution", "internal/policy/constitution/failure"},
		"no other package sees a CEL type (D44), but that of its failures",
	},
	"modernc.org/sqlite": {[]string{"internal/store/sqlite/connection"},
		"the kernel knows no database"},
	"github.com/santhosh-tekuri/jsonschema": {nil, "its package initialisation is slow; internal/leaf/schema has it as a peer in tests"},
	"github.com/golang-jwt/jwt":             {[]string{"internal/leaf/token"}, "a token is verified in one place"},
	"github.com/MicahParks": {
		[]string{"internal/feature/keyset"},
		"key sets are fetched in one place",
	},
	"filippo.io/age": {[]string{"internal/leaf/operator"}, "the person's key is opened in one place"},
	"github.com/prometheus": {[]string{"internal/observe/metrics"},
		"the kernel tells an Observer, and knows no metrics"},
	"go.yaml.in/yaml": {[]string{"internal/policy/constitution", "internal/policy/constitution/rulefile",
		"internal/config", "internal/assure/ruletest"},
		"only rules, their tests and configuration are YAML"},
	"github.com/nicholas-fedor/shoutrrr": {[]string{"internal/observe/notify"}, "people are told in one place"},
	"github.com/wneessen/go-mail":        {[]string{"internal/observe/notify"}, "people are told in one place"},
	module + "/internal/observe/notify": {[]string{"internal/config", "internal/observe/alert",
		"internal/observe/halthook", "internal/observe/report", "daemon"},
		"alerts own the queue; halt hooks share the journal; reports are messages; the configuration opens channels; the daemon joins them"},
	"github.com/fsnotify/fsnotify": {[]string{"internal/config", "internal/leaf/latch"},
		"the configuration and the latch are watched"},
	"go.opentelemetry.io/otel/sdk": {[]string{"internal/observe/telemetry"}, "the kernel speaks only the API"},
	"go.opentelemetry.io/otel/exporters": {[]string{"internal/observe/telemetry"},
		"the kernel speaks only the API"},
	"github.com/modelcontextprotocol/go-sdk": {nil, "frames are relayed by our own JSON; the SDK is a peer in tests"},
	"database/sql": {[]string{"internal/store/sqlite/connection"},
		"the kernel knows no database"},
	module + "/internal/store/sqlite": {[]string{"internal/store/sqlite", "internal/store/sqlite/schema",
		"internal/worktree/versions", "daemon", "cmd/holdfast"},
		"the daemon introduces a hand to the kernel; the command only reads"},
	module + "/internal/frontend/mcp/server": {[]string{"internal/frontend/mcp/service", "daemon", "cmd/holdfast"}, "one service starts the servers of a state; the daemon ends what a crash left, and the command makes a clean environment"},
	module + "/internal/frontend/mcp/remote": {[]string{"internal/frontend/mcp/service"}, "one service reaches the servers of a state"},
	module + "/internal/worktree/snapshot":   {[]string{"internal/config", "internal/observe/report", "internal/observe/anomaly", "internal/worktree/versions", "daemon", "cmd/holdfast"}, "reports know its boundaries; the daemon keeps versions of work trees; the configuration names them; the command reads its manifests and archives, and asks for git"},
	module + "/internal/feature/keyset":      {[]string{"daemon"}, "the daemon introduces a hand to the kernel"},
	"golang.org/x/sys/unix": {[]string{
		"daemon",
		"internal/frontend/api",
		"internal/frontend/mcp/server",
		"internal/leaf/guard",
		"internal/leaf/latch",
		"internal/leaf/syncwatch",
		"internal/leaf/testdisk",
		"internal/redact/memory",
		"internal/sandbox/container",
		"internal/sandbox/copies",
		"internal/sandbox/copies/image",
		"internal/sandbox/heir",
		"internal/sandbox/process",
		"internal/sandbox/process/bystander",
		"internal/sandbox/process/cgroup",
		"internal/sandbox/process/grant",
		"internal/sandbox/process/hostlimit",
		"internal/sandbox/process/language",
		"internal/sandbox/process/relay",
		"internal/sandbox/process/seccomp",
		"internal/sandbox/process/workroot",
		"internal/sandbox/scratch",
		"internal/sandbox/vm",
		"internal/store/statedir",
		"internal/worktree/snapshot",
		"internal/worktree/versions",
	}, "the system is for doors, hands, what tiers of the sandbox share, and the daemon; " +
		"below them the latch is a file, and redaction locks the memory that registered secrets stand in"},
	"github.com/elastic/go-seccomp-bpf": {[]string{"internal/sandbox/process/seccomp"}, "the names of system calls are a wall's"},
	"golang.org/x/net/idna":             {[]string{"internal/policy/domain"}, "a host is made canonical in one place (D22)"},
	"golang.org/x/net/publicsuffix":     {[]string{"internal/policy/domain"}, "what a wildcard covers is decided in one place"},
	"os/exec": {[]string{
		"cmd/holdfast",
		"internal/cli/inflighttest",
		"internal/feature/command",
		"internal/feature/judge",
		"internal/frontend/egress/credential",
		"internal/frontend/mcp/server",
		"internal/leaf/syncwatch",
		"internal/leaf/testdisk",
		"internal/redact/detector",
		"internal/sandbox/container",
		"internal/sandbox/heir",
		"internal/sandbox/process",
		"internal/sandbox/process/language",
		"internal/sandbox/sandboxtest",
		"internal/sandbox/vm",
		"internal/worktree/snapshot",
	}, "starting a process is a hand's work"},
}

// impure are the packages that do I/O; TestPureLayers looks for goroutines and clocks.
var impure = []string{"os", "net", "net/http", "os/exec", "database/sql", "log"}

// mayDoIO are the packages below the kernel that do I/O, or ask the clock.
var mayDoIO = map[string]string{
	"internal/redact/detector": "keeps the external detector's process",
	"internal/leaf/latch":      "the latch is a file, and must be readable without anything else",
	"internal/leaf/configpath": "finds the configuration's file",
	"internal/leaf/durable":    "writes files that survive a power cut",
	"internal/leaf/guard":      "reads the files that govern",
	"internal/leaf/procstat":   "reads how Linux describes a process",
	"internal/leaf/testdisk":   "mounts a small disk for a test",
	"internal/leaf/testfile":   "writes files for tests",
	"internal/leaf/syncwatch":  "watches a process for tests",
}

// layerOf returns the number of a package's layer, or -1 if it has none.
func layerOf(dir string) int {
	for i, layer := range layers {
		for _, wing := range layer {
			if dir == wing || wing != "" && strings.HasPrefix(dir, wing+"/") {
				return i
			}
		}
	}
	return -1
}

// isPure reports whether a package is one of those below the kernel that do no I/O.
func isPure(dir string) bool {
	_, may := mayDoIO[dir]
	return !may && layerOf(dir) >= 0 && layerOf(dir) < layerOf("internal/kernel")
}

func TestLayers(t *testing.T) {
	used := map[[2]string]bool{}
	pkgs := imports(t)
	for dir, imps := range pkgs {
		if layerOf(dir) < 0 {
			t.Errorf("package %q is in no layer: move it below one of the directories in layers", dir)
			continue
		}
		for _, imp := range imps {
			checkLayer(t, dir, imp, used)
			checkHome(t, dir, imp)
		}
	}
	for pair := range sideways {
		if !used[pair] {
			t.Errorf("sideways names the import of %s by %s, which is not there", pair[1], pair[0])
		}
	}
	for wing, order := range orders {
		for _, name := range order {
			if _, ok := pkgs[wing+"/"+name]; !ok {
				t.Errorf("orders names %s/%s, which is not there", wing, name)
			}
		}
	}
	for dir := range mayDoIO {
		if pkgs[dir] == nil {
			t.Errorf("mayDoIO names %q, which is not there", dir)
		}
	}
}

// checkLayer checks that the package dir may import imp, and notes in used what sideways
// had to allow.
func checkLayer(t *testing.T, dir, imp string, used map[[2]string]bool) {
	if dir == "" && strings.Contains(strings.Split(imp, "/")[0], ".") {
		t.Errorf("the root package imports %s: the vocabulary uses the standard library only", imp)
	}
	if isPure(dir) && slices.Contains(impure, imp) {
		t.Errorf("%s imports %s: packages below the kernel do no I/O", dir, imp)
	}
	own, ok := strings.CutPrefix(imp, module)
	if !ok {
		return
	}
	own = strings.TrimPrefix(own, "/")
	pair := [2]string{dir, own}
	if sideways[pair] != "" {
		used[pair] = true
		return
	}
	if isOrdered(dir, own) {
		return
	}
	if layerOf(own) >= layerOf(dir) && own != filepath.ToSlash(filepath.Dir(dir)) {
		t.Errorf("%s imports %s, which is not in a lower layer", dir, own)
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

// packageOf returns the directory of the package that a file belongs to, "" for the root.
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
// but the kernel opens an update of a store (a call of a method Update or UpdateUnhurried with a
// function, outside the kernel and the stores themselves), and what acts is in layers
// that only the daemon and the command are above (TestLayers); homes lists
// what the command may not import.
func TestOnlyTheKernelUpdates(t *testing.T) {
	sources(t, func(path string, f *ast.File, fset *token.FileSet) {
		for _, may := range []string{"internal/kernel/", "internal/store/"} {
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
			if ok && (sel.Sel.Name == "Update" || sel.Sel.Name == "UpdateUnhurried") && len(call.Args) == 2 {
				t.Errorf("%s calls Update: only the kernel writes to a store", fset.Position(call.Pos()))
			}
			return true
		})
	})
}

// powers are types of the kernel that do what no feature may, each with the one package that has it in
// addition to the composition.
var powers = map[string]string{
	"CounterRaiser": "internal/feature/recount",
	"Eraser":        "internal/feature/erasure",
	"EraserTx":      "internal/feature/erasure",
}

// TestPowersHaveOneUser: only the composition and one package name each of powers.
func TestPowersHaveOneUser(t *testing.T) {
	sources(t, func(path string, f *ast.File, fset *token.FileSet) {
		dir := packageOf(path)
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				x, ok := s.X.(*ast.Ident)
				user, power := powers[s.Sel.Name]
				if ok && power && x.Name == "kernel" && dir != user && dir != "daemon" {
					t.Errorf("%s names kernel.%s: that is for the daemon and %q", fset.Position(s.Pos()),
						s.Sel.Name, user)
				}
			}
			return true
		})
	})
}

// TestPureLayers: the packages below the kernel start no goroutine and do not ask the
// clock.
func TestPureLayers(t *testing.T) {
	clock := map[string]bool{"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true,
		"Tick": true, "NewTimer": true, "NewTicker": true}
	sources(t, func(path string, f *ast.File, fset *token.FileSet) {
		if !isPure(packageOf(path)) {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine below the kernel", fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && clock[n.Sel.Name] {
					t.Errorf("%s asks the clock below the kernel", fset.Position(n.Pos()))
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
