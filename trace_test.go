package holdfast_test

import (
	"encoding/csv"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// specified is how many criteria, invariants and failure predicates the
// sections 1.1 to 1.9 and 2.1 to 3.2 of spec 003 have.
var specified = map[string]struct{ ac, inv, fp int }{
	"KC": {6, 7, 9},
	"K1": {7, 4, 9},
	"K2": {8, 5, 9},
	"K3": {7, 5, 8},
	"K4": {7, 5, 3},
	"K5": {7, 4, 4},
	"K6": {7, 5, 5},
	"K7": {8, 5, 6},
	"K8": {7, 4, 6},
	"CE": {8, 5, 8},
	"SB": {10, 5, 11},
	"EG": {10, 5, 7},
	"NG": {6, 3, 6},
}

// rows is how many lines the tables of the sections 3.1 and 3.2 have: states (S)
// and errors (E), routes (R), rules of the security group (SG) and of the network
// list (NA). Of spec 004 they are rules (R), severities (S), configuration (C),
// data (D), protocol (P), metrics (M), alerts (A), open questions (Q), and the
// faults of findings.md 4.4 (F). Of layers 1 and 2 of spec 001 they are the cooldown
// (C), budgets (B), iterations (I), the counting (E), conditions on the scores (S),
// risks (R), confidence gates (G), the lines of the daily report and its health (H), the metrics (M), what is done about an anomaly (A), whom it is told to (N), the safety check (X), its tests (T), versions and
// going back of layer 3 (V), the stop and the override of layer 4 (O), the lines of "Integration Points" (P), and the sixteen faults of findings.md 5.2 (F). Of spec 000 they are the branches of the
// sandbox's selection policy (SP-R) and its types (SP-T).
var rows = map[string]int{"SP-R": 3, "SP-T": 3, "SN-A": 14, "SN-C": 1, "SN-B": 3, "SN-I": 8, "SN-E": 1, "SN-S": 3, "SN-R": 4, "SN-G": 3, "SN-X": 5, "SN-T": 5, "SN-F": 16, "SN-O": 8, "SN-H": 16, "SN-M": 6, "SN-N": 4, "SN-V": 14,
	"SN-P": 15, "SF-R": 7, "SF-S": 4, "SF-C": 6, "SF-D": 2, "SF-P": 6, "SF-M": 5, "SF-A": 3, "SF-Q": 3, "SF-F": 9, "EG-S": 21, "EG-E": 7, "NG-R": 2, "NG-SG": 4, "NG-NA": 4}

// elsewhere is what a test cannot show, because it is of an account at a cloud:
// such a line says so in the place of its test.
var elsewhere = map[string]bool{"NG-AC2": true}

const cloud = "only a cloud account can show it"

// required are the ids that doc/trace.csv must have: those of specified, those of
// rows, and three failure modes for each of the nine.
func required() map[string]bool {
	out := map[string]bool{}
	for section, n := range specified {
		for kind, count := range map[string]int{"AC": n.ac, "INV": n.inv, "FP": n.fp} {
			for i := range count {
				out[fmt.Sprintf("%s-%s%d", section, kind, i+1)] = true
			}
		}
	}
	for table, count := range rows {
		for i := range count {
			out[fmt.Sprintf("%s%d", table, i+1)] = true
		}
	}
	for gate := 101; gate <= 109; gate++ {
		for i := range 3 {
			out[fmt.Sprintf("FMEA-K%d-%d", gate, i+1)] = true
		}
	}
	return out
}

// table reads a CSV file with comments and the given header.
func table(t *testing.T, name, header string) [][]string {
	t.Helper()
	r := csv.NewReader(strings.NewReader(page(t, name)))
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(rows) < 2 || strings.Join(rows[0], ",") != header {
		t.Fatalf("%s does not begin with %s", name, header)
	}
	return rows[1:]
}

// TestTraceIsComplete holds doc/trace.csv against the specification's counts:
// each requirement once, none missing, none made up, none without a test, a
// decision or a place where it is designed.
func TestTraceIsComplete(t *testing.T) {
	want, decided, tests := required(), decisions(t), testTree(t)
	if len(want) != 167+47+50+25+27+45+126+6 {
		t.Fatalf("%d requirements, not 167 of the kernel, 47 of the sandbox, 50 and 25 of egress, 27 failure modes, 45 of goals, 126 of the safety net and 6 of the choice of a sandbox", len(want))
	}
	seen, own := map[string]bool{}, regexp.MustCompile(`^(D[0-9]+[a-c]?)-([0-9]+)$`)
	for _, row := range table(t, "doc/trace.csv", "id,requirement,design,decision,test") {
		id := row[0]
		if seen[id] {
			t.Errorf("%s stands twice", id)
		}
		seen[id] = true
		if m := own.FindStringSubmatch(id); m != nil {
			// Beyond the specification: what a decision asks, numbered from 1.
			if n, _ := strconv.Atoi(m[2]); n > 1 && !seen[fmt.Sprintf("%s-%d", m[1], n-1)] {
				t.Errorf("%s stands before its predecessor", id)
			}
			if !strings.HasPrefix(row[3]+" ", m[1]+" ") {
				t.Errorf("%s is not settled by %s", id, m[1])
			}
		} else if !want[id] {
			t.Errorf("%s is no requirement of the specification", id)
		}
		delete(want, id)
		for _, fault := range traceFaults(t, row, decided, tests) {
			t.Errorf("%s: %s", id, fault)
		}
	}
	for id := range want {
		t.Errorf("%s is not traced", id)
	}
}

// TestSixteenFaults: each fault that findings.md 5.2 found in the code of spec 001 is
// answered once, by its number.
func TestSixteenFaults(t *testing.T) {
	answered := map[string]int{}
	for _, row := range table(t, "doc/trace.csv", "id,requirement,design,decision,test") {
		if m := regexp.MustCompile(`\(finding 5\.2\.([0-9]+)\)$`).FindStringSubmatch(row[1]); m != nil && strings.HasPrefix(row[0], "SN-F") {
			answered[m[1]]++
		}
	}
	for n := range 16 {
		if got := answered[strconv.Itoa(n+1)]; got != 1 {
			t.Errorf("fault %d is answered %d times", n+1, got)
		}
	}
	if len(answered) != 16 {
		t.Errorf("%d faults are answered, where 16 were found", len(answered))
	}
}

// traceFaults are what is wrong with one line's links.
func traceFaults(t *testing.T, row []string, decided map[string]bool, tests map[string]*testFunc) (out []string) {
	t.Helper()
	if strings.TrimSpace(row[1]) == "" {
		out = append(out, "nothing is required")
	}
	doc, section, _ := strings.Cut(row[2], "#")
	if section == "" || !readSections(doc)[section] {
		out = append(out, fmt.Sprintf("the design %q is no section of a page", row[2]))
	}
	if len(strings.Fields(row[3])) == 0 {
		out = append(out, "no decision")
	}
	for _, d := range strings.Fields(row[3]) {
		if !decided[d] {
			out = append(out, d+" is no decision of doc/decisions.csv")
		}
	}
	if elsewhere[row[0]] {
		if row[4] != cloud {
			out = append(out, "it is shown by nothing but "+cloud)
		}
		return out
	}
	for name := range strings.SplitSeq(row[4], ";") {
		name = strings.TrimSpace(name)
		if name == "" {
			out = append(out, "no test")
			continue
		}
		top, sub, isSub := split(name)
		f := tests[top]
		switch {
		case f == nil:
			out = append(out, top+" is no test")
		case isSub && !f.has(sub):
			out = append(out, top+" has no subtest "+sub)
		}
	}
	return out
}

// sections are the headings of the pages that readSections has read.
var sections = map[string]map[string]bool{}

// readSections returns the headings of a page, none of a page that cannot be read.
func readSections(doc string) map[string]bool {
	if found, known := sections[doc]; known {
		return found
	}
	found := map[string]bool{}
	b, _ := os.ReadFile(doc)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllSubmatch(b, -1) {
		found[string(m[1])] = true
	}
	sections[doc] = found
	return found
}

// split parts a test's name from its subtest's: a directory may have slashes
// too.
func split(name string) (top, sub string, isSub bool) {
	at := strings.Index(name, ".Test")
	if at < 0 {
		return name, "", false
	}
	fn, sub, isSub := strings.Cut(name[at:], "/")
	return name[:at] + fn, sub, isSub
}

// TestTraceFindsWhatIsUnlinked: a line that lies is found, whatever it lies
// about.
func TestTraceFindsWhatIsUnlinked(t *testing.T) {
	decided, tests := decisions(t), testTree(t)
	const design, real = "doc/crossing.md#The states", "internal/kernel.TestK1_payloads"
	if f := traceFaults(t, []string{"x", "y", design, "D1 D6a", real + "; " + real + "/K1_AC1_conforms"}, decided, tests); f != nil {
		t.Fatalf("an honest line: %q", f)
	}
	for _, row := range [][]string{
		{"x", "", design, "D1", real},
		{"x", "y", "doc/crossing.md#No such section", "D1", real},
		{"x", "y", "doc/nowhere.md#The states", "D1", real},
		{"x", "y", "", "D1", real},
		{"x", "y", design, "", real},
		{"x", "y", design, "D999", real},
		{"x", "y", design, "D1", ""},
		{"x", "y", design, "D1", real + ";"},
		{"x", "y", design, "D1", "kernel.TestNoSuchThing"},
		{"x", "y", design, "D1", "ledger.TestK1_payloads"},
		{"x", "y", design, "D1", "TestK1_payloads"},
		{"x", "y", design, "D1", real + "/K1_AC1_nothing_of_the_kind"},
		{"x", "y", design, "D1", real + "/"},
		{"x", "y", design, "D1", cloud},
		{"NG-AC2", "y", design, "D1", real},
	} {
		if f := traceFaults(t, row, decided, tests); len(f) == 0 {
			t.Errorf("%q: nothing found", row)
		}
	}
}

// TestNamesCiteRealCriteria wants every criterion that a test's name cites to
// be one of the specification's.
func TestNamesCiteRealCriteria(t *testing.T) {
	want, cited := required(), regexp.MustCompile(`(K[1-8]|KernelContext)_((?:(?:AC|INV|FP)[0-9]+_?)+)`)
	n := 0
	for name := range testTree(t) {
		for _, m := range cited.FindAllStringSubmatch(name, -1) {
			section := strings.Replace(m[1], "KernelContext", "KC", 1)
			for _, c := range regexp.MustCompile(`(?:AC|INV|FP)[0-9]+`).FindAllString(m[2], -1) {
				if n++; !want[section+"-"+c] {
					t.Errorf("%s cites %s-%s, which is none", name, section, c)
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d citations were found", n)
	}
}

func decisions(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, row := range table(t, "doc/decisions.csv", "number,about") {
		if out[row[0]] || row[1] == "" {
			t.Errorf("doc/decisions.csv: %s stands twice, or says nothing", row[0])
		}
		out[row[0]] = true
	}
	return out
}

// testFunc is a test of the tree: its body, and the declarations of its
// package's tests, in which the names of its subtests may stand.
type testFunc struct {
	dir   string
	body  ast.Node
	decls map[string]ast.Node
}

// has says whether a subtest of that name can be there: a text that becomes it
// stands in the test, or in what the test refers to; a script is a file.
func (f *testFunc) has(sub string) bool {
	if sub == "" {
		return false
	}
	for _, scripts := range []string{"", "peers"} {
		if exists(filepath.Join(f.dir, "testdata", scripts, sub+".txtar")) {
			return true
		}
	}
	seen, found := map[ast.Node]bool{}, false
	var look func(ast.Node)
	look = func(n ast.Node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				text, err := strconv.Unquote(n.Value)
				found = found || (err == nil && n.Kind == token.STRING && (text == sub || strings.ReplaceAll(text, " ", "_") == sub))
			case *ast.Ident:
				look(f.decls[n.Name])
			}
			return !found
		})
	}
	look(f.body)
	return found
}

// testTree are the tests of this module, by directory and name, as
// "internal/leaf/token.TestX"; the root's are ".TestX".
func testTree(t *testing.T) map[string]*testFunc {
	t.Helper()
	all, err := parseModule()
	if err != nil {
		t.Fatal(err)
	}
	out, packages := map[string]*testFunc{}, map[string]map[string]ast.Node{}
	for _, source := range all {
		if !strings.HasSuffix(source.path, "_test.go") {
			continue
		}
		dir, f := filepath.ToSlash(filepath.Dir(source.path)), source.syntax
		key := dir + " " + f.Name.Name
		if packages[key] == nil {
			packages[key] = map[string]ast.Node{}
		}
		decls := packages[key]
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				declared(decl, decls)
				continue
			}
			if fn.Recv != nil || fn.Body == nil {
				continue
			}
			decls[fn.Name.Name] = fn.Body
			if testName.MatchString(fn.Name.Name) && fn.Name.Name != "TestMain" {
				out[strings.TrimPrefix(dir, "./")+"."+fn.Name.Name] = &testFunc{dir, fn.Body, decls}
			}
		}
	}
	for name, f := range out {
		if rest, ok := strings.CutPrefix(name, ".."); ok {
			delete(out, name)
			out["."+rest] = f
		}
	}
	return out
}

var testName = regexp.MustCompile(`^(Test|Fuzz)[^a-z]`)

// declared adds the variables and constants of a declaration.
func declared(decl ast.Decl, to map[string]ast.Node) {
	gen, ok := decl.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, spec := range gen.Specs {
		if v, ok := spec.(*ast.ValueSpec); ok {
			for _, name := range v.Names {
				to[name.Name] = v
			}
		}
	}
}
